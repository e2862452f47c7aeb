// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "towpath/base/index.hpp"
#include "towpath/noc/flit_network.hpp"
#include "towpath/noc/router/bits.hpp"

// Topology of routers, NIUs and links; flit counts of the links.

namespace towpath::noc {

namespace {

std::size_t wheel_size(const machine::RouterParameters& figures) {
  const int longest =
      std::max({figures.hop_cycles, figures.niu_to_router_cycles, figures.router_to_niu_cycles,
                figures.credit_return_cycles, figures.vc_release_cycles});
  return std::bit_ceil(static_cast<std::size_t>(longest) + 1);
}

// By the used slots of a pool: the VCs that it has no slot for. Responses may take some that others
// may not.
std::vector<std::uint64_t> without_pool(const machine::RouterParameters& figures) {
  std::uint64_t response_vcs = 0;
  for (int number = 0; number < Network::kPorts * Network::kVcsMax; ++number) {
    const int packet_class = (number % Network::kVcsMax >> 1) % figures.classes;
    if (packet_class == static_cast<int>(PacketClass::response)) set_bit(response_vcs, number);
  }
  const int limit = figures.pool_flits - figures.pool_flits_reserved;
  std::vector<std::uint64_t> without(index(figures.pool_flits) + 1, ~std::uint64_t{0});
  for (int used = 0; used < limit; ++used) without[index(used)] = 0;
  for (int used = limit; used < limit + figures.pool_flits_for_responses; ++used) {
    without[index(used)] = ~response_vcs;
  }
  return without;
}

}  // namespace

FlitNetwork::FlitNetwork(const machine::Chip& chip, int noc, Endpoint& endpoint, std::uint64_t seed)
    : Network(chip, noc, endpoint),
      backoff_min_(chip.niu.backoff_cycles_min),
      backoff_max_(chip.niu.backoff_cycles_max),
      without_pool_(without_pool(chip.router)),
      pool_flits_per_vc_max_(chip.router.pool_flits_per_vc_max),
      routers_(index(torus_.nodes())),
      sources_(index(torus_.nodes())),
      sinks_(index(torus_.nodes())),
      wheel_(wheel_size(chip.router)),
      wheel_mask_(wheel_.size() - 1),
      flexible_routers_(torus_.nodes()),
      active_routers_(torus_.nodes()),
      active_sources_(torus_.nodes()),
      active_sinks_(torus_.nodes()),
      kept_tree_(index(torus_.nodes()) * 2, -1),
      path_sources_(index(torus_.nodes()) * kPorts * kVcsMax, -1),
      random_(seed, noc == 0 ? "noc 0" : "noc 1") {
  const std::size_t nodes = index(torus_.nodes());
  for (Slot& slot : wheel_) {
    for (List<Arrival>& list : slot.to_routers.lists) list.make_room(nodes * kPorts);
    for (List<Arrival>& list : slot.to_sinks.lists) list.make_room(nodes);
    slot.router_credits.make_room(nodes * kPorts);
    slot.source_credits.make_room(nodes);
  }
  moves_.make_room(nodes * kPorts + 1);
  followed_.make_room(nodes * kPorts + 1);
  fronts_.make_room(nodes * kPorts + 1);
  behind_.make_room(nodes * kPorts + 1);
  // In a cycle, an output VC is let go of by a multicast, or left for the other buddy's, at most
  // once each, and a port receives one header and sends one last flit.
  undecided_.make_room(nodes * kPorts * (2 * kVcsMax + 2) + 1);
  for (int node = 0; node < torus_.nodes(); ++node) {
    Router& router = routers_[index(node)];
    router.node = static_cast<std::int16_t>(node);
    router.x = static_cast<std::int16_t>(torus_.x_of(node));
    router.y = static_cast<std::int16_t>(torus_.y_of(node));
    for (const int output : {kX, kY}) {
      if (crosses_dateline(node, output)) set_bit(router.crosses_dateline, output);
    }
    connect(node, kX, torus_.right_of(node));
    connect(node, kY, torus_.below(node));
    links_of(node, kNiu).target = sources_[index(node)].link.target = Wire(node, kNiu * kVcsMax);
    links_of(node, kNiu).upstream = Wire(node, kFromNiu * kVcsMax);
  }
  fill_ways_out();
}

// Connects an output of a router to the input of the same direction of another.
void FlitNetwork::connect(int from, int port, int to) {
  links_of(from, port).target = Wire(to, port * kVcsMax);
  links_of(to, port).upstream = Wire(from, port * kVcsMax);
}

void FlitNetwork::fill_ways_out() {
  for (int number = 0; number < kPorts * kVcsMax; ++number) {
    for (int output = 0; output < kPorts; ++output) {
      for (const bool crosses : {false, true}) {
        const int vc = Network::next_vc(number / kVcsMax, number % kVcsMax, output, crosses);
        way_out(static_cast<unsigned>(number), output, crosses) =
            static_cast<std::uint8_t>(output * kVcsMax + vc);
      }
    }
  }
}

std::int64_t FlitNetwork::link_flits(int node, int port) const {
  return port == kFromNiu ? sources_[index(node)].link.flits
                          : routers_[index(node)].links[index(port)].flits;
}

int FlitNetwork::counted_flits(int node) const { return sources_[index(node)].counted_flits; }

}  // namespace towpath::noc
