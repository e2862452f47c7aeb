// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "towpath/collective/execute/executor.hpp"
#include "towpath/collective/execute/executor_block.hpp"

// The one-sided steps of an executor. All waits are for counters, which are signals of the rank.

namespace towpath::collective {

using transport::DirectMove;
using transport::Location;

namespace {

// True if both are at the same place of a rank's heap.
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

OneSidedCursor* Executor::one_sided(Block& block) {
  return block.direct == nullptr ? nullptr : &block.direct->cursor;
}

// Other steps of the thread block may read memory that its stores have not reached yet.
bool Executor::are_stores_visible(Block& block) {
  if (block.direct == nullptr || block.direct->under_way == 0) return true;
  if (block.cursor.current().type == StepType::nop) return true;
  block.direct->awaits_visible = true;
  return false;
}

bool Executor::is_raised(Block& block, const CounterTake& take, std::uint64_t times) {
  const transport::Signal signal = memory_.counter_signal(take.counter);
  if (transport_.signal_fetch(signal) >= times) return true;
  wait_for(block, signal, times, take.from_rank, take.reason);
  return false;
}

void Executor::raise(Block&, const std::vector<CounterRaise>& raises) {
  transport_.raise_all(raises_at(raises));
}

std::vector<transport::Raise> Executor::raises_at(const std::vector<CounterRaise>& raises) const {
  std::vector<transport::Raise> all;
  for (const CounterRaise& raise : raises) {
    all.push_back({raise.rank, memory_.counter_signal(raise.counter), 1});
  }
  return all;
}

void Executor::begin_step(Block& block) { block.moving = transport_.now(); }

bool Executor::is_moving(const Block& block) { return block.is_moving; }

// Returns false if it has to wait for stores in flight to the same memory.
bool Executor::move_directly(Block& block) {
  Direct& direct = *block.direct;
  if (direct.free_runs.empty()) direct.free_runs.push_back(&direct.runs.emplace_back());
  DirectRun& run = *direct.free_runs.back();
  fill_direct(block, run.move);
  for (const DirectRun& other : direct.runs) {
    if (!other.is_under_way || !touches_stores_of(run.move, other.move)) continue;
    direct.awaits_visible = true;
    return false;
  }
  direct.free_runs.pop_back();
  run.is_under_way = true;
  run.block = &block;
  const bool has_turn =
      follows_fifo(*program_, block.cursor.current()) && block.index < transport::kNoTurn;
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
  ++direct.under_way;
  block.is_moving = true;
  block.is_starting_move = true;
  transport_.start_direct(run.move);
  block.is_starting_move = false;
  return true;
}

// May be called while its step is current, or long after.
void Executor::set_visible(DirectRun& run) {
  Block& block = *run.block;
  Direct& direct = *block.direct;
  run.is_under_way = false;
  direct.free_runs.push_back(&run);
  --direct.under_way;
  if (!direct.awaits_visible || direct.under_way > 0) return;
  direct.awaits_visible = false;
  advance(block);
}

void Executor::fill_direct(const Block& block, DirectMove& move) const {
  const OneSidedCursor& own = block.direct->cursor;
  const Step& step = block.cursor.current();
  const Access& access = block.program->access(step);
  const Piece piece = own.piece(block.cursor);
  std::uint64_t elements = UINT64_MAX;
  const auto locate = [&](const Operand& operand) {
    const Range range = chunking().range(operand.buffer, operand.chunk, step.count, piece);
    elements = std::min(elements, range.count);
    const int rank = operand.holder == Holder::peer ? operand.number : transport_.rank();
    Location location;
    location.offset =
        memory_.offset_of(operand.buffer, rank) + range.offset * chunking().element_bytes();
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
  move.raises = raises_at(own.wiring_of(step).raises);
  move.size_bytes = elements * chunking().element_bytes();
  move.reduction = plan_->reduction;
  move.protocol = plan_->schedule->protocol;
  move.is_port = access.is_port;
  move.is_polled = std::ranges::all_of(access.sources, &Operand::is_packet);
}

}  // namespace towpath::collective
