// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/live/call.hpp"
#include "towpath/live/path_tuner.hpp"
#include "towpath/live/shared_slots.hpp"
#include "towpath/live/stage_ring.hpp"
#include "towpath/live/task.hpp"
#include "towpath/transport/live_transport.hpp"

namespace towpath::live {

// The location of a rank's bytes, as published in the line of a step.
struct Descriptor {
  enum class Location : std::uint32_t { stage, heap, process };
  Location location = Location::stage;
  CopyPath path = CopyPath::staged;  // the leader's choice, if one rank chooses for all
  std::uint64_t first = 0;           // offset in the heap, or address
  std::uint64_t second = 0;          // offset of the result, or distance between parts
};
static_assert(sizeof(Descriptor) <= SharedSlots::kInlineBytes);

// The protocol of one rank with the ranks that map its memory. A call is divided into steps. In a
// step a rank publishes a slot, or the descriptor of more bytes, and reads the data of the other
// ranks.
//
// A rank that publishes the first step of a call has ended all earlier steps. A rank that publishes
// a block has ended the last step but one, because it waited for the others to read it. Only a rank
// without waits has to check the progress of the others.
class SharedRank {
 public:
  static std::uint64_t heap_bytes(int ranks) {
    return slots_bytes(ranks) + StageRing::bytes(ranks);
  }
  // True if all ranks map each other's memory.
  static bool is_possible(transport::LiveTransport& transport);

  // Every rank creates one, in the same order. A barrier must follow before the first step.
  explicit SharedRank(transport::LiveTransport& transport);
  SharedRank(const SharedRank&) = delete;
  SharedRank& operator=(const SharedRank&) = delete;

  int rank() const { return slots_.rank(); }
  int ranks() const { return slots_.ranks(); }
  bool is_crowded() const { return is_crowded_; }
  std::uint64_t slot_bytes() const { return slots_.slot_bytes(); }

  // --- waiting -----------------------------------------------------------------------------------
  struct Condition {
    enum class Kind : std::uint8_t { slot_free, stage_free, arrived, ended };
    Kind kind = Kind::slot_free;
    int peer = transport::kNoPeer;  // kNoPeer: all others
    std::uint64_t step = 0;
    std::uint64_t staged = 0;  // the step that ends the last use of the stage
    int next = 0;              // the first rank that has not arrived yet
  };
  // Awaited by the coroutine of a collective.
  struct Until {
    SharedRank& self;
    Condition condition;
    bool await_ready() {
      for (int i = 0; i < self.looks_; ++i) {
        if (self.holds(condition)) return true;
      }
      return false;
    }
    void await_suspend(std::coroutine_handle<>) { self.awaited_ = condition; }
    void await_resume() const {}
  };
  Until until_free(std::uint64_t step) {
    return {*this, {Condition::Kind::slot_free, transport::kNoPeer, step}};
  }
  // The slot of a step, and the stage of the next block.
  Until until_stage_free(std::uint64_t step, std::uint64_t size_bytes) {
    return {
        *this,
        {Condition::Kind::stage_free, transport::kNoPeer, step, stages_.busy_until(size_bytes)}};
  }
  Until until_arrived(std::uint64_t step, int peer = transport::kNoPeer) {
    return {*this, {Condition::Kind::arrived, peer, step}};
  }
  Until until_ended(std::uint64_t step) {
    return {*this, {Condition::Kind::ended, transport::kNoPeer, step}};
  }
  bool is_free(std::uint64_t step) { return slots_.is_free(step); }
  // True if the coroutine can continue. Throws Mismatch.
  bool can_continue() { return holds(awaited_); }
  void forget_condition() { awaited_ = {}; }
  // Throws Mismatch if a rank makes another call, even if the condition depends on a different
  // rank.
  void check_peers();
  // True if the current condition depends on that rank.
  bool awaits(int peer);

  // --- steps -------------------------------------------------------------------------------------
  // All ranks stamp the same call alike. Another stamp is a Mismatch.
  void set_stamp(std::uint32_t stamp) { stamp_ = stamp; }
  std::uint64_t last_step() const { return step_; }
  std::uint64_t next_step() { return ++step_; }
  void set_last_step(std::uint64_t step) { step_ = step; }
  void publish(std::uint64_t step) { slots_.publish(step, stamp_); }
  template <typename T>
  void publish(std::uint64_t step, const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= SharedSlots::kInlineBytes);
    std::memcpy(slots_.inline_bytes(step), &value, sizeof(value));
    publish(step);
  }
  template <typename T = Descriptor>
  T published(int rank, std::uint64_t step) const {
    T value;
    std::memcpy(&value, slots_.inline_bytes(rank, step), sizeof(value));
    return value;
  }
  bool are_all(Descriptor::Location location, std::uint64_t step) const;
  bool is_any(Descriptor::Location location, std::uint64_t step) const;
  void end(std::uint64_t step) { slots_.end(step); }
  // All ranks have ended a step: saves a read of their memory.
  void note_all_ended(std::uint64_t step) {
    for (int rank = 0; rank < ranks(); ++rank) slots_.note_ended(rank, step);
  }

  // --- memory ------------------------------------------------------------------------------------
  // A few bytes are in the line of the step, more in its slot.
  std::byte* slot_for(std::uint64_t step, std::uint64_t size_bytes) const {
    const bool is_inline = size_bytes <= SharedSlots::kInlineBytes;
    return is_inline ? slots_.inline_bytes(step) : slots_.slot(step);
  }
  const std::byte* slot_of(int rank, std::uint64_t step, std::uint64_t size_bytes) const {
    const bool is_inline = size_bytes <= SharedSlots::kInlineBytes;
    return is_inline ? slots_.inline_bytes(rank, step) : slots_.slot(rank, step);
  }
  // Reserves the stage of the next block on all ranks until a step has ended. Returns its place.
  std::uint64_t take_stage(std::uint64_t size_bytes, std::uint64_t last_step) {
    return stages_.take(size_bytes, last_step);
  }
  std::byte* stage(int rank, std::uint64_t place) const { return rings_[index(rank)] + place; }
  std::byte* heap(int rank, std::uint64_t offset) const { return heaps_[index(rank)] + offset; }
  // Empty if the memory is not on this rank's heap.
  std::optional<std::uint64_t> heap_offset(const Span& span) const;
  // Copies from a peer's process. Returns false if the system rejects it.
  bool try_read(int peer, std::uint64_t address, const Span& to);
  // Throws TransportError if the system rejects it.
  void read(int peer, std::uint64_t address, const Span& to);

 private:
  // The ring of stages follows the slots and starts on a page.
  static std::uint64_t slots_bytes(int ranks) {
    constexpr std::uint64_t kPageBytes = 4096;
    return (SharedSlots::bytes(ranks) + kPageBytes - 1) / kPageBytes * kPageBytes;
  }
  SharedRank(transport::LiveTransport& transport, const std::vector<std::byte*>& regions);
  bool holds(Condition& condition);

  transport::LiveTransport& transport_;
  std::vector<std::byte*> heaps_;  // by rank
  std::vector<std::byte*> rings_;  // by rank
  SharedSlots slots_;
  StageRing stages_;  // the same on all ranks
  bool is_crowded_;
  int looks_;
  std::uint64_t step_ = 0;
  std::uint32_t stamp_ = 0;
  Condition awaited_;
};

}  // namespace towpath::live
