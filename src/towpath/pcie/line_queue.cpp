// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/line_queue.hpp"

#include <algorithm>
#include <utility>

#include "towpath/pcie/link_rate.hpp"
#include "towpath/pcie/posted_writes.hpp"
#include "towpath/sim/hardware_priority.hpp"

namespace towpath::pcie {

LineQueue::LineQueue(const machine::Host& host, noc::ChipNetwork& network)
    : simulation_(network.simulation()),
      places_(static_cast<std::size_t>(host.core.posted_writes_max)),
      chip_places_(std::max<std::size_t>(
          network.chip().pcie.posted_buffer_bytes / PostedWrites::kLineBytes, 1)),
      interval_(host.core.posted_write_interval),
      link_rate_(raw_rate(negotiated(host.link, network.chip().pcie))),
      way_(Time::from_ps(host.link.read_time.ps() / 2) +
           Time::from_ps(network.chip().pcie.tile_time.ps() / 2)),
      noc_(network, network.chip().pcie.strict_time, [this] { changed(); }) {}

void LineQueue::wait() {
  waiting_.push_back(simulation_.current());
  simulation_.suspend("posted writes to leave");
}

void LineQueue::pass(NocWrites::Write line) {
  while (lines_.size() >= places_) wait();
  lines_.push_back(std::move(line));
  send();
}

void LineQueue::wait_for_all() {
  while (!is_empty()) wait();
}

void LineQueue::changed() {
  send();
  for (sim::Process* process : std::exchange(waiting_, {})) simulation_.wake(*process);
}

// Sends the first line if the link is free and the chip has room.
void LineQueue::send() {
  if (is_leaving_ || lines_.empty() || noc_.waiting() >= chip_places_) return;
  is_leaving_ = true;
  NocWrites::Write& line = lines_.front();
  const Time on_link = transfer_time(Bytes(line.size_bytes + kWriteOverheadBytes), link_rate_);
  simulation_.after(std::max(interval_, on_link), &LineQueue::left, this, sim::kHardwarePriority);
  noc_.arrive(simulation_.now() + on_link + way_, std::move(line));
}

void LineQueue::left(void* context) {
  auto& self = *static_cast<LineQueue*>(context);
  self.lines_.pop_front();
  self.is_leaving_ = false;
  self.changed();
}

}  // namespace towpath::pcie
