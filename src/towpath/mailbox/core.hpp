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

// A processor on which one process spends cycles. Interruptions take additional cycles, then the
// process continues.
//
// Interruptions come from seeded streams per core. They are drawn only as far as the process has
// progressed, so they need no events.
class Core {
 public:
  // `name` identifies the streams and appears in errors.
  Core(sim::Simulation& simulation, const machine::MailboxCluster& cluster, std::string name);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  const std::string& name() const { return name_; }
  const sim::Clock& clock() const { return clock_; }
  // The cycle counter. It also counts during interruptions.
  Cycles now() const { return clock_.cycle_at(simulation_.now()); }

  // When off, there are no interruptions. Skipped ones do not occur later.
  void set_interruptible(bool is_interruptible) { is_interruptible_ = is_interruptible; }

  // The calling process computes for `cycles`.
  void spend(int cycles) { simulation_.sleep_until(clock_.edge(end_of(now(), cycles))); }
  // A store to an array in memory, possibly with a page walk.
  void store_to_array();

  // End of `cycles` of work that starts at `begin`. Calls must be in order of time.
  Cycles end_of(Cycles begin, std::int64_t cycles);
  // End of the first poll at or after `seen_from`. The last poll ended at `polled`, and one ends
  // every `period` cycles.
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
