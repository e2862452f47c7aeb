// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "towpath/live/shared_collectives.hpp"

// The collectives of SharedCollectives that combine nothing, or parts, each from its first step to
// its last; the other reductions are in shared_reductions.cpp.
//
// A rank that publishes the first step of a call has ended all steps before, and one that publishes
// a block has ended the last but one: it has read what it waited for. Only a rank that waits for
// nobody has to look how far the others are.

namespace towpath::live {

namespace {

std::size_t index_of(int rank) { return static_cast<std::size_t>(rank); }

constexpr std::uint64_t kUnitBytes = 64;  // whole lines, whole elements

std::uint64_t rounded_up(std::uint64_t size, std::uint64_t unit) {
  return (size + unit - 1) / unit * unit;
}

}  // namespace

Task SharedCollectives::run_barrier() {
  const std::uint64_t step = ++step_;
  co_await until_free(step);
  slots_.publish(step, stamp_);
  co_await until_arrived(step);
  slots_.end(step);
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
    copy_to_slot(to + i * pitch, span.data, span.size_bytes);
  }
  slots_.publish(step, stamp_);
  const bool combines = request.kind == Kind::reduce_scatter;
  if (!combines) take_own(request, 0, pitch);
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

// This rank's own part from `first` on, at most so many bytes of it.
void SharedCollectives::take_own(const Request& request, std::uint64_t first,
                                 std::uint64_t size_bytes) {
  const bool is_shared = request.kind == Kind::all_gather;
  const Span& own = request.inputs[is_shared ? 0 : index_of(rank_)];
  const Span& to = request.outputs[index_of(rank_)];
  if (own.data == to.data || first >= own.size_bytes) return;
  if (!overlap(own, to)) {
    copy_out(to.data + first, own.data + first, std::min(size_bytes, own.size_bytes - first));
  } else if (first == 0) {
    std::memmove(to.data, own.data, own.size_bytes);
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
  const bool is_staged = what.place == Place::stage;
  const std::uint64_t first = step_ + 1;
  std::uint64_t steps = (parts.most + parts.pitch - 1) / parts.pitch;
  for (std::uint64_t block = 0; block < steps; ++block) {
    const std::uint64_t step = ++step_;
    const std::uint64_t done = block * parts.pitch;
    co_await until_stage_free(step, parts.stage_bytes(ranks_));
    const std::uint64_t place = stages_.take(parts.stage_bytes(ranks_), step);
    if (is_staged) show_parts(request, parts, done, place);
    show(step, what);
    // What was staged just now is still in a cache.
    if (!combines && is_staged) take_own(request, done, parts.pitch);
    if (!combines && !is_staged && block == 0) take_own(request, 0, parts.most);
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
  if (!is_staged) co_await until_ended(combines ? step_ : first);
  note_way(request, parts.shown_bytes(ranks_));
}

}  // namespace towpath::live
