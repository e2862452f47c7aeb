// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/arrivals.hpp"

#include <span>

#include "towpath/base/index.hpp"
#include "towpath/base/invariant.hpp"

namespace towpath::tenstorrent::ccl {

namespace {

// Offset of the words in L1. Chosen here, without a source.
constexpr std::uint64_t kWords = 0x1000;

}  // namespace

Arrivals::Arrivals(Device& device, int places, int planes, std::uint64_t pages)
    : device_(device),
      core_(device.chip().workers.back()),
      places_(places),
      planes_(planes),
      streams_(index(places * planes * (1 + kWays))) {
  const std::size_t sources = index(places * planes);
  const std::uint64_t share = pages / sources;
  for (std::size_t source = 0; source < sources; ++source) {
    streams_[source].landings = PageRing(source * share, share);
  }
}

std::size_t Arrivals::unicast(int from, int plane) const { return index(from * planes_ + plane); }

std::size_t Arrivals::multicast(int from, int plane, int way) const {
  return index(places_ * planes_ + (from * planes_ + plane) * kWays + way);
}

noc::Address Arrivals::word(std::size_t stream) const {
  return {core_, kWords + stream * noc::kWordBytes};
}

void Arrivals::watch() {
  noc::ChipNetwork& network = device_.network();
  sim::Simulation& simulation = network.simulation();
  std::vector<std::uint32_t> counts(streams_.size());
  const std::uint64_t size_bytes = counts.size() * noc::kWordBytes;
  while (size_bytes > 0) {
    network.load(core_, kWords, std::as_writable_bytes(std::span(counts)));
    for (std::size_t number = 0; number < counts.size(); ++number) {
      Stream& stream = streams_[number];
      while (stream.arrived != counts[number]) {
        ++stream.arrived;
        TOWPATH_CHECK(!stream.in_flight.empty(), "a part arrives at chip {} before it was sent",
                      device_.id());
        DeliveryPart& part = *stream.in_flight.front();
        stream.in_flight.pop_front();
        on_arrival(part);
      }
    }
    network.wake_on_write(core_, kWords, *simulation.current(), size_bytes);
    simulation.suspend("arrivals");
  }
}

}  // namespace towpath::tenstorrent::ccl
