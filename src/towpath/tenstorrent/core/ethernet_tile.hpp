// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "towpath/ethernet/link.hpp"
#include "towpath/ethernet/port.hpp"
#include "towpath/machine/chip_cluster.hpp"
#include "towpath/noc/chip_network.hpp"
#include "towpath/tenstorrent/core/core_observer.hpp"

// An Ethernet core's hardware: its port with its L1, and the owner of the RISC-V, which is the base
// firmware or a kernel. The firmware trains a link that is down. While a kernel runs, this has to
// wait until the kernel calls run_routing().

namespace towpath::tenstorrent {

// Firmware that runs on the core if no kernel does, and for a turn when a kernel yields.
class CoreFirmware {
 public:
  virtual ~CoreFirmware() = default;
  // True if it would have work if it owned the core.
  virtual bool has_work() const = 0;
  // For the kernel that owns the core, or takes it: the firmware polls once, and the call returns
  // when that is done. The second call returns when the current poll is finished.
  virtual void take_turn() = 0;
  virtual void finish_look() = 0;
  // The firmware may have the core now.
  virtual void wake() = 0;
};

class EthernetTile final : private ethernet::TileMemory {
 public:
  // `observer` may be null.
  EthernetTile(noc::ChipNetwork& network, machine::EthernetEnd end, FrameObserver* observer);
  EthernetTile(const EthernetTile&) = delete;
  EthernetTile& operator=(const EthernetTile&) = delete;

  ethernet::Port& port() { return port_; }
  const ethernet::Port& port() const { return port_; }
  machine::EthernetEnd end() const { return end_; }
  machine::Coordinate core() const { return core_; }
  // "Ethernet core (9, 0) of chip 0"
  const std::string& name() const { return port_.name(); }

  bool is_firmware_running() const { return is_firmware_running_; }
  void set_firmware_running(bool is_running);
  // True if the base firmware has work: a link that is down and not yet marked as ready to train at
  // this end, or data to carry for the host.
  bool needs_firmware() const {
    return needs_training() || (base_firmware_ != nullptr && base_firmware_->has_work());
  }
  // Null if the core does not serve the host.
  CoreFirmware* base_firmware() const { return base_firmware_; }
  void set_base_firmware(CoreFirmware* firmware) { base_firmware_ = firmware; }

  // Counters that register writes of the far end add to: the registers of NoC streams that have
  // free space in them. Others have no effect. Source: tt-metal, noc_overlay_parameters.h.
  static constexpr std::uint64_t kCountersBase = 0xffb40000;
  static constexpr std::uint64_t kCounterStride = 0x1000;
  static constexpr std::uint64_t kCountersMax = 64;
  std::uint32_t counter(std::uint64_t address) const;

  // A number that changes after any event that software on the core could observe: a write to its
  // L1, a change of a queue or of the link, an answer over the NoC.
  std::uint64_t changes() const;
  // Wakes the process once, at the next change that concerns the port.
  void wake_on_port_change(sim::Process& process) { waiting_.push_back(&process); }
  // Wakes the process once, at the next change of any kind.
  void wake_on_change(sim::Process& process);
  void stop_waking(const sim::Process& process);
  // Announces new work for the base firmware: the kernel that owns the core rechecks its wait.
  void wake_kernel();

 private:
  std::uint64_t size_bytes() const override { return network_.chip().ethernet_l1_bytes; }
  void read(std::uint64_t offset, std::span<std::byte> to) const override {
    network_.load(core_, offset, to);
  }
  void write(std::uint64_t offset, std::span<const std::byte> bytes) override;
  void write_register(std::uint64_t address, std::uint32_t value) override;
  // Sources are not locked: the monitor of hazards determines which bytes software may change. The
  // hardware releases a source no later than that, unless acknowledgments were lost: bytes that are
  // then sent again are not written again.
  bool needs_training() const {
    return port_.is_connected() && !port_.is_link_up() && !port_.has_run_routing();
  }
  static void on_port_change(void* self);

  noc::ChipNetwork& network_;
  machine::EthernetEnd end_;
  machine::Coordinate core_;
  FrameObserver* observer_;
  CoreFirmware* base_firmware_ = nullptr;
  bool is_firmware_running_ = true;
  std::uint64_t port_changes_ = 0;
  std::vector<sim::Process*> waiting_;
  std::map<std::uint64_t, std::uint32_t> counters_;  // by address
  ethernet::Port port_;
};

}  // namespace towpath::tenstorrent
