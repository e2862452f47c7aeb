// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "towpath/live/shared_call.hpp"

// all_reduce and reduce. Between two ranks, or if it is faster, every rank combines everything (one
// shot). Otherwise each rank combines a part, which all others then read (two shots).

namespace towpath::live {

using Location = Descriptor::Location;

namespace {

// Two-shot parts of eight ranks are then 64 KiB, and no step costs more than its bytes.
constexpr std::uint64_t kTwoShotBytes = StageRing::kBlockBytesMost;
// From this size on, one rank chooses the copy path of all ranks: the wait for its line is less
// than a hundredth of the call.
constexpr std::uint64_t kLedBytesLeast = 512 << 10;
constexpr int kLeader = 0;

// The part of a block that a rank combines: whole lines. The last parts may be shorter or empty.
struct Part {
  std::uint64_t first;
  std::uint64_t size_bytes;
};

Part part_of(std::uint64_t size_bytes, int rank, int ranks) {
  constexpr std::uint64_t kUnitBytes = 64;  // whole elements
  const std::uint64_t units = (size_bytes + kUnitBytes - 1) / kUnitBytes;
  const std::uint64_t part = (units + index(ranks) - 1) / index(ranks) * kUnitBytes;
  const std::uint64_t first = std::min(size_bytes, part * index(rank));
  return {first, std::min(size_bytes, first + part) - first};
}

// The blocks of an array, and the steps of each.
struct Blocks {
  std::uint64_t total;
  std::uint64_t bytes;  // of all but the last one
  std::uint64_t steps;  // 1 with one shot, 2 with two

