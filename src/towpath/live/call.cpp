// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "towpath/base/index.hpp"

namespace towpath::live {

using transport::kNoPeer;

[[noreturn]] void refuse(const Request& request, const std::string& what) {
  throw std::invalid_argument(fmt::format("{}: {}", request.name, what));
}

namespace {

constexpr std::uint32_t kElementBytesMax = 16;  // a complex number of two float64

// The numbers of inputs and outputs of a call.
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
  refuse(
      request,
      fmt::format(
          "this rank's own input has {} bytes, but its output has room for {}; they must be equal",
          input.size_bytes, output.size_bytes));
}

void check_equal_parts(const Request& request) {
  for (const auto* spans : {&request.inputs, &request.outputs}) {
    for (const Span& span : *spans) {
      if (span.size_bytes == request.inputs[0].size_bytes) continue;
      refuse(request,
             fmt::format("its parts have {} and {} bytes; in an all_to_all they must be equal",
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

// The bytes from the first to the last byte of some spans.
Span hull_of(const std::vector<Span>& spans) {
  std::byte* begin = nullptr;
  std::byte* end = nullptr;
  for (const Span& span : spans) {
    if (span.size_bytes == 0) continue;
    begin = begin == nullptr ? span.data : std::min(begin, span.data);
    end = std::max(end, span.data + span.size_bytes);
  }
  return {begin, static_cast<std::uint64_t>(end - begin)};
}

bool overlap_each_other(const std::vector<Span>& spans) {
  const auto follows = [](const Span& a, const Span& b) {
    return b.size_bytes == 0 || a.data + a.size_bytes <= b.data;
  };
  std::size_t next = 1;
  while (next < spans.size() && follows(spans[next - 1], spans[next])) ++next;
  if (next >= spans.size()) return false;
  std::vector<Span> sorted;
  for (const Span& span : spans) {
    if (span.size_bytes > 0) sorted.push_back(span);
  }
  std::ranges::sort(sorted, {}, &Span::data);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (overlap(sorted[i - 1], sorted[i])) return true;
  }
  return false;
}

// True if an input and an output may be the same bytes.
bool is_in_place(Kind kind, std::size_t input, std::size_t output, std::size_t rank) {
  switch (kind) {
    case Kind::all_gather: return output == rank;
    case Kind::reduce_scatter: return input == rank;
    default: return input == output;
  }
}

std::string_view in_place_form(Kind kind) {
  switch (kind) {
    case Kind::all_gather: return "in place, the input is this rank's part of the output";
    case Kind::reduce_scatter: return "in place, the output is this rank's part of the input";
    case Kind::exchange:
    case Kind::all_to_all: return "in place, each part of the output is that part of the input";
    default: return "in place, the output is the input";
  }
}

}  // namespace

void check_overlap(const Request& request, int rank) {
  // Most calls have one array, or two that do not overlap.
  if (request.inputs.size() == 1 && request.outputs.size() == 1) {
    const Span& input = request.inputs[0];
    const Span& output = request.outputs[0];
    if (input.data == output.data ? are_same(input, output) : !overlap(input, output)) return;
  }
  if (overlap_each_other(request.outputs)) {
    refuse(request, "parts of its output overlap each other");
  }
  if (!overlap(hull_of(request.inputs), hull_of(request.outputs))) return;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    for (std::size_t o = 0; o < request.outputs.size(); ++o) {
      const Span& input = request.inputs[i];
      const Span& output = request.outputs[o];
      if (!overlap(input, output)) continue;
      if (are_same(input, output) && is_in_place(request.kind, i, o, index(rank))) {
        continue;
      }
      refuse(request,
             fmt::format("its output overlaps its input; {}, and otherwise they must not overlap",
                         in_place_form(request.kind)));
    }
  }
}

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::exchange: return "exchange";
    case Kind::all_reduce: return "all_reduce";
    case Kind::reduce: return "reduce";
    case Kind::reduce_scatter: return "reduce_scatter";
    case Kind::broadcast: return "broadcast";
    case Kind::send: return "send";
    case Kind::receive: return "receive";
    case Kind::all_gather: return "all_gather";
    case Kind::all_to_all: return "all_to_all";
    case Kind::barrier: return "barrier";
  }
  return "";
}

std::string title_of(std::string_view name, Kind kind, std::uint64_t size_bytes, int root) {
  if (kind == Kind::barrier) return std::string(name);
  std::string text = fmt::format("{} of {} bytes", name, size_bytes);
  if (kind == Kind::broadcast) text += fmt::format(" from root {}", root);
  if (kind == Kind::reduce) text += fmt::format(" to root {}", root);
  return text;
}

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
    refuse(request, fmt::format("an element has {} bytes; it must have 1, 2, 4, 8 or 16", element));
  }
  check_spans(request, index(rank), index(ranks));
  check_overlap(request, rank);
}

}  // namespace towpath::live
