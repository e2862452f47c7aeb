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
template <typename Body>
auto HostCluster::call(Body body) {
  auto result = std::make_shared<decltype(body())>();
  const bool is_over =
      run_process(simulation_, "host", [result, body = std::move(body)] { *result = body(); });
  TOWPATH_CHECK(is_over, "a call of the host waits forever: nothing is under way");
  return std::move(*result);
}

pcie::Transfer HostCluster::move(int chip, std::function<pcie::Transfer(pcie::HostLink&)> move) {
  return call([&of = link(chip), move = std::move(move)] { return move(of); });
}

pcie::WindowNumber HostCluster::configure_tlb(int chip, const pcie::Window& window) {
  pcie::HostLink& of = link(chip);
  return call([&] {
    return of.configure_tlb(window.tile, window.size_bytes, window.address, window.ordering,
                            window.mapping);
  });
}

pcie::Transfer HostCluster::write_to_device(std::span<const std::byte> data, int chip,
                                            Coordinate core, std::uint64_t address,
                                            const pcie::TransferOptions& options) {
  return move(chip, [=](auto& of) { return of.write_to_device(data, core, address, options); });
}

pcie::Transfer HostCluster::read_from_device(std::span<std::byte> to, int chip, Coordinate core,
                                             std::uint64_t address,
                                             const pcie::TransferOptions& options) {
  return move(chip, [=](auto& of) { return of.read_from_device(to, core, address, options); });
}

pcie::Transfer HostCluster::dma_write_to_device(std::span<const std::byte> data, int chip,
                                                Coordinate core, std::uint64_t address,
                                                const pcie::TransferOptions& options) {
  return move(chip, [=](auto& of) { return of.dma_write_to_device(data, core, address, options); });
}

pcie::Transfer HostCluster::dma_read_from_device(std::span<std::byte> to, int chip, Coordinate core,
                                                 std::uint64_t address,
                                                 const pcie::TransferOptions& options) {
  return move(chip, [=](auto& of) { return of.dma_read_from_device(to, core, address, options); });
}

void HostCluster::wait(Time time) {
  call([this, time] {
    simulation_.sleep(time);
    return true;
  });
}

std::size_t HostCluster::allocate_sysmem_buffer(int chip, std::uint64_t size_bytes) {
  return call([size_bytes, &of = link(chip)] { return of.allocate_sysmem_buffer(size_bytes); });
}

std::size_t HostCluster::map_sysmem_buffer(int chip, std::span<std::byte> memory) {
  return call([memory, &of = link(chip)] { return of.map_sysmem_buffer(memory); });
}

void HostCluster::unmap_sysmem_buffer(int chip, std::size_t buffer) {
  call([buffer, &of = link(chip)] {
    of.unmap_sysmem_buffer(buffer);
    return true;
  });
}

}  // namespace towpath::tenstorrent
