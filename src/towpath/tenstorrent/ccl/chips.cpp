// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/chips.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/base/invariant.hpp"
#include "towpath/tenstorrent/ccl/link_faults.hpp"
#include "towpath/tenstorrent/fabric/router_costs.hpp"
#include "towpath/transport/simulated/endpoint.hpp"

namespace towpath::tenstorrent::ccl {

namespace {

SimulatedChipsOptions completed(SimulatedChipsOptions options,
                                const machine::ChipCluster& description) {
  if (options.payload_bytes_max == 0) {
    options.payload_bytes_max =
        fabric::kRouterCosts.of(*description.chips.front().chip).payload_bytes;
  }
  // Packets have whole pages, unless there is no room for one.
  const std::uint64_t pages = options.payload_bytes_max / kArrayPageBytes;
  if (pages > 0) options.payload_bytes_max = pages * kArrayPageBytes;
  // DRAM holds arrays only: kernels wait for words in the cores.
  if (!options.carries_data) options.run.stores_dram = false;
  return options;
}

}  // namespace

Place::Place(fabric::Fabric& fabric, int number, std::uint64_t payload_bytes_max)
    : simulation(fabric.device(number).network().simulation()),
      crossing(simulation),
      workers(fabric, number, payload_bytes_max),
      arrivals(fabric.device(number), fabric.topology().places(), fabric.topology().planes(),
               workers.pages().pages() / 2) {
  simulation.spawn(fmt::format("arrivals at chip {}", fabric.topology().chip_at(number)),
                   [this] { arrivals.watch(); });
}

Chips::Chips(std::shared_ptr<const machine::ChipCluster> description,
             const SimulatedChipsOptions& options)
    : options_(completed(options, *description)),
      description_(std::move(description)),
      cluster_(description_, options_.run),
      fabric_(cluster_, options.shape ? *options.shape : fabric::default_shape(*description_),
              {.payload_bytes_max = options_.payload_bytes_max}) {
  check_link_faults(options.run.link_faults, *description_, topology());
  options_.places = transport::simulated::placement(
      options.places, topology().places(),
      [](int place) { return fmt::format("place {} of the fabric", place); });
  const std::uint64_t sources = index(topology().places() * topology().planes());
  for (int place = 0; place < topology().places(); ++place) {
    const std::uint64_t half =
        Pages(fabric_.device(place).chip(), options_.payload_bytes_max).pages() / 2;
    if (half < std::max<std::uint64_t>(1, sources)) {
      throw std::invalid_argument(
          fmt::format("cluster '{}': half of a chip's DRAM holds {} packets; it needs room for one "
                      "from each of {} places and links",
                      description_->name, half, sources));
    }
    places_.push_back(std::make_unique<Place>(fabric_, place, options_.payload_bytes_max));
  }
}

bool Chips::fill_ring() const {
  const fabric::Shape& shape = topology().shape();
  return shape.dimensions.size() == 1 && shape.dimensions.front().is_ring &&
         shape.dimensions.front().size == ranks();
}

void Chips::notify(int from, int to, sim::Action action, void* context) {
  Place& place = at(from);
  place.crossing.at(at(to).simulation, place.simulation.now() + cluster_.lookahead(), action,
                    context);
}

std::uint64_t Chips::take_pages(PageRing& ring, std::uint64_t count, int place) const {
  if (const auto taken = ring.take(count); taken) return *taken;
  throw std::runtime_error(
      fmt::format("more data is in flight than the {} bytes that the DRAM of chip {} has for it; "
                  "use smaller messages",
                  ring.pages() * options_.payload_bytes_max, topology().chip_at(place)));
}

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
  const std::uint64_t share = sources == 0 ? 0 : pages / sources;  // one chip has no source
  for (std::size_t source = 0; source < sources; ++source) {
    streams_[source].landings = PageRing(source * share, share);
  }
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
