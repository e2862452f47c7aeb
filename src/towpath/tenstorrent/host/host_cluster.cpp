// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/host/host_cluster.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "towpath/base/invariant.hpp"
#include "towpath/pcie/network_memory.hpp"
#include "towpath/sim/process_call.hpp"

namespace towpath::tenstorrent {

using machine::Coordinate;
using machine::TileKind;

struct HostCluster::Slot {
  Slot(sim::Simulation& simulation, const std::shared_ptr<const machine::Host>& host,
       const std::shared_ptr<const machine::Chip>& chip, const pcie::HostLink::Options& options)
      : network(simulation, chip, {.carries_data = options.carries_data}),
        memories(network),
        link(simulation, host, chip, memories, options) {}
  noc::ChipNetwork network;
  pcie::NetworkMemory memories;
  pcie::HostLink link;
  bool shares_noc = false;
};

HostCluster::HostCluster(std::shared_ptr<const machine::Host> host,
                         const std::vector<std::shared_ptr<const machine::Chip>>& chips,
                         const Options& options)
    : simulation_(options.seed) {
  for (const auto& chip : chips) {
    slots_.push_back(std::make_unique<Slot>(simulation_, host, chip, options.link));
  }
}

HostCluster::~HostCluster() = default;

HostCluster::Slot& HostCluster::slot(int chip) const {
  if (chip < 0 || static_cast<std::size_t>(chip) >= slots_.size()) {
    throw std::invalid_argument(slots_.empty()
                                    ? fmt::format("there is no chip {}: the host has none", chip)
                                    : fmt::format("there is no chip {}; the host has chips 0 to {}",
                                                  chip, slots_.size() - 1));
  }
  return *slots_[static_cast<std::size_t>(chip)];
}

pcie::HostLink& HostCluster::link(int chip) const { return slot(chip).link; }

noc::Memory& HostCluster::memory(int chip, Coordinate tile) {
  return slot(chip).network.memory(tile);
}

noc::ChipNetwork& HostCluster::share_noc(int chip) {
  Slot& at = slot(chip);
  if (!at.shares_noc) {
    flush();
    at.link.share_noc(at.network);
    at.shares_noc = true;
  }
  return at.network;
}

Coordinate HostCluster::core(int chip, TileKind kind, int number) const {
  const machine::Chip& of = link(chip).chip();
  std::vector<Coordinate> cores;
  for (int tile = 0; tile < of.width * of.height; ++tile) {
    const Coordinate at = of.coordinate_of(tile);
    if (of.tile(at).kind == kind) cores.push_back(at);
  }
  if (kind == TileKind::ethernet) cores = of.ethernet_cores;
  if (number >= 0 && static_cast<std::size_t>(number) < cores.size()) {
    return cores[static_cast<std::size_t>(number)];
  }
  const std::string left =
      cores.empty() ? "it has none" : fmt::format("it has 0 to {}", cores.size() - 1);
  const std::uint64_t harvested = kind == TileKind::ethernet ? of.harvested_ethernet
                                  : kind == TileKind::dram   ? of.harvested_dram
                                                             : 0;
  const std::string mask =
      harvested != 0 ? fmt::format(" (harvest mask {:#x})", harvested) : std::string();
  throw std::invalid_argument(fmt::format("chip {} ({}) has no {} core {}; {} left{}", chip,
                                          of.name, machine::name_of(kind), number, left, mask));
}

// The link's calls only wait for times.
void HostCluster::run(std::function<void()> body) {
  const bool is_over = run_process(simulation_, "host", std::move(body));
  TOWPATH_CHECK(is_over, "a call of the host waits forever: nothing is under way");
}

}  // namespace towpath::tenstorrent
