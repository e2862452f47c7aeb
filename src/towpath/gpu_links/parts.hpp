// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/machine/machine.hpp"
#include "towpath/sim/simulation_group.hpp"

// The simulation of each device of a machine.

namespace towpath::gpu_links {

// A machine divided between its hosts.
struct HostParts {
  std::size_t count = 1;
  std::vector<std::uint32_t> of_device;  // empty: all in one part
  Time lookahead;                        // the least latency of a link from part to part
};

// At most `most` parts of consecutive hosts. Switches between hosts are distributed over all parts.
// One part if a link between two has no latency.
HostParts cut_between_hosts(const machine::Machine& machine, std::size_t most);

struct Parts {
  // All devices in one part. Every simulation fits this division.
  Parts(sim::Simulation& all) : simulations{&all} {}
  // The group has a partition for each part.
  Parts(sim::SimulationGroup& group, HostParts cut);

  bool are_several() const { return simulations.size() > 1; }
  std::uint32_t of(int device) const {
    return of_device.empty() ? 0 : of_device[static_cast<std::size_t>(device)];
  }

  std::vector<sim::Simulation*> simulations;
  std::vector<std::uint32_t> of_device;
};

}  // namespace towpath::gpu_links
