// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/collective/engine/block_cursor.hpp"
#include "towpath/gpu_links/flows.hpp"
#include "towpath/transport/simulated/gpu/step_cost.hpp"

namespace towpath::collective::time_only {

using gpu_links::Flows;
using gpu_links::FlowTable;
using gpu_links::Train;
using transport::simulated::StepCost;
using transport::simulated::Work;

inline constexpr std::uint32_t kNobody = ~std::uint32_t{0};

enum class State : std::uint8_t { ready, data, slots, dependency, link, signal, stores, finished };

// A thread block of a rank. It runs ahead of other thread blocks while all times that it needs are
// known.
struct alignas(64) Block {
  Time at;  // all before is done
  State state = State::ready;
  bool leaves_host = false;      // its puts
  bool sends_across = false;     // to another partition
  bool receives_across = false;  // from another one
  std::uint32_t next_waiting = kNobody;
  BlockCursor cursor;

  // Counted from the creation of the run. The counters only grow.
  std::uint64_t slots_returned = 0;
  std::uint32_t slices_sent = 0;  // modulo 2^32, as all numbers of slices
  std::uint32_t slices_received = 0;
  std::uint32_t slices_returned = 0;

  std::uint32_t number = 0;
  std::uint32_t number_in_rank = 0;
  std::uint32_t send_to = kNobody;       // the block that receives from it
  std::uint32_t receive_from = kNobody;  // the block that sends to it
  std::uint32_t flow = kNobody;          // none within the rank
  std::uint32_t progress = kNobody;      // none if no block depends on it
  std::uint32_t one_sided = kNobody;     // its number among blocks with such steps
  std::uint32_t send_slots = 0;
  std::uint32_t partition = 0;
  const StepCost* cost = nullptr;
  Time delay;         // of its puts, beyond their links and bytes
  Time latency;       // of its route
  Time credit_delay;  // until its slots are back at its receive peer
  Time lookahead;     // least time from the start of a put until it arrives

  // The duration of the last slice, because most slices have equal durations.
  std::uint64_t memo_bytes = ~std::uint64_t{0};
  Work memo_work = Work::copy;
  Time memo_duration;
  const Train* memo_train = nullptr;
};

}  // namespace towpath::collective::time_only
