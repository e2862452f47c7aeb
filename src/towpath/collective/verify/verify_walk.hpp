// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "towpath/collective/schedule/chunking.hpp"
#include "towpath/collective/schedule/deadlock.hpp"
#include "towpath/collective/schedule/schedule.hpp"
#include "towpath/collective/schedule/wiring.hpp"
#include "towpath/collective/verify/verify.hpp"

// The verifier's own: one pass over a schedule, slice by slice, in an order that could happen.
//
// Why one pass is enough for every order, iteration and invocation. A connection has one sender and
// one receiver, and a completed step stays completed, so a slice that could move can still move
// after any other did: all maximal runs move the same slices (a Kahn process network with bounded
// buffers). Hence:
//   - Orders: either every run finishes or none does, and what is ordered by program, data and
//     dependencies is so in every run.
//   - Iterations and invocations: when one iteration finishes and no connection is left with a
//     slice in it (no mismatch), it ends in the state in which the next one begins; so running them
//     one after the other is a run that finishes, hence all do. When one iteration is stuck, the
//     blocks that wait in it wait for others that do not finish it either, since a block that has
//     finished has sent and received all that its peers expect of it; so no later iteration helps.
//     Only slices can differ between iterations, and only in the last, whose pieces are shorter.
//   - Slices: a transfer takes the same slots in one slice as in several, and the slots of a FIFO
//     are a multiple of those. A run with whole transfers is also one with slices, which move one
//     behind the other. Where it is stuck, each FIFO holds whole transfers, so one without room
//     for a transfer has none for a slice, and one without a transfer has no slice: slices are
//     stuck, too. Hence how transfers are cut does not matter for deadlocks.
//   - Races: memory belongs to one rank, whose invocations do not overlap, and iterations touch
//     different elements; two accesses can only race within one iteration.
//   - Data: one invocation is a linear map of the rank's memory before it. If its outputs are the
//     right sums with no part of what output and scratch held before, then so are those of the
//     next invocation, which begins with leftovers in the same places.
//
// A *cell* is the unit of memory: a slice begins and ends at a chunk's border or at its middle, so
// where transfers have two slices a chunk is two cells, otherwise one.

namespace towpath::collective {

// A schedule with its thread blocks and connections numbered through.
struct Network {
  // Throws std::invalid_argument unless a transfer fits a whole number of times into a FIFO.
  Network(const Schedule& schedule, const SlotCounts& slots);

  struct Block {
    const ThreadBlock* program = nullptr;
    int rank = kNone;
    int number = kNone;             // in its rank
    std::int32_t incoming = kNone;  // connections
    std::int32_t outgoing = kNone;
  };
  struct Connection {
    std::uint32_t sender = 0;  // blocks
    std::uint32_t receiver = 0;
    std::uint32_t slots = 0;
  };

  std::uint32_t block_of(int rank, int number) const {
    return first_block[static_cast<std::size_t>(rank)] + static_cast<std::uint32_t>(number);
  }

  const Schedule& schedule;
  Wiring wiring;
  std::vector<std::uint32_t> first_block;  // per rank
  std::vector<Block> blocks;
  std::vector<Connection> connections;
};

// A slice that moves, or a whole local step.
struct SliceEvent {
  std::uint32_t block = 0;
  std::uint32_t step_number = 0;
  const Step* step = nullptr;
  std::uint32_t first_cell = 0;  // from the start of the step's ranges
  std::uint32_t cells = 0;
  std::int32_t incoming = kNone;  // connections it takes a slice from or adds one to
  std::int32_t outgoing = kNone;
};

// What a pass may listen to; a visitor hides what it needs.
struct Visitor {
  void on_slice(const SliceEvent&) {}
  // The dependency of `block`'s next step is met.
  void on_dependency(std::uint32_t block, std::uint32_t on_block, std::uint32_t on_step) {
    (void)block, (void)on_block, (void)on_step;
  }
  void on_completion(std::uint32_t block, std::uint32_t step) { (void)block, (void)step; }
};

// Moves slices of one iteration until all is done or nothing can move.
template <typename VisitorType>
class Walk {
 public:
  Walk(const Network& network, const Chunking& chunking, std::uint64_t iteration,
       VisitorType& visitor)
      : network_(network),
        chunking_(chunking),
        iteration_(iteration),
        visitor_(visitor),
        cells_per_chunk_(chunking.fifo().slices_per_transfer),
        progress_(network.blocks.size()),
        dependents_(network.blocks.size()),
        arrived_(network.connections.size(), 0) {
    for (const Network::Connection& connection : network.connections) {
      free_slots_.push_back(connection.slots);
    }
  }

