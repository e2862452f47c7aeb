// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/collective/engine/block_cursor.hpp"

// The rule of all engines: the conditions under which a thread block may continue, and the effects
// of a completed slice or step. An engine is the executor over a transport, the simulator of times
// or the verifier's walk. It answers the queries below and carries out the step, but makes no
// decisions.
//
// Each query returns false if the thread block has to wait. The engine then calls advance() for it
// when the answer may have changed. It declares the machine as a friend.
//
//   const TransferTable& transfers();
//   const Chunking& chunking();
//   OneSidedCursor* one_sided(Block&);        // null without one-sided steps
//   bool is_running(Block&);
//   bool is_step_finished(Block&);            // the one that the current step depends on
//   bool has_arrived(Block&, slots);          // from its receive peer
//   bool has_room(Block&, slots);             // at its send peer
//   bool are_stores_visible(Block&);          // all that its one-sided steps have stored
//   bool is_raised(Block&, take, times);      // a counter, so many times
//   void taken(Block&, take, times_before);
//   void raise(Block&, raises);
//   void begin_step(Block&);                  // a one-sided one has all that it waits for
//   bool move_directly(Block&);               // false if it has to wait for stores
//   bool is_moving(Block&);                   // directly
//   bool move_slice(Block&);                  // false if finish_slice() is called later
//   void end_slice(Block&, slots);            // what it received may be overwritten
//   void end_step(Block&);                    // the cursor is still at it
//   void end_iteration(Block&);               // the cursor is at the next one, or at the end
//   void end_program(Block&);
//   void publish(Block&);                     // a step that others depend on is finished

namespace towpath::collective {

class ThreadBlockMachine {
 public:
  // Advances the thread block as far as possible.
  template <typename Engine, typename Block>
  static void advance(Engine& engine, Block& block) {
    BlockCursor& at = block.cursor;
    while (engine.is_running(block)) {
      const Step& step = at.current();
      if (!at.is_dependency_met) {
        if (!engine.is_step_finished(block)) return;
        at.is_dependency_met = true;
      }
      if (is_one_sided(step.type)) {
        if (!advance_one_sided(engine, block)) return;
        finish_step(engine, block);
        continue;
      }
      if (!engine.are_stores_visible(block)) return;
      const std::uint32_t slots = at.slice().slots;
      if (receives(step.type) && !engine.has_arrived(block, slots)) return;
      if (sends(step.type) && !engine.has_room(block, slots)) return;
      if (!engine.move_slice(block)) return;
      finish_slice(engine, block);
    }
  }

  // The current slice has moved.
  template <typename Engine, typename Block>
  static void finish_slice(Engine& engine, Block& block) {
    const std::uint32_t slots = block.cursor.slice().slots;
    const bool is_last = block.cursor.finish_slice(engine.transfers());
    engine.end_slice(block, slots);
    if (is_last) finish_step(engine, block);
  }

 private:
  // Returns true if the step is done.
  template <typename Engine, typename Block>
  static bool advance_one_sided(Engine& engine, Block& block) {
    OneSidedCursor& own = *engine.one_sided(block);
    const Step& step = block.cursor.current();
    if (!own.has_moved) {
      if (!raise_first(engine, block, own) || !take(engine, block, own)) return false;
      engine.begin_step(block);
      if (step.type == StepType::pipeline) own.begin_pipeline(block.cursor, engine.chunking());
      if (step.type != StepType::direct) return true;
      if (!engine.move_directly(block)) return false;
      own.has_moved = true;
    }
    if (engine.is_moving(block)) return false;
    // Other thread blocks depend on the step without a signal.
    const bool is_awaited = own.program->access(step).flushes || step.publishes;
    return !is_awaited || engine.are_stores_visible(block);
  }

  // Some steps raise their counters before they wait, after all earlier stores of their block.
  template <typename Engine, typename Block>
  static bool raise_first(Engine& engine, Block& block, OneSidedCursor& own) {
    const Step& step = block.cursor.current();
    const bool raises = step.type == StepType::signal || step.type == StepType::barrier ||
                        step.type == StepType::release;
    const bool is_ordered =
        raises ? !own.program->access(step).is_relaxed : step.type == StepType::flush;
    if (own.has_raised) return true;
    if (is_ordered && !engine.are_stores_visible(block)) return false;
    own.has_raised = raises;
    if (raises) engine.raise(block, own.wiring_of(step).raises);
    return true;
  }

  template <typename Engine, typename Block>
  static bool take(Engine& engine, Block& block, OneSidedCursor& own) {
    const std::vector<CounterTake>& takes = own.wiring_of(block.cursor.current()).takes;
    for (; own.next_take < takes.size(); ++own.next_take) {
      const CounterTake& take = takes[own.next_take];
      std::uint64_t& times = own.taken[take.slot];
      const std::uint64_t needed = (times + 1) * take.weight;
      const bool waits = needed > take.credit;
      if (waits && !engine.is_raised(block, take, needed - take.credit)) return false;
      engine.taken(block, take, times);
      ++times;
    }
    return true;
  }

  template <typename Engine, typename Block>
  static void finish_step(Engine& engine, Block& block) {
    BlockCursor& at = block.cursor;
    const bool publishes = at.current().publishes;
    engine.end_step(block);
    OneSidedCursor* const own = engine.one_sided(block);
    if (own != nullptr && own->goes_back(at)) {
      return at.go_to_step(engine.transfers(), own->loop_first);
    }
    at.finish_step(engine.transfers());
    if (at.step == 0) {
      engine.end_iteration(block);
      if (at.is_finished(engine.transfers())) engine.end_program(block);
    }
    if (publishes) engine.publish(block);
  }
};

}  // namespace towpath::collective
