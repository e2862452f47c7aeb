// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "towpath/collective/time_only/block_table.hpp"
#include "towpath/collective/time_only/partitions.hpp"
#include "towpath/transport/simulated/gpu/piece_window.hpp"

namespace towpath::collective::time_only {

// An event of Flows: a call at a time, or progress of a message of a move.
enum class Note : std::uint8_t {
  resumed,      // a thread block
  slice_ended,  // of a thread block
  raised,       // a counter
  // A move:
  load,
  store,
  begun,
  asked,
  left,
  loaded,
  stored,
  visible,
  moved
};

// One-sided steps: signals, waits, and moves through a switch that combines and copies. Events at
// the same time are processed in the order in which they were scheduled. They are the same events
// as in Executor and DirectMoves.
class DirectSteps {
 public:
  static bool can_run(const Plan& plan);

  DirectSteps(BlockTable& table, FlowTable& flow_table, Flows& flows);
  DirectSteps(const DirectSteps&) = delete;
  DirectSteps& operator=(const DirectSteps&) = delete;

  // A thread block has received everything that it waited for, at that time.
  std::function<void(Block&, Time)> go_on;

  bool empty() const { return blocks_.empty(); }
  OneSidedCursor* cursor(const Block& block) {
    return block.one_sided == kNobody ? nullptr : &blocks_[block.one_sided].cursor;
  }
  // Joins the thread blocks that must be kept in order of time. Returns true if any moves meet.
  bool join(Partitioning& partitioning) const;
  // The thread block of each flow that was added here.
  const std::vector<std::uint32_t>& owners_of_flows() const { return owners_of_flows_; }

  bool are_stores_visible(Block& block) const;
  bool is_raised(Block& block, const CounterTake& take, std::uint64_t times);
  void raise(const Block& block, const std::vector<CounterRaise>& raises);
  void start(Block& block);
  // The thread block waits for its own notice.
  void call_at(Block& block, Time when, Note note);

  static bool is_note(const Flows::Notice& notice) { return notice.tag >> 63 != 0; }
  static Note note_of(const Flows::Notice& notice);
  static std::size_t number_of(const Flows::Notice& notice);
  // A counter was raised, or a move has advanced.
  void note(const Flows::Notice& notice);

 private:
  // The flows of a move.
  struct Path {
    std::uint32_t load = kNobody;
    std::uint32_t store = kNobody;
    Time request;          // until a load's source is asked
    Time acknowledgement;  // after a store
    Time overhead;         // from the thread block's step to the first piece
  };
  struct DirectBlock {
    OneSidedCursor cursor;
    const RankProgram* rank_program = nullptr;
    std::vector<Path> paths;  // per access
    int rank = 0;
    std::uint32_t under_way = 0;  // moves whose stores are not visible yet
  };
  struct Flight {
    std::uint32_t block = kNobody;
    const Path* path = nullptr;
    transport::simulated::PieceWindow window;
    Bytes asked;  // the piece whose source is being asked
  };
  struct Counter {
    std::uint64_t raised = 0;
    std::uint32_t waiting = kNobody;  // a block
  };

  void add_paths(const Block& block);
  Path path_of(std::pair<int, int> groups, int rank);
  void call(const Flight& flight, Time when, Note note);
  void note_raised(Counter& counter, Time now);
  void note_flight(Flight& flight, Note note, const Flows::Notice& notice);
  void note_message(const Flight& flight, Note note, const Flows::Notice& notice);
  void begin(Flight& flight, Time now);
  void issue_piece(Flight& flight, Time now, Note request);
  void send_piece(Flight& flight, Bytes size, Time now, Note note);
  void note_loaded(Flight& flight, Time now);
  void note_stored(Flight& flight, Time now);
  void finish_if_sent(Flight& flight, Time now);
  void finish_loads(Flight& flight, Time now);
  void make_visible(Flight& flight, Time now);

  BlockTable& table_;
  FlowTable& flow_table_;
  Flows& flows_;
  std::vector<DirectBlock> blocks_;
  std::vector<std::uint32_t> owners_of_flows_;
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> free_flights_;
  std::size_t counters_per_rank_ = 0;
  std::vector<Counter> counters_;
};

}  // namespace towpath::collective::time_only
