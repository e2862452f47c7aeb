// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/router/router.hpp"

#include "towpath/noc/router/bits.hpp"

namespace towpath::noc {

namespace {

// Connects an output of a router to the input of the same direction of another.
void connect(const Routers& routers, int from, int port, int to) {
  const auto vc_0 = static_cast<unsigned>(port * kVcsMax);
  routers[from].links[index(port)].target = VcRef(to, vc_0);
  routers[to].links[index(port)].upstream = VcRef(from, vc_0);
}

}  // namespace

std::vector<Router> joined_routers(const Routing& routing) {
  const Torus& torus = routing.torus();
  std::vector<Router> all(index(torus.nodes()));
  const Routers routers(all.data(), torus.nodes());
  for (int node = 0; node < torus.nodes(); ++node) {
    Router& router = routers[node];
    router.node = static_cast<std::int16_t>(node);
    router.x = static_cast<std::int16_t>(torus.x_of(node));
    router.y = static_cast<std::int16_t>(torus.y_of(node));
    for (const int output : {kX, kY}) {
      if (routing.crosses_dateline(node, output)) set_bit(router.crosses_dateline, output);
    }
    connect(routers, node, kX, torus.right_of(node));
    connect(routers, node, kY, torus.below(node));
    router.links[kNiu].target = VcRef(node, kNiu * kVcsMax);
    router.links[kNiu].upstream = VcRef(node, kFromNiu * kVcsMax);
  }
  return all;
}

}  // namespace towpath::noc
