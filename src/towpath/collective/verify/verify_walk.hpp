// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "towpath/collective/engine/thread_block_machine.hpp"
#include "towpath/collective/schedule/chunking.hpp"
#include "towpath/collective/schedule/deadlock.hpp"
#include "towpath/collective/schedule/schedule.hpp"
#include "towpath/collective/schedule/wiring.hpp"
#include "towpath/collective/verify/cell_grid.hpp"
#include "towpath/collective/verify/verify.hpp"

// Internal to the verifier: one pass over a schedule, slice by slice, in a possible order.
//
// One pass is sufficient for every order, iteration and invocation. A connection has one sender and
// one receiver, and a completed step stays completed, so a slice that can move can still move after
// any other has moved: all maximal runs move the same slices (a Kahn process network with bounded
// buffers). Hence:
//   - Orders: either every run finishes or none does, and order by program, data and dependencies
//   is
//     the same in every run.
//   - Iterations and invocations: if one iteration finishes and no connection has a slice left (no
//     mismatch), it ends in the initial state of the next one, so running them in sequence is a run
//     that finishes, hence all do. If one iteration is stuck, its waiting blocks wait for others
//     that do not finish it either, since a finished block has sent and received all that its peers
//     expect of it. No later iteration helps. Only slices can differ between iterations, and only
//     in the last, which has shorter pieces.
//   - Slices: a transfer takes the same slots in one slice as in several, and the slots of a FIFO
//   are
//     a multiple of a transfer's. A run with whole transfers is also a run with slices in sequence.
//     If it is stuck, each FIFO holds whole transfers, so a FIFO without space for a transfer has
//     none for a slice, and a FIFO without a transfer has no slice: slices are also stuck. Hence
//     the number of slices does not matter for deadlocks.
//   - Races: memory belongs to one rank, whose invocations do not overlap, and iterations access
//     different elements. Two accesses can only race within one iteration.
//   - Data: one invocation is a linear map of the rank's previous memory. If its outputs are the
//   right
//     sums without any previous contents of output and scratch, so are the outputs of the next
//     invocation, which starts with leftovers in the same places.
//   - One-sided steps: a counter has one thread block that takes from it (all blocks of a barrier
//   are
//     released at once), and raising it does not reduce any other, so all of the above holds.
//     However, other ranks access a rank's memory between its invocations, too, when its user may
//     access input and output. Races are therefore checked over several consecutive invocations.
//
// A *cell* is the unit of memory: a slice starts and ends at a chunk's border or middle, so a chunk
// has two cells if transfers have two slices, otherwise one (CellGrid).

namespace towpath::collective {

// A schedule with consecutive numbers for thread blocks and connections.
struct Network {
  // Throws std::invalid_argument unless the slots of a FIFO are a multiple of a transfer's.
  Network(const Schedule& schedule, const SlotCounts& slots);

  struct Block {
    const ThreadBlock* program = nullptr;
    int rank = kNone;
    int number = kNone;             // within its rank
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
  std::int32_t incoming = kNone;  // connections from which it takes a slice, or to which it adds
                                  // one
  std::int32_t outgoing = kNone;
  const Access* access = nullptr;  // of a direct step; its cells are those in its operands
  Piece piece{};
};

// Events of a pass. A visitor hides the ones it needs.
struct Visitor {
  void on_slice(const SliceEvent&) {}
  // The dependency of `block`'s next step is met.
  void on_dependency(std::uint32_t block, std::uint32_t on_block, std::uint32_t on_step) {
    (void)block, (void)on_block, (void)on_step;
  }
  void on_completion(std::uint32_t block, std::uint32_t step) { (void)block, (void)step; }
  // The n-th time that `block` raises a counter, or continues because of a raise.
  void on_raise(std::uint32_t block, std::uint32_t counter, std::uint64_t n) {
    (void)block, (void)counter, (void)n;
  }
  void on_take(std::uint32_t block, std::uint32_t counter, std::uint64_t n) {
    (void)block, (void)counter, (void)n;
  }
  // All thread blocks of a rank have ended.
  void on_invocation_end(int rank, int invocation) { (void)rank, (void)invocation; }
};

// Moves slices of one iteration, or of several consecutive invocations, until all are done or none
// can move.
template <typename VisitorType>
class Walk {
 public:
  Walk(const Network& network, const Chunking& chunking, VisitorType& visitor, int invocations)
      : network_(network),
        chunking_(chunking),
        transfers_(chunking),
        visitor_(visitor),
        cells_per_chunk_(CellGrid(network.schedule, chunking).per_chunk()),
        invocations_(invocations),
        arrived_(network.connections.size(), 0),
        finished_(network.schedule.ranks.size(), 0) {
    for (const Network::Connection& connection : network.connections) {
      free_slots_.push_back(connection.slots);
    }
    for (std::uint32_t number = 0; number < network.blocks.size(); ++number) {
      Block& block = blocks_.emplace_back();
      block.cursor = BlockCursor(network.blocks[number].program->steps);
      block.cursor.begin_invocation(transfers_);
      block.number = number;
    }
    if (network.is_one_sided()) prepare_one_sided();
  }

