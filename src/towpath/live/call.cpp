// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/call.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "towpath/base/index.hpp"

namespace towpath::live {

using transport::kNoPeer;

[[noreturn]] void refuse(const Request& request, const std::string& what) {
  throw std::invalid_argument(fmt::format("{}: {}", request.name, what));
}

namespace {

constexpr std::uint32_t kElementBytesMax = 16;  // a complex number of two float64

// How many inputs and outputs a call has.
std::pair<std::size_t, std::size_t> spans_of(Kind kind, std::size_t ranks) {
  switch (kind) {
    case Kind::exchange:
    case Kind::all_to_all: return {ranks, ranks};
    case Kind::reduce_scatter: return {ranks, 1};
    case Kind::all_gather: return {1, ranks};
    case Kind::barrier: return {0, 0};
    case Kind::send: return {1, 0};
    case Kind::receive: return {0, 1};
    default: return {1, 1};
  }
}

// The part of a rank for itself fits exactly into its output.
void check_own_part(const Request& request, std::size_t rank) {
  if (request.kind == Kind::broadcast || request.kind == Kind::barrier || is_message(request)) {
    return;
  }
  if (request.kind == Kind::reduce && index(request.peer) != rank) return;
  const Span& input = request.inputs.size() == 1 ? request.inputs[0] : request.inputs[rank];
  const Span& output = request.outputs.size() == 1 ? request.outputs[0] : request.outputs[rank];
  if (input.size_bytes == output.size_bytes) return;
  refuse(request, fmt::format("this rank's own input has {} bytes, but its output has room for {}; "
                              "they are equal",
                              input.size_bytes, output.size_bytes));
}

void check_equal_parts(const Request& request) {
  for (const auto* spans : {&request.inputs, &request.outputs}) {
    for (const Span& span : *spans) {
      if (span.size_bytes == request.inputs[0].size_bytes) continue;
      refuse(request, fmt::format("its parts have {} and {} bytes; in an all_to_all all are equal",
                                  request.inputs[0].size_bytes, span.size_bytes));
    }
  }
}

void check_spans(const Request& request, std::size_t rank, std::size_t ranks) {
  const auto [inputs, outputs] = spans_of(request.kind, ranks);
  if (request.inputs.size() != inputs || request.outputs.size() != outputs) {
    refuse(request, fmt::format("it has {} inputs and {} outputs; it needs {} and {}",
                                request.inputs.size(), request.outputs.size(), inputs, outputs));
  }
  check_own_part(request, rank);
  if (request.kind == Kind::all_to_all) check_equal_parts(request);
}

}  // namespace

std::uint64_t size_of(const Request& request) {
  const auto total = [](const std::vector<Span>& spans) {
    std::uint64_t bytes = 0;
    for (const Span& span : spans) bytes += span.size_bytes;
    return bytes;
  };
  const std::uint64_t sent = total(request.inputs);
  return sent > 0 ? sent : total(request.outputs);
}

void check_request(const Request& request, int rank, int ranks) {
  const bool is_any = request.kind == Kind::receive && request.peer == kNoPeer;
  if (!is_any && (request.peer < 0 || request.peer >= ranks)) {
    refuse(request, fmt::format("rank {} is outside the range 0 to {}", request.peer, ranks - 1));
  }
  if (is_message(request) && request.peer == rank) {
    refuse(request, "a rank cannot send to itself");
  }
  const std::uint32_t element = request.combination.element_bytes;
  // Without std::has_single_bit, which counts bits one by one on the oldest processors.
  if (element == 0 || (element & (element - 1)) != 0 || element > kElementBytesMax) {
    refuse(request, fmt::format("an element has {} bytes; 1, 2, 4, 8 and 16 are allowed", element));
  }
  check_spans(request, index(rank), index(ranks));
}

}  // namespace towpath::live
