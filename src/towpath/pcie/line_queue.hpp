// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "towpath/machine/host.hpp"
#include "towpath/pcie/noc_writes.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::pcie {

// Posted writes of a host whose chip's NoC kernels use too. The places are those of PostedWrites,
// and a write is done when its request on the NoC is.
class LineQueue {
 public:
  LineQueue(const machine::Host& host, noc::ChipNetwork& network);
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;

  // The current process passes at most a line, after waiting for a place.
  void pass(NocWrites::Write line);
  // Waits until all lines are acknowledged or, if posted, in memory.
  void wait_for_all();
  bool is_empty() const { return lines_.empty() && noc_.unfinished() == 0; }

 private:
  void send();
  static void left(void* self);
  void changed();
  void wait();

  sim::Simulation& simulation_;
  std::size_t places_;
  std::size_t chip_places_;
  Time interval_;
  Rate link_rate_;
  Time way_;  // of the last byte, from the link to the NoC
  NocWrites noc_;
  std::deque<NocWrites::Write> lines_;  // accepted lines; the first is leaving if is_leaving_
  bool is_leaving_ = false;
  std::vector<sim::Process*> waiting_;
};

}  // namespace towpath::pcie
