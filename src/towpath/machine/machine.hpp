// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "towpath/base/protocol.hpp"
#include "towpath/base/units.hpp"

// A described machine: devices joined by directed links, and what a GPU's thread block costs.
//
// MachineBuilder takes the description apart from the run: it checks every name and number and
// hands out an immutable Machine. Ranks are the devices of kind gpu, in the order they were added.
// The YAML side, with units, bounds and sources, is python/towpath/specs/machine_spec.py.

namespace towpath::machine {

enum class DeviceKind : std::uint8_t { gpu, nvswitch, nic, network_switch, pcie_bridge, cpu };
enum class LinkKind : std::uint8_t { nvlink, pcie, network, socket };

struct Device {
  std::string name;
  DeviceKind kind = DeviceKind::gpu;
  int host = 0;           // which server it sits in; -1 for the network between servers
  bool forwards = false;  // whether traffic between two others may pass through
};

// One direction of a wire. A duplex wire is two links.
struct Link {
  int from = 0;
  int to = 0;
  LinkKind kind = LinkKind::nvlink;
  Rate rate;
  Time latency;           // head of a message in to head out
  Time message_overhead;  // time the link is held per message, besides its bytes (NIC rate)
};

// What moving data costs a thread block of a GPU under one protocol.
struct ProtocolCost {
  Rate block_rate;        // payload that one thread block reads, reduces and stores per second
  Time send_overhead;     // to start one transfer
  Time receive_overhead;  // from the signal's arrival to its reader going on
  bool fences = false;    // the flag follows only when all stores are acknowledged
  Rate adapter_rate;      // payload a NIC sends per second where a proxy handles it piecemeal;
                          // zero: its link's rate
};

struct GpuCost {
  Time launch;                                    // from the host's call to the first step
  std::array<ProtocolCost, kProtocols> protocol;  // indexed by Protocol
};

// Immutable once built; shared by every simulation on it.
class Machine {
 public:
  const std::string& name() const { return name_; }
  int ranks() const { return static_cast<int>(rank_device_.size()); }
  const std::vector<Device>& devices() const { return devices_; }
  const std::vector<Link>& links() const { return links_; }
  const GpuCost& gpu() const { return gpu_; }
  int device_of_rank(int rank) const { return rank_device_[static_cast<std::size_t>(rank)]; }
  int host_of_rank(int rank) const;

  // The links from one rank's device to another's: least latency, then fewest links, then, from
  // the last link backwards, the lowest link numbers. Only devices that forward are passed through.
  // A rank's route to itself is empty. Throws std::invalid_argument naming both when no path
  // exists. Every call searches the machine anew; whoever asks often keeps the answer.
  std::vector<int> route(int from_rank, int to_rank) const;

 private:
  int checked_device_of_rank(int rank) const;
  // Per device the last link of the best path from `source`, -1 where there is none. Stops early
  // once `target` is settled.
  std::vector<int> last_links(int source, int target) const;

  friend class MachineBuilder;
  std::string name_;
  std::vector<Device> devices_;
  std::vector<Link> links_;
  std::vector<std::vector<int>> links_from_;  // per device, outgoing link numbers
  std::vector<int> rank_device_;
  GpuCost gpu_;
};

class MachineBuilder {
 public:
  explicit MachineBuilder(std::string name);

  // Returns the device's number. Throws std::invalid_argument on a name already taken.
  int add_device(Device device);

  // Adds one direction. Throws std::invalid_argument on an unknown end, a link from a device to
  // itself, a rate that is not positive or a negative time.
  void add_link(const Link& link);

  // Throws std::invalid_argument on a rate that is not positive or a negative time.
  void set_gpu_cost(const GpuCost& cost);

  // Throws std::invalid_argument when there is no GPU, when among several there is one that no
  // other can reach, or when no GPU cost was set. The builder is used up afterwards.
  std::shared_ptr<const Machine> build() &&;

 private:
  void check_every_gpu_is_reached() const;

  Machine machine_;
  std::unordered_map<std::string, int> number_of_name_;
  bool has_gpu_cost_ = false;
};

}  // namespace towpath::machine
