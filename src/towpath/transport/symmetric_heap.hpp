// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "towpath/transport/transport.hpp"

// The allocations of a symmetric heap: offsets and signal numbers, without the memory itself. Equal
// sequences of calls give equal results, so that ranks need not communicate.
//
// A rank that runs ahead may release signals, allocate the same numbers again and raise them at a
// peer that has not released them yet. Therefore each signal has two words, and every release
// switches to the other one. The peer clears the old word and leaves the new one unchanged.
//
//   count = heap.release_signals(first);   // then clear previous_word_of each of them
//   first = heap.allocate_signals(4);
//   raise(peer, heap.word_of(first));
//
// Wrong: two releases of one signal without a barrier between them. There is no third word.

namespace towpath::transport {

// Allocates the lowest range that fits from [begin, end), and merges released ranges. Positions and
// sizes are whole multiples of `unit`.
class RangeAllocator {
 public:
  RangeAllocator(std::uint64_t begin, std::uint64_t end, std::uint64_t unit);

  // Throws std::bad_alloc if no gap is large enough. A size of 0 takes one unit.
  std::uint64_t allocate(std::uint64_t size);
  // Returns the released size; 0 if there was no allocation at `begin`.
  std::uint64_t release(std::uint64_t begin);

 private:
  std::uint64_t unit_;
  std::map<std::uint64_t, std::uint64_t> gaps_;   // begin -> size; never adjacent
  std::map<std::uint64_t, std::uint64_t> taken_;  // begin -> size
};

class SymmetricHeap {
 public:
  static constexpr std::uint64_t kAlignment = 256;

  // Throws std::invalid_argument if the contract's reserved bytes and signals do not fit.
  SymmetricHeap(int ranks, std::uint64_t heap_bytes, std::uint32_t signals);

  std::uint64_t size_bytes() const { return size_bytes_; }
  std::uint32_t signals() const { return static_cast<std::uint32_t>(generation_.size()); }

  // As in Transport. The releases throw std::invalid_argument for a range that was never allocated.
  Offset allocate(std::uint64_t size_bytes);
  void release(Offset offset);
  Signal allocate_signals(std::uint32_t count);
  // Returns the number of released signals: first, first + 1, ...
  std::uint32_t release_signals(Signal first);

  // The number of words of all signals, and the word of a signal, now and before its last release.
  std::uint64_t signal_words() const { return 2 * static_cast<std::uint64_t>(signals()); }
  std::uint64_t word_of(Signal signal) const {
    return 2 * static_cast<std::uint64_t>(signal) + generation_[signal];
  }
  std::uint64_t previous_word_of(Signal signal) const { return word_of(signal) ^ 1; }

  // Throw std::out_of_range with one sentence for a range outside the heap.
  void check_range(Offset offset, std::uint64_t size_bytes) const;
  void check_signal(Signal signal) const;

 private:
  std::uint64_t size_bytes_;
  RangeAllocator bytes_;
  RangeAllocator numbers_;
  std::vector<std::uint8_t> generation_;  // per signal, 0 or 1
};

// Throws std::out_of_range for a rank that does not exist.
void check_rank(int rank, int ranks);
// Throws as Transport::start does for an invalid move.
void check_move(const Move& move, const SymmetricHeap& heap, int ranks);

}  // namespace towpath::transport
