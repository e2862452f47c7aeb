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
#include "towpath/collective/verify/cell_grid.hpp"
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
//   - One-sided steps: a counter has one thread block that takes from it (a barrier's are all let
//     go at once), and raising it takes nothing from any other, so all this holds with them.
//     But other ranks reach a rank's memory between its invocations, too, where its user may touch
//     input and output; so races are looked for in several invocations in a row.
//
// A *cell* is the unit of memory: a slice begins and ends at a chunk's border or at its middle, so
// where transfers have two slices a chunk is two cells, otherwise one (CellGrid).

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

  const AccessWiring& access_wiring(const Block& block, const Step& step) const {
    return wiring.one_sided.ranks[static_cast<std::size_t>(block.rank)]
                                 [static_cast<std::size_t>(block.number)][step.source_chunk];
  }
  std::uint32_t counter_of(int rank, std::uint32_t counter) const {
    return static_cast<std::uint32_t>(rank) * wiring.one_sided.counters + counter;
  }
  bool is_one_sided() const { return !wiring.one_sided.ranks.empty(); }

  const Schedule& schedule;
  Wiring wiring;
  std::vector<std::uint32_t> first_block;  // per rank, and the end
  std::vector<Block> blocks;
  std::vector<Connection> connections;
};

// A slice that moves, a whole local step, or a piece of a direct one.
struct SliceEvent {
  std::uint32_t block = 0;
  std::uint32_t step_number = 0;
  const Step* step = nullptr;
  std::uint32_t first_cell = 0;  // from the start of the step's ranges
  std::uint32_t cells = 0;
  std::int32_t incoming = kNone;  // connections it takes a slice from or adds one to
  std::int32_t outgoing = kNone;
  const Access* access = nullptr;  // of a direct step, whose cells are those of its operands
  Piece piece{};
};

// What a pass may listen to; a visitor hides what it needs.
struct Visitor {
  void on_slice(const SliceEvent&) {}
  // The dependency of `block`'s next step is met.
  void on_dependency(std::uint32_t block, std::uint32_t on_block, std::uint32_t on_step) {
    (void)block, (void)on_block, (void)on_step;
  }
  void on_completion(std::uint32_t block, std::uint32_t step) { (void)block, (void)step; }
  // The n-th time that `block` raises a counter, or goes on because it was raised.
  void on_raise(std::uint32_t block, std::uint32_t counter, std::uint64_t n) {
    (void)block, (void)counter, (void)n;
  }
  void on_take(std::uint32_t block, std::uint32_t counter, std::uint64_t n) {
    (void)block, (void)counter, (void)n;
  }
  // All thread blocks of a rank are at their end.
  void on_invocation_end(int rank, int invocation) { (void)rank, (void)invocation; }
};

// Moves slices of one iteration until all is done or nothing can move; of several invocations in a
// row if asked for.
template <typename VisitorType>
class Walk {
 public:
  Walk(const Network& network, const Chunking& chunking, std::uint64_t iteration,
       VisitorType& visitor, int invocations = 1)
      : network_(network),
        chunking_(chunking),
        iteration_(iteration),
        visitor_(visitor),
        cells_per_chunk_(CellGrid(network.schedule, chunking).per_chunk()),
        invocations_(invocations),
        progress_(network.blocks.size()),
        dependents_(network.blocks.size()),
        arrived_(network.connections.size(), 0) {
    for (const Network::Connection& connection : network.connections) {
      free_slots_.push_back(connection.slots);
    }
    if (network.is_one_sided()) prepare_one_sided();
  }

  // Returns who is stuck; empty when all finished.
  std::vector<Blocked> run() {
    for (std::size_t b = network_.blocks.size(); b-- > 0;) wake(static_cast<std::uint32_t>(b));
    for (int rank = 0; rank < network_.schedule.rank_count(); ++rank) {
      for (int i = 0; network_.schedule.ranks[static_cast<std::size_t>(rank)].blocks.empty() &&
                      i < invocations_;
           ++i) {
        visitor_.on_invocation_end(rank, i);
      }
    }
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
    int invocation = 0;
  };

