// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/simulate/time_only_run.hpp"

// A thread block of a run of time alone: for the sources of TimeOnlyRun only.

namespace towpath::simulate {

struct alignas(64) TimeOnlyRun::Block {
  // Where it is: iteration > step > transfer > slice.
  Time at;  // all before is done
  State state = State::ready;
  std::uint8_t slice = 0;
  std::uint32_t step = 0;
  const Transfer* transfer = nullptr;
  collective::Step current;
  std::uint32_t first_chunk = 0;
  std::uint32_t chunk_count = 0;
  std::uint64_t iteration = 0;

  // Since the run was made; they only grow.
  std::uint64_t slots_sent = 0;
  std::uint64_t slots_received = 0;
  std::uint64_t slots_returned = 0;
  std::uint32_t slices_sent = 0;  // modulo 2^32, as all numbers of slices
  std::uint32_t slices_received = 0;
  std::uint32_t slices_returned = 0;
  std::uint32_t next_waiting = kNobody;
  std::uint64_t steps_finished = 0;  // of this invocation

  const collective::Step* steps = nullptr;
  const Price* price = nullptr;
  std::uint32_t step_count = 0;
  std::uint32_t number = 0;
  std::uint32_t number_in_rank = 0;
  std::uint32_t send_to = kNobody;       // the block that receives from it
  std::uint32_t receive_from = kNobody;  // the block that sends to it
  std::uint32_t flow = kNobody;          // none to the own rank
  std::uint32_t progress = kNotPublished;
  std::uint32_t send_slots = 0;
  std::uint32_t partition = 0;
  bool leaves_host = false;      // what it sends
  bool sends_across = false;     // to another partition
  bool receives_across = false;  // from another one
  Time delay;                    // of its puts, beyond their links and bytes
  Time latency;                  // of its route
  Time lookahead;                // from when its puts are known until they arrive, at least
  Time credit_delay;             // until its slots are back at its receive peer

  // What the last slice took, since most are alike.
  std::uint64_t memo_bytes = ~std::uint64_t{0};
  Work memo_work = Work::copy;
  Time memo_duration;
  const gpu_links::Flows::Train* memo_train = nullptr;
};

}  // namespace towpath::simulate