  bool is_one_shot() const { return steps == 1; }
  std::uint64_t count() const { return (total + bytes - 1) / bytes; }
  std::uint64_t size_of(std::uint64_t block) const {
    return std::min(bytes, total - block * bytes);
  }
};

// One shot reads the arrays of all others. Two shots read all parts twice, in two more steps.
Blocks blocks_of(const SharedCall& call, const Request& request) {
  const std::uint64_t total = request.inputs[0].size_bytes;
  const int ranks = call.rank.ranks();
  const bool is_one_shot =
      ranks <= 2 ||
      static_cast<double>(total) * (ranks - 2) * call.costs->read_s_per_byte < call.costs->step_s;
  return is_one_shot ? Blocks{total, kBlockBytes, 1} : Blocks{total, kTwoShotBytes, 2};
}

// The arrays of an all-reduce, if both are on the heap.
std::optional<Descriptor> arrays_on_heap(const SharedCall& call, const Request& request) {
  if (request.kind != Kind::all_reduce) return std::nullopt;
  const auto input = call.rank.heap_offset(request.inputs[0]);
  const auto output = call.rank.heap_offset(request.outputs[0]);
  if (!input || !output) return std::nullopt;
  return Descriptor{.location = Location::heap, .first = *input, .second = *output};
}

Descriptor arrays_in_process(const Request& request) {
  return {.location = Location::process,
          .path = CopyPath::read,
          .first = reinterpret_cast<std::uintptr_t>(request.inputs[0].data),
          .second = reinterpret_cast<std::uintptr_t>(request.outputs[0].data)};
}

// Reserves the stage of a block, which begins at a step, on all ranks.
std::uint64_t take_stage(SharedCall& call, const Blocks& blocks, std::uint64_t block,
                         std::uint64_t step) {
  return call.rank.take_stage(blocks.size_of(block), step + blocks.steps - 1);
}

// Stages a block. The caller publishes its descriptor.
void stage_block(SharedCall& call, const Request& request, const Blocks& blocks,
                 std::uint64_t block, std::uint64_t place) {
  const std::byte* const from = request.inputs[0].data + block * blocks.bytes;
  const std::uint64_t size = blocks.size_of(block);
  const int self = call.rank.rank();
  std::byte* const to = call.rank.stage(self, place);
  if (blocks.is_one_shot()) {
    call.paths.to_stage(to, from, size);
  } else {
    // No other rank reads this part before it is combined.
    const Part own = part_of(size, self, call.rank.ranks());
    const std::uint64_t end = own.first + own.size_bytes;
    call.paths.to_stage(to, from, own.first);
    call.paths.to_stage(to + end, from + end, size - end);
  }
}

// One shot: combines a block that the other ranks staged.
void fold_block(SharedCall& call, const Request& request, const Blocks& blocks, std::uint64_t block,
                std::uint64_t place) {
  const std::uint64_t begin = block * blocks.bytes;
  for (int peer = 0; peer < call.rank.ranks(); ++peer) {
    call.fold.operand(peer) =
        peer == call.rank.rank() ? request.inputs[0].data + begin : call.rank.stage(peer, place);
  }
  call.fold.store(request.combination, request.outputs[0].data + begin, blocks.size_of(block));
}

// Two shots: combines this rank's part of a block into the stage of its array.
void fold_part(SharedCall& call, const Request& request, const Blocks& blocks, std::uint64_t block,
               std::uint64_t place) {
  const int self = call.rank.rank();
  const std::uint64_t begin = block * blocks.bytes;
  const Part part = part_of(blocks.size_of(block), self, call.rank.ranks());
  for (int peer = 0; peer < call.rank.ranks(); ++peer) {
    call.fold.operand(peer) = peer == self ? request.inputs[0].data + begin + part.first
                                           : call.rank.stage(peer, place) + part.first;
  }
  std::byte* const staged = call.rank.stage(self, place) + part.first;
  if (call.gets_result(request)) {
    call.fold.store(request.combination, request.outputs[0].data + begin + part.first,
                    part.size_bytes, {&staged, 1});
  } else {
    call.fold.store(request.combination, staged, part.size_bytes);
  }
}

// Two shots: takes the parts that the other ranks combined.
void take_parts(SharedCall& call, const Request& request, const Blocks& blocks, std::uint64_t block,
                std::uint64_t place) {
  const int ranks = call.rank.ranks();
  for (int next = 1; next < ranks; ++next) {
    const int peer = (call.rank.rank() + next) % ranks;
    const Part part = part_of(blocks.size_of(block), peer, ranks);
    if (part.size_bytes == 0) continue;
    call.paths.to_result(request.outputs[0].data + block * blocks.bytes + part.first,
                         call.rank.stage(peer, place) + part.first, part.size_bytes);
  }
}

// Combines this rank's part of all arrays on the heaps into all results: no other rank touches it.
void reduce_on_heap(SharedCall& call, const Request& request, std::uint64_t step) {
  const int self = call.rank.rank();
  const Part part = part_of(request.inputs[0].size_bytes, self, call.rank.ranks());
  call.results.clear();
  for (int peer = 0; peer < call.rank.ranks(); ++peer) {
    const Descriptor arrays = call.rank.published(peer, step);
    call.fold.operand(peer) = call.rank.heap(peer, arrays.first + part.first);
    if (peer != self) call.results.push_back(call.rank.heap(peer, arrays.second + part.first));
  }
  call.fold.store(request.combination, request.outputs[0].data + part.first, part.size_bytes,
                  call.results);
}

// Combines this rank's part of all arrays in their processes into its result.
void reduce_in_process(SharedCall& call, const Request& request, std::uint64_t step) {
  const int self = call.rank.rank();
  const Part part = part_of(request.inputs[0].size_bytes, self, call.rank.ranks());
  const std::uint64_t end = part.first + part.size_bytes;
  for (std::uint64_t at = part.first; at < end; at += call.read_bytes()) {
    const std::uint64_t size = std::min(call.read_bytes(), end - at);
    for (int peer = 0; peer < call.rank.ranks(); ++peer) {
      call.fold.operand(peer) =
          peer == self ? request.inputs[0].data + at
                       : call.read_operand(peer, call.rank.published(peer, step).first + at, size);
    }
    call.fold.store(request.combination, request.outputs[0].data + at, size);
  }
}

// Reads the parts that the other ranks combined from their results, which a step described.
void read_results(SharedCall& call, const Request& request, std::uint64_t step) {
  const int ranks = call.rank.ranks();
  for (int next = 1; next < ranks; ++next) {
    const int peer = (call.rank.rank() + next) % ranks;
    const Part part = part_of(request.outputs[0].size_bytes, peer, ranks);
    if (part.size_bytes == 0) continue;
    call.rank.read(peer, call.rank.published(peer, step).second + part.first,
                   {request.outputs[0].data + part.first, part.size_bytes});
  }
}

// The first step publishes which ranks have their arrays on the heap. If all have, nothing is
// staged. If only some have, those ranks have not staged a block yet, and all ranks start again.
Task run_unled_reduction(SharedCall& call, const Request& request) {
  SharedRank& rank = call.rank;
  const Blocks blocks = blocks_of(call, request);
  const std::uint64_t first = rank.last_step() + 1;
  FollowingBlocks& following = call.following.emplace(FollowingBlocks{.first = first});
  if (const auto arrays = arrays_on_heap(call, request)) {
    co_await rank.until_free(first);
    following.places[0] = take_stage(call, blocks, 0, first);  // as on the ranks that stage
    rank.publish(first, *arrays);
  } else {
    call.paths.choose(request.kind, blocks.total, false);
    co_await rank.until_stage_free(first, blocks.size_of(0));
    following.places[0] = take_stage(call, blocks, 0, first);
    stage_block(call, request, blocks, 0, following.places[0]);
    rank.publish(first, Descriptor{.path = call.paths.path()});
    following.published = 1;
  }
  if (request.kind != Kind::all_reduce) co_return;
  co_await rank.until_arrived(first);
  rank.note_all_ended(first - 1);
  if (rank.are_all(Location::heap, first)) {
    call.following.reset();
    reduce_on_heap(call, request, first);
    rank.set_last_step(first + 1);
    rank.end(first);
    co_await rank.until_free(first + 1);
    rank.publish(first + 1);
    co_await rank.until_arrived(first + 1);
    rank.end(first + 1);
  } else if (rank.is_any(Location::heap, first)) {
    rank.end(first);
    call.following = FollowingBlocks{.first = first + 1};
  }
}

// All ranks use the copy path of the leader, because arrays are read in place only if all ranks do
// this. Staging starts after the leader's line, and is skipped if arrays are read in place or are
// all on the heap.
Task run_led_reduction(SharedCall& call, const Request& request) {
  SharedRank& rank = call.rank;
  const std::uint64_t first = rank.last_step() + 1;
  std::optional<Descriptor> arrays = arrays_on_heap(call, request);
  if (rank.rank() != kLeader) {
    co_await rank.until_arrived(first, kLeader);
    call.paths.follow(rank.published(kLeader, first).path);
  } else if (!arrays) {
    call.paths.choose(request.kind, request.inputs[0].size_bytes, true);
  }
  if (call.paths.path() == CopyPath::read) arrays = arrays_in_process(request);
  co_await rank.until_free(first);
  rank.publish(first, arrays.value_or(Descriptor{.path = call.paths.path()}));
  co_await rank.until_arrived(first);
  rank.note_all_ended(first - 1);
  const bool is_read = rank.are_all(Location::process, first);
  if (!is_read && !rank.are_all(Location::heap, first)) {
    rank.end(first);
    call.following = FollowingBlocks{.first = first + 1};
    co_return;
  }
  is_read ? reduce_in_process(call, request, first) : reduce_on_heap(call, request, first);
  rank.set_last_step(first + 1);
  rank.end(first);
  co_await rank.until_free(first + 1);
  rank.publish(first + 1);
  co_await rank.until_arrived(first + 1);
  if (is_read) read_results(call, request, first);
  rank.end(first + 1);
  if (is_read) co_await rank.until_ended(first + 1);
  call.paths.note_end();
}

// One shot: the next block is published before this one is combined, so that no rank waits for a
// store. Two shots: the second step of a block publishes the part that each rank combined.
Task run_blocks(SharedCall& call, const Request& request) {
  SharedRank& rank = call.rank;
  const Blocks blocks = blocks_of(call, request);
  auto [first, published, places] = *std::exchange(call.following, std::nullopt);
  const std::uint64_t ahead = blocks.is_one_shot() ? 2 : 1;
  rank.set_last_step(first + blocks.count() * blocks.steps - 1);
  for (std::uint64_t block = 0; block < blocks.count();) {
    if (published < std::min(blocks.count(), block + ahead)) {
      const std::uint64_t step = first + published * blocks.steps;
      co_await rank.until_stage_free(step, blocks.size_of(published));
      std::uint64_t& place = places[published % places.size()];
      place = take_stage(call, blocks, published, step);
      stage_block(call, request, blocks, published++, place);
      rank.publish(step, Descriptor{.path = call.paths.path()});
      continue;
    }
    const std::uint64_t place = places[block % places.size()];
    const std::uint64_t step = first + block * blocks.steps;
    if (!blocks.is_one_shot()) {
      co_await rank.until_arrived(step);
      fold_part(call, request, blocks, block, place);
      rank.end(step);
      co_await rank.until_free(step + 1);
      rank.publish(step + 1);
      if (call.gets_result(request)) {
        co_await rank.until_arrived(step + 1);
        rank.note_all_ended(step);
        take_parts(call, request, blocks, block, place);
      }
    } else if (call.gets_result(request)) {
      co_await rank.until_arrived(step);
      rank.note_all_ended(block == 0 ? step - 1 : step - 2);
      fold_block(call, request, blocks, block, place);
    }
    rank.end(step + blocks.steps - 1);
    ++block;
  }
  call.paths.note_end();
}

void publish_small(SharedCall& call, const Request& request) {
  const Span& input = request.inputs[0];
  call.small_step = call.rank.next_step();
  call.paths.to_slot(call.rank.slot_for(call.small_step, input.size_bytes), input.data,
                     input.size_bytes);
  call.rank.publish(call.small_step);
}

void end_small(SharedCall& call, const Request& request) {
  SharedRank& rank = call.rank;
  const Span& input = request.inputs[0];
  if (call.gets_result(request)) {
    rank.note_all_ended(call.small_step - 1);
    for (int peer = 0; peer < rank.ranks(); ++peer) {
      call.fold.operand(peer) =
          peer == rank.rank() ? input.data : rank.slot_of(peer, call.small_step, input.size_bytes);
    }
    call.fold.store(request.combination, request.outputs[0].data, input.size_bytes);
  }
  rank.end(call.small_step);
}

}  // namespace

bool is_small_reduction(const SharedCall& call, const Request& request) {
  const bool is_reduction = request.kind == Kind::all_reduce || request.kind == Kind::reduce;
  return is_reduction && request.inputs[0].size_bytes <= call.rank.slot_bytes();
}

bool run_small_reduction_at_once(SharedCall& call, const Request& request) {
  call.small_step = 0;
  if (!call.rank.is_free(call.rank.last_step() + 1)) return false;
  publish_small(call, request);
  const bool is_done =
      !call.gets_result(request) || call.rank.until_arrived(call.small_step).await_ready();
  if (is_done) end_small(call, request);
  return is_done;
}

Task run_small_reduction(SharedCall& call, const Request& request) {
  if (call.small_step == 0) {
    co_await call.rank.until_free(call.rank.last_step() + 1);
    publish_small(call, request);
  }
  if (call.gets_result(request)) co_await call.rank.until_arrived(call.small_step);
  end_small(call, request);
}

Task run_large_reduction(SharedCall& call, const Request& request) {
  const bool is_led =
      request.kind == Kind::all_reduce && request.inputs[0].size_bytes >= kLedBytesLeast;
  return is_led ? run_led_reduction(call, request) : run_unled_reduction(call, request);
}

Task run_following_blocks(SharedCall& call, const Request& request) {
  return run_blocks(call, request);
}

}  // namespace towpath::live
