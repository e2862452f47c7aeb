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
  std::uint32_t one_sided = kNobody;  // its place in one_sided_, if it has such steps
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

// How a direct step goes: what is loaded and stored through the switch.
struct TimeOnlyRun::Way {
  std::uint32_t load = kNobody;  // flows
  std::uint32_t store = kNobody;
  Time request;          // until a load's source is asked
  Time acknowledgement;  // after a store
  Time overhead;         // from the thread block's step to the first piece

  bool is_local() const { return load == kNobody && store == kNobody; }
};

// What a thread block with one-sided steps keeps besides.
struct TimeOnlyRun::OneSided {
  const collective::RankProgram* rank_program = nullptr;
  const collective::ThreadBlock* program = nullptr;
  const std::vector<collective::AccessWiring>* wiring = nullptr;  // per access
  std::vector<Way> ways;                                          // per access
  int rank = 0;
  std::uint32_t next_take = 0;  // of the current step
  std::uint32_t under_way = 0;  // moves whose stores are not visible yet
  bool has_moved = false;       // the current step
};

// A direct step under way, as a Flight of DirectMoves.
struct TimeOnlyRun::Flight {
  std::uint32_t block = kNobody;
  std::uint32_t sending = 0;  // messages whose last byte has not left
  const Way* way = nullptr;
  Bytes size;
  Bytes piece;
  Bytes asked;  // the piece whose source is being asked
  Bytes issued;
  Bytes loaded;
  Bytes stored;
  bool is_done = false;
};

// A counter of one-sided steps.
struct TimeOnlyRun::Counter {
  std::uint32_t raised = 0;         // and not taken
  std::uint32_t waiting = kNobody;  // a block
};

}  // namespace towpath::simulate
