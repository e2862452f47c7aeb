// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "towpath/live/shared_collectives.hpp"

// The reductions of SharedCollectives, each from its first step to its last.

namespace towpath::live {

namespace {

std::size_t index_of(int rank) { return static_cast<std::size_t>(rank); }

constexpr std::uint64_t kUnitBytes = 64;  // whole lines, whole elements

// The part of a block that a rank combines: whole lines, the last ones may be shorter or empty.
struct Part {
  std::uint64_t first;
  std::uint64_t size_bytes;
};

Part part_of(std::uint64_t size_bytes, int rank, int ranks) {
  const std::uint64_t units = (size_bytes + kUnitBytes - 1) / kUnitBytes;
  const std::uint64_t count = static_cast<std::uint64_t>(ranks);
  const std::uint64_t part = (units + count - 1) / count * kUnitBytes;
  const std::uint64_t first = std::min(size_bytes, part * static_cast<std::uint64_t>(rank));
  return {first, std::min(size_bytes, first + part) - first};
}

}  // namespace

// Runs all of a small reduction where nothing has to be waited for but a few looks, without a
// coroutine, which takes a fifth of the call's own time. False where more is: run_small_reduction
// goes on then.
bool SharedCollectives::run_small_reduction_at_once(const Request& request) {
  small_step_ = 0;
  if (!slots_.is_free(step_ + 1)) return false;
  show_small(request);
  const bool is_done = !gets_result(request) || until_arrived(small_step_).await_ready();
  if (is_done) end_small_reduction(request);
  return is_done;
}

void SharedCollectives::show_small(const Request& request) {
  small_step_ = ++step_;
  fill(step_, request.inputs[0].data, request.inputs[0].size_bytes);
  slots_.publish(step_, stamp_);
}

Task SharedCollectives::run_small_reduction(const Request& request) {
  if (small_step_ == 0) {
    co_await until_free(step_ + 1);
    show_small(request);
  }
  if (gets_result(request)) co_await until_arrived(small_step_);
  end_small_reduction(request);
}

void SharedCollectives::end_small_reduction(const Request& request) {
  const std::uint64_t size = request.inputs[0].size_bytes;
  if (gets_result(request)) {
    for (int rank = 0; rank < ranks_; ++rank) {
      slots_.note_ended(rank, small_step_ - 1);
      sources_[index_of(rank)] =
          rank == rank_ ? request.inputs[0].data : filled(rank, small_step_, size);
    }
    fold(request, request.outputs[0].data, size);
  }
  slots_.end(small_step_);
}

// --- reductions of more than a slot --------------------------------------------------------------

bool SharedCollectives::are_all(Place place, std::uint64_t step) const {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (shown(rank, step).place != place) return false;
  }
  return true;
}

bool SharedCollectives::is_any(Place place, std::uint64_t step) const {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (shown(rank, step).place == place) return true;
  }
  return false;
}

// How an array is cut, and how many steps each block of it takes.
struct SharedCollectives::Blocks {
  std::uint64_t total;
  std::uint64_t bytes;  // of all but the last one
  std::uint64_t steps;  // of each: 1 with one shot, 2 with two

  bool is_one_shot() const { return steps == 1; }
  std::uint64_t count() const { return (total + bytes - 1) / bytes; }
  std::uint64_t size_of(std::uint64_t block) const {
    return std::min(bytes, total - block * bytes);
  }
};

SharedCollectives::Blocks SharedCollectives::blocks_of(const Request& request) const {
  const std::uint64_t total = request.inputs[0].size_bytes;
  return is_one_shot(total) ? Blocks{total, kBlockBytes, 1} : Blocks{total, kTwoShotBytes, 2};
}

// The arrays of an all-reduce, where both are on the heap.
std::optional<SharedCollectives::Shown> SharedCollectives::arrays_on_heap(
    const Request& request) const {
  if (request.kind != Kind::all_reduce) return std::nullopt;
  const auto input = heap_offset(request.inputs[0]);
  const auto output = heap_offset(request.outputs[0]);
  if (!input || !output) return std::nullopt;
  return Shown{.place = Place::heap, .first = *input, .second = *output};
}

// The arrays of an all-reduce where they are, unless a result there lies upon another operand.
std::optional<SharedCollectives::Shown> SharedCollectives::arrays_in_process(
    const Request& request) {
  const Span& input = request.inputs[0];
  const Span& output = request.outputs[0];
  if (input.data != output.data && overlap(input, output)) return std::nullopt;
  return Shown{.place = Place::process,
               .way = Way::read,
               .first = reinterpret_cast<std::uintptr_t>(input.data),
               .second = reinterpret_cast<std::uintptr_t>(output.data)};
}

// Whether the leader chooses for all ranks: they can read each other's arrays where they are only
// if all do.
bool SharedCollectives::is_led(const Request& request) {
  return request.kind == Kind::all_reduce && request.inputs[0].size_bytes >= kLedBytesLeast;
}

