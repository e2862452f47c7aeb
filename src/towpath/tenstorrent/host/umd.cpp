// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/host/umd.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <span>
#include <stdexcept>
#include <utility>

#include "towpath/machine/load.hpp"
#include "towpath/tenstorrent/host/host_cluster.hpp"

namespace tt::umd {

namespace {

using towpath::machine::Coordinate;
using towpath::machine::TileKind;
using towpath::pcie::HostLink;
using towpath::pcie::Mechanism;
using towpath::pcie::Ordering;
using towpath::pcie::Transfer;
using towpath::tenstorrent::HostCluster;

std::string variable_or(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

std::string chip_name() { return variable_or("TOWPATH_MACHINE", "blackhole"); }

ARCH arch_of(const towpath::machine::Chip& chip) {
  return chip.architecture == "blackhole" ? ARCH::BLACKHOLE : ARCH::WORMHOLE_B0;
}

std::shared_ptr<const towpath::machine::Host> host_of(const towpath::machine::Chip& chip) {
  const bool is_blackhole = arch_of(chip) == ARCH::BLACKHOLE;
  return towpath::machine::load_host(
      variable_or("TOWPATH_HOST", is_blackhole ? "blackhole-host" : "n300-xeon-host"));
}

Coordinate tile_of(const xy_pair& core) {
  return {static_cast<int>(core.x), static_cast<int>(core.y)};
}

Ordering ordering_of(std::uint64_t ordering) {
  switch (ordering) {
    case tlb_data::Relaxed: return Ordering::standard;
    case tlb_data::Strict: return Ordering::strict;
    case tlb_data::Posted: return Ordering::posted;
    default:
      throw std::invalid_argument(fmt::format("ordering is {}; it must be 0 to 2", ordering));
  }
}

CoreType type_of(TileKind kind) {
  switch (kind) {
    case TileKind::worker: return CoreType::TENSIX;
    case TileKind::dram: return CoreType::DRAM;
    case TileKind::ethernet: return CoreType::ETH;
    case TileKind::pcie: return CoreType::PCIE;
    case TileKind::arc: return CoreType::ARC;
    case TileKind::router_only: return CoreType::ROUTER_ONLY;
    case TileKind::harvested: break;
  }
  return CoreType::HARVESTED;
}

}  // namespace

class ClusterLink {
 public:
  ClusterLink(const std::shared_ptr<const towpath::machine::Chip>& chip, std::uint32_t channels)
      : cluster_(host_of(*chip), {chip},
                 {.link = {.host_memory_channels = static_cast<int>(channels)}}) {}

  const towpath::machine::Chip& chip(ChipId chip) const { return cluster_.chip(chip); }

  template <typename Calls>
  auto on(ChipId chip, Calls calls) {
    const towpath::Time begin = cluster_.now();
    auto result = cluster_.on_link(chip, std::move(calls));
    time_ += cluster_.now() - begin;
    return result;
  }
  // The time of all calls.
  towpath::Time time() const { return time_; }
  void wait(towpath::Time time) { cluster_.wait(time); }
  towpath::pcie::SysmemBuffer& buffer(ChipId chip, std::size_t number) {
    return cluster_.sysmem_buffer(chip, number);
  }
  void unmap(ChipId chip, std::size_t number) {
    on(chip, [number](HostLink& link) {
      link.unmap_sysmem_buffer(number);
      return true;
    });
  }