  // Returns the blocked thread blocks; empty if all finished.
  std::vector<Blocked> run() {
    for (std::size_t b = blocks_.size(); b-- > 0;) wake(static_cast<std::uint32_t>(b));
    for (int rank = 0; rank < network_.schedule.rank_count(); ++rank) {
      for (int i = 0; network_.schedule.ranks[static_cast<std::size_t>(rank)].blocks.empty() &&
                      i < invocations_;
           ++i) {
        visitor_.on_invocation_end(rank, i);
      }
    }
    while (!ready_.empty()) {
      Block& block = blocks_[ready_.back()];
      ready_.pop_back();
      has_ended_ = false;
      if (block.cursor.step_count == 0) {
        end_iteration(block);
      } else {
        ThreadBlockMachine::advance(*this, block);
      }
      block.is_parked = !has_ended_;
    }
    return stuck();
  }

 private:
  friend class ThreadBlockMachine;

  struct Block {
    BlockCursor cursor;
    std::uint32_t number = 0;
    bool is_parked = true;
    WaitReason reason = WaitReason::data;
    int invocation = 0;
    std::vector<std::uint32_t> dependents;  // blocks parked for its steps
  };

  const TransferTable& transfers() const { return transfers_; }
  const Chunking& chunking() const { return chunking_; }
  OneSidedCursor* one_sided(const Block& block) {
    return one_sided_.empty() ? nullptr : &one_sided_[block.number];
  }
  bool is_running(const Block&) const { return !has_ended_; }
  bool is_step_finished(Block& block) {
    const Step& step = block.cursor.current();
    Block& other = blocks_[network_.block_of(at(block).rank, step.depends_on_block)];
    if (other.cursor.steps_finished() < block.cursor.steps_needed(other.cursor.step_count)) {
      other.dependents.push_back(block.number);
      return park(block, WaitReason::dependency);
    }
    visitor_.on_dependency(block.number, other.number,
                           static_cast<std::uint32_t>(step.depends_on_step));
    return true;
  }
  bool has_arrived(Block& block, std::uint32_t) {
    return arrived_[index(at(block).incoming)] > 0 || park(block, WaitReason::data);
  }
  bool has_room(Block& block, std::uint32_t slots) {
    return free_slots_[index(at(block).outgoing)] >= slots || park(block, WaitReason::slot);
  }
  // Immediately, which is a possible order.
  bool are_stores_visible(const Block&) const { return true; }
  bool is_moving(const Block&) const { return false; }
  bool is_raised(Block& block, const CounterTake& take, std::uint64_t times) {
    const std::uint32_t counter = network_.counter_of(at(block).rank, take.counter);
    if (counters_[counter] >= times) return true;
    takers_[counter].push_back(block.number);
    return park(block, take.reason);
  }
  void taken(const Block& block, const CounterTake& take, std::uint64_t before) {
    if (before < take.credit) return;
    visitor_.on_take(block.number, network_.counter_of(at(block).rank, take.counter),
                     before - take.credit);
  }
  void raise(const Block& block, const std::vector<CounterRaise>& raises) {
    for (const CounterRaise& raise : raises) {
      const std::uint32_t counter = network_.counter_of(raise.rank, raise.counter);
      visitor_.on_raise(block.number, counter, one_sided_[block.number].raised[raise.slot]++);
      ++counters_[counter];
      for (const std::uint32_t taker : takers_[counter]) wake(taker);
      takers_[counter].clear();
    }
  }
  void begin_step(const Block&) {}
  bool move_directly(const Block& block) {
    const OneSidedCursor& own = one_sided_[block.number];
    const Step& step = block.cursor.current();
    visitor_.on_slice({block.number, block.cursor.step, rotated(block), 0, 0, kNone, kNone,
                       &own.program->access(step), own.piece(block.cursor)});
    raise(block, own.wiring_of(step).raises);
    return true;
  }
  bool move_slice(const Block& block) {
    const BlockCursor& cursor = block.cursor;
    const Step& step = cursor.current();
    if (step.type == StepType::nop) return true;
    SliceEvent event{block.number, cursor.step, rotated(block), 0, 0, kNone, kNone};
    if (receives(step.type)) event.incoming = at(block).incoming;
    if (sends(step.type)) event.outgoing = at(block).outgoing;
    const std::uint32_t cells = cursor.chunk_count * cells_per_chunk_;
    const std::uint32_t slices = cursor.transfer->slices;
    event.first_cell = cursor.first_chunk * cells_per_chunk_ + cursor.slice_number * cells / slices;
    event.cells = cells / slices;
    visitor_.on_slice(event);
    return true;
  }
  void end_slice(const Block& block, std::uint32_t slots) {
    const StepType type = block.cursor.current().type;
    if (receives(type)) {
      const std::size_t incoming = index(at(block).incoming);
      --arrived_[incoming];
      free_slots_[incoming] += slots;
      wake(network_.connections[incoming].sender);
    }
    if (sends(type)) {
      const std::size_t outgoing = index(at(block).outgoing);
      ++arrived_[outgoing];
      free_slots_[outgoing] -= slots;
      wake(network_.connections[outgoing].receiver);
    }
  }
  void end_step(const Block& block) { visitor_.on_completion(block.number, block.cursor.step); }
  void publish(Block& block) {
    for (const std::uint32_t dependent : block.dependents) wake(dependent);
    block.dependents.clear();
  }
  void end_program(const Block&) {}
  // The next invocation starts when all thread blocks of the rank have ended.
  void end_iteration(Block& block) {
    has_ended_ = true;
    const int rank = at(block).rank;
    const auto place = static_cast<std::size_t>(rank);
    const std::uint32_t first = network_.first_block[place];
    const std::uint32_t end = network_.first_block[place + 1];
    if (++finished_[place] < end - first) return;
    finished_[place] = 0;
    visitor_.on_invocation_end(rank, block.invocation);
    if (block.invocation + 1 == invocations_) return;
    for (std::uint32_t b = first; b < end; ++b) {
      blocks_[b].cursor.begin_invocation(transfers_);
      ++blocks_[b].invocation;
      blocks_[b].is_parked = true;
      wake(b);
    }
  }

