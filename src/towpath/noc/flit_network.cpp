// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/flit_network.hpp"

#include <algorithm>

#include "towpath/noc/router/deadlock_search.hpp"

namespace towpath::noc {

FlitNetwork::FlitNetwork(const machine::Chip& chip, int noc, Endpoint& endpoint, std::uint64_t seed)
    : Network(chip, noc),
      state_(chip, routing_, now_),
      outputs_(chip.router, state_),
      vc_allocator_(chip.router, state_, outputs_),
      inputs_(state_, vc_allocator_),
      switch_allocator_(chip.router, state_, outputs_),
      crossbar_(state_, inputs_, outputs_, vc_allocator_),
      reservation_(chip, state_, vc_allocator_, sim::Random(seed, noc == 0 ? "noc 0" : "noc 1")),
      injector_(chip, state_, outputs_.pool(), reservation_, endpoint),
      ejector_(chip, state_, endpoint) {}

void FlitNetwork::send(const Packet& packet) {
  check(packet);
  injector_.send(packet);
}

void FlitNetwork::send_multicast(const Packet& packet, const std::vector<int>& destinations) {
  check_multicast(packet, destinations);
  injector_.send_multicast(packet, destinations);
}

void FlitNetwork::step() {
  state_.links.begin_cycle(now_);
  LinkPipeline::Slot& arrived = state_.links.arrived();
  inputs_.headers_arrive(arrived.to_routers.headers().all());
  inputs_.flits_arrive(arrived.to_routers.others().all());
  ejector_.flits_arrive(arrived.to_nius);
  outputs_.credits_arrive(arrived.router_credits.all());
  injector_.credits_arrive(arrived.niu_credits.all());
  arrived.clear_links();
  reservation_.run([this](std::int32_t tree) { injector_.path_granted(tree); });
  ejector_.step();
  injector_.step();
  vc_allocator_.allocate(arrived.releases);
  arrived.releases.clear();
  switch_allocator_.allocate();
  crossbar_.traverse(switch_allocator_);
  inputs_.begin_followers();
  ++now_;
}

Cycle FlitNetwork::next_work() const {
  if (!state_.active_routers.empty() || !vc_allocator_.is_idle()) return now_;
  const Cycle next =
      std::min({injector_.next_work(), ejector_.next_work(), reservation_.next_work()});
  return next <= now_ ? now_ : std::min(next, state_.links.next_arrival(now_));
}

std::vector<std::string> FlitNetwork::deadlock_cycle() const {
  return noc::deadlock_cycle(state_, outputs_.pool());
}

}  // namespace towpath::noc
