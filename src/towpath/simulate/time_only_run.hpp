// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/base/units.hpp"
#include "towpath/collective/schedule/plan.hpp"
#include "towpath/gpu_links/flows.hpp"
#include "towpath/machine/machine.hpp"
#include "towpath/sim/snapshot.hpp"
#include "towpath/simulate/fold.hpp"
#include "towpath/simulate/partitions.hpp"
#include "towpath/simulate/rhythm.hpp"
#include "towpath/simulate/step_progress.hpp"
#include "towpath/transport/simulated/gpu/gpu_ranks.hpp"

// One plan on all ranks of a GPU cluster where nothing but time is asked for: what Executors over
// GpuRanks do, to the picosecond, without an event for each thing that happens.
//
// When a thread block may take a slice follows from times that are known beforehand: when it was
// done with the one before, when the slice and free slots have come, when the step that it depends
// on was complete. So each block goes on as far as it knows these times, ahead of all others, and
// tells its peers theirs. Only where flows meet on a link is the order of time kept; see Flows. And
// there only within a partition, such as a host: it is taken on until it waits for another one, so
// that what it needs stays in the processor's cache.
//
// Where blocks go through their steps again and again, and everything is as it was some iterations
// before but for the time, all that come are as those were: they are counted and not simulated.
//
// Of one-sided steps those that signal, wait, and load or store through a switch run here, too.
// They are events, in the order in which the reference has them: what meets there has no turns.
//
// Executor and GpuRanks are the reference. What they do and this does not: bytes, jitter, traces,
// other one-sided steps, and the words for a schedule that stands still.

namespace towpath::simulate {

class TimeOnlyRun {
 public:
  // Whether this kind of plan runs here.
  static bool can_run(const collective::Plan& plan);
  // Whether its ranks reach the groups that the plan moves to and from. Folded ones do not.
  static bool can_run(transport::simulated::GpuRanks& ranks, const collective::Plan& plan);

  // The ranks outlive it, and are folded so.
  TimeOnlyRun(transport::simulated::GpuRanks& ranks, std::shared_ptr<const collective::Plan> plan,
              const Fold& fold);
  ~TimeOnlyRun();
  TimeOnlyRun(const TimeOnlyRun&) = delete;
  TimeOnlyRun& operator=(const TimeOnlyRun&) = delete;

  enum class End : std::uint8_t { finished, stands_still, beyond_limit };
  struct Outcome {
    End end = End::finished;
    Time finished;  // the last rank
  };
  // Every rank's host calls at now(). Unless all finish, within `limit` from there, there is
  // nothing more to invoke.
  Outcome invoke(Time limit = Time::max());

  // The end of all that has happened: after the last rank has finished, credits still come back.
  Time now() const { return now_; }
  std::vector<gpu_links::LinkLoad> loads() const { return fold_.unfolded(flows_.loads()); }
  // Of the links that the simulated ranks take; see Flows.
  std::vector<std::pair<int, gpu_links::LinkLoad>> used_loads() const {
    return flows_.used_loads();
  }
  // As Network::has_ties.
  bool has_ties() const { return flows_.has_ties(); }
  // Slices, and segments that met others on a link.
  std::uint64_t events() const { return slices_ + flows_.meetings(); }
  // Iterations of each block that were counted as those before.
  std::uint64_t repeated_iterations() const { return repeated_; }

 private:
  // By what a thread block reads and writes.
  enum Work : std::uint8_t { copy, combine, forward };
  static constexpr int kWorks = 3;
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
  static constexpr std::uint32_t kNotPublished = ~std::uint32_t{0};

