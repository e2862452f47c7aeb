// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "towpath/machine/chip_cluster.hpp"
#include "towpath/noc/chip_network.hpp"
#include "towpath/tenstorrent/core/ethernet_tile.hpp"
#include "towpath/tenstorrent/device/program.hpp"
#include "towpath/tenstorrent/hazards/allocation.hpp"
#include "towpath/tenstorrent/hazards/hazard_monitor.hpp"

namespace towpath::tenstorrent {

// One chip of a cluster: its networks, Ethernet cores, and programs. Programs run in order, each
// after the last kernel of the previous one. Created by Cluster.
class Device {
 public:
  // `monitor` may be null.
  Device(sim::Simulation& simulation, const machine::ChipCluster& cluster, int chip,
         const RunOptions& options, HazardMonitor* monitor);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int id() const { return id_; }
  const machine::Chip& chip() const { return network_.chip(); }
  noc::ChipNetwork& network() { return network_; }
  const noc::ChipNetwork& network() const { return network_; }
  noc::Memory& memory(machine::Coordinate tile) { return network_.memory(tile); }

  // Ethernet cores with a link, in order. `skip_reserved` omits links reserved for the dispatcher.
  std::vector<LogicalCore> get_active_ethernet_cores(bool skip_reserved) const;
  // Chip and core at the far end. Throws std::invalid_argument if there is none.
  std::pair<int, LogicalCore> get_connected_ethernet_core(LogicalCore core) const;
  // Tile of an Ethernet core. Throws std::invalid_argument if there is none.
  machine::Coordinate ethernet_core(LogicalCore core) const;
  EthernetTile& ethernet_tile(LogicalCore core);
  bool is_reserved(LogicalCore core) const;

  // Declares a buffer for the hazard checks of its lifetime. Throws std::invalid_argument if a tile
  // does not have these bytes.
  void allocate(const Allocation& allocation);

  // --- for programs and their cluster -----------------------------------------------------------
  const RunOptions& options() const { return options_; }
  HazardMonitor* monitor() const { return monitor_; }
  bool is_only_one() const { return cluster_.chips.size() == 1; }
  // Returns its number.
  int enqueue(Program& program);
  std::size_t programs() const { return programs_.size(); }
  const Program& program(std::size_t number) const { return *programs_[number]; }
  void start();
  void program_over();
  bool is_over() const { return next_ == programs_.size(); }
  std::size_t programs_over() const { return next_; }
  // Wakes the process once, at the end of the next program.
  void wake_at_end(sim::Process& process) { waiting_.push_back(&process); }
  // Start of a program's L1 on Ethernet cores, after the L1 of resident kernels.
  std::uint64_t free_ethernet_l1() const;
  // Time at which the last kernel ended.
  Time over_at() const { return over_at_; }
  // The kernel that stays on an Ethernet core during later programs. Null if there is none.
  const Program::Entry* resident_at(machine::Coordinate core) const;
  // True if a kernel of any program is on the core.
  bool is_used(machine::Coordinate core) const;
  // The dispatcher's count of cores whose kernels of a program have all ended. None
  // without fast dispatch over a host.
  void set_dispatcher(const NocAddress& ended) { dispatcher_ = ended; }
  const std::optional<NocAddress>& dispatcher() const { return dispatcher_; }
  // The running program. Null after the last one.
  const Program* current() const { return is_over() ? nullptr : programs_[next_]; }
  std::vector<std::unique_ptr<EthernetTile>>& ethernet_tiles() { return tiles_; }
  std::int64_t flit_hops() const;

 private:
  void start_next();
  void advance();

  const machine::ChipCluster& cluster_;
  int id_;
  const RunOptions& options_;
  HazardMonitor* monitor_;
  noc::ChipNetwork network_;
  std::vector<std::unique_ptr<EthernetTile>> tiles_;  // by channel
  std::vector<Program*> programs_;
  std::size_t next_ = 0;
  std::vector<sim::Process*> waiting_;
  std::optional<NocAddress> dispatcher_;
  Time over_at_;
};

}  // namespace towpath::tenstorrent
