// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/core/ethernet_tile.hpp"

#include <fmt/format.h>

#include <utility>

namespace towpath::tenstorrent {

namespace {

// Sum of all counters of a NIU that software on its core may wait for. Each counter only grows, so
// the sum changes when any of them does.
std::uint32_t answers(const noc::NiuCounters& counters) {
  std::uint32_t started = counters.reads_issued + counters.writes_issued +
                          counters.posted_writes_issued + counters.atomics_issued;
  for (const std::uint32_t packets : counters.packets_to_start) started -= packets;
  return started + counters.read_responses_received + counters.writes_sent +
         counters.write_acks_received + counters.posted_writes_sent +
         counters.atomic_responses_received;
}

}  // namespace

EthernetTile::EthernetTile(noc::ChipNetwork& network, machine::EthernetEnd end,
                           FrameObserver* observer)
    : network_(network),
      end_(end),
      core_(network.chip().ethernet_cores[static_cast<std::size_t>(end.channel)]),
      observer_(observer),
      port_(network.simulation(), network.chip().ethernet, *this,
            fmt::format("Ethernet core ({}, {}) of chip {}", core_.x, core_.y, end.chip)) {
  port_.set_listener(&EthernetTile::on_port_change, this);
}

void EthernetTile::set_firmware_running(bool is_running) {
  is_firmware_running_ = is_running;
  if (is_running) port_.run_routing();
  if (base_firmware_ != nullptr) base_firmware_->wake();
}

void EthernetTile::on_port_change(void* self) {
  auto& tile = *static_cast<EthernetTile*>(self);
  ++tile.port_changes_;
  if (tile.is_firmware_running_ && tile.needs_training()) tile.port_.run_routing();
  tile.wake_kernel();
}

void EthernetTile::wake_kernel() {
  for (sim::Process* process : std::exchange(waiting_, {})) network_.simulation().wake(*process);
}

std::uint64_t EthernetTile::changes() const {
  return network_.writes_to(core_) + port_changes_ + answers(network_.counters(0, core_)) +
         answers(network_.counters(1, core_));
}

void EthernetTile::wake_on_change(sim::Process& process) {
  waiting_.push_back(&process);
  network_.wake_on_write(core_, 0, process, size_bytes());
  for (int noc = 0; noc < 2; ++noc) {
    network_.wake_when(noc, core_,
                       {[](const noc::NiuCounters& counters, int before) {
                          return static_cast<int>(answers(counters)) != before;
                        },
                        static_cast<int>(answers(network_.counters(noc, core_)))},
                       process);
  }
}

void EthernetTile::stop_waking(const sim::Process& process) {
  std::erase(waiting_, &process);
  network_.stop_waking(core_, process);
}

void EthernetTile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (observer_ != nullptr) observer_->arriving(end_, offset, bytes);
  network_.deliver(core_, offset, bytes);
}

// See eth_write_remote_reg().
void EthernetTile::write_register(std::uint64_t address, std::uint32_t value) {
  const bool is_counter = address >= kCountersBase &&
                          address < kCountersBase + kCountersMax * kCounterStride &&
                          address % kCounterStride == 0;
  if (!is_counter) return;
  counters_[address] += value;
  ++port_changes_;
  wake_kernel();
}

std::uint32_t EthernetTile::counter(std::uint64_t address) const {
  const auto found = counters_.find(address);
  return found == counters_.end() ? 0 : found->second;
}

}  // namespace towpath::tenstorrent