  // What a thread block with one-sided steps keeps besides.
  struct OneSided {
    std::vector<std::uint64_t> taken;   // per slot
    std::vector<std::uint64_t> raised;  // per slot
    bool has_raised = false;            // in the current step
    std::size_t next_take = 0;
    std::uint32_t loop_first = 0;  // steps of the current pipeline
    std::uint32_t loop_end = 0;
    std::uint64_t loop = 0;
    std::uint64_t loops = 0;
    std::uint64_t unit_elements = 0;
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
    const Steps& steps = network_.blocks[block].program->steps;
    Progress& progress = progress_[block];
    while (progress.step < steps.size()) {
      const Step& step = steps[progress.step];
      if (!progress.is_started && !start(block, step)) return false;
      const bool is_moved =
          is_one_sided(step.type) ? move_one_sided(block, step) : move(block, step);
      if (!is_moved) return false;
      visitor_.on_completion(block, progress.step);
      progress.step = next_step(block);
      progress.chunk = 0;
      progress.is_started = false;
      if (step.publishes) wake_dependents(block);
    }
    return end_invocation(block);
  }

  // Returns whether the block is at the end of its last invocation.
  bool end_invocation(std::uint32_t block) {
    const int rank = network_.blocks[block].rank;
    const auto at = static_cast<std::size_t>(rank);
    const std::uint32_t first = network_.first_block[at];
    const std::uint32_t end = network_.first_block[at + 1];
    if (finished_.empty()) finished_.resize(network_.schedule.ranks.size(), 0);
    if (++finished_[at] < end - first) return true;
    finished_[at] = 0;
    const int invocation = progress_[block].invocation;
    visitor_.on_invocation_end(rank, invocation);
    if (invocation + 1 == invocations_) return true;
    progress_[block].is_parked = true;
    for (std::uint32_t b = first; b < end; ++b) {
      progress_[b].step = 0;
      ++progress_[b].invocation;
      progress_[b].is_parked = true;
      wake(b);
    }
    return true;
  }

  void prepare_one_sided() {
    const OneSidedWiring& wiring = network_.wiring.one_sided;
    one_sided_.resize(network_.blocks.size());
    for (std::size_t b = 0; b < one_sided_.size(); ++b) {
      const Network::Block& block = network_.blocks[b];
      const std::uint32_t slots =
          wiring
              .slots[static_cast<std::size_t>(block.rank)][static_cast<std::size_t>(block.number)];
      one_sided_[b].taken.resize(slots, 0);
      one_sided_[b].raised.resize(slots, 0);
    }
    const std::size_t counters = network_.schedule.ranks.size() * wiring.counters;
    counters_.resize(counters, 0);
    takers_.resize(counters);
  }

  // The step after the current one: of a pipeline that goes on, its first one.
  std::uint32_t next_step(std::uint32_t block) {
    const std::uint32_t next = progress_[block].step + 1;
    if (one_sided_.empty()) return next;
    OneSided& state = one_sided_[block];
    if (next != state.loop_end || next - 1 < state.loop_first) return next;
    if (++state.loop < state.loops) return state.loop_first;
    state.loop_end = 0;
    return next;
  }

  bool move_one_sided(std::uint32_t block, const Step& step) {
    OneSided& state = one_sided_[block];
    const Network::Block& at = network_.blocks[block];
    const Access& access = at.program->access(step);
    const AccessWiring& wiring = network_.access_wiring(at, step);
    const bool raises_first = step.type != StepType::direct;
    if (raises_first && !state.has_raised) raise(block, wiring);
    state.has_raised = true;
    if (!take(block, wiring)) return false;
    state.has_raised = false;
    state.next_take = 0;
    if (step.type == StepType::pipeline) {
      const std::uint64_t element_bytes = chunking_.element_bytes();
      state.loop_first = progress_[block].step + 1;
      state.loop_end = state.loop_first + step.count;
      state.loop = 0;
      state.loops = loop_count(access, chunking_.chunk_elements(), element_bytes);
      state.unit_elements = unit_elements(access, element_bytes);
    }
    if (step.type != StepType::direct) return true;
    const std::uint32_t number = progress_[block].step;
    const bool is_in_pipeline = number >= state.loop_first && number < state.loop_end;
    const Piece piece{iteration_, access.part, access.parts,
                      is_in_pipeline ? state.unit_elements : 0, state.loop};
    visitor_.on_slice({block, number, &step, 0, 0, kNone, kNone, &access, piece});
    raise(block, wiring);
    return true;
  }

