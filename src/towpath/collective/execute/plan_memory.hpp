// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "towpath/collective/schedule/plan.hpp"
#include "towpath/transport/transport.hpp"

namespace towpath::collective {

// In place, output overlaps input as the collective prescribes: the same memory, or one part of it.
// Null in a time-only run.
struct Buffers {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
};

// The symmetric memory of a plan on one rank: FIFOs, scratch, signals and, for one-sided steps, a
// window. Input is copied into the window, which other ranks can access, and output is copied out
// of it. GPUs would have registered the buffers, so this takes no simulated time.
class PlanMemory {
 public:
  // Throws std::invalid_argument if the transport does not support the one-sided steps.
  PlanMemory(transport::Transport& transport, std::shared_ptr<const Plan> plan);
  ~PlanMemory();
  PlanMemory(const PlanMemory&) = delete;
  PlanMemory& operator=(const PlanMemory&) = delete;

  void begin_invocation(const Buffers& buffers);
  // Stores the results to the caller's buffers.
  void end_invocation();

  // Slots of the connection with a peer, or 0 without a peer.
  std::uint64_t connection_slots(std::int32_t peer) const;
  transport::Offset slot_offset(std::int32_t fifo, std::uint64_t slot) const;
  // Raised to the number of slots after the slice that starts there. A slot carries one slice at a
  // time, so its signal only grows, in any order of arrival.
  transport::Signal data_signal(std::int32_t fifo, std::uint64_t slot) const;
  transport::Signal credit_signal(std::int32_t credit) const;
  transport::Signal counter_signal(std::uint32_t counter) const;

  // A buffer of this rank, or null in a time-only run.
  std::byte* base(Buffer buffer) const;
  // A buffer of any rank in the symmetric heap, for one-sided steps.
  transport::Offset offset_of(Buffer buffer, int rank) const;

 private:
  transport::DirectNeeds direct_needs() const;
  void open_window();
  void divide_average();

  transport::Transport& transport_;
  std::shared_ptr<const Plan> plan_;
  transport::Offset fifos_ = 0;
  transport::Offset scratch_ = 0;
  transport::Offset window_ = 0;
  transport::Signal signals_ = 0;
  Buffers buffers_;
  bool is_in_place_ = false;  // with a window
  std::uint64_t invocations_ = 0;
};

}  // namespace towpath::collective
