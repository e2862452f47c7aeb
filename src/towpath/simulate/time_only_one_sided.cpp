// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/simulate/time_only_block.hpp"
#include "towpath/simulate/time_only_run.hpp"

// One-sided steps: signals, waits, and moves through a switch that combines and copies, which go
// piece by piece: the next one when the one before has been sent and not too much is under way.
// There are no turns, so what happens at one moment comes in the order in which it was called for;
// the calls are those that Executor and DirectMoves have events for, one for one.

namespace towpath::simulate {

using namespace collective;
using gpu_links::Flows;
using transport::simulated::DirectMoves;

namespace {

constexpr int kNoteShift = 56;

// Of notices of one-sided steps.
template <typename Note>
std::uint64_t tag_of(Note note, std::size_t number) {
  return std::uint64_t{1} << 63 | static_cast<std::uint64_t>(note) << kNoteShift | number;
}

bool is_through_switch(const Schedule& schedule, const Operand& operand) {
  return operand.holder == Holder::group && schedule.groups[index(operand.number)].size() > 1;
}

bool overlap(const Operand& a, std::uint32_t a_count, const Operand& b, std::uint32_t b_count) {
  // In place, input and output are the same memory.
  const bool is_other = (a.buffer == Buffer::scratch) != (b.buffer == Buffer::scratch);
  return !is_other && a.chunk < b.chunk + b_count && b.chunk < a.chunk + a_count;
}

// From one place to another, and nothing besides.
bool is_simple(const Step& step, const Access& access) {
  if (step.type == StepType::signal || step.type == StepType::wait) return true;
  if (step.type != StepType::direct || access.is_port || access.signals || access.flushes) {
    return false;
  }
  const auto is_known = [](const Operand& operand) {
    return operand.holder != Holder::peer && !operand.is_packet;
  };
  return access.sources.size() == 1 && access.destinations.size() == 1 &&
         is_known(access.sources.front()) && is_known(access.destinations.front());
}

// Whether a step may have to wait for stores of another one to the same memory.
bool has_conflicts(const ThreadBlock& block, std::uint64_t iterations) {
  std::vector<Step> direct;
  for (const Step& step : block.steps) {
    if (step.type == StepType::direct) direct.push_back(step);
  }
  for (const Step& stored : direct) {
    const Operand& to = block.access(stored).destinations.front();
    if (to.holder != Holder::group) continue;
    if (iterations > 1 && to.buffer == Buffer::scratch) return true;  // it is used again
    for (const Step& other : direct) {
      if (other.source_chunk == stored.source_chunk) continue;
      const Access& access = block.access(other);
      if (overlap(access.sources.front(), other.count, to, stored.count) ||
          overlap(access.destinations.front(), other.count, to, stored.count)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

bool TimeOnlyRun::has_simple_accesses(const Plan& plan) {
  if (plan.window_bytes == 0) return true;
  const auto is_simple_block = [&](const RankProgram& program, const ThreadBlock& block) {
    if (block.accesses.empty()) return true;
    if (block.send_peer != kNone || block.receive_peer != kNone) return false;
    return std::ranges::all_of(block.steps,
                               [&](const Step& step) {
                                 const bool has_turn = follows_fifo(program, step);
                                 if (!is_one_sided(step.type)) return !has_turn;
                                 return is_simple(step, block.access(step)) &&
                                        (!has_turn || step.type == StepType::direct);
                               }) &&
           !has_conflicts(block, plan.chunking.iterations());
  };
  return std::ranges::all_of(plan.schedule->ranks, [&](const RankProgram& program) {
    return std::ranges::all_of(
        program.blocks, [&](const ThreadBlock& block) { return is_simple_block(program, block); });
  });
}

bool TimeOnlyRun::can_run(transport::simulated::GpuRanks& ranks, const Plan& plan) {
  return std::ranges::all_of(plan.schedule->groups, [&](const std::vector<int>& group) {
    return std::ranges::all_of(group, [&](int rank) {
      return ranks.direct_moves().refusal(rank, {.groups = {group}, .peers = {}}).empty();
    });
  });
}

// --- what does not change -----------------------------------------------------------------------

void TimeOnlyRun::add_one_sided() {
  if (plan_->window_bytes == 0) return;
  const OneSidedWiring& wiring = plan_->wiring->one_sided;
  counters_per_rank_ = wiring.counters;
  counters_.resize(counters_per_rank_ * plan_->schedule->ranks.size());
  for (int rank = 0; rank < simulated_ranks(); ++rank) {
    const RankProgram& program = plan_->schedule->ranks[index(rank)];
    for (std::uint32_t b = 0; b < program.blocks.size(); ++b) {
      if (program.blocks[b].accesses.empty()) continue;
      Block& block = blocks_[first_block_[index(rank)] + b];
      block.one_sided = static_cast<std::uint32_t>(one_sided_.size());
      OneSided& own = one_sided_.emplace_back();
      own.rank_program = &program;
      own.program = &program.blocks[b];
      own.wiring = &wiring.ranks[index(rank)][b];
      own.rank = rank;
      add_ways(block);
    }
  }
}

// Steps of a thread block that go the same way share its flows.
void TimeOnlyRun::add_ways(const Block& block) {
  OneSided& own = one_sided_[block.one_sided];
  std::map<std::pair<int, int>, Way> known;
  for (const Access& access : own.program->accesses) {
    if (access.sources.empty()) {
      own.ways.emplace_back();
      continue;
    }
    const auto group_of = [&](const Operand& operand) {
      return is_through_switch(*plan_->schedule, operand) ? operand.number : kNone;
    };
    const std::pair groups(group_of(access.sources.front()), group_of(access.destinations.front()));
    const auto [found, is_new] = known.try_emplace(groups);
    Way& way = found->second;
    if (is_new) {
      way = way_of(groups, own.rank);
      for (const std::uint32_t flow : {way.load, way.store}) {
        if (flow != kNobody) owner_of_way_.push_back(block.number);
      }
    }
    own.ways.push_back(way);
  }
}

TimeOnlyRun::Way TimeOnlyRun::way_of(std::pair<int, int> groups, int rank) {
  const machine::GpuCost& gpu = ranks_.cost_of(rank);
  const auto [from, to] = groups;
  Way way;
  way.overhead = price_of(rank).send_overhead;
  if ((from == kNone) != (to == kNone)) way.overhead += gpu.in_switch_staging;
  const auto routes_to = [&](int group) -> const DirectMoves::GroupRoutes& {
    return ranks_.direct_moves().routes_of(rank, plan_->schedule->groups[index(group)]);
  };
  if (from != kNone) {
    const DirectMoves::GroupRoutes& routes = routes_to(from);
    way.request = routes.to_member->latency;
    way.load = flows_.add_group(*routes.from_member, {gpu.in_switch_rate, routes.up, {}});
  }
  if (to != kNone) {
    const DirectMoves::GroupRoutes& routes = routes_to(to);
    way.acknowledgement = routes.from_member->latency;
    way.store = flows_.add_group(*routes.to_member, {gpu.in_switch_rate, {}, routes.down});
  }
  return way;
}

// Who raises a counter and who takes from it are kept in the order of time, as are all whose moves
// meet. Returns whether any do.
bool TimeOnlyRun::join_one_sided(Partitioning& partitioning) const {
  for (const Block& block : blocks_) {
    if (block.one_sided == kNobody) continue;
    const OneSided& own = one_sided_[block.one_sided];
    for (const AccessWiring& access : *own.wiring) {
      for (const CounterTake& take : access.takes) {
        partitioning.join(block.number, block_at(take.from_rank, take.from_block));
      }
    }
    for (const Way& way : own.ways) {
      for (const std::uint32_t flow : {way.load, way.store}) {
        if (flow == kNobody) continue;
        flows_.for_each_meeting(flow, [&](int link) { partitioning.join_at(link, block.number); });
      }
    }
  }
  return !owner_of_way_.empty();
}

// --- steps --------------------------------------------------------------------------------------

// Returns whether the step is done.
bool TimeOnlyRun::advance_one_sided(Block& block) {
  if (block.current.depends_on_block != kNone && !dependency_met(block)) return false;
  OneSided& own = one_sided_[block.one_sided];
  switch (block.current.type) {
    case StepType::nop: return true;
    case StepType::signal:
      if (!own.program->access(block.current).is_relaxed && !stores_visible(block)) return false;
      raise(block);
      return true;
    case StepType::wait: return takes_met(block);
    case StepType::direct:
      if (!own.has_moved) {
        start_direct(block);
        return false;
      }
      // What others may rely on without a signal has to be there.
      if (block.current.publishes && !stores_visible(block)) return false;
      own.has_moved = false;
      return true;
    default: return move_locally(block);
  }
}

bool TimeOnlyRun::move_locally(Block& block) {
  OneSided& own = one_sided_[block.one_sided];
  for (;;) {
    if (!own.has_moved) {
      if (!stores_visible(block)) return false;
      const Time before = block.at;
      move(block);
      own.has_moved = true;
      if (block.at > before) {
        resume_at(block);
        return false;
      }
    }
    own.has_moved = false;
    block.first_chunk += block.chunk_count;
    if (block.first_chunk >= block.current.count) return true;
    start_transfer(block);
  }
}

bool TimeOnlyRun::stores_visible(Block& block) {
  if (one_sided_[block.one_sided].under_way == 0) return true;
  block.state = State::stores;
  return false;
}

// One thread polls each flag, as in LL.
void TimeOnlyRun::raise(const Block& block) {
  const OneSided& own = one_sided_[block.one_sided];
  for (const CounterRaise& raise : (*own.wiring)[block.current.source_chunk].raises) {
    const Time polled = ranks_.cost_of(raise.rank)
                            .protocol[static_cast<std::size_t>(Protocol::ll)]
                            .receive_overhead;
    const Time at = block.at + ranks_.route(own.rank, raise.rank).latency + polled;
    const std::size_t counter = index(raise.rank) * counters_per_rank_ + raise.counter;
    flows_.call(block.partition, at, tag_of(Note::raised, counter));
  }
}

bool TimeOnlyRun::takes_met(Block& block) {
  OneSided& own = one_sided_[block.one_sided];
  const std::vector<CounterTake>& takes = (*own.wiring)[block.current.source_chunk].takes;
  for (; own.next_take < takes.size(); ++own.next_take) {
    Counter& taken = counters_[index(own.rank) * counters_per_rank_ + takes[own.next_take].counter];
    if (taken.raised == 0) {
      taken.waiting = block.number;
      block.state = State::signal;
      return false;
    }
    --taken.raised;
  }
  own.next_take = 0;
  return true;
}

void TimeOnlyRun::note_raised(Counter& counter, Time now) {
  ++counter.raised;
  if (counter.waiting != kNobody) go_on(blocks_[std::exchange(counter.waiting, kNobody)], now);
}

void TimeOnlyRun::resume_at(Block& block) {
  block.state = State::link;
  flows_.call(block.partition, block.at, tag_of(Note::resumed, block.number));
}

void TimeOnlyRun::go_on(Block& block, Time now) {
  block.at = now;
  block.state = State::ready;
  advance(block);
}

// --- moves --------------------------------------------------------------------------------------

void TimeOnlyRun::start_direct(Block& block) {
  OneSided& own = one_sided_[block.one_sided];
  const Access& access = own.program->access(block.current);
  const Piece piece{block.iteration, access.part, access.parts, 0, 0};
  const auto elements_of = [&](const Operand& operand) {
    return plan_->chunking.range(operand.buffer, operand.chunk, block.current.count, piece).count;
  };
  const std::uint64_t elements =
      std::min(elements_of(access.sources.front()), elements_of(access.destinations.front()));
  if (free_flights_.empty()) {
    free_flights_.push_back(static_cast<std::uint32_t>(flights_.size()));
    flights_.emplace_back();
  }
  const std::uint32_t number = free_flights_.back();
  free_flights_.pop_back();
  Flight& flight = flights_[number] = Flight();
  flight.block = block.number;
  flight.way = &own.ways[block.current.source_chunk];
  flight.size = Bytes(elements * plan_->chunking.element_bytes());
  flight.piece = DirectMoves::piece_of(flight.size.count());
  ++slices_;
  ++own.under_way;
  own.has_moved = true;
  block.state = State::link;
  const Time begin = block.at + flight.way->overhead;
  if (!begins_in_turn(own, block.step)) return call(flight, begin, Note::begun);
  const std::uint64_t turn = static_cast<std::uint64_t>(own.rank) << 16 | block.number_in_rank;
  flows_.call_in_turn(block.partition, begin, turn, tag_of(Note::begun, number));
}

bool TimeOnlyRun::begins_in_turn(const OneSided& own, std::uint32_t step) {
  return follows_fifo(*own.rank_program, own.program->steps.unrotated(step));
}

void TimeOnlyRun::call(const Flight& flight, Time when, Note note) {
  const auto number = static_cast<std::size_t>(&flight - flights_.data());
  flows_.call(blocks_[flight.block].partition, when, tag_of(note, number));
}

void TimeOnlyRun::note_one_sided(const Flows::Notice& notice) {
  const auto note = static_cast<Note>(notice.tag >> kNoteShift & 0x7f);
  const std::size_t number = notice.tag & ((std::uint64_t{1} << kNoteShift) - 1);
  now_ = std::max(now_, notice.at);
  switch (note) {
    case Note::resumed: return go_on(blocks_[number], notice.at);
    case Note::raised: return note_raised(counters_[number], notice.at);
    default: return note_of_flight(flights_[number], note, notice);
  }
}

void TimeOnlyRun::note_of_flight(Flight& flight, Note note, const Flows::Notice& notice) {
  switch (note) {
    case Note::begun:
      if (!flight.way->is_local() && flight.size > Bytes(0)) {
        return issue_piece(flight, notice.at, Note::asked);
      }
      return call(
          flight,
          notice.at + transfer_time(flight.size, blocks_[flight.block].price->rate[Work::combine]),
          Note::moved);
    case Note::asked: return send_piece(flight, flight.asked, notice.at, Note::load);
    case Note::left:
      --flight.sending;
      issue_piece(flight, notice.at, Note::load);
      return finish_if_sent(flight, notice.at);
    case Note::loaded: return note_loaded(flight, notice.at);
    case Note::stored: return note_stored(flight, notice.at);
    case Note::visible: return make_visible(flight, notice.at);
    case Note::moved: return finish_loads(flight, notice.at);
    default: note_of_message(flight, note, notice);
  }
}

void TimeOnlyRun::note_of_message(const Flight& flight, Note note, const Flows::Notice& notice) {
  if (notice.left != Flows::kUnknown) call(flight, notice.left, Note::left);
  if (notice.arrived == Flows::kUnknown) return;
  call(flight, notice.arrived, note == Note::load ? Note::loaded : Note::stored);
}

// A load's source is asked now, or was while the piece before was on its way. What has nothing to
// load is stored at once.
void TimeOnlyRun::issue_piece(Flight& flight, Time now, Note request) {
  const Bytes complete = flight.way->store != kNobody ? flight.stored : flight.loaded;
  if (flight.sending > 0 || flight.issued == flight.size) return;
  if (flight.issued - complete >= flight.piece * 2) return;
  const Bytes size = std::min(flight.piece, flight.size - flight.issued);
  flight.issued += size;
  ++flight.sending;
  if (flight.way->load == kNobody) {
    flight.loaded += size;
    send_piece(flight, size, now, Note::store);
  } else if (request == Note::load) {
    send_piece(flight, size, now, Note::load);
  } else {
    flight.asked = size;
    call(flight, now + flight.way->request, Note::asked);
  }
}

void TimeOnlyRun::send_piece(Flight& flight, Bytes size, Time now, Note note) {
  const std::uint32_t flow = note == Note::load ? flight.way->load : flight.way->store;
  const Rate pace = blocks_[flight.block].price->pace[Work::combine];
  const auto number = static_cast<std::size_t>(&flight - flights_.data());
  const Flows::Train& train = flows_.train(flow, on_wire(size, plan_->schedule->protocol), pace);
  note_of_message(flight, note, flows_.send(flow, train, now, tag_of(note, number)));
}

void TimeOnlyRun::note_loaded(Flight& flight, Time now) {
  const Bytes size = std::min(flight.piece, flight.size - flight.loaded);
  flight.loaded += size;
  if (flight.way->store != kNobody) {
    ++flight.sending;
    send_piece(flight, size, now, Note::store);
  }
  issue_piece(flight, now, Note::asked);
  finish_if_sent(flight, now);
}

void TimeOnlyRun::note_stored(Flight& flight, Time now) {
  flight.stored += std::min(flight.piece, flight.size - flight.stored);
  if (flight.stored < flight.size) return issue_piece(flight, now, Note::asked);
  call(flight, now + flight.way->acknowledgement, Note::visible);
}

void TimeOnlyRun::finish_if_sent(Flight& flight, Time now) {
  if (flight.is_done || flight.sending > 0 || flight.loaded < flight.size) return;
  finish_loads(flight, now);
}

// The thread block may go on. What is not stored elsewhere is visible at once.
void TimeOnlyRun::finish_loads(Flight& flight, Time now) {
  flight.is_done = true;
  Block& block = blocks_[flight.block];
  const bool is_over = flight.way->store == kNobody || flight.size == Bytes(0);
  if (is_over) make_visible(flight, now);
  go_on(block, now);
}

void TimeOnlyRun::make_visible(Flight& flight, Time now) {
  Block& block = blocks_[flight.block];
  free_flights_.push_back(static_cast<std::uint32_t>(&flight - flights_.data()));
  if (--one_sided_[block.one_sided].under_way > 0 || block.state != State::stores) return;
  go_on(block, now);
}

}  // namespace towpath::simulate