  void raise(std::uint32_t block, const AccessWiring& wiring) {
    for (const CounterRaise& raise : wiring.raises) {
      const std::uint32_t counter = network_.counter_of(raise.rank, raise.counter);
      visitor_.on_raise(block, counter, one_sided_[block].raised[raise.slot]++);
      ++counters_[counter];
      for (const std::uint32_t taker : takers_[counter]) wake(taker);
      takers_[counter].clear();
    }
  }

  bool take(std::uint32_t block, const AccessWiring& wiring) {
    OneSided& state = one_sided_[block];
    for (; state.next_take < wiring.takes.size(); ++state.next_take) {
      const CounterTake& take = wiring.takes[state.next_take];
      const std::uint32_t counter = network_.counter_of(network_.blocks[block].rank, take.counter);
      std::uint64_t& taken = state.taken[take.slot];
      if (counters_[counter] + take.credit < (taken + 1) * take.weight) {
        takers_[counter].push_back(block);
        return park(block, take.reason);
      }
      if (taken >= take.credit) visitor_.on_take(block, counter, taken - take.credit);
      ++taken;
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
      blocked.push_back(
          blocked_at(network_.schedule, network_.wiring,
                     {block.rank, block.number, static_cast<int>(progress_[b].step),
                      progress_[b].reason, one_sided_.empty() ? 0 : one_sided_[b].next_take}));
    }
    return blocked;
  }

  static std::size_t index(std::int32_t connection) { return static_cast<std::size_t>(connection); }

  const Network& network_;
  const Chunking& chunking_;
  std::uint64_t iteration_;
  VisitorType& visitor_;
  std::uint32_t cells_per_chunk_;
  int invocations_;
  std::vector<Progress> progress_;                      // per block
  std::vector<std::vector<std::uint32_t>> dependents_;  // per block, who is parked for its steps
  std::vector<std::uint32_t> arrived_;                  // per connection, slices
  std::vector<std::uint32_t> free_slots_;               // per connection
  std::vector<std::uint32_t> ready_;
  std::vector<std::uint32_t> finished_;             // per rank, blocks at their end
  std::vector<OneSided> one_sided_;                 // per block
  std::vector<std::uint64_t> counters_;             // how often each was raised
  std::vector<std::vector<std::uint32_t>> takers_;  // per counter, who is parked for it
};

template <typename VisitorType>
std::vector<Blocked> walk(const Network& network, const Chunking& chunking, std::uint64_t iteration,
                          VisitorType& visitor, int invocations = 1) {
  return Walk<VisitorType>(network, chunking, iteration, visitor, invocations).run();
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
  // Of an operand, at one rank; `is_second` is for every other invocation with a scratch of its
  // own.
  std::size_t cell(int rank, const Operand& operand, bool is_second) const {
    return cell(rank, operand.buffer, operand.chunk) +
           (is_second && operand.buffer == Buffer::scratch
                ? second_scratch_[static_cast<std::size_t>(rank)]
                : 0);
  }
  std::size_t first_cell(int rank) const { return first_[static_cast<std::size_t>(rank)]; }
  std::size_t cells() const { return first_.back(); }
  std::uint32_t cells_per_chunk() const { return cells_per_chunk_; }

 private:
  std::uint32_t cells_per_chunk_;
  std::vector<std::size_t> base_;            // [rank][buffer]
  std::vector<std::size_t> second_scratch_;  // [rank], from the first one
  std::vector<std::size_t> first_;           // [rank], and the end
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
