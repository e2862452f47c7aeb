// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/network_ticks.hpp"

#include <algorithm>

#include "towpath/base/index.hpp"

namespace towpath::noc {

namespace {

// Ticks run last in their cycle, after all calls of software.
constexpr int kTickPriority = sim::EventQueue::kPriorityMax;

}  // namespace

void NetworkTicks::request_tick(Cycle cycle) {
  if (is_stepping_ || cycle >= tick_at_) return;
  tick_at_ = cycle;
  tick_time_ = clock_.edge(Cycles(cycle));
  simulation_.at(tick_time_, &NetworkTicks::tick, this, kTickPriority);
}

void NetworkTicks::run_cycle() {
  if (simulation_.now() != tick_time_) return;  // a later call asked for an earlier tick
  const Cycle now = tick_at_;
  is_stepping_ = true;
  for (std::size_t noc = 0; noc < networks_.size(); ++noc) {
    if (work_at_[noc] > now) continue;
    Network& network = *networks_[noc];
    if (network.now() < now) network.skip_to(now);
    network.step();
    work_at_[noc] = network.next_work();
  }
  is_stepping_ = false;
  tick_at_ = kNever;
  tick_time_ = Time::max();
  const Cycle next = std::min(work_at_[0], work_at_[1]);
  if (next != kNever) request_tick(std::max(next, now + 1));
}

Network& NetworkTicks::present(int noc) {
  Network& network = *networks_[index(noc)];
  if (network.now() < cycle()) network.skip_to(cycle());
  return network;
}

void NetworkTicks::resume(int noc) {
  work_at_[index(noc)] = networks_[index(noc)]->now();
  request_tick(work_at_[index(noc)]);
}

}  // namespace towpath::noc
