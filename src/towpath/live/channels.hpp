// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/live/call.hpp"
#include "towpath/transport/transport.hpp"

// A FIFO of slots from each rank to each other one, in the receiver's symmetric heap.
//
// The signal of a slot carries the number of its fills and a stamp of the sender, so that one put
// announces a chunk, and a receiver that expects another one detects it.

namespace towpath::live {

struct Arrival {
  std::byte* data = nullptr;  // null before the arrival
  std::uint32_t stamp = 0;
};

class Channels {
 public:
  static constexpr std::uint32_t kSlots = 4;
  static constexpr std::uint64_t kSlotBytes = 64 << 10;
  static constexpr int kStampBits = 24;

  static std::uint64_t heap_bytes(int ranks) {
    return static_cast<std::uint64_t>(ranks) * kSlots * kSlotBytes;
  }
  static std::uint32_t signals(int ranks) {
    return static_cast<std::uint32_t>(ranks) * (kSlots + 1);
  }

  // Every rank makes its Channels in the same order.
  explicit Channels(transport::Transport& transport);
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(ends_.size()); }

  // True if the peer has a free slot.
  bool can_send(int peer);
  // Fills the next slot with `head` and `body`, together at most kSlotBytes. The body stays
  // unchanged until all_sent(). The head is at most kHeadBytes and is copied.
  static constexpr std::uint64_t kHeadBytes = 64;
  void send(int peer, Span head, Span body, std::uint32_t stamp);
  // True if the transport has completed all sends.
  bool all_sent() const { return in_flight_ == 0; }

  // The oldest slot from that peer that has not been consumed.
  Arrival arrival(int peer) const;
  void consume(int peer);

 private:
  struct Slot {
    transport::Move head;
    transport::Move body;
    std::byte head_bytes[kHeadBytes];
  };
  struct End {
    std::uint64_t sent = 0;
    std::uint64_t free_until = kSlots;  // the last limit of `sent`
    std::uint64_t consumed = 0;
    std::uint64_t credited = 0;  // consumed slots that the peer has been notified of
    transport::Move credit;
    std::unique_ptr<Slot[]> slots;
  };

  End& end(int peer) { return ends_[index(peer)]; }
  const End& end(int peer) const { return ends_[index(peer)]; }
  std::uint64_t place(int of_rank, std::uint64_t number) const {
    return static_cast<std::uint64_t>(of_rank) * kSlots + number % kSlots;
  }
  void start(transport::Move& move);

  transport::Transport& transport_;
  int rank_;
  transport::Offset memory_;
  transport::Signal arrivals_;  // by the sender's rank and slot
  transport::Signal credits_;   // by the receiver's rank
  std::vector<End> ends_;
  std::uint64_t in_flight_ = 0;
};

}  // namespace towpath::live
