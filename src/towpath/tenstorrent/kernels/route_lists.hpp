// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/tenstorrent/cluster/cluster.hpp"
#include "towpath/tenstorrent/routing/static_routes.hpp"

// The command lists of static routes as kernels of Ethernet cores, with bytes and time.
//
// A hop involves both ends of a link: the receiver grants a buffer, the sender sends the packet
// there, the receiver answers. Between hops the packet crosses the NoC from its buffer to the next
// sending core, which then frees that buffer. A core starts its next command at the end of the
// previous one.
//
// Lists that would deadlock end in a DeadlockError that names their kernels.

namespace towpath::tenstorrent::kernels {

struct RouteLists {
  std::vector<routing::Route> routes;
  std::vector<routing::CoreCommands> lists;
  std::uint64_t packet_bytes = 4096;  // a multiple of 16
  int buffers_per_core = 1;
};

struct RoutesRun {
  Time time;                               // until the last kernel has ended
  std::vector<std::vector<Time>> arrived;  // by route and hop
  int wrong_packets = 0;                   // packets with corrupted bytes
};

// Sends one packet over each route, on a cluster without programs. Throws std::invalid_argument for
// lists rejected by routing::execute(), and for packets or buffers that do not fit into an L1.
RoutesRun run_route_lists(Cluster& cluster, const RouteLists& lists);

}  // namespace towpath::tenstorrent::kernels
