// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "towpath/tenstorrent/cluster/cluster.hpp"
#include "towpath/tenstorrent/fabric/fabric_connection.hpp"
#include "towpath/tenstorrent/fabric/fabric_router.hpp"
#include "towpath/tenstorrent/fabric/fabric_topology.hpp"
#include "towpath/tenstorrent/fabric/fabric_watch.hpp"

// Routers at all links of a topology, and their ports for workers.
//
//   Cluster cluster(t3000, {});
//   Fabric fabric(cluster, default_shape(*t3000), {});
//   fabric.program(0).create_kernel({.core = worker}, [&](DataMovementCore& core) {
//     Connection connection(core, fabric.port(0, fabric.first_hop(0, 5), 0), 0x1000);
//     ...
//   });
//   fabric.run();

namespace towpath::tenstorrent::fabric {

struct FabricOptions {
  std::uint64_t payload_bytes_max = 4352;
  bool has_bubbles = true;  // without them, rings are rejected
  // Without forwarding, packets only go to neighbours, and routers of one dimension have only a
  // worker channel.
  bool forwards = true;
  // Without turns, packets stay in their dimension, and routers of a mesh are like routers of
  // lines.
  bool turns = true;
  // Idle rounds of a router between context switches. Source: tt-metal,
  // default_firmware_context_switch_interval.
  std::int64_t polls_per_context_switch = 10'000;
};

class Fabric {
 public:
  // Creates a program with the routers on each chip, which run alongside later programs. The
  // cluster must outlive the fabric and carry data, because routers read headers. A hazard monitor
  // finds hazards between workers, also through routers, which it does not check themselves. Throws
  // std::invalid_argument if the cluster carries no data, the routes may deadlock, or slots do not
  // fit into L1.
  Fabric(Cluster& cluster, Shape shape, const FabricOptions& options);

  const Topology& topology() const { return topology_; }
  const Layout& layout() const { return layout_; }
  // Program of the chip at a place, for workers' kernels.
  Program& program(int place) const { return *programs_[static_cast<std::size_t>(place)]; }
  Device& device(int place) const { return cluster_.device(topology_.chip_at(place)); }
  RouterPort port(int place, Direction direction, int plane) const;
  // Port of the router at an Ethernet channel; empty if there is no router.
  std::optional<RouterPort> port_at(int place, int channel) const;

  // Both throw std::invalid_argument if the places do not exist or are equal. header() includes the
  // route and also throws if it is too long.
  Direction first_hop(int from, int to) const { return route(from, to).front(); }
  Header header(int from, int to) const;
  // Header of a packet with a number of hops in one direction. Throws std::invalid_argument if
  // there is no chip, or for too many hops.
  Header header_along(int from, Direction direction, int hops) const;
  // Header of a packet for `chips` chips in one direction after `skipped` others, each copied from
  // the previous one. Throws std::invalid_argument if there are too few.
  Header multicast_along(int from, Direction direction, int chips, int skipped = 0) const;
  // Packets that together reach all chips of a rectangle except the sender, at most one per link of
  // the sender. The rectangle is given by two corners. Throws std::invalid_argument if a place does
  // not exist, `last` is not right of and below `first`, or the rectangle has no other chip.
  struct Multicast {
    Direction first_hop = 0;
    Header header;
  };
  std::vector<Multicast> multicast(int from, int first, int last) const;

  // Runs until no event is left. Routers do not end. Throws DeadlockError if a worker's kernel has
  // not ended by then, and std::runtime_error if it is still running at the limit.
  Time run();

 private:
  bool is_running() const;
  std::vector<Direction> route(int from, int to) const;
  Header header_of(const std::vector<Direction>& route) const;
  void create_routers(int place);
  RouterConfig config(int place, Direction direction, int plane) const;

  Cluster& cluster_;
  Topology topology_;
  FabricOptions options_;
  Layout layout_;
  std::vector<Program*> programs_;
  std::unique_ptr<FabricWatch> watch_;  // if hazards are monitored
};

}  // namespace towpath::tenstorrent::fabric
