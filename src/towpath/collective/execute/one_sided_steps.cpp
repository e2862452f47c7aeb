// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// The executor's one-sided steps. What a rank brings is copied into a window in the symmetric heap,
// where other ranks reach it, and the result out of it; GPUs would have registered the buffers, so
// that takes no simulated time. All waits are for counters, which are signals of the own rank.
#include <algorithm>
#include <cstring>
#include <set>

#include "towpath/collective/execute/executor.hpp"
#include "towpath/collective/execute/executor_block.hpp"

namespace towpath::collective {

using transport::DirectMove;
using transport::Location;
using transport::Offset;

namespace {

constexpr Offset kWindowAlignment = 256;

bool overlap(const std::byte* a, std::uint64_t a_bytes, const std::byte* b, std::uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

// Whether both are at one place of some rank's heap.
bool share_memory(const Location& a, const Location& b, std::uint64_t a_bytes,
                  std::uint64_t b_bytes) {
  if (a.offset >= b.offset + b_bytes || b.offset >= a.offset + a_bytes) return false;
  const auto is_in = [](int rank, const Location& location) {
    return location.group.empty() ? location.rank == rank
                                  : std::find(location.group.begin(), location.group.end(), rank) !=
                                        location.group.end();
  };
  if (a.group.empty()) return is_in(a.rank, b);
  return std::any_of(a.group.begin(), a.group.end(), [&](int rank) { return is_in(rank, b); });
}

bool touches_stores_of(const DirectMove& move, const DirectMove& earlier) {
  const auto touches = [&](const Location& location) {
    return std::any_of(earlier.destinations.begin(), earlier.destinations.end(),
                       [&](const Location& store) {
                         return share_memory(location, store, move.size_bytes, earlier.size_bytes);
                       });
  };
  return std::any_of(move.sources.begin(), move.sources.end(), touches) ||
         std::any_of(move.destinations.begin(), move.destinations.end(), touches);
}

}  // namespace

transport::DirectNeeds Executor::direct_needs() const {
  transport::DirectNeeds needs;
  for (const auto& group : plan_->schedule->groups) {
    if (std::binary_search(group.begin(), group.end(), transport_.rank())) {
      needs.groups.push_back(group);
    }
  }
  std::set<int> peers;
  for (const ThreadBlock& block : program_->blocks) {
    for (const Access& access : block.accesses) {
      needs.combines |= access.sources.size() > 1;
      for (const Operand& source : access.sources) {
        needs.combines |= source.holder == Holder::group;
      }
      if (access.is_port) continue;
      for (const auto* operands : {&access.sources, &access.destinations}) {
        for (const Operand& operand : *operands) {
          if (operand.holder == Holder::peer) peers.insert(operand.number);
        }
      }
    }
  }
  needs.peers.assign(peers.begin(), peers.end());
  return needs;
}

void Executor::prepare_one_sided(Block& block) {
  const OneSidedWiring& wiring = plan_->wiring->one_sided;
  const auto rank = static_cast<std::size_t>(transport_.rank());
  block.one_sided = std::make_unique<OneSided>();
  block.one_sided->wiring = &wiring.ranks[rank][block.index];
  block.one_sided->taken.resize(wiring.slots[rank][block.index], 0);
}

// What a step raises before it waits, behind all that its thread block has stored. Returns false
// while stores are not visible.
bool Executor::raised_first(Block& block) {
  OneSided& state = *block.one_sided;
  const Step& step = block.current();
  const Access& access = block.program->access(step);
  const bool raises_first = step.type == StepType::signal || step.type == StepType::barrier ||
                            step.type == StepType::release;
  const bool orders = (raises_first && !access.is_relaxed) || step.type == StepType::flush;
  if (orders && !state.has_raised && state.under_way > 0) {
    state.awaits_visible = true;
    return false;
  }
  if (raises_first && !state.has_raised) raise_counters(block);
  return true;
}

// Returns whether the step is done.
bool Executor::advance_one_sided(Block& block) {
  OneSided& state = *block.one_sided;
  const Step& step = block.current();
  if (!raised_first(block)) return false;
  if (!state.has_moved) {
    if (!takes_met(block)) return false;
    block.moving = transport_.now();
    if (step.type == StepType::pipeline) begin_pipeline(block);
    if (step.type != StepType::direct) return true;
    if (!start_direct(block)) return false;
  }
  if (block.is_moving) return false;
  // What others may rely on without a signal has to be there.
  const bool is_awaited = block.program->access(step).flushes || step.publishes;
  state.awaits_visible = is_awaited && state.under_way > 0;
  return !state.awaits_visible;
}

// Other steps of the thread block look at memory that its stores may be on their way to.
bool Executor::stores_visible(Block& block) {
  if (block.one_sided == nullptr || block.one_sided->under_way == 0) return true;
  if (block.current().type == StepType::nop) return true;
  block.one_sided->awaits_visible = true;
  return false;
}

bool Executor::takes_met(Block& block) {
  OneSided& state = *block.one_sided;
  const std::vector<CounterTake>& takes = (*state.wiring)[block.current().source_chunk].takes;
  for (; state.next_take < takes.size(); ++state.next_take) {
    const CounterTake& take = takes[state.next_take];
    const std::uint64_t raised = (state.taken[take.slot] + 1) * take.weight;
    if (raised > take.credit) {
      const std::uint64_t needed = raised - take.credit;
      const transport::Signal signal = counter_signal(take.counter);
      if (transport_.signal_fetch(signal) < needed) {
        wait_for(block, signal, needed, take.from_rank, take.reason);
        return false;
      }
    }
    ++state.taken[take.slot];
  }
  return true;
}

void Executor::raise_counters(Block& block) {
  block.one_sided->has_raised = true;
  transport_.raise_all(raises_of(block));
}

std::vector<transport::Raise> Executor::raises_of(const Block& block) const {
  std::vector<transport::Raise> raises;
  for (const CounterRaise& raise :
       (*block.one_sided->wiring)[block.current().source_chunk].raises) {
    raises.push_back({raise.rank, counter_signal(raise.counter), 1});
  }
  return raises;
}

// Returns false when it has to wait for stores that are under way to the same memory.
bool Executor::start_direct(Block& block) {
  OneSided& state = *block.one_sided;
  if (state.free_runs.empty()) state.free_runs.push_back(&state.runs.emplace_back());
  DirectRun& run = *state.free_runs.back();
  fill_direct(block, run.move);
  for (const DirectRun& other : state.runs) {
    if (!other.is_under_way || !touches_stores_of(run.move, other.move)) continue;
    state.awaits_visible = true;
    return false;
  }
  state.free_runs.pop_back();
  run.is_under_way = true;
  run.block = &block;
  const bool has_turn =
      follows_fifo(*program_, block.current()) && block.index < transport::kNoTurn;
  run.move.turn = has_turn ? static_cast<std::uint16_t>(block.index) : transport::kNoTurn;
  run.move.context = &run;
  run.move.done = [](DirectMove& move) {
    Block& owner = *static_cast<DirectRun*>(move.context)->block;
    owner.is_moving = false;
    if (!owner.is_starting_move) owner.executor->advance(owner);
  };
  run.move.visible = [](DirectMove& move) {
    DirectRun& done = *static_cast<DirectRun*>(move.context);
    done.block->executor->set_visible(done);
  };
  state.has_moved = true;
  ++state.under_way;
  block.is_moving = true;
  block.is_starting_move = true;
  transport_.start_direct(run.move);
  block.is_starting_move = false;
  return true;
}

// May be called while its step is still the current one, or long after.
void Executor::set_visible(DirectRun& run) {
  Block& block = *run.block;
  OneSided& state = *block.one_sided;
  run.is_under_way = false;
  state.free_runs.push_back(&run);
  --state.under_way;
  if (!state.awaits_visible || state.under_way > 0) return;
  state.awaits_visible = false;
  advance(block);
}

void Executor::fill_direct(const Block& block, DirectMove& move) const {
  const OneSided& state = *block.one_sided;
  const Step& step = block.current();
  const Access& access = block.program->access(step);
  const Chunking& chunking = plan_->chunking;
  const Piece piece{block.iteration, access.part, access.parts,
                    state.is_in_pipeline(block.step) ? state.unit_elements : 0, state.loop};
  std::uint64_t elements = UINT64_MAX;
  const auto locate = [&](const Operand& operand) {
    const Range range = chunking.range(operand.buffer, operand.chunk, step.count, piece);
    elements = std::min(elements, range.count);
    const int rank = operand.holder == Holder::peer ? operand.number : transport_.rank();
    Location location;
    location.offset = offset_of(operand.buffer, rank) + range.offset * chunking.element_bytes();
    location.rank = rank;
    if (operand.holder == Holder::group) {
      location.group = plan_->schedule->groups[static_cast<std::size_t>(operand.number)];
    }
    return location;
  };
  move.sources.clear();
  move.destinations.clear();
  for (const Operand& operand : access.sources) move.sources.push_back(locate(operand));
  for (const Operand& operand : access.destinations) move.destinations.push_back(locate(operand));
  move.raises = raises_of(block);
  move.size_bytes = elements * chunking.element_bytes();
  move.reduction = plan_->reduction;
  move.protocol = plan_->schedule->protocol;
  move.is_port = access.is_port;
}

void Executor::begin_pipeline(Block& block) {
  OneSided& state = *block.one_sided;
  const Access& access = block.program->access(block.current());
  const std::uint64_t element_bytes = plan_->chunking.element_bytes();
  state.loop_first = block.step + 1;
  state.loop_end = block.step + 1 + block.current().count;
  state.loop = 0;
  state.loops = loop_count(access, plan_->chunking.chunk_elements(), element_bytes);
  state.unit_elements = collective::unit_elements(access, element_bytes);
}

// At the end of a step: whether the next one is the first of the pipeline again.
bool Executor::goes_back(Block& block) {
  OneSided& state = *block.one_sided;
  state.has_raised = state.has_moved = false;
  state.next_take = 0;
  if (!state.is_in_pipeline(block.step) || block.step + 1 < state.loop_end) return false;
  if (++state.loop < state.loops) {
    block.steps_finished -= block.step - state.loop_first;
    block.step = state.loop_first;
    block.first_chunk = 0;
    begin_transfer(block);
    return true;
  }
  state.loop_end = 0;
  return false;
}

transport::Signal Executor::counter_signal(std::uint32_t counter) const {
  return signals_ + plan_->wiring->fifos * plan_->slots_max() + plan_->wiring->credits + counter;
}

// Where a buffer of a rank is in the symmetric heap. In place, the smaller of input and output is
// the rank's own part of the other one.
Offset Executor::offset_of(Buffer buffer, int rank) const {
  if (buffer == Buffer::scratch) {
    const bool is_second = plan_->schedule->has_double_scratch && invocations_ % 2 == 0;
    return scratch_ + (is_second ? plan_->scratch_bytes : 0);
  }
  const Schedule& schedule = *plan_->schedule;
  const std::uint64_t part_bytes =
      plan_->chunking.part_elements() * plan_->chunking.element_bytes();
  if (is_in_place_) {
    const bool is_part = chunks_in(schedule, rank, buffer) < schedule.chunks;
    return window_ + (is_part ? static_cast<Offset>(rank) * part_bytes : 0);
  }
  if (buffer == Buffer::input) return window_;
  return window_ +
         (plan_->input_bytes() + kWindowAlignment - 1) / kWindowAlignment * kWindowAlignment;
}

void Executor::open_window() {
  const Schedule& schedule = *plan_->schedule;
  if (!transport_.carries_data()) {
    is_in_place_ = !schedule.out_of_place;
    return;
  }
  is_in_place_ =
      overlap(buffers_.input, plan_->input_bytes(), buffers_.output, plan_->output_bytes());
  const int rank = transport_.rank();
  // A rank that is promised no result finds its output as it was.
  if (schedule.collective == Collective::reduce && !is_in_place_) {
    std::memcpy(transport_.data(offset_of(Buffer::output, rank)), buffers_.output,
                plan_->output_bytes());
  }
  std::memcpy(transport_.data(offset_of(Buffer::input, rank)), buffers_.input,
              plan_->input_bytes());
}

void Executor::close_window() {
  if (!transport_.carries_data()) return;
  std::memcpy(buffers_.output, transport_.data(offset_of(Buffer::output, transport_.rank())),
              plan_->output_bytes());
}

}  // namespace towpath::collective