 private:
  HostCluster cluster_;
  towpath::Time time_;
};

std::vector<CoreCoord> SocDescriptor::get_cores(CoreType type) const {
  std::vector<CoreCoord> found;
  for (const CoreCoord& core : cores_) {
    if (core.core_type == type) found.push_back(core);
  }
  return found;
}

// --- memory of the host --------------------------------------------------------------------------

SysmemBuffer::~SysmemBuffer() {
  try {
    link_->unmap(chip_, number_);
  } catch (const std::exception& error) {
    std::cerr << "a buffer of the host stays mapped: " << error.what() << "\n";
  }
}

void SysmemBuffer::dma_write_to_device(std::size_t offset, std::size_t size, const xy_pair& core,
                                       std::uint64_t address) {
  link_->on(chip_, [&](HostLink& link) {
    return link.dma_write_to_device({number_, offset, size}, tile_of(core), address);
  });
}

void SysmemBuffer::dma_read_from_device(std::size_t offset, std::size_t size, const xy_pair& core,
                                        std::uint64_t address) {
  link_->on(chip_, [&](HostLink& link) {
    return link.dma_read_from_device({number_, offset, size}, tile_of(core), address);
  });
}

void* SysmemBuffer::get_buffer_va() const { return link_->buffer(chip_, number_).memory().data(); }

std::size_t SysmemBuffer::get_buffer_size() const {
  return link_->buffer(chip_, number_).memory().size();
}

std::unique_ptr<SysmemBuffer> SysmemManager::allocate_sysmem_buffer(std::size_t size, bool) {
  const std::size_t number =
      link_->on(chip_, [size](HostLink& link) { return link.allocate_sysmem_buffer(size); });
  return std::make_unique<SysmemBuffer>(link_, chip_, number);
}

std::unique_ptr<SysmemBuffer> SysmemManager::map_sysmem_buffer(void* memory, std::size_t size,
                                                               bool) {
  const std::span<std::byte> bytes(static_cast<std::byte*>(memory), size);
  const std::size_t number =
      link_->on(chip_, [bytes](HostLink& link) { return link.map_sysmem_buffer(bytes); });
  return std::make_unique<SysmemBuffer>(link_, chip_, number);
}

// --- chips ---------------------------------------------------------------------------------------

namespace {

std::vector<CoreCoord> cores_of(const towpath::machine::Chip& chip) {
  std::vector<CoreCoord> cores;
  const auto add = [&](Coordinate at, CoreType type) {
    cores.push_back({{static_cast<std::size_t>(at.x), static_cast<std::size_t>(at.y)}, type});
  };
  for (const auto& group : chip.dram_groups) {
    for (const Coordinate at : group) add(at, CoreType::DRAM);
  }
  for (const Coordinate at : chip.ethernet_cores) add(at, CoreType::ETH);
  for (int number = 0; number < chip.width * chip.height; ++number) {
    const Coordinate at = chip.coordinate_of(number);
    const TileKind kind = chip.tile(at).kind;
    if (kind != TileKind::dram && kind != TileKind::ethernet) add(at, type_of(kind));
  }
  return cores;
}

}  // namespace

Chip::Chip(std::shared_ptr<ClusterLink> link, ChipId chip)
    : sysmem_(link, chip), soc_(cores_of(link->chip(chip))) {}

Cluster::Cluster(const ClusterOptions& options)
    : link_(std::make_shared<ClusterLink>(towpath::machine::load_chip(chip_name()),
                                          options.num_host_mem_ch_per_mmio_device)),
      description_(arch_of(link_->chip(0))),
      chip_(std::make_unique<Chip>(link_, 0)) {}

double Cluster::simulated_time_ns() const { return static_cast<double>(link_->time().ps()) / 1e3; }

void Cluster::let_time_pass(double time_ns) { link_->wait(towpath::Time::from_ns(time_ns)); }

Chip* Cluster::get_chip(ChipId chip) {
  static_cast<void>(link_->chip(chip));  // throws if there is none
  return chip_.get();
}

void Cluster::write_to_device(const void* data, std::size_t size, ChipId chip,
                              const CoreCoord& core, std::uint64_t address) {
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(data), size);
  link_->on(chip,
            [&](HostLink& link) { return link.write_to_device(bytes, tile_of(core), address); });
}

void Cluster::read_from_device(void* to, ChipId chip, const CoreCoord& core, std::uint64_t address,
                               std::size_t size) {
  const std::span<std::byte> bytes(static_cast<std::byte*>(to), size);
  // The program's buffer begins where its allocator placed it, which decides about split loads.
  const towpath::pcie::TransferOptions options = {.misalignment_bytes =
                                                      reinterpret_cast<std::uintptr_t>(to) % 64};
  link_->on(chip, [&](HostLink& link) {
    return link.read_from_device(bytes, tile_of(core), address, options);
  });
}

void Cluster::dma_write_to_device(const void* data, std::size_t size, ChipId chip,
                                  const CoreCoord& core, std::uint64_t address) {
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(data), size);
  const Transfer moved = link_->on(chip, [&](HostLink& link) {
    return link.dma_write_to_device(bytes, tile_of(core), address);
  });
  if (moved.used != Mechanism::dma) report(moved.obstacle);
}

void Cluster::dma_read_from_device(void* to, std::size_t size, ChipId chip, const CoreCoord& core,
                                   std::uint64_t address) {
  const std::span<std::byte> bytes(static_cast<std::byte*>(to), size);
  const Transfer moved = link_->on(chip, [&](HostLink& link) {
    return link.dma_read_from_device(bytes, tile_of(core), address);
  });
  if (moved.used != Mechanism::dma) report(moved.obstacle);
}

void Cluster::noc_multicast_write(const void*, std::size_t, ChipId, const CoreCoord&,
                                  const CoreCoord&, std::uint64_t) {
  throw std::invalid_argument(
      "multicasts through a window are not modeled; write to each core of the rectangle");
}

bool PCIDevice::is_iommu_enabled() const {
  return host_of(*towpath::machine::load_chip(chip_name()))->memory.has_iommu;
}

void Cluster::configure_tlb(ChipId chip, const CoreCoord& core, std::size_t size,
                            std::uint64_t address, std::uint64_t ordering) {
  link_->on(chip, [&](HostLink& link) {
    return link.configure_tlb(tile_of(core), size, address, ordering_of(ordering));
  });
}

void Cluster::report(const std::string& obstacle) {
  if (is_reported_) return;
  is_reported_ = true;
  std::cerr << "the processor moves the data instead of the DMA engine: " << obstacle << "\n";
}

}  // namespace tt::umd
