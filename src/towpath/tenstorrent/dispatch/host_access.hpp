// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "towpath/machine/chip_cluster.hpp"
#include "towpath/pcie/host_link.hpp"
#include "towpath/pcie/network_memory.hpp"
#include "towpath/tenstorrent/dispatch/base_firmware.hpp"
#include "towpath/tenstorrent/dispatch/fast_dispatch.hpp"
#include "towpath/tenstorrent/dispatch/host_routes.hpp"

namespace towpath::tenstorrent {

class Device;
class Host;

// A host process's view of the chips: all their L1 and DRAM, by chip, tile and offset.
//
//   cluster.run_host("loader", [&](HostAccess& host) {
//     host.write(1, {{1, 1}, 0x1000}, bytes);
//     host.barrier();
//     host.read(1, {{1, 1}, 0x1000}, bytes);
//   });
//
// Chips on PCIe are accessed over the link of the cluster's host, as requests on their NoC, or
// instantly if the cluster names no host. Other chips are reached through the base firmware of
// Ethernet cores, a kilobyte at a time, four at once. The work of the host for that takes no
// time. Offsets and sizes are not restricted.
//
// Accesses of one process to one chip are carried out in order: a read sees the process's earlier
// writes. Any other order needs barrier(). A write may return before the bytes have arrived. They
// have arrived when barrier() returns, and when the process ends.
//
// Wrong: polling a word with only read(). On a chip on PCIe no time passes without a described
// host. Call sleep() in between.
class HostAccess {
 public:
  HostAccess(Host& host, std::string name) : host_(host), name_(std::move(name)) {}
  HostAccess(const HostAccess&) = delete;
  HostAccess& operator=(const HostAccess&) = delete;

  // Throw std::invalid_argument if the memory does not exist, is not reachable from the host, or
  // the written bytes belong to the base firmware.
  void write(int chip, const NocAddress& to, std::span<const std::byte> bytes);
  void read(int chip, const NocAddress& from, std::span<std::byte> bytes);
  // Waits until all writes of this process have arrived.
  void barrier();
  // Writes through the chip's dispatcher, after all earlier programs have ended. finish() waits
  // until that is done; barrier() does not. The offset must be a multiple of 16. Throws
  // std::invalid_argument without a described host, with slow dispatch, and like write().
  void enqueue_write(int chip, const NocAddress& to, std::span<const std::byte> bytes);
  // Waits until the dispatcher has done all work of this and other processes, and all earlier
  // programs have ended.
  void finish(int chip);
  // Host memory that kernels of a chip on PCIe reach through its PCIe tile, at noc_address. Throws
  // like HostLink::allocate_sysmem_buffer(), and without a described host.
  pcie::SysmemBuffer& allocate_sysmem_buffer(int chip, std::uint64_t size_bytes);
  // Lets simulated time pass.
  void sleep(Time time);
  // Waits until the first `programs` programs of a chip have ended.
  void wait_for_programs(int chip, std::size_t programs);

  // Launches a program through the chip's dispatcher. For Cluster.
  void launch(int chip, const Program& program);

  const std::string& name() const { return name_; }

 private:
  friend class Host;

  Host& host_;
  std::string name_;
  std::string doing_;  // "write of 64 bytes to offset 4096 of (1, 1) of chip 1"
  Time since_;
  bool is_waiting_ = false;
  bool waits_for_answer_ = false;
  bool is_over_ = false;
};

// The host of a cluster: its processes and their pending accesses. Created by Cluster.
class Host {
 public:
  Host(const machine::ChipCluster& cluster, const std::vector<std::unique_ptr<Device>>& devices);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  void start(std::string name, std::function<void(HostAccess&)> body);
  bool is_over() const;
  // True if every process has ended or waits for an answer.
  bool all_blocked() const;
  // Time at which the last process ended.
  Time over_at() const { return over_at_; }
  // Describes the call of each running process and the kernel that blocks it. Empty if all have
  // ended.
  std::string describe_waits() const;

 private:
  friend class HostAccess;

  struct Access {
    FirmwareCommand::Kind kind = FirmwareCommand::Kind::read;
    int chip = 0;
    NocAddress address;
  };
  // An unanswered command of a gateway.
  struct Pending {
    HostAccess* process = nullptr;  // null: the slot is free
    FirmwareCommand command;
    std::span<std::byte> to;  // read only
  };
  // An Ethernet core of a chip on PCIe, the start of routes to other chips.
  struct Gateway {
    Device* device = nullptr;
    machine::Coordinate core;
    std::uint32_t sequence = 0;
    std::array<Pending, kHostSlots> slots;
  };

  FastDispatch& dispatch(const HostAccess& process) const;
  void check(const HostAccess& process, const Access& access, std::uint64_t size_bytes) const;
  void begin(HostAccess& process, std::string doing) const;
  bool reaches_directly(int chip) const { return routes_.to(chip).links == 0; }
  void access_directly(HostAccess& process, const Access& access, std::span<const std::byte> from,
                       std::span<std::byte> to);
  Device& device(int chip) const { return *devices_[static_cast<std::size_t>(chip)]; }
  Gateway& gateway(int chip) { return gateways_.at(routes_.gateway(chip)); }
  // Submits at most one kilobyte. `from` is empty for a read, `to` for a write.
  void submit(HostAccess& process, const Access& access, std::span<const std::byte> from,
              std::span<std::byte> to);
  // Collects the answers that have arrived.
  static void take_answers(Gateway& gateway);
  static bool has_pending(const Gateway& gateway, const HostAccess& process);
  // Suspends the process until there may be an answer.
  void wait_for_answer(HostAccess& process, Gateway& gateway) const;
  void wait_for_answers(HostAccess& process, Gateway& gateway) const;
  std::string describe_unanswered(const HostAccess& process) const;
  std::string describe_hold_up(int chip) const;
  std::string describe_kernel(const EthernetTile& tile) const;

  struct PcieLink {
    PcieLink(Device& device, std::shared_ptr<const machine::Host> host);
    pcie::NetworkMemory memory;
    pcie::HostLink link;
  };

  const std::vector<std::unique_ptr<Device>>& devices_;
  std::map<int, PcieLink> links_;  // by chip, if the host is described
  HostRoutes routes_;
  std::vector<std::unique_ptr<BaseFirmware>> firmware_;
  std::unique_ptr<FastDispatch> dispatch_;  // null without a described host, or with slow dispatch
  std::map<machine::EthernetEnd, Gateway> gateways_;
  std::deque<HostAccess> processes_;
  Time over_at_;
};

}  // namespace towpath::tenstorrent