  const Network::Block& at(const Block& block) const { return network_.blocks[block.number]; }
  // The current step. Valid until the next call.
  const Step* rotated(const Block& block) {
    step_ = at(block).program->steps[block.cursor.step];
    return &step_;
  }

  void wake(std::uint32_t number) {
    Block& block = blocks_[number];
    if (!block.is_parked) return;
    block.is_parked = false;
    ready_.push_back(number);
  }

  static bool park(Block& block, WaitReason reason) {
    block.reason = reason;
    return false;
  }

  void prepare_one_sided() {
    const OneSidedWiring& wiring = network_.wiring.one_sided;
    for (const Network::Block& block : network_.blocks) {
      one_sided_.emplace_back(wiring, *block.program, block.rank,
                              static_cast<std::size_t>(block.number));
    }
    const std::size_t counters = network_.schedule.ranks.size() * wiring.counters;
    counters_.resize(counters, 0);
    takers_.resize(counters);
  }

  std::vector<Blocked> stuck() const {
    std::vector<Blocked> blocked;
    for (const Block& block : blocks_) {
      if (block.cursor.step_count == 0 || block.cursor.iteration > 0) continue;
      blocked.push_back(
          blocked_at(network_.schedule, network_.wiring,
                     {at(block).rank, at(block).number, static_cast<int>(block.cursor.step),
                      block.reason, one_sided_.empty() ? 0 : one_sided_[block.number].next_take}));
    }
    return blocked;
  }

  static std::size_t index(std::int32_t connection) { return static_cast<std::size_t>(connection); }

  const Network& network_;
  const Chunking& chunking_;
  TransferTable transfers_;
  VisitorType& visitor_;
  std::uint32_t cells_per_chunk_;
  int invocations_;
  std::vector<Block> blocks_;
  Step step_;
  bool has_ended_ = false;                 // the advancing block, its iteration
  std::vector<std::uint32_t> arrived_;     // per connection, slices
  std::vector<std::uint32_t> free_slots_;  // per connection
  std::vector<std::uint32_t> ready_;
  std::vector<std::uint32_t> finished_;             // per rank: finished blocks
  std::vector<OneSidedCursor> one_sided_;           // per block
  std::vector<std::uint64_t> counters_;             // number of raises of each
  std::vector<std::vector<std::uint32_t>> takers_;  // per counter: blocks parked for it
};

template <typename VisitorType>
std::vector<Blocked> walk(const Network& network, const Chunking& chunking, VisitorType& visitor,
                          int invocations = 1) {
  return Walk<VisitorType>(network, chunking, visitor, invocations).run();
}

// Data in flight on one connection. Usually empty, and there may be a million.
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

// Positions of the ranks' buffers in one numbering of all memory, in or out of place.
class Memory {
 public:
  Memory(const Schedule& schedule, bool in_place, std::uint32_t cells_per_chunk);

  // The first cell of a chunk.
  std::size_t cell(int rank, Buffer buffer, std::uint32_t chunk) const {
    return base_[static_cast<std::size_t>(rank) * kBuffers + static_cast<std::size_t>(buffer)] +
           std::size_t{chunk} * cells_per_chunk_;
  }
  // For an operand at one rank. `is_second` selects the alternate scratch of every other
  // invocation.
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
  std::vector<std::size_t> second_scratch_;  // [rank], distance from the first one
  std::vector<std::size_t> first_;           // [rank], and the end
};

// Chunks with elements: the array may end within a part's chunk.
struct Extent {
  Extent(const Schedule& schedule, const Chunking& chunking);

  std::uint32_t chunks_per_part = 1;
  std::uint32_t whole = 0;            // complete chunks of a part
  std::uint64_t ragged_elements = 0;  // in the next chunk

  // Chunks of a part with any element.
  std::uint32_t begun() const { return whole + (ragged_elements > 0 ? 1 : 0); }
};

}  // namespace towpath::collective
