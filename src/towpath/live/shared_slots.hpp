// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/live/call.hpp"

// The slots of each rank, in memory that all ranks map: a cycle of slots that the rank publishes,
// and the last step of other ranks that it has read. No rank writes to another rank's memory.
//
// Work is divided into steps that all ranks count in the same way. In a step a rank may fill a slot
// and publish it. The other ranks read it and then end the step. A slot starts with a line of 64
// bytes: a word with the step and a stamp, and up to kInlineBytes of data.
//
// Memory order: the word is stored with release after the data that it announces, and loaded with
// acquire before the data is read, so a reader that finds the step also finds its bytes. `ended` is
// stored with release after the last read of a step and loaded with acquire before the slot is
// filled again, so a writer never changes bytes that are being read. Each word has one writer and
// only grows, so no other order is needed, even on processors that reorder stores.

namespace towpath::live {

class SharedSlots {
 public:
  static constexpr std::uint64_t kLineBytes = 64;
  static constexpr std::uint64_t kInlineBytes = kLineBytes - sizeof(std::uint64_t);
  static constexpr int kStampBits = 24;
  // The lead of the fastest rank over the slowest, so that the root of small broadcasts rarely
  // waits. If ranks share cores, such a wait is a context switch: 4 ranks on 2 cores take 0.50 us
  // for 8 bytes with 32 slots, and 0.24 with 256. All slots of a rank, 2 to 4 MiB, exceed a
  // second-level cache, for the reason given in StageRing.
  static constexpr std::uint64_t kSlots = 256;
  // Smaller data take one slot. The limit is higher between two ranks, because each of more ranks
  // reads all others' slots: an all_reduce of 16 KiB takes 1.09 us in a slot and 1.12 in a stage,
  // an all_gather of 32 KiB 1.31 and 1.49.
  static std::uint64_t slot_bytes(int ranks) { return ranks <= 2 ? 16 << 10 : 8 << 10; }
  static std::uint64_t bytes(int ranks, std::uint64_t slots = kSlots) {
    return kEndedBytes + slots * stride(ranks);
  }

  // `memory`: bytes(ranks, slots) of each rank, zeroed, at its address in this rank. `slots`: a
  // power of 2.
  SharedSlots(int rank, std::vector<std::byte*> memory, std::uint64_t slots = kSlots);

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(memory_.size()); }
  std::uint64_t slot_bytes() const { return slot_bytes(ranks()); }

  // --- of this rank ---
  // Whether the slot of that step is free: all others have ended the step that had it before.
  bool is_free(std::uint64_t step) { return step <= slots_ || have_ended(step - slots_); }
  std::byte* inline_bytes(std::uint64_t step) const {
    return line(rank_, step) + sizeof(std::uint64_t);
  }
  std::byte* slot(std::uint64_t step) const { return line(rank_, step) + kLineBytes; }
  void publish(std::uint64_t step, std::uint32_t stamp) {
    word(line(rank_, step)).store(step << kStampBits | stamp, std::memory_order_release);
  }
  // This rank has read all of that step and of the steps before.
  void end(std::uint64_t step) {
    word(memory_[index(rank_)]).store(step, std::memory_order_release);
  }

  // --- of the others ---
  bool has_arrived(int peer, std::uint64_t step, std::uint32_t stamp) const {
    const std::uint64_t value = word(line(peer, step)).load(std::memory_order_acquire);
    if (value >> kStampBits != step) return false;
    if ((value & kStampMask) != stamp) throw Mismatch{peer};
    return true;
  }
  bool has_published(int peer, std::uint64_t step) const {
    return word(line(peer, step)).load(std::memory_order_acquire) >> kStampBits == step;
  }
  const std::byte* inline_bytes(int peer, std::uint64_t step) const {
    return line(peer, step) + sizeof(std::uint64_t);
  }
  const std::byte* slot(int peer, std::uint64_t step) const {
    return line(peer, step) + kLineBytes;
  }
  bool has_ended(int peer, std::uint64_t step) {
    std::uint64_t& known = ended_[index(peer)];
    if (known >= step) return true;
    known = word(memory_[index(peer)]).load(std::memory_order_acquire);
    return known >= step;
  }
  bool have_ended(std::uint64_t step);
  // A rank has ended a step, as its later word shows: saves a read of its memory.
  void note_ended(int peer, std::uint64_t step) {
    std::uint64_t& known = ended_[index(peer)];
    if (known < step) known = step;
  }

 private:
  static constexpr std::uint64_t kEndedBytes = 2 * kLineBytes;  // processors fetch lines in pairs
  // After each slot, for the reason given in StageRing: an all_reduce of 8 KiB takes 0.48 us with
  // it, 1.29 without.
  static constexpr std::uint64_t kGapBytes = 2 << 10;
  static constexpr std::uint64_t kStampMask = (1U << kStampBits) - 1;

  static std::uint64_t stride(int ranks) { return kLineBytes + slot_bytes(ranks) + kGapBytes; }
  static std::atomic_ref<std::uint64_t> word(std::byte* place) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(place));
  }
  std::byte* line(int rank, std::uint64_t step) const {
    return memory_[index(rank)] + kEndedBytes + (step & (slots_ - 1)) * stride_;
  }

  int rank_;
  std::vector<std::byte*> memory_;  // by rank
  std::uint64_t slots_;
  std::uint64_t stride_;              // from slot to slot
  std::vector<std::uint64_t> ended_;  // by rank: a lower bound
};

}  // namespace towpath::live