  // Returns who is stuck; empty when all finished.
  std::vector<Blocked> run() {
    for (std::size_t b = network_.blocks.size(); b-- > 0;) wake(static_cast<std::uint32_t>(b));
    while (!ready_.empty()) {
      const std::uint32_t block = ready_.back();
      ready_.pop_back();
      progress_[block].is_parked = !advance(block);
    }
    return stuck();
  }

 private:
  struct Progress {
    std::uint32_t step = 0;
    std::uint32_t chunk = 0;  // of the step, done by earlier transfers
    std::uint32_t slice = 0;  // of the transfer
    bool is_started = false;  // the step's dependency was met
    bool is_parked = true;
    WaitReason reason = WaitReason::data;
  };

  void wake(std::uint32_t block) {
    if (!progress_[block].is_parked) return;
    progress_[block].is_parked = false;
    ready_.push_back(block);
  }

  bool park(std::uint32_t block, WaitReason reason) {
    progress_[block].reason = reason;
    return false;
  }

  // Returns whether the block is at its end.
  bool advance(std::uint32_t block) {
    const std::vector<Step>& steps = network_.blocks[block].program->steps;
    Progress& progress = progress_[block];
    while (progress.step < steps.size()) {
      const Step& step = steps[progress.step];
      if (!progress.is_started && !start(block, step)) return false;
      if (!move(block, step)) return false;
      visitor_.on_completion(block, progress.step);
      ++progress.step;
      progress.chunk = 0;
      progress.is_started = false;
      if (step.publishes) wake_dependents(block);
    }
    return true;
  }

  bool start(std::uint32_t block, const Step& step) {
    if (step.depends_on_block != kNone) {
      const std::uint32_t on =
          network_.block_of(network_.blocks[block].rank, step.depends_on_block);
      const auto on_step = static_cast<std::uint32_t>(step.depends_on_step);
      if (progress_[on].step <= on_step) {
        dependents_[on].push_back(block);
        return park(block, WaitReason::dependency);
      }
      visitor_.on_dependency(block, on, on_step);
    }
    progress_[block].is_started = true;
    return true;
  }

  void wake_dependents(std::uint32_t block) {
    for (const std::uint32_t dependent : dependents_[block]) wake(dependent);
    dependents_[block].clear();
  }

  // Returns whether the step is done.
  bool move(std::uint32_t block, const Step& step) {
    if (step.type == StepType::nop) return true;
    Progress& progress = progress_[block];
    if (!receives(step.type) && !sends(step.type)) {
      visitor_.on_slice(
          {block, progress.step, &step, 0, step.count * cells_per_chunk_, kNone, kNone});
      return true;
    }
    while (progress.chunk < step.count) {
      const std::uint32_t count =
          std::min(chunking_.chunks_per_transfer(), step.count - progress.chunk);
      const std::uint32_t slices = chunking_.slices(chunking_.nominal(count, iteration_));
      for (; progress.slice < slices; ++progress.slice) {
        if (!move_slice(block, step, count, slices)) return false;
      }
      progress.slice = 0;
      progress.chunk += count;
    }
    return true;
  }