// Where a block is staged on all ranks; `step`: its first.
std::uint64_t SharedCollectives::take_stage(const Blocks& blocks, std::uint64_t block,
                                            std::uint64_t step) {
  return stages_.take(blocks.size_of(block), step + blocks.steps - 1);
}

// Stages a block and shows it in its first step.
void SharedCollectives::show_block(const Request& request, const Blocks& blocks,
                                   std::uint64_t block, std::uint64_t place, std::uint64_t step) {
  const std::byte* const from = request.inputs[0].data + block * blocks.bytes;
  const std::uint64_t size = blocks.size_of(block);
  std::byte* const to = stage(rank_, place);
  if (blocks.is_one_shot()) {
    copy_to_stage(to, from, size);
  } else {
    // Nobody reads this rank's part before it is combined.
    const Part own = part_of(size, rank_, ranks_);
    const std::uint64_t end = own.first + own.size_bytes;
    copy_to_stage(to, from, own.first);
    copy_to_stage(to + end, from + end, size - end);
  }
  show(step, {.way = way_.way});
}

void SharedCollectives::note_all_ended(std::uint64_t step) {
  for (int rank = 0; rank < ranks_; ++rank) slots_.note_ended(rank, step);
}

// One shot: combines all of a block, which the others staged.
void SharedCollectives::fold_block(const Request& request, const Blocks& blocks,
                                   std::uint64_t block, std::uint64_t place) {
  const std::uint64_t begin = block * blocks.bytes;
  for (int rank = 0; rank < ranks_; ++rank) {
    sources_[index_of(rank)] = rank == rank_ ? request.inputs[0].data + begin : stage(rank, place);
  }
  fold(request, request.outputs[0].data + begin, blocks.size_of(block));
}

// The first step shows who has its arrays on the heap. Where all have, nothing is staged. Where
// only some have, they had staged nothing yet, and all begin again.
Task SharedCollectives::run_large_reduction(const Request& request) {
  const Blocks blocks = blocks_of(request);
  const std::uint64_t first = step_ + 1;
  way_ = {};
  following_ = {.any = true, .first = first};
  if (const auto arrays = arrays_on_heap(request)) {
    co_await until_free(first);
    following_.places[0] = take_stage(blocks, 0, first);  // as on the ranks that stage
    show(first, *arrays);
  } else {
    choose_way(request, blocks.total, false);
    co_await until_stage_free(first, blocks.size_of(0));
    following_.places[0] = take_stage(blocks, 0, first);
    show_block(request, blocks, 0, following_.places[0], first);
    following_.shown = 1;
  }
  if (request.kind != Kind::all_reduce) co_return;
  co_await until_arrived(first);
  note_all_ended(first - 1);
  if (are_all(Place::heap, first)) {
    following_ = {};
    reduce_on_heap(request, first);
    step_ = first + 1;
    slots_.end(first);
    co_await until_free(step_);
    slots_.publish(step_, stamp_);
    co_await until_arrived(step_);
    slots_.end(step_);
  } else if (is_any(Place::heap, first)) {
    slots_.end(first);
    following_ = {.any = true, .first = first + 1};
  }
}

// All ranks do what the leader says, and nothing is staged before it has: where arrays are read in
// their processes or all are on the heap, nothing is staged at all.
Task SharedCollectives::run_led_all_reduce(const Request& request) {
  const std::uint64_t total = request.inputs[0].size_bytes;
  const std::uint64_t first = step_ + 1;
  way_ = {};
  std::optional<Shown> arrays = arrays_on_heap(request);
  if (rank_ != kLeader) {
    co_await until_arrived(first, kLeader);
    way_.way = shown(kLeader, first).way;
  } else if (!arrays) {
    choose_way(request, total, arrays_in_process(request).has_value());
  }
  if (way_.way == Way::read) arrays = arrays_in_process(request);
  co_await until_free(first);
  show(first, arrays.value_or(Shown{.way = way_.way}));
  co_await until_arrived(first);
  note_all_ended(first - 1);
  const bool is_read = are_all(Place::process, first);
  const bool is_staged = !is_read && !are_all(Place::heap, first);
  if (is_staged) {
    slots_.end(first);
    following_ = {.any = true, .first = first + 1};
    co_return;
  }
  is_read ? reduce_from_memory(request, first) : reduce_on_heap(request, first);
  step_ = first + 1;
  slots_.end(first);
  co_await until_free(step_);
  slots_.publish(step_, stamp_);
  co_await until_arrived(step_);
  if (is_read) take_results(request, first);
  slots_.end(step_);
  if (is_read) co_await until_ended(step_);
  note_way(request, total);
}

