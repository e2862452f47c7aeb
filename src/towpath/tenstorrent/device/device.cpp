// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/device/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace towpath::tenstorrent {

Device::Device(sim::Simulation& simulation, const machine::ChipCluster& cluster, int chip,
               const RunOptions& options, HazardMonitor* monitor)
    : cluster_(cluster),
      id_(chip),
      options_(options),
      monitor_(monitor),
      network_(simulation, cluster.chips[static_cast<std::size_t>(chip)].chip,
               {.carries_data = options.carries_data,
                .stores_dram = options.stores_dram,
                .records_requests = options.records_requests,
                .checks_sources = true,
                .model = options.network}) {
  if (monitor_ != nullptr) monitor_->records.add(network_);
  const int channels = static_cast<int>(network_.chip().ethernet_cores.size());
  for (int channel = 0; channel < channels; ++channel) {
    tiles_.push_back(
        std::make_unique<EthernetTile>(network_, machine::EthernetEnd{chip, channel}, monitor_));
  }
}

std::vector<LogicalCore> Device::get_active_ethernet_cores(bool skip_reserved) const {
  std::vector<LogicalCore> cores;
  for (const int channel : cluster_.active_channels(id_, !skip_reserved)) {
    cores.push_back({0, channel});
  }
  return cores;
}

machine::Coordinate Device::ethernet_core(LogicalCore core) const {
  const std::vector<machine::Coordinate>& cores = chip().ethernet_cores;
  if (core.x != 0 || core.y < 0 || static_cast<std::size_t>(core.y) >= cores.size()) {
    throw std::invalid_argument(
        fmt::format("chip {} has no Ethernet core ({}, {}); it has {}", id_, core.x, core.y,
                    cores.empty() ? "none" : fmt::format("(0, 0) to (0, {})", cores.size() - 1)));
  }
  return cores[static_cast<std::size_t>(core.y)];
}

EthernetTile& Device::ethernet_tile(LogicalCore core) {
  static_cast<void>(ethernet_core(core));  // for its check
  return *tiles_[static_cast<std::size_t>(core.y)];
}

bool Device::is_reserved(LogicalCore core) const {
  const auto link = cluster_.link_at({id_, core.y});
  return link && cluster_.links[*link].is_reserved;
}

std::pair<int, LogicalCore> Device::get_connected_ethernet_core(LogicalCore core) const {
  static_cast<void>(ethernet_core(core));  // for its check
  const auto other = cluster_.connected({id_, core.y});
  if (!other) {
    throw std::invalid_argument(
        fmt::format("Ethernet core ({}, {}) of chip {} has no link", core.x, core.y, id_));
  }
  return {other->chip, {0, other->channel}};
}

const Program::Entry* Device::resident_at(machine::Coordinate core) const {
  for (const Program* program : programs_) {
    for (const Program::Entry& entry : program->kernels()) {
      if (entry.config.is_resident && entry.config.core == core) return &entry;
    }
  }
  return nullptr;
}

bool Device::is_used(machine::Coordinate core) const {
  return std::ranges::any_of(programs_, [core](const Program* program) {
    return std::ranges::any_of(program->kernels(), [core](const Program::Entry& entry) {
      return entry.config.core == core;
    });
  });
}

int Device::enqueue(Program& program) {
  programs_.push_back(&program);
  return static_cast<int>(programs_.size()) - 1;
}

std::uint64_t Device::free_ethernet_l1() const {
  std::uint64_t offset = ethernet_memory_map::kAllocatedBase;
  for (const Program* program : programs_) offset = std::max(offset, program->resident_l1_end());
  return offset;
}

void Device::allocate(const Allocation& allocation) {
  for (const noc::Address& place : allocation.places) {
    const std::uint64_t size_bytes = network_.memory(place.tile).size_bytes();
    if (place.offset <= size_bytes && allocation.size_bytes <= size_bytes - place.offset) continue;
    throw std::invalid_argument(
        fmt::format("buffer '{}' of {} bytes starts at offset {} of tile ({}, {}) of chip {}, "
                    "whose memory has {} bytes",
                    allocation.name, allocation.size_bytes, place.offset, place.tile.x,
                    place.tile.y, id_, size_bytes));
  }
  if (monitor_ != nullptr) monitor_->buffers.add(id_, allocation);
}

void Device::start() {
  if (monitor_ != nullptr) {
    monitor_->buffers.programs_over(id_, 0);
    for (const Program* program : programs_) program->declare_words(*monitor_);
  }
  start_next();
}

void Device::start_next() {
  while (!is_over()) {
    programs_[next_]->start();
    if (programs_[next_]->is_running()) return;
    advance();  // does not wait for a kernel
  }
}

void Device::advance() {
  ++next_;
  for (sim::Process* process : std::exchange(waiting_, {})) network_.simulation().wake(*process);
  if (monitor_ != nullptr) monitor_->buffers.programs_over(id_, static_cast<int>(next_));
}

void Device::program_over() {
  over_at_ = network_.simulation().now();
  advance();
  start_next();
}

std::int64_t Device::flit_hops() const {
  return network_.network(0).flit_hops() + network_.network(1).flit_hops();
}

}  // namespace towpath::tenstorrent
