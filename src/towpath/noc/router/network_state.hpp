// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "towpath/noc/router/link_pipeline.hpp"
#include "towpath/noc/router/multicast_tree.hpp"
#include "towpath/noc/router/node_set.hpp"
#include "towpath/noc/router/packet_table.hpp"
#include "towpath/noc/router/router.hpp"

namespace towpath::noc {

// State that the units of a network share.
struct NetworkState {
  NetworkState(const machine::Chip& chip, const Routing& route, const Cycle& cycle)
      : routing(route),
        now(cycle),
        packets(route.torus()),
        trees(route.torus()),
        router_states(joined_routers(route)),
        routers(router_states.data(), route.torus().nodes()),
        active_routers(route.torus().nodes()),
        links(chip.router, route.torus().nodes()) {}

  const Routing& routing;
  const Cycle& now;
  PacketTable packets;
  MulticastTrees trees;
  std::vector<Router> router_states;
  Routers routers;
  NodeSet active_routers;  // routers that may have a flit to move
  LinkPipeline links;
};

}  // namespace towpath::noc
