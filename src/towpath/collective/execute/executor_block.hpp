// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "towpath/collective/execute/executor.hpp"

// A thread block of an executor, for the executor's sources only.

namespace towpath::collective {

// A DirectMove in progress.
struct Executor::DirectRun {
  transport::DirectMove move;
  Block* block = nullptr;
  bool is_under_way = false;
};

// The one-sided steps of a thread block.
struct Executor::Direct {
  OneSidedCursor cursor;
  std::size_t under_way = 0;  // moves whose stores are not yet visible
  bool awaits_visible = false;
  std::deque<DirectRun> runs;  // storage
  std::vector<DirectRun*> free_runs;
};

// A contiguous piece of a buffer that one slice reads or writes.
struct Executor::Part {
  std::byte* address = nullptr;
  std::uint64_t size_bytes = 0;
};

struct Executor::Block {
  Executor* executor = nullptr;
  const ThreadBlock* program = nullptr;
  const BlockWiring* wiring = nullptr;
  std::uint32_t index = 0;
  BlockCursor cursor;

  std::uint64_t send_slots = 0;     // of its outgoing connection's FIFO
  std::uint64_t receive_slots = 0;  // of its incoming one's

  Block* first_dependent = nullptr;  // blocks of this rank that wait for a step of this one
  Block* next_dependent = nullptr;

  bool is_finished = true;
  bool is_waiting = false;
  bool is_moving = false;
  bool is_starting_move = false;
  WaitReason reason = WaitReason::launch;
  Time entered;
  Time moving;

  transport::Move move;
  transport::SignalWait wait;
  std::unique_ptr<Direct> direct;  // only with one-sided steps
};

inline void Executor::advance(Block& block) { ThreadBlockMachine::advance(*this, block); }

}  // namespace towpath::collective
