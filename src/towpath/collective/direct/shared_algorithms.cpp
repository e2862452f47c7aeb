// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "towpath/collective/direct/shared_collectives.hpp"

// The collectives of SharedCollectives, each from its first step to its last.
//
// A rank that publishes the first step of a call has ended all steps before, and one that publishes
// a block has ended the last but one: it has read what it waited for. Only a rank that waits for
// nobody has to look how far the others are.

namespace towpath::collective::direct {

namespace {

std::size_t index_of(int rank) { return static_cast<std::size_t>(rank); }

constexpr std::uint64_t kUnitBytes = 64;  // whole lines, whole elements

std::uint64_t rounded_up(std::uint64_t size, std::uint64_t unit) {
  return (size + unit - 1) / unit * unit;
}

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

bool overlap(const Span& a, const Span& b) {
  return a.data < b.data + b.size_bytes && b.data < a.data + a.size_bytes;
}

}  // namespace

Task SharedCollectives::run_barrier() {
  const std::uint64_t step = ++step_;
  co_await until_free(step);
  slots_.publish(step, stamp_);
  co_await until_arrived(step);
  slots_.end(step);
}

Task SharedCollectives::run_small_reduction(const Request& request) {
  const Span& input = request.inputs[0];
  const std::uint64_t step = ++step_;
  co_await until_free(step);
  fill(step, input.data, input.size_bytes);
  slots_.publish(step, stamp_);
  if (gets_result(request)) {
    co_await until_arrived(step);
    for (int rank = 0; rank < ranks_; ++rank) {
      slots_.note_ended(rank, step - 1);
      sources_[index_of(rank)] = rank == rank_ ? input.data : filled(rank, step, input.size_bytes);
    }
    fold(request, request.outputs[0].data, input.size_bytes);
  }
  slots_.end(step);
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

// The first step shows where arrays are. Where all are on the heap, or are read in their processes,
// nothing is staged. Where only some are, all begin again. A leader's way is needed before anything
// is staged, so that its first step has no block.
//
// One shot: the next block is shown before this one is combined, so that nobody waits for a store.
// Two shots: a block's second step shows the part that each rank combined.
Task SharedCollectives::run_large_reduction(const Request& request) {
  const Blocks blocks = blocks_of(request);
  const bool has_leader = is_led(request);
  std::uint64_t first = step_ + 1;
  std::uint64_t shown_blocks = 0;
  std::array<std::uint64_t, 2> places{};  // of the last two blocks
  way_ = {};
  std::optional<Shown> arrays = arrays_on_heap(request);
  if (has_leader && rank_ != kLeader) {
    co_await until_arrived(first, kLeader);
    way_.way = shown(kLeader, first).way;
  } else if (!arrays) {
    choose_way(request, blocks.total, has_leader && arrays_in_process(request).has_value());
  }
  if (way_.way == Way::read) arrays = arrays_in_process(request);
  if (has_leader) {
    co_await until_free(first);
    show(first, arrays.value_or(Shown{.way = way_.way}));
  } else if (arrays) {
    co_await until_free(first);
    places[0] = take_stage(blocks, 0, first);  // as on the ranks that stage
    show(first, *arrays);
  } else {
    co_await until_stage_free(first, blocks.size_of(0));
    places[0] = take_stage(blocks, 0, first);
    show_block(request, blocks, 0, places[0], first);
    shown_blocks = 1;
  }
  if (request.kind == Kind::all_reduce) {
    co_await until_arrived(first);
    note_all_ended(first - 1);
    const bool is_read = are_all(Place::process, first);
    if (is_read || are_all(Place::heap, first)) {
      is_read ? reduce_from_memory(request, first) : reduce_on_heap(request, first);
      step_ = first + 1;
      slots_.end(first);
      co_await until_free(step_);
      slots_.publish(step_, stamp_);
      co_await until_arrived(step_);
      if (is_read) take_results(request, first);
      slots_.end(step_);
      if (is_read) co_await until_ended(step_);
      note_way(request, blocks.total);
      co_return;
    }
    if (has_leader || is_any(Place::heap, first)) {
      slots_.end(first);
      ++first;
      shown_blocks = 0;
    }
  }
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

// --- broadcast -----------------------------------------------------------------------------------

Task SharedCollectives::run_broadcast(const Request& request) {
  const std::uint64_t step = ++step_;
  if (is_root(request)) {
    const Span& input = request.inputs[0];
    co_await until_free(step);
    fill(step, input.data, input.size_bytes);
    slots_.publish(step, stamp_);
  } else {
    const Span& output = request.outputs[0];
    co_await until_arrived(step, request.peer);
    if (output.size_bytes > 0) {
      std::memcpy(output.data, filled(request.peer, step, output.size_bytes), output.size_bytes);
    }
  }
  slots_.end(step);
}

// The first line says whether blocks are staged, or all is read where it is.
Task SharedCollectives::run_large_broadcast(const Request& request) {
  const bool sends = is_root(request);
  const Span span = sends ? request.inputs[0] : request.outputs[0];
  const std::uint64_t first = step_ + 1;
  Shown what;
  way_ = {};
  if (sends) {
    if (const auto offset = heap_offset(span)) {
      what = {.place = Place::heap, .first = *offset};
    } else if (choose_way(request, span.size_bytes, true); way_.way == Way::read) {
      what = {.place = Place::process, .first = reinterpret_cast<std::uintptr_t>(span.data)};
    }
  } else {
    co_await until_arrived(first, request.peer);
    what = shown(request.peer, first);
  }
  if (what.place != Place::stage) {
    step_ = first;
    if (sends) {
      co_await until_free(first);
      show(first, what);
      slots_.end(first);
      co_await until_ended(first);
      note_way(request, span.size_bytes);
      co_return;
    }
    if (what.place == Place::heap) {
      copy_out(span.data, on_heap(request.peer, what.first), span.size_bytes);
    } else {
      read_private(request.peer, what.first, span);
    }
    slots_.end(first);
    co_return;
  }
  for (std::uint64_t done = 0; done < span.size_bytes; done += kBlockBytes) {
    const std::uint64_t step = ++step_;
    const std::uint64_t size = std::min(kBlockBytes, span.size_bytes - done);
    if (sends) {
      co_await until_stage_free(step, size);
      copy_to_stage(stage(rank_, stages_.take(size, step)), span.data + done, size);
      show(step, what);
    } else {
      co_await until_arrived(step, request.peer);
      copy_out(span.data + done, stage(request.peer, stages_.take(size, step)), size);
    }
    slots_.end(step);
  }
  if (!sends) co_return;
  // A root that runs ahead of the others sees less than the calls take.
  if (way_.is_whole) co_await until_ended(step_);
  note_way(request, span.size_bytes);
}

// --- all_gather, all_to_all, reduce_scatter ------------------------------------------------------

// How the parts for the ranks lie in what a rank shows: `pitch` apart, where there is one for each.
struct SharedCollectives::Parts {
  bool is_shared = false;  // one part, for all
  std::uint64_t pitch = 0;
  std::uint64_t most = 0;  // bytes of the largest part

  std::uint64_t place_for(int rank) const {
    return is_shared ? 0 : pitch * static_cast<std::uint64_t>(rank);
  }
  std::uint64_t shown_bytes(int ranks) const { return is_shared ? most : most * index_of(ranks); }
  std::uint64_t stage_bytes(int ranks) const { return is_shared ? pitch : place_for(ranks); }
};

std::uint64_t SharedCollectives::part_bytes_most(const Request& request) const {
  std::uint64_t most = 0;
  const bool is_shared = request.kind == Kind::all_gather;
  for (const Span& span : is_shared ? request.outputs : request.inputs) {
    most = std::max(most, span.size_bytes);
  }
  return most;
}

SharedCollectives::Parts SharedCollectives::parts_of(const Request& request) const {
  Parts parts;
  parts.is_shared = request.kind == Kind::all_gather;
  parts.most = part_bytes_most(request);
  const std::uint64_t block =
      parts.is_shared ? kBlockBytes : kBlockBytes / index_of(ranks_) / kUnitBytes * kUnitBytes;
  parts.pitch = std::min(rounded_up(parts.most, kUnitBytes), std::max(block, kUnitBytes));
  return parts;
}

Task SharedCollectives::run_parts(const Request& request) {
  const std::uint64_t step = ++step_;
  const bool is_shared = request.kind == Kind::all_gather;
  const std::uint64_t pitch = part_bytes_most(request);
  const std::uint64_t size = is_shared ? pitch : pitch * index_of(ranks_);
  co_await until_free(step);
  std::byte* const to =
      size <= SharedSlots::kInlineBytes ? slots_.inline_bytes(step) : slots_.slot(step);
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const Span& span = request.inputs[i];
    if (span.size_bytes == 0 || (!is_shared && i == index_of(rank_))) continue;
    std::memcpy(to + i * pitch, span.data, span.size_bytes);
  }
  slots_.publish(step, stamp_);
  const bool combines = request.kind == Kind::reduce_scatter;
  if (!combines) take_own(request);
  co_await until_arrived(step);
  for (int rank = 0; rank < ranks_; ++rank) {
    slots_.note_ended(rank, step - 1);
    if (rank == rank_) {
      sources_[index_of(rank)] = request.inputs[is_shared ? 0 : index_of(rank)].data;
      continue;
    }
    const std::byte* const from =
        filled(rank, step, size) + (is_shared ? 0 : pitch * index_of(rank_));
    sources_[index_of(rank)] = from;
    if (combines) continue;
    const Span& output = request.outputs[index_of(rank)];
    if (output.size_bytes > 0) std::memcpy(output.data, from, output.size_bytes);
  }
  if (combines) fold(request, request.outputs[0].data, request.outputs[0].size_bytes);
  slots_.end(step);
}

// Stages what is after `done` in each part.
void SharedCollectives::show_parts(const Request& request, const Parts& parts, std::uint64_t done,
                                   std::uint64_t place) {
  std::byte* const to = stage(rank_, place);
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const Span& span = request.inputs[i];
    // A part for this rank itself is read where it is.
    if (done >= span.size_bytes || (!parts.is_shared && i == index_of(rank_))) continue;
    copy_to_stage(to + i * parts.pitch, span.data + done,
                  std::min(parts.pitch, span.size_bytes - done));
  }
}

// Reads all that comes from ranks that did not stage it.
void SharedCollectives::take_direct(const Request& request, const Parts& parts,
                                    std::uint64_t step) {
  for (int next = 1; next < ranks_; ++next) {
    const int peer = (rank_ + next) % ranks_;
    const Shown what = shown(peer, step);
    if (what.place == Place::stage) continue;
    const Span& to = request.outputs[index_of(peer)];
    if (to.size_bytes == 0) continue;
    const std::uint64_t place = parts.is_shared ? 0 : what.second * index_of(rank_);
    if (what.place == Place::heap) {
      copy_out(to.data, on_heap(peer, what.first + place), to.size_bytes);
    } else {
      read_private(peer, what.first + place, to);
    }
  }
}

void SharedCollectives::take_staged(const Request& request, const Parts& parts, std::uint64_t step,
                                    std::uint64_t done, std::uint64_t place) {
  const std::uint64_t own = place + parts.place_for(rank_);
  for (int next = 1; next < ranks_; ++next) {
    const int peer = (rank_ + next) % ranks_;
    if (shown(peer, step).place != Place::stage) continue;
    const Span& to = request.outputs[index_of(peer)];
    if (done >= to.size_bytes) continue;
    copy_out(to.data + done, stage(peer, own), std::min(parts.pitch, to.size_bytes - done));
  }
}

// Where the parts of a rank can be read where they are: one behind the other, as many bytes each,
// and none of them where this rank receives.
std::optional<std::uint64_t> common_distance(const Request& request, int rank) {
  const std::vector<Span>& inputs = request.inputs;
  for (const Span& input : inputs) {
    const auto distance = static_cast<std::uint64_t>(&input - inputs.data()) * inputs[0].size_bytes;
    if (input.size_bytes != inputs[0].size_bytes || input.data != inputs[0].data + distance) {
      return std::nullopt;
    }
    for (const Span& output : request.outputs) {
      const bool is_own = request.kind == Kind::all_gather &&
                          &output - request.outputs.data() == rank && output.data == input.data;
      if (!is_own && overlap(input, output)) return std::nullopt;
    }
  }
  return inputs[0].size_bytes;
}

// Where the others read this rank's parts: where they are, or where it stages them.
SharedCollectives::Shown SharedCollectives::place_of_parts(const Request& request,
                                                           const Parts& parts) {
  const auto distance = common_distance(request, rank_);
  const Span& front = request.inputs[0];
  if (distance) {
    const auto offset = heap_offset({front.data, *distance * request.inputs.size()});
    if (offset) return {.place = Place::heap, .first = *offset, .second = *distance};
  }
  choose_way(request, parts.shown_bytes(ranks_), distance.has_value());
  if (way_.way != Way::read) return {};
  return {.place = Place::process,
          .first = reinterpret_cast<std::uintptr_t>(front.data),
          .second = *distance};
}

void SharedCollectives::take_own(const Request& request) {
  const bool is_shared = request.kind == Kind::all_gather;
  const Span& own = request.inputs[is_shared ? 0 : index_of(rank_)];
  const Span& to = request.outputs[index_of(rank_)];
  if (own.data == to.data || own.size_bytes == 0) return;
  if (overlap(own, to)) {
    std::memmove(to.data, own.data, own.size_bytes);
  } else {
    copy_out(to.data, own.data, own.size_bytes);
  }
}

// What of each part is combined in a step.
struct SharedCollectives::Piece {
  std::uint64_t first;
  std::uint64_t size_bytes;  // may be more than is left of a part
  std::uint64_t place;       // where it is staged
};

void SharedCollectives::fold_parts(const Request& request, const Parts& parts, std::uint64_t step,
                                   const Piece& piece) {
  const Span& output = request.outputs[0];
  const std::uint64_t end = std::min(output.size_bytes, piece.first + piece.size_bytes);
  for (std::uint64_t at = piece.first; at < end; at += read_bytes()) {
    const std::uint64_t size = std::min(read_bytes(), end - at);
    for (int rank = 0; rank < ranks_; ++rank) {
      const Shown what = shown(rank, step);
      const std::byte*& source = sources_[index_of(rank)];
      if (rank == rank_) {
        source = request.inputs[index_of(rank_)].data + at;
      } else if (what.place == Place::stage) {
        source = stage(rank, piece.place) + parts.place_for(rank_) + (at - piece.first);
      } else if (what.place == Place::heap) {
        source = on_heap(rank, what.first + what.second * index_of(rank_) + at);
      } else {
        source = read_operand(rank, what.first + what.second * index_of(rank_) + at, size);
      }
    }
    fold(request, output.data + at, size);
  }
}

Task SharedCollectives::run_large_parts(const Request& request) {
  const Parts parts = parts_of(request);
  const bool combines = request.kind == Kind::reduce_scatter;
  way_ = {};
  const Shown what = place_of_parts(request, parts);
  const std::uint64_t first = step_ + 1;
  std::uint64_t steps = (parts.most + parts.pitch - 1) / parts.pitch;
  for (std::uint64_t block = 0; block < steps; ++block) {
    const std::uint64_t step = ++step_;
    const std::uint64_t done = block * parts.pitch;
    co_await until_stage_free(step, parts.stage_bytes(ranks_));
    const std::uint64_t place = stages_.take(parts.stage_bytes(ranks_), step);
    if (what.place == Place::stage) show_parts(request, parts, done, place);
    show(step, what);
    if (block == 0 && !combines) take_own(request);
    co_await until_arrived(step);
    note_all_ended(step - 1);
    if (block == 0 && !is_any(Place::stage, step)) steps = 1;
    if (combines) {
      fold_parts(request, parts, step, {done, steps == 1 ? parts.most : parts.pitch, place});
    } else {
      if (block == 0) take_direct(request, parts, step);
      take_staged(request, parts, step, done, place);
    }
    slots_.end(step);
  }
  // What is only moved is read in the first step.
  if (what.place != Place::stage) co_await until_ended(combines ? step_ : first);
  note_way(request, parts.shown_bytes(ranks_));
}

}  // namespace towpath::collective::direct
