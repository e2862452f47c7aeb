// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>

#include "towpath/noc/niu/network.hpp"
#include "towpath/sim/clock.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::noc {

// The two networks of a chip in simulated time: an event in each cycle in which one has work.
class NetworkTicks {
 public:
  using Networks = std::array<std::unique_ptr<Network>, 2>;

  NetworkTicks(sim::Simulation& simulation, const sim::Clock& clock, const Networks& networks)
      : simulation_(simulation), clock_(clock), networks_(networks) {}

  const sim::Clock& clock() const { return clock_; }
  // Cycle at the current time.
  Cycle cycle() const { return clock_.cycle_at(simulation_.now()).count(); }
  // The network in the current cycle, ready to accept packets.
  Network& present(int noc);
  // The network has work in its current cycle.
  void resume(int noc);

 private:
  static void tick(void* self) { static_cast<NetworkTicks*>(self)->run_cycle(); }
  void run_cycle();
  void request_tick(Cycle cycle);

  sim::Simulation& simulation_;
  const sim::Clock& clock_;
  const Networks& networks_;
  Cycle tick_at_ = kNever;  // next cycle to simulate
  Time tick_time_ = Time::max();
  std::array<Cycle, 2> work_at_{kNever, kNever};  // next cycle in which each network has work
  bool is_stepping_ = false;
};

}  // namespace towpath::noc
