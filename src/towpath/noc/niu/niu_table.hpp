// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/niu/niu_counters.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::noc {

// The counters of all NIUs of a chip, and the processes that wait for them.
class NiuTable {
 public:
  // Condition that a process may wait for.
  struct Condition {
    bool (*holds)(const NiuCounters& counters, int argument);
    int argument = 0;
  };

  explicit NiuTable(const machine::Chip& chip)
      : chip_(chip),
        nius_{std::vector<Niu>(chip.tiles.size()), std::vector<Niu>(chip.tiles.size())} {}

  NiuCounters& counters(int noc, machine::Coordinate core) { return at(noc, core).counters; }
  const NiuCounters& counters(int noc, machine::Coordinate core) const {
    return const_cast<NiuTable*>(this)->counters(noc, core);
  }
  void wake_when(int noc, machine::Coordinate core, Condition condition, sim::Process& process) {
    at(noc, core).waiting.push_back({condition, &process});
  }
  void stop_waking(machine::Coordinate core, const sim::Process& process) {
    for (int noc = 0; noc < 2; ++noc) {
      std::erase_if(at(noc, core).waiting,
                    [&](const Waiting& waiting) { return waiting.process == &process; });
    }
  }
  // Counters have changed. Conditions are tested here: reading a counter is cheaper than waking a
  // process.
  void wake(int noc, machine::Coordinate core, sim::Simulation& simulation) {
    Niu& niu = at(noc, core);
    std::erase_if(niu.waiting, [&](const Waiting& waiting) {
      if (!waiting.condition.holds(niu.counters, waiting.condition.argument)) return false;
      simulation.wake(*waiting.process);
      return true;
    });
  }

 private:
  struct Waiting {
    Condition condition;
    sim::Process* process;
  };
  struct Niu {
    NiuCounters counters;
    std::vector<Waiting> waiting;
  };
  Niu& at(int noc, machine::Coordinate core) {
    return nius_[static_cast<std::size_t>(noc)][static_cast<std::size_t>(chip_.number_of(core))];
  }

  const machine::Chip& chip_;
  std::array<std::vector<Niu>, 2> nius_;  // by tile
};

}  // namespace towpath::noc
