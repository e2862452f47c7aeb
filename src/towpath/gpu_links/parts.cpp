// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu_links/parts.hpp"

#include <algorithm>
#include <utility>

#include "towpath/base/invariant.hpp"

namespace towpath::gpu_links {

HostParts cut_between_hosts(const machine::Machine& machine, std::size_t most) {
  int hosts = 0;
  for (const machine::Device& device : machine.devices()) hosts = std::max(hosts, device.host + 1);
  HostParts cut{std::min(static_cast<std::size_t>(hosts), most), {}, Time::max()};
  std::size_t switches = 0;
  for (const machine::Device& device : machine.devices()) {
    const std::size_t part = device.host < 0 ? switches++ % cut.count
                                             : static_cast<std::size_t>(device.host) * cut.count /
                                                   static_cast<std::size_t>(hosts);
    cut.of_device.push_back(static_cast<std::uint32_t>(part));
  }
  for (const machine::Link& link : machine.links()) {
    const auto part = [&](int device) { return cut.of_device[static_cast<std::size_t>(device)]; };
    if (part(link.from) != part(link.to)) cut.lookahead = std::min(cut.lookahead, link.latency);
  }
  if (cut.count < 2 || cut.lookahead == Time() || cut.lookahead == Time::max()) return {};
  return cut;
}

Parts::Parts(sim::SimulationGroup& group, HostParts cut) : of_device(std::move(cut.of_device)) {
  TOWPATH_CHECK(group.partitions() == cut.count, "{} parts are simulated by {}", cut.count,
                group.partitions());
  for (std::size_t i = 0; i < cut.count; ++i) simulations.push_back(&group[i]);
}

}  // namespace towpath::gpu_links
