// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "towpath/base/pool.hpp"
#include "towpath/sim/crossing.hpp"
#include "towpath/tenstorrent/ccl/chip_workers.hpp"
#include "towpath/tenstorrent/ccl/delivery.hpp"
#include "towpath/tenstorrent/ccl/multicast_worker.hpp"
#include "towpath/tenstorrent/cluster/cluster.hpp"
#include "towpath/tenstorrent/device/device.hpp"
#include "towpath/tenstorrent/fabric/fabric.hpp"

// The chips that a fabric joins, each at a place with its workers and its arrivals, and the places
// of the ranks.

namespace towpath::tenstorrent::ccl {

// Streams of packets to one chip. Each has a word in the L1 of one worker core, which its packets
// increment. A change of a word is the arrival of parts.

class Arrivals {
 public:
  // Streams from each of `places` on each of `planes`. They land in the first `pages` of the
  // chip's DRAM, an equal share for each source and plane.
  Arrivals(Device& device, int places, int planes, std::uint64_t pages);

  Stream& unicasts(int from, int plane) { return streams_[unicast(from, plane)]; }
  Stream& multicasts(int from, int plane, int way) { return streams_[multicast(from, plane, way)]; }
  noc::Address unicast_word(int from, int plane) const { return word(unicast(from, plane)); }
  // The same offset on each chip of a kind.
  noc::Address multicast_word(int from, int plane, int way) const {
    return word(multicast(from, plane, way));
  }
  // Body of a process of the chip. Calls on_arrival for each part.
  void watch();
  std::function<void(DeliveryPart& part)> on_arrival;

 private:
  std::size_t unicast(int from, int plane) const { return index(from * planes_ + plane); }
  std::size_t multicast(int from, int plane, int way) const {
    return index(places_ * planes_ + (from * planes_ + plane) * kWays + way);
  }
  noc::Address word(std::size_t stream) const;

  Device& device_;
  machine::Coordinate core_;
  int places_;
  int planes_;
  std::vector<Stream> streams_;  // unicasts by source and plane, multicasts also by way
};

struct SimulatedChipsOptions {
  std::vector<int> places;  // rank -> place of the fabric. Empty: the first ones
  bool carries_data = true;
  std::optional<fabric::Shape> shape{};   // none: default_shape
  std::uint64_t payload_bytes_max = 0;    // of a packet. 0: the chip's default
  std::uint64_t heap_bytes = 4ull << 30;  // per rank. Untouched bytes take no memory
  std::uint32_t signals = 1u << 16;       // most that a rank can have
  // Longest simulated time of a call of run() if links have faults.
  Time deadline = Time::from_seconds(1);
  // Faults are allowed only on links that the fabric uses. With threads each chip is a partition,
  // unless links have faults. Results do not depend on the number of threads. 0: one simulation for
  // all chips, the reference.
  RunOptions run{.finds_hazards = false, .threads = 1};
};

struct Place {
  Place(fabric::Fabric& fabric, int number, std::uint64_t payload_bytes_max);
  sim::Simulation& simulation;
  sim::Crossing crossing;
  ChipWorkers workers;
  Arrivals arrivals;
  Pool<DeliveryPart> parts;  // from here
};

class Chips {
 public:
  Chips(std::shared_ptr<const machine::ChipCluster> description,
        const SimulatedChipsOptions& options);

  Cluster& cluster() { return cluster_; }
  const Cluster& cluster() const { return cluster_; }
  const fabric::Fabric& fabric() const { return fabric_; }
  const fabric::Topology& topology() const { return fabric_.topology(); }
  std::uint64_t payload_bytes_max() const { return options_.payload_bytes_max; }

  int ranks() const { return static_cast<int>(options_.places.size()); }
  int place_of(int rank) const { return options_.places[static_cast<std::size_t>(rank)]; }
  Place& at(int place) { return *places_[static_cast<std::size_t>(place)]; }
  Place& of(int rank) { return at(options_.places.at(static_cast<std::size_t>(rank))); }
  const std::vector<std::unique_ptr<Place>>& places() const { return places_; }
  // True if the ranks are on all chips of a ring.
  bool fill_ring() const;

  // Runs an action at another place when a frame could have arrived there. Chips cannot affect each
  // other any sooner.
  void notify(int from, int to, sim::Action action, void* context);
  // Takes pages of a ring at a place. Throws std::runtime_error if there are not enough.
  std::uint64_t take_pages(PageRing& ring, std::uint64_t count, int place) const;

 private:
  SimulatedChipsOptions options_;
  std::shared_ptr<const machine::ChipCluster> description_;
  std::vector<std::unique_ptr<Place>> places_;
  // Kernels use the places until the simulation ends with the cluster.
  Cluster cluster_;
  fabric::Fabric fabric_;
};

}  // namespace towpath::tenstorrent::ccl