  // What thread blocks of a GPU cost, by what they read and write.
  struct Price {
    std::array<Rate, kWorks> rate;  // by Work
    std::array<Rate, kWorks> pace;  // on the wire
    Time send_overhead;
    Time receive_overhead;
    Time start;  // from the host's call to the first step
  };
  struct SlicePart {
    std::uint64_t offset = 0;
    std::uint64_t count = 0;
    std::uint32_t slots = 0;
  };
  // A transfer of a number of chunks.
  struct Transfer {
    std::uint32_t slices = 1;
    std::array<SlicePart, 2> slice;
  };
  // A slice on its way to a receiver, or its slots on their way back.
  struct Mark {
    std::uint64_t slots = 0;  // on this connection, this slice included
    Time time;
  };
  enum class State : std::uint8_t {
    ready,
    data,
    slots,
    dependency,
    link,
    signal,
    stores,
    finished
  };
  struct Block;
  struct Way;
  struct OneSided;
  struct Flight;
  struct Counter;
  // What a notice of one-sided steps is of: a message of Flows, or a call for a block, a counter or
  // a flight.
  enum class Note : std::uint8_t {
    load,
    store,
    resumed,
    raised,
    begun,
    asked,
    left,
    loaded,
    stored,
    visible,
    moved
  };
  // The steps of a block that others depend on, and the first of those that wait for one.
  struct Progress {
    StepProgress steps;
    std::uint32_t first_waiting = kNobody;
  };
  // Thread blocks that are kept in the order of time among each other.
  struct Partition {
    Time reached;                        // nothing more happens in it before
    std::vector<std::uint32_t> ready;    // blocks that may go on
    std::vector<std::uint32_t> stalled;  // those that wait for another partition
  };

  // A moment that later ones are compared with.
  struct Moment {
    sim::Snapshot snapshot;
    std::uint64_t iteration = 0;  // of the leading block
    std::uint64_t slices = 0;
    gpu_links::Flows::Counts counts;
  };

  static Work work_of(collective::StepType type);
  collective::Step step_of(const Block& block) const;
  void make_transfers();
  const Price& price_of(int rank);
  int simulated_ranks() const { return ranks_.simulated_ranks(); }
  // Of a thread block of any rank, that of the rank that stands for it.
  std::uint32_t block_at(int rank, std::int32_t block) const {
    return first_block_[index(rank % simulated_ranks())] + static_cast<std::uint32_t>(block);
  }
  void add_blocks(int rank);
  void connect(int rank);
  void find_readers(int rank);
  void divide();

  void begin_invocation();
  void advance(Block& block);
  void start_step(Block& block);
  void start_transfer(Block& block);
  bool may_start(Block& block);
  bool dependency_met(Block& block);
  bool slice_arrived(Block& block, std::uint32_t slots);
  bool slots_free(Block& block, std::uint32_t slots);
  bool move(Block& block);
  bool put(Block& block);
  std::uint64_t size_of_slice(const Block& block) const;
  std::uint64_t existing(const Block& block, collective::Buffer buffer, std::uint32_t chunk) const;
  void set_memo(Block& block, std::uint64_t size_bytes, Work work);
  void finish_slice(Block& block);
  void finish_step(Block& block);
  void publish(Block& block);
  void note(const gpu_links::Flows::Notice& notice);
  void note_arrival(const Block& from, std::uint32_t slice, Time time);
  void run_partitions();
  // Nothing that begins then is simulated for now.
  Time simulated_until() const { return std::min(horizon_, deadline_); }
  void run_partition(std::uint32_t number);
  void stall(const Block& block);
  bool stays_stalled(std::uint32_t block);
  Time earliest_resumption(const Block& block) const;
  void call_ready(std::vector<std::uint32_t>& ready);
  void make_ready(Block& block);
  void wake(std::uint32_t number, State reason);

  // Of time_only_one_sided.cpp.
  void add_one_sided();
  void add_ways(const Block& block);
  Way way_of(std::pair<int, int> groups, int rank);
  static bool has_simple_accesses(const collective::Plan& plan);
  static bool is_one_sided_notice(const gpu_links::Flows::Notice& notice) {
    return notice.tag >> 63 != 0;
  }
  bool join_one_sided(Partitioning& partitioning) const;
  bool advance_one_sided(Block& block);
  bool move_locally(Block& block);
  bool stores_visible(Block& block);
  void raise(const Block& block);
  bool takes_met(Block& block);
  void start_direct(Block& block);
  static bool begins_in_turn(const OneSided& own, std::uint32_t step);
  void resume_at(Block& block);
  void go_on(Block& block, Time now);
  void call(const Flight& flight, Time when, Note note);
  void note_one_sided(const gpu_links::Flows::Notice& notice);
  void note_of_flight(Flight& flight, Note note, const gpu_links::Flows::Notice& notice);
  void note_raised(Counter& counter, Time now);
  void note_of_message(const Flight& flight, Note note, const gpu_links::Flows::Notice& notice);
  void issue_piece(Flight& flight, Time now, Note request);
  void send_piece(Flight& flight, Bytes size, Time now, Note note);
  void note_loaded(Flight& flight, Time now);
  void note_stored(Flight& flight, Time now);
  void finish_if_sent(Flight& flight, Time now);
  void finish_loads(Flight& flight, Time now);
  void make_visible(Flight& flight, Time now);