// One shot: the next block is shown before this one is combined, so that nobody waits for a store.
// Two shots: a block's second step shows the part that each rank combined.
Task SharedCollectives::run_following_blocks(const Request& request) {
  const Blocks blocks = blocks_of(request);
  auto [any, first, shown_blocks, places] = std::exchange(following_, {});
  const std::uint64_t ahead = blocks.is_one_shot() ? 2 : 1;
  step_ = first + blocks.count() * blocks.steps - 1;
  for (std::uint64_t block = 0; block < blocks.count();) {
    if (shown_blocks < std::min(blocks.count(), block + ahead)) {
      const std::uint64_t step = first + shown_blocks * blocks.steps;
      co_await until_stage_free(step, blocks.size_of(shown_blocks));
      std::uint64_t& place = places[shown_blocks % places.size()];
      place = take_stage(blocks, shown_blocks, step);
      show_block(request, blocks, shown_blocks++, place, step);
      continue;
    }
    const std::uint64_t place = places[block % places.size()];
    const std::uint64_t step = first + block * blocks.steps;
    if (!blocks.is_one_shot()) {
      co_await until_arrived(step);
      fold_part(request, blocks, block, place);
      slots_.end(step);
      co_await until_free(step + 1);
      slots_.publish(step + 1, stamp_);
      if (gets_result(request)) {
        co_await until_arrived(step + 1);
        note_all_ended(step);
        take_parts(request, blocks, block, place);
      }
    } else if (gets_result(request)) {
      co_await until_arrived(step);
      note_all_ended(block == 0 ? step - 1 : step - 2);
      fold_block(request, blocks, block, place);
    }
    slots_.end(step + blocks.steps - 1);
    ++block;
  }
  note_way(request, blocks.total);
}

// This rank's part of all arrays, combined, to all results: nobody else touches that part.
void SharedCollectives::reduce_on_heap(const Request& request, std::uint64_t step) {
  const Part part = part_of(request.inputs[0].size_bytes, rank_, ranks_);
  copies_.clear();
  for (int rank = 0; rank < ranks_; ++rank) {
    const Shown there = shown(rank, step);
    sources_[index_of(rank)] = on_heap(rank, there.first + part.first);
    if (rank != rank_) copies_.push_back(on_heap(rank, there.second + part.first));
  }
  fold_to(request, request.outputs[0].data + part.first, part.size_bytes, copies_);
}

// This rank's part of all arrays, combined, to its own result.
void SharedCollectives::reduce_from_memory(const Request& request, std::uint64_t step) {
  const Part part = part_of(request.inputs[0].size_bytes, rank_, ranks_);
  for (std::uint64_t at = part.first; at < part.first + part.size_bytes; at += read_bytes()) {
    const std::uint64_t size = std::min(read_bytes(), part.first + part.size_bytes - at);
    for (int rank = 0; rank < ranks_; ++rank) {
      sources_[index_of(rank)] = rank == rank_
                                     ? request.inputs[0].data + at
                                     : read_operand(rank, shown(rank, step).first + at, size);
    }
    fold(request, request.outputs[0].data + at, size);
  }
}

// The parts that the others combined, where `step` shows their results.
void SharedCollectives::take_results(const Request& request, std::uint64_t step) {
  for (int next = 1; next < ranks_; ++next) {
    const int peer = (rank_ + next) % ranks_;
    const Part part = part_of(request.outputs[0].size_bytes, peer, ranks_);
    if (part.size_bytes == 0) continue;
    read_private(peer, shown(peer, step).second + part.first,
                 {request.outputs[0].data + part.first, part.size_bytes});
  }
}

// Combines this rank's part of the current block and puts it where its own array was staged.
void SharedCollectives::fold_part(const Request& request, const Blocks& blocks, std::uint64_t block,
                                  std::uint64_t place) {
  const std::uint64_t begin = block * blocks.bytes;
  const Part part = part_of(blocks.size_of(block), rank_, ranks_);
  for (int rank = 0; rank < ranks_; ++rank) {
    sources_[index_of(rank)] = rank == rank_ ? request.inputs[0].data + begin + part.first
                                             : stage(rank, place) + part.first;
  }
  std::byte* const staged = stage(rank_, place) + part.first;
  copies_.clear();
  if (gets_result(request)) {
    copies_.push_back(staged);
    fold_to(request, request.outputs[0].data + begin + part.first, part.size_bytes, copies_);
  } else {
    fold_to(request, staged, part.size_bytes, copies_);
  }
}

void SharedCollectives::take_parts(const Request& request, const Blocks& blocks,
                                   std::uint64_t block, std::uint64_t place) {
  for (int next = 1; next < ranks_; ++next) {
    const int peer = (rank_ + next) % ranks_;
    const Part part = part_of(blocks.size_of(block), peer, ranks_);
    if (part.size_bytes == 0) continue;
    copy_out(request.outputs[0].data + block * blocks.bytes + part.first,
             stage(peer, place) + part.first, part.size_bytes);
  }
}

}  // namespace towpath::live
