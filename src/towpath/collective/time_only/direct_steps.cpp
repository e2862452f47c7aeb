// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/time_only/direct_steps.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace towpath::collective::time_only {

using transport::simulated::DirectMoves;
using transport::simulated::PieceWindow;

namespace {

constexpr int kNoteShift = 56;

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

// A move from one place to one other place, without further effects.
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

// True if a step may have to wait for another step's stores to the same memory.
bool has_conflicts(const ThreadBlock& block) {
  std::vector<Step> direct;
  for (const Step& step : block.steps) {
    if (step.type == StepType::direct) direct.push_back(step);
  }
  for (const Step& stored : direct) {
    const Operand& to = block.access(stored).destinations.front();
    if (to.holder != Holder::group) continue;
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

bool DirectSteps::can_run(const Plan& plan) {
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
           !has_conflicts(block);
  };
  return std::ranges::all_of(plan.schedule->ranks, [&](const RankProgram& program) {
    return std::ranges::all_of(
        program.blocks, [&](const ThreadBlock& block) { return is_simple_block(program, block); });
  });
}

// --- construction -------------------------------------------------------------------------------

DirectSteps::DirectSteps(BlockTable& table, FlowTable& flow_table, Flows& flows)
    : table_(table), flow_table_(flow_table), flows_(flows) {
  const Plan& plan = table.plan();
  if (plan.window_bytes == 0) return;
  const OneSidedWiring& wiring = plan.wiring->one_sided;
  counters_per_rank_ = wiring.counters;
  counters_.resize(counters_per_rank_ * plan.schedule->ranks.size());
  for (int rank = 0; rank < table.simulated_ranks(); ++rank) {
    const RankProgram& program = plan.schedule->ranks[index(rank)];
    for (std::size_t b = 0; b < program.blocks.size(); ++b) {
      if (program.blocks[b].accesses.empty()) continue;
      Block& block = table_[table_.block_at(rank, static_cast<std::int32_t>(b))];
      block.one_sided = static_cast<std::uint32_t>(blocks_.size());
      DirectBlock& own = blocks_.emplace_back();
      own.cursor = OneSidedCursor(wiring, program.blocks[b], rank, b);
      own.rank_program = &program;
      own.rank = rank;
      add_paths(block);
    }
  }
}

// Steps of a thread block on the same path share its flows.
void DirectSteps::add_paths(const Block& block) {
  DirectBlock& own = blocks_[block.one_sided];
  std::map<std::pair<int, int>, Path> known;
  for (const Access& access : own.cursor.program->accesses) {
    if (access.sources.empty()) {
      own.paths.emplace_back();
      continue;
    }
    const auto group_of = [&](const Operand& operand) {
      return is_through_switch(*table_.plan().schedule, operand) ? operand.number : kNone;
    };
    const std::pair groups(group_of(access.sources.front()), group_of(access.destinations.front()));
    const auto [found, is_new] = known.try_emplace(groups);
    Path& path = found->second;
    if (is_new) {
      path = path_of(groups, own.rank);
      for (const std::uint32_t flow : {path.load, path.store}) {
        if (flow != kNobody) owners_of_flows_.push_back(block.number);
      }
    }
    own.paths.push_back(path);
  }
}

DirectSteps::Path DirectSteps::path_of(std::pair<int, int> groups, int rank) {
  const StepCost& cost = table_.cost_of(rank);
  const auto [from, to] = groups;
  Path path;
  path.overhead = cost.before_direct();
  const auto routes_to = [&](int group) -> const DirectMoves::GroupRoutes& {
    return table_.ranks().direct_moves().routes_of(rank,
                                                   table_.plan().schedule->groups[index(group)]);
  };
  if (from != kNone) {
    const DirectMoves::GroupRoutes& routes = routes_to(from);
    path.request = routes.to_member->latency;
    path.load = flow_table_.add_group(*routes.from_member, {cost.in_switch_rate(), routes.up, {}});
  }
  if (to != kNone) {
    const DirectMoves::GroupRoutes& routes = routes_to(to);
    path.acknowledgement = routes.from_member->latency;
    path.store = flow_table_.add_group(*routes.to_member, {cost.in_switch_rate(), {}, routes.down});
  }
  return path;
}

bool DirectSteps::join(Partitioning& partitioning) const {
  for (const Block& block : table_.blocks()) {
    if (block.one_sided == kNobody) continue;
    const DirectBlock& own = blocks_[block.one_sided];
    for (const AccessWiring& access : *own.cursor.wiring) {
      for (const CounterTake& take : access.takes) {
        partitioning.join(block.number, table_.block_at(take.from_rank, take.from_block));
      }
    }
    for (const Path& path : own.paths) {
      for (const std::uint32_t flow : {path.load, path.store}) {
        if (flow == kNobody) continue;
        flow_table_.for_each_meeting(flow,
                                     [&](int link) { partitioning.join_at(link, block.number); });
      }
    }
  }
  return !owners_of_flows_.empty();
}

// --- steps --------------------------------------------------------------------------------------

bool DirectSteps::are_stores_visible(Block& block) const {
  if (blocks_[block.one_sided].under_way == 0) return true;
  block.state = State::stores;
  return false;
}

bool DirectSteps::is_raised(Block& block, const CounterTake& take, std::uint64_t times) {
  const int rank = blocks_[block.one_sided].rank;
  Counter& counter = counters_[index(rank) * counters_per_rank_ + take.counter];
  if (counter.raised >= times) return true;
  counter.waiting = block.number;
  block.state = State::signal;
  return false;
}

void DirectSteps::raise(const Block& block, const std::vector<CounterRaise>& raises) {
  const int rank = blocks_[block.one_sided].rank;
  transport::simulated::GpuRanks& ranks = table_.ranks();
  for (const CounterRaise& raise : raises) {
    const Time at = block.at + ranks.route(rank, raise.rank).latency +
                    transport::simulated::after_raise(ranks.cost_of(raise.rank));
    const std::size_t counter = index(raise.rank) * counters_per_rank_ + raise.counter;
    flows_.call(block.partition, at, tag_of(Note::raised, counter));
  }
}

void DirectSteps::note_raised(Counter& counter, Time now) {
  ++counter.raised;
  if (counter.waiting != kNobody) go_on(table_[std::exchange(counter.waiting, kNobody)], now);
}

void DirectSteps::call_at(Block& block, Time when, Note note) {
  block.state = State::link;
  flows_.call(block.partition, when, tag_of(note, block.number));
}

// --- moves --------------------------------------------------------------------------------------

void DirectSteps::start(Block& block) {
  DirectBlock& own = blocks_[block.one_sided];
  const Step& step = block.cursor.current();
  const Access& access = own.cursor.program->access(step);
  const Chunking& chunking = table_.plan().chunking;
  const Piece piece = own.cursor.piece(block.cursor);
  const auto elements_of = [&](const Operand& operand) {
    return chunking.range(operand.buffer, operand.chunk, step.count, piece).count;
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
  flight.path = &own.paths[step.source_chunk];
  flight.window = PieceWindow(Bytes(elements * chunking.element_bytes()),
                              flight.path->load != kNobody, flight.path->store != kNobody);
  ++own.under_way;
  block.state = State::link;
  const Time begin = block.at + flight.path->overhead;
  if (!follows_fifo(*own.rank_program, step)) return call(flight, begin, Note::begun);
  const std::uint64_t turn = static_cast<std::uint64_t>(own.rank) << 16 | block.number_in_rank;
  flows_.call_in_turn(block.partition, begin, turn, tag_of(Note::begun, number));
}

void DirectSteps::call(const Flight& flight, Time when, Note note) {
  const auto number = static_cast<std::size_t>(&flight - flights_.data());
  flows_.call(table_[flight.block].partition, when, tag_of(note, number));
}

Note DirectSteps::note_of(const Flows::Notice& notice) {
  return static_cast<Note>(notice.tag >> kNoteShift & 0x7f);
}

std::size_t DirectSteps::number_of(const Flows::Notice& notice) {
  return notice.tag & ((std::uint64_t{1} << kNoteShift) - 1);
}

void DirectSteps::note(const Flows::Notice& notice) {
  const std::size_t number = number_of(notice);
  if (note_of(notice) == Note::raised) return note_raised(counters_[number], notice.at);
  note_flight(flights_[number], note_of(notice), notice);
}

void DirectSteps::note_flight(Flight& flight, Note note, const Flows::Notice& notice) {
  switch (note) {
    case Note::begun: return begin(flight, notice.at);
    case Note::asked: return send_piece(flight, flight.asked, notice.at, Note::load);
    case Note::left:
      --flight.window.sending;
      issue_piece(flight, notice.at, Note::load);
      return finish_if_sent(flight, notice.at);
    case Note::loaded: return note_loaded(flight, notice.at);
    case Note::stored: return note_stored(flight, notice.at);
    case Note::visible: return make_visible(flight, notice.at);
    case Note::moved: return finish_loads(flight, notice.at);
    default: note_message(flight, note, notice);
  }
}

void DirectSteps::note_message(const Flight& flight, Note note, const Flows::Notice& notice) {
  if (notice.left != Flows::kUnknown) call(flight, notice.left, Note::left);
  if (notice.arrived == Flows::kUnknown) return;
  call(flight, notice.arrived, note == Note::load ? Note::loaded : Note::stored);
}

void DirectSteps::begin(Flight& flight, Time now) {
  if (!flight.window.is_local()) return issue_piece(flight, now, Note::asked);
  const Time duration = table_[flight.block].cost->direct_locally(flight.window.size, 1);
  call(flight, now + duration, Note::moved);
}

// The source of a load receives the request now, or received it while the previous piece was in
// flight.
void DirectSteps::issue_piece(Flight& flight, Time now, Note request) {
  const Bytes size = flight.window.issue();
  if (size == Bytes(0)) return;
  ++flight.window.sending;
  if (!flight.window.has_loads) {
    send_piece(flight, size, now, Note::store);
  } else if (request == Note::load) {
    send_piece(flight, size, now, Note::load);
  } else {
    flight.asked = size;
    call(flight, now + flight.path->request, Note::asked);
  }
}

void DirectSteps::send_piece(Flight& flight, Bytes size, Time now, Note note) {
  const std::uint32_t flow = note == Note::load ? flight.path->load : flight.path->store;
  const StepCost& cost = *table_[flight.block].cost;
  const auto number = static_cast<std::size_t>(&flight - flights_.data());
  const Train& train =
      flow_table_.train(flow, cost.on_wire_of(size), cost.direct_pace(1), gpu_links::kSegment);
  note_message(flight, note, flows_.send(flow, train, now, tag_of(note, number)));
}

void DirectSteps::note_loaded(Flight& flight, Time now) {
  PieceWindow& window = flight.window;
  const Bytes size = std::min(window.piece, window.size - window.loaded);
  window.loaded += size;
  if (window.has_stores) {
    ++window.sending;
    send_piece(flight, size, now, Note::store);
  }
  issue_piece(flight, now, Note::asked);
  finish_if_sent(flight, now);
}

void DirectSteps::note_stored(Flight& flight, Time now) {
  PieceWindow& window = flight.window;
  window.stored += std::min(window.piece, window.size - window.stored);
  if (!window.is_stored()) return issue_piece(flight, now, Note::asked);
  call(flight, now + flight.path->acknowledgement, Note::visible);
}

void DirectSteps::finish_if_sent(Flight& flight, Time now) {
  if (flight.window.may_go_on()) finish_loads(flight, now);
}

// The thread block may continue. A store within the rank is visible immediately.
void DirectSteps::finish_loads(Flight& flight, Time now) {
  flight.window.is_done = true;
  Block& block = table_[flight.block];
  if (!flight.window.has_stores || flight.window.size == Bytes(0)) make_visible(flight, now);
  go_on(block, now);
}

void DirectSteps::make_visible(Flight& flight, Time now) {
  Block& block = table_[flight.block];
  free_flights_.push_back(static_cast<std::uint32_t>(&flight - flights_.data()));
  if (--blocks_[block.one_sided].under_way > 0 || block.state != State::stores) return;
  go_on(block, now);
}

}  // namespace towpath::collective::time_only
