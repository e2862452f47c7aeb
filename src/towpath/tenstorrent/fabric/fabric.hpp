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

// Routers at all links of a topology, and the ports through which workers reach them.
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
  bool has_bubbles = true;  // without them rings are refused
  // Without forwarding, packets go to neighbours only, and routers of one dimension have a worker's
  // channel and no other.
  bool forwards = true;
  // Without turns, packets stay in their dimension, and routers of a mesh are those of lines.
  bool turns = true;
  // Idle rounds of a router between context switches; tt-metal's
  // default_firmware_context_switch_interval.
  std::int64_t polls_per_context_switch = 10'000;
};

class Fabric {
 public:
  // Makes a program for each chip, with the routers, which go on beside later ones. The cluster
  // lives as long as the fabric is used. It must carry data, because routers read headers. If it
  // finds hazards, those of workers are found, also over routers, which are not watched themselves.
  // Throws std::invalid_argument when it carries no data, when the routes may deadlock, or when
  // slots do not fit into L1.
  Fabric(Cluster& cluster, Shape shape, const FabricOptions& options);

  const Topology& topology() const { return topology_; }
  const Layout& layout() const { return layout_; }
  // Program of the chip at a place, for the kernels of workers.
  Program& program(int place) const { return *programs_[static_cast<std::size_t>(place)]; }
  Device& device(int place) const { return cluster_.device(topology_.chip_at(place)); }
  RouterPort port(int place, Direction direction, int plane) const;
  // Port of the router at an Ethernet channel; none where there is no router.
  std::optional<RouterPort> port_at(int place, int channel) const;

  // Both throw std::invalid_argument when there is no such place or both are the same; a header,
  // with the route in it, also when that is too long.
  Direction first_hop(int from, int to) const { return route(from, to).front(); }
  Header header(int from, int to) const;
  // Header of a packet that makes so many hops in one direction. Throws std::invalid_argument when
  // there is no chip, or for too many hops.
  Header header_along(int from, Direction direction, int hops) const;
  // Header of a packet that so many chips in one direction get, each a copy from the one before,
  // after `skipped` that do not. Throws std::invalid_argument when there are not as many.
  Header multicast_along(int from, Direction direction, int chips, int skipped = 0) const;
  // Packets that together reach all chips of a rectangle, given by the places of two corners, but
  // for the sender: at most one for each of its links. Throws std::invalid_argument when there is
  // no such place, `last` is not to the right of and below `first`, or no other chip is in it.
  struct Multicast {
    Direction first_hop = 0;
    Header header;
  };
  std::vector<Multicast> multicast(int from, int first, int last) const;

  // Runs until no event is left; the routers do not end. Throws DeadlockError when a
  // worker's kernel has not ended by then, and std::runtime_error when it goes on at the limit.
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