  bool move_slice(std::uint32_t block, const Step& step, std::uint32_t count,
                  std::uint32_t slices) {
    const Network::Block& ends = network_.blocks[block];
    const Progress& progress = progress_[block];
    const std::uint32_t slots = chunking_.fifo().slots_per_transfer / slices;
    SliceEvent event{block, progress.step, &step, 0, 0, kNone, kNone};
    if (receives(step.type)) {
      event.incoming = ends.incoming;
      if (arrived_[index(event.incoming)] == 0) return park(block, WaitReason::data);
    }
    if (sends(step.type)) {
      event.outgoing = ends.outgoing;
      if (free_slots_[index(event.outgoing)] < slots) return park(block, WaitReason::slot);
    }
    const std::uint32_t cells = count * cells_per_chunk_;
    event.first_cell = progress.chunk * cells_per_chunk_ + progress.slice * cells / slices;
    event.cells = cells / slices;
    visitor_.on_slice(event);
    if (event.incoming != kNone) {
      --arrived_[index(event.incoming)];
      free_slots_[index(event.incoming)] += slots;
      wake(network_.connections[index(event.incoming)].sender);
    }
    if (event.outgoing != kNone) {
      ++arrived_[index(event.outgoing)];
      free_slots_[index(event.outgoing)] -= slots;
      wake(network_.connections[index(event.outgoing)].receiver);
    }
    return true;
  }

  std::vector<Blocked> stuck() const {
    std::vector<Blocked> blocked;
    for (std::size_t b = 0; b < progress_.size(); ++b) {
      const Network::Block& block = network_.blocks[b];
      if (progress_[b].step == block.program->steps.size()) continue;
      blocked.push_back(blocked_at(
          network_.schedule, network_.wiring,
          {block.rank, block.number, static_cast<int>(progress_[b].step), progress_[b].reason}));
    }
    return blocked;
  }

  static std::size_t index(std::int32_t connection) { return static_cast<std::size_t>(connection); }

  const Network& network_;
  const Chunking& chunking_;
  std::uint64_t iteration_;
  VisitorType& visitor_;
  std::uint32_t cells_per_chunk_;
  std::vector<Progress> progress_;                      // per block
  std::vector<std::vector<std::uint32_t>> dependents_;  // per block, who is parked for its steps
  std::vector<std::uint32_t> arrived_;                  // per connection, slices
  std::vector<std::uint32_t> free_slots_;               // per connection
  std::vector<std::uint32_t> ready_;
};

template <typename VisitorType>
std::vector<Blocked> walk(const Network& network, const Chunking& chunking, std::uint64_t iteration,
                          VisitorType& visitor) {
  return Walk<VisitorType>(network, chunking, iteration, visitor).run();
}

// What travels on one connection; most are empty most of the time, and there may be a million.
template <typename T>
class Queue {
 public:
  void push(T item) { items_.push_back(std::move(item)); }
  T pop() {
    T item = std::move(items_[first_++]);
    if (first_ == items_.size()) {
      items_.clear();
      first_ = 0;
    } else if (first_ >= 64 && first_ * 2 >= items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    return item;
  }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;
};

// Where a rank's buffers lie in one numbering of all memory, in or out of place.
class Memory {
 public:
  Memory(const Schedule& schedule, bool in_place, std::uint32_t cells_per_chunk);

  // The first cell of a chunk.
  std::size_t cell(int rank, Buffer buffer, std::uint32_t chunk) const {
    return base_[static_cast<std::size_t>(rank) * kBuffers + static_cast<std::size_t>(buffer)] +
           std::size_t{chunk} * cells_per_chunk_;
  }
  std::size_t first_cell(int rank) const { return first_[static_cast<std::size_t>(rank)]; }
  std::size_t cells() const { return first_.back(); }
  std::uint32_t cells_per_chunk() const { return cells_per_chunk_; }

 private:
  std::uint32_t cells_per_chunk_;
  std::vector<std::size_t> base_;   // [rank][buffer]
  std::vector<std::size_t> first_;  // [rank], and the end
};

// Which chunks hold elements at all: the array may end inside a part's chunk.
struct Extent {
  Extent(const Schedule& schedule, const Chunking& chunking);

  std::uint32_t chunks_per_part = 1;
  std::uint32_t whole = 0;            // chunks of a part that are complete
  std::uint64_t ragged_elements = 0;  // in the one after them

  // Chunks of a part that hold any element.
  std::uint32_t begun() const { return whole + (ragged_elements > 0 ? 1 : 0); }
};

}  // namespace towpath::collective
