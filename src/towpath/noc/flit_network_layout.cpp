// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "towpath/noc/bits.hpp"
#include "towpath/noc/flit_network.hpp"

// Topology of routers, NIUs and links; flit counts of the links.

namespace towpath::noc {

namespace {

std::size_t wheel_size(const machine::RouterParameters& figures) {
  const int longest =
      std::max({figures.hop_cycles, figures.niu_to_router_cycles, figures.router_to_niu_cycles,
                figures.credit_return_cycles, figures.vc_release_cycles});
  return std::bit_ceil(static_cast<std::size_t>(longest) + 1);
}

}  // namespace

FlitNetwork::FlitNetwork(const machine::Chip& chip, int noc, Endpoint& endpoint, std::uint64_t seed)
    : Network(chip, noc, endpoint),
      backoff_min_(chip.niu.backoff_cycles_min),
      backoff_max_(chip.niu.backoff_cycles_max),
      pool_limit_(chip.router.pool_flits - chip.router.pool_flits_reserved),
      routers_(index(torus_.nodes())),
      sources_(index(torus_.nodes())),
      sinks_(index(torus_.nodes())),
      wheel_(wheel_size(chip.router)),
      wheel_mask_(wheel_.size() - 1),
      undecided_routers_(torus_.nodes()),
      active_routers_(torus_.nodes()),
      active_sources_(torus_.nodes()),
      active_sinks_(torus_.nodes()),
      kept_tree_(index(torus_.nodes()) * 2, -1),
      path_sources_(index(torus_.nodes()) * kPorts * kVcsMax, -1),
      random_(seed, noc == 0 ? "noc 0" : "noc 1") {
  for (int vc = 0; vc < kVcsMax; ++vc) {
    if ((vc >> 1) % classes_ != static_cast<int>(PacketClass::response)) continue;
    for (int port = 0; port < kPorts; ++port) set_bit(response_vcs_, port * kVcsMax + vc);
  }
  const std::size_t nodes = index(torus_.nodes());
  for (Slot& slot : wheel_) {
    for (List<Arrival>& list : slot.to_routers.lists) list.make_room(nodes * kPorts);
    for (List<Arrival>& list : slot.to_sinks.lists) list.make_room(nodes);
    slot.router_credits.make_room(nodes * kPorts);
    slot.source_credits.make_room(nodes);
  }
  moves_.make_room(nodes * kPorts + 1);
  ended_.make_room(nodes * kPorts + 1);
  for (int node = 0; node < torus_.nodes(); ++node) {
    Router& router = routers_[index(node)];
    router.node = static_cast<std::uint32_t>(node);
    router.x = static_cast<std::int16_t>(torus_.x_of(node));
    router.y = static_cast<std::int16_t>(torus_.y_of(node));
    routers_[index(torus_.right_of(node))].upstream[kX] = wire_of(node, kX);
    routers_[index(torus_.below(node))].upstream[kY] = wire_of(node, kY);
    router.upstream[kNiu] = wire_of(node, kFromNiu);
    router.crosses_dateline = {crosses_dateline(node, kX), crosses_dateline(node, kY), false};
    router.output[kX].target = wire_of(torus_.right_of(node), kX);
    router.output[kY].target = wire_of(torus_.below(node), kY);
    router.output[kNiu].target = wire_of(node, kFromNiu);
    sources_[index(node)].link.target = wire_of(node, kNiu);
  }
}

std::int64_t FlitNetwork::link_flits(int node, int port) const {
  return port == kFromNiu ? sources_[index(node)].link.flits
                          : routers_[index(node)].output[index(port)].flits;
}

int FlitNetwork::counted_flits(int node) const { return sources_[index(node)].counted_flits; }

}  // namespace towpath::noc