  // Of time_only_repeat.cpp.
  void choose_lead();
  void look_for_repetition();
  void note_iteration(const Block& lead);
  void reach_horizon();
  void settle();
  void compare(Time period);
  std::uint64_t iterations_left() const;
  Moment moment();
  void describe(sim::Snapshot& snapshot, const Block& block);
  void describe_marks(sim::Snapshot& snapshot, const Block& sender);
  void describe_progress(sim::Snapshot& snapshot, const Block& block) const;
  void repeat(const Moment& before, const Moment& now, std::uint64_t times);
  void stop_comparing(std::uint64_t look_at);

  // Where a connection keeps what it knows of a slice; by one of its ends.
  Mark& mark(std::vector<Mark>& marks, std::uint32_t block, std::uint32_t slice) const {
    return marks[(std::size_t{block} << marks_shift_) + (slice & marks_mask_)];
  }

  transport::simulated::GpuRanks& ranks_;
  std::shared_ptr<const collective::Plan> plan_;
  Fold fold_;
  gpu_links::Flows flows_;
  std::map<const machine::GpuCost*, Price> prices_;
  // By [last iteration][number of chunks].
  std::array<std::vector<Transfer>, 2> transfers_;
  std::array<std::vector<Transfer>, 2> local_transfers_;
  bool is_ragged_ = false;  // some chunk has fewer elements than others

  std::vector<std::uint32_t> first_block_;  // per rank that is simulated, and one behind
  std::vector<Block> blocks_;
  std::vector<const collective::Steps*> rotated_steps_;  // per block, if some chunk is ragged
  std::vector<Progress> progress_;
  // What is on its way to a block, and what came back, as many as there are slots.
  std::vector<Mark> arrivals_;
  std::vector<Mark> credits_;
  std::uint32_t marks_shift_ = 0;
  std::uint32_t marks_mask_ = 0;

  std::vector<OneSided> one_sided_;
  std::vector<std::uint32_t> owner_of_way_;  // a block per flow of a way
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> free_flights_;
  std::size_t counters_per_rank_ = 0;
  std::vector<Counter> counters_;

  std::vector<Partition> partitions_;
  std::size_t ready_count_ = 0;
  Time limit_;                        // that the partition at hand is taken to
  std::vector<std::uint32_t> going_;  // those of them that are called now

  // Nothing that begins later is simulated before all have come so far; see time_only_repeat.cpp.
  Time horizon_ = gpu_links::Flows::kUnknown;
  // Nothing that begins then or later is simulated at all.
  Time deadline_ = gpu_links::Flows::kUnknown;
  std::vector<std::uint32_t> parked_;  // blocks that are ready and begin later
  std::uint32_t lead_ = kNobody;       // the block whose iterations tell the rhythm
  Rhythm rhythm_;
  std::uint64_t whole_iterations_ = 0;  // in which every chunk has as many elements as in the first
  std::uint64_t look_at_ = 0;           // iteration of the lead
  std::uint64_t pause_ = 0;             // iterations without a look
  bool is_settled_ = false;
  Time period_;
  std::optional<Moment> before_;
  std::uint64_t compared_ = 0;  // moments, with before_
  std::uint64_t compared_max_ = 1;
  std::uint64_t repeated_ = 0;  // iterations

  std::size_t unfinished_ = 0;
  Time now_;
  Time finished_;
  std::uint64_t slices_ = 0;
};

}  // namespace towpath::simulate
