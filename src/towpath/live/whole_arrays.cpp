// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/whole_arrays.hpp"

#include <fmt/format.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace towpath::live {

namespace {

constexpr std::array<std::pair<std::string_view, Kind>, 7> kCollectives{{
    {"all_reduce", Kind::all_reduce},
    {"reduce", Kind::reduce},
    {"broadcast", Kind::broadcast},
    {"all_gather", Kind::all_gather},
    {"reduce_scatter", Kind::reduce_scatter},
    {"all_to_all", Kind::all_to_all},
    {"barrier", Kind::barrier},
}};

Kind kind_from(std::string_view name) {
  for (const auto& [known, kind] : kCollectives) {
    if (known == name) return kind;
  }
  throw std::invalid_argument(
      fmt::format("collective '{}' needs a schedule; without one, choose all_reduce, reduce, "
                  "broadcast, all_gather, reduce_scatter, all_to_all or barrier",
                  name));
}

std::vector<Span> parts_of(const Span& whole, int ranks) {
  const std::uint64_t size = whole.size_bytes / static_cast<std::uint64_t>(ranks);
  std::vector<Span> parts;
  for (int rank = 0; rank < ranks; ++rank) {
    parts.push_back({whole.data + static_cast<std::uint64_t>(rank) * size, size});
  }
  return parts;
}

const LibraryReduction& self(void* context) {
  return *static_cast<const LibraryReduction*>(context);
}

}  // namespace

Combination combination_of(const LibraryReduction& how) {
  Combination combination;
  combination.combine = [](void* context, std::byte* result, const std::byte* a, const std::byte* b,
                           std::uint64_t size_bytes) {
    transport::reduce(result, a, b, size_bytes, self(context).reduction);
  };
  if (how.reduction.operation == transport::ReductionOperation::avg) {
    combination.finish = [](void* context, std::byte* data, std::uint64_t size_bytes) {
      transport::divide(data, size_bytes, self(context).reduction.type, self(context).ranks);
    };
  }
  combination.context = const_cast<LibraryReduction*>(&how);
  combination.element_bytes = static_cast<std::uint32_t>(transport::size_of(how.reduction.type));
  return combination;
}

Request request_of(std::string_view collective, const LibraryReduction& how, int root, Span input,
                   Span output) {
  Request request;
  request.kind = kind_from(collective);
  const bool combines = request.kind == Kind::all_reduce || request.kind == Kind::reduce ||
                        request.kind == Kind::reduce_scatter;
  const std::string_view type = transport::name_of(how.reduction.type);
  request.name = combines ? fmt::format("{} {} {}", collective, type,
                                        transport::name_of(how.reduction.operation))
                          : fmt::format("{} {}", collective, type);
  request.peer = root;
  // A number per pair of type and operation, or per type if nothing is combined.
  constexpr std::uint32_t kOperationsMost = 16;
  request.element = static_cast<std::uint32_t>(how.reduction.type) * kOperationsMost +
                    (combines ? static_cast<std::uint32_t>(how.reduction.operation) : 0);
  request.combination = combination_of(how);
  const bool cuts_input = request.kind == Kind::reduce_scatter || request.kind == Kind::all_to_all;
  const bool cuts_output = request.kind == Kind::all_gather || request.kind == Kind::all_to_all;
  if (request.kind == Kind::barrier) return request;
  request.inputs = cuts_input ? parts_of(input, how.ranks) : std::vector{input};
  request.outputs = cuts_output ? parts_of(output, how.ranks) : std::vector{output};
  return request;
}

}  // namespace towpath::live
