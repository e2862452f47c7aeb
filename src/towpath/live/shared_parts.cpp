// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "towpath/live/shared_call.hpp"

// all_gather, all_to_all and reduce_scatter: each rank publishes one part for all ranks, or one
// part for each of them.

namespace towpath::live {

using Location = Descriptor::Location;

namespace {

constexpr std::uint64_t kUnitBytes = 64;  // whole lines, whole elements

bool is_part_for_all(const Request& request) { return request.kind == Kind::all_gather; }

// The layout of the parts that a rank publishes.
struct Parts {
  bool is_for_all = false;  // one part
  std::uint64_t pitch = 0;  // from part to part in a stage
  std::uint64_t most = 0;   // bytes of the largest part

  std::uint64_t place_for(int rank) const { return is_for_all ? 0 : pitch * index(rank); }
  std::uint64_t published_bytes(int ranks) const { return is_for_all ? most : most * index(ranks); }
  std::uint64_t stage_bytes(int ranks) const { return is_for_all ? pitch : place_for(ranks); }
};

Parts parts_of(const Request& request, int ranks) {
  Parts parts{.is_for_all = is_part_for_all(request), .most = largest_part_bytes(request)};
  const std::uint64_t block =
      parts.is_for_all ? kBlockBytes : kBlockBytes / index(ranks) / kUnitBytes * kUnitBytes;
  const std::uint64_t rounded = (parts.most + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
  parts.pitch = std::min(rounded, std::max(block, kUnitBytes));
  return parts;
}

// Copies `size_bytes` of this rank's own part, starting at `first`, or the rest of it.
void copy_own_part(const SharedCall& call, const Request& request, std::uint64_t first,
                   std::uint64_t size_bytes) {
  const int self = call.rank.rank();
  const Span& own = request.inputs[is_part_for_all(request) ? 0 : index(self)];
  const Span& to = request.outputs[index(self)];
  if (own.data == to.data || first >= own.size_bytes) return;
  call.paths.to_result(to.data + first, own.data + first,
                       std::min(size_bytes, own.size_bytes - first));
}

// The distance between the parts of a rank, if other ranks can read them in place: they are
// adjacent and of equal size, and do not overlap an output.
std::optional<std::uint64_t> common_distance(const Request& request, int rank) {
  const std::vector<Span>& inputs = request.inputs;
  for (const Span& input : inputs) {
    const std::uint64_t distance = index(&input - inputs.data()) * inputs[0].size_bytes;
    if (input.size_bytes != inputs[0].size_bytes || input.data != inputs[0].data + distance) {
      return std::nullopt;
    }
    for (const Span& output : request.outputs) {
      const bool is_own = is_part_for_all(request) && &output - request.outputs.data() == rank &&
                          output.data == input.data;
      if (!is_own && overlap(input, output)) return std::nullopt;
    }
  }
  return inputs[0].size_bytes;
}

Descriptor describe_parts(SharedCall& call, const Request& request, const Parts& parts) {
  const auto distance = common_distance(request, call.rank.rank());
  const Span& front = request.inputs[0];
  if (distance) {
    const auto offset = call.rank.heap_offset({front.data, *distance * request.inputs.size()});
    if (offset) return {.location = Location::heap, .first = *offset, .second = *distance};
  }
  call.paths.choose(request.kind, parts.published_bytes(call.rank.ranks()), distance.has_value());
  if (call.paths.path() != CopyPath::read) return {};
  return {.location = Location::process,
          .first = reinterpret_cast<std::uintptr_t>(front.data),
          .second = *distance};
}

// Stages the next `pitch` bytes of each part after `done`. The rank's own part is read in place.
void stage_parts(const SharedCall& call, const Request& request, const Parts& parts,
                 std::uint64_t done, std::uint64_t place) {
  const int self = call.rank.rank();
  std::byte* const to = call.rank.stage(self, place);
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const Span& span = request.inputs[i];
    if (done >= span.size_bytes || (!parts.is_for_all && i == index(self))) continue;
    call.paths.to_stage(to + i * parts.pitch, span.data + done,
                        std::min(parts.pitch, span.size_bytes - done));
  }
}

// A block of all parts: a step, the bytes before it in each part, and its place in the stages.
struct Block {
  std::uint64_t step;
  std::uint64_t done;
  std::uint64_t place;
};

// Takes a block from the ranks that staged it, and in the first step all bytes of the others.
void take_block(SharedCall& call, const Request& request, const Parts& parts, const Block& block) {
  SharedRank& rank = call.rank;
  const int self = rank.rank();
  for (int next = 1; next < rank.ranks(); ++next) {
    const int peer = (self + next) % rank.ranks();
    const Descriptor from = rank.published(peer, block.step);
    const Span& to = request.outputs[index(peer)];
    const std::uint64_t offset = from.first + (parts.is_for_all ? 0 : from.second * index(self));
    if (block.done >= to.size_bytes) continue;
    if (from.location == Location::stage) {
      call.paths.to_result(to.data + block.done,
                           rank.stage(peer, block.place + parts.place_for(self)),
                           std::min(parts.pitch, to.size_bytes - block.done));
    } else if (block.done > 0) {
      continue;
    } else if (from.location == Location::heap) {
      call.paths.to_result(to.data, rank.heap(peer, offset), to.size_bytes);
    } else {
      rank.read(peer, offset, to);
    }
  }
}

// Combines `size_bytes` of each part, or the rest of it.
void fold_block(SharedCall& call, const Request& request, const Parts& parts, const Block& block,
                std::uint64_t size_bytes) {
  SharedRank& rank = call.rank;
  const int self = rank.rank();
  const Span& output = request.outputs[0];
  const std::uint64_t end = std::min(output.size_bytes, block.done + size_bytes);
  for (std::uint64_t at = block.done; at < end; at += call.read_bytes()) {
    const std::uint64_t size = std::min(call.read_bytes(), end - at);
    for (int peer = 0; peer < rank.ranks(); ++peer) {
      const Descriptor from = rank.published(peer, block.step);
      const std::uint64_t offset = from.first + from.second * index(self) + at;
      const std::byte*& operand = call.fold.operand(peer);
      if (peer == self) {
        operand = request.inputs[index(self)].data + at;
      } else if (from.location == Location::stage) {
        operand = rank.stage(peer, block.place + parts.place_for(self)) + (at - block.done);
      } else if (from.location == Location::heap) {
        operand = rank.heap(peer, offset);
      } else {
        operand = call.read_operand(peer, offset, size);
      }
    }
    call.fold.store(request.combination, output.data + at, size);
  }
}

Task run_blocks_of_parts(SharedCall& call, const Request& request) {
  SharedRank& rank = call.rank;
  const int ranks = rank.ranks();
  const Parts parts = parts_of(request, ranks);
  const bool combines = request.kind == Kind::reduce_scatter;
  const Descriptor descriptor = describe_parts(call, request, parts);
  const bool is_staged = descriptor.location == Location::stage;
  const std::uint64_t first = rank.last_step() + 1;
  std::uint64_t steps = (parts.most + parts.pitch - 1) / parts.pitch;
  for (std::uint64_t number = 0; number < steps; ++number) {
    Block block{rank.next_step(), number * parts.pitch, 0};
    co_await rank.until_stage_free(block.step, parts.stage_bytes(ranks));
    block.place = rank.take_stage(parts.stage_bytes(ranks), block.step);
    if (is_staged) stage_parts(call, request, parts, block.done, block.place);
    rank.publish(block.step, descriptor);
    // The output is unchanged until all ranks are known to make the same call.
    if (number == 0) co_await rank.until_arrived(block.step);
    // A block that was just staged is still in a cache.
    if (!combines && is_staged) copy_own_part(call, request, block.done, parts.pitch);
    if (!combines && !is_staged && number == 0) copy_own_part(call, request, 0, parts.most);
    co_await rank.until_arrived(block.step);
    rank.note_all_ended(block.step - 1);
    if (number == 0 && !rank.is_any(Location::stage, block.step)) steps = 1;
    if (combines) {
      fold_block(call, request, parts, block, steps == 1 ? parts.most : parts.pitch);
    } else {
      take_block(call, request, parts, block);
    }
    rank.end(block.step);
  }
  // Without a reduction all reads are in the first step.
  if (!is_staged) co_await rank.until_ended(combines ? rank.last_step() : first);
  call.paths.note_end();
}

}  // namespace

std::uint64_t largest_part_bytes(const Request& request) {
  std::uint64_t most = 0;
  for (const Span& span : is_part_for_all(request) ? request.outputs : request.inputs) {
    most = std::max(most, span.size_bytes);
  }
  return most;
}

Task run_parts(SharedCall& call, const Request& request) {
  SharedRank& rank = call.rank;
  const int self = rank.rank();
  const std::uint64_t step = rank.next_step();
  const bool is_for_all = is_part_for_all(request);
  const std::uint64_t pitch = largest_part_bytes(request);
  const std::uint64_t size = is_for_all ? pitch : pitch * index(rank.ranks());
  co_await rank.until_free(step);
  std::byte* const to = rank.slot_for(step, size);
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const Span& span = request.inputs[i];
    if (span.size_bytes == 0 || (!is_for_all && i == index(self))) continue;
    call.paths.to_slot(to + i * pitch, span.data, span.size_bytes);
  }
  rank.publish(step);
  const bool combines = request.kind == Kind::reduce_scatter;
  // The output is unchanged until all ranks are known to make the same call.
  co_await rank.until_arrived(step);
  if (!combines) copy_own_part(call, request, 0, pitch);
  rank.note_all_ended(step - 1);
  for (int peer = 0; peer < rank.ranks(); ++peer) {
    const std::byte* const from =
        rank.slot_of(peer, step, size) + (is_for_all ? 0 : pitch * index(self));
    if (combines) {
      call.fold.operand(peer) = peer == self ? request.inputs[index(self)].data : from;
    } else if (const Span& output = request.outputs[index(peer)];
               peer != self && output.size_bytes > 0) {
      std::memcpy(output.data, from, output.size_bytes);
    }
  }
  if (combines) {
    call.fold.store(request.combination, request.outputs[0].data, request.outputs[0].size_bytes);
  }
  rank.end(step);
}

Task run_large_parts(SharedCall& call, const Request& request) {
  return run_blocks_of_parts(call, request);
}

}  // namespace towpath::live
