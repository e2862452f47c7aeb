// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "towpath/machine/mailbox_cluster.hpp"
#include "towpath/sim/clock.hpp"
#include "towpath/sim/random.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::mailbox {

// A processor, on which one process spends cycles. What interrupts it takes cycles of its own: the
// process goes on where it was, later.
//
// Interruptions come from seeded streams of this core alone, and only so far ahead as the process
// goes, so that they cost no events.
class Core {
 public:
  // `name` is in the names of the streams, and in errors.
  Core(sim::Simulation& simulation, const machine::MailboxCluster& cluster, std::string name);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  const std::string& name() const { return name_; }
  const sim::Clock& clock() const { return clock_; }
  // What the cycle counter says, which counts while interrupted, too.
  Cycles now() const { return clock_.cycle_at(simulation_.now()); }

  // Off: nothing interrupts. What would have come meanwhile does not come later.
  void set_interruptible(bool is_interruptible) { is_interruptible_ = is_interruptible; }

  // The calling process computes for so many cycles.
  void spend(int cycles);
  // A store to an array in memory, which may need a page walk.
  void store_to_array();

  // When `cycles` of work that begin at `begin` are done. Work is asked for in order.
  Cycles end_of(Cycles begin, std::int64_t cycles);
  // The first end of a poll that is not before `seen_from`. The last poll ended at `polled`, and
  // one ends every `period` cycles.
  Cycles polled_after(Cycles polled, std::int64_t period, Cycles seen_from);

 private:
  struct Interruptions {
    const machine::InterruptionParameters* figures;
    sim::Random random;
    Cycles begin;
    Cycles duration;
  };
  void draw(Interruptions& interruptions, Cycles after) const;
  Interruptions* next();
  Cycles cycles_of(Time duration) const { return clock_.cycle_at(clock_.origin() + duration); }

  sim::Simulation& simulation_;
  machine::PageWalkParameters page_walks_;
  std::string name_;
  sim::Clock clock_;
  sim::Random page_walk_random_;
  std::vector<machine::InterruptionParameters> figures_;
  std::vector<Interruptions> interruptions_;
  bool is_interruptible_ = true;
};

}  // namespace towpath::mailbox
