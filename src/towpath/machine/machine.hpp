// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "towpath/base/protocol.hpp"
#include "towpath/base/units.hpp"
#include "towpath/machine/adjacency.hpp"
#include "towpath/machine/kernel_cost.hpp"

// A described machine: devices joined by directed links, and what a GPU's thread block costs.
//
// MachineBuilder checks every name and number and returns an immutable Machine, which only answers.
// Ranks are the devices of kind gpu, in the order in which they were added. Every value comes from
// a spec (python/towpath/specs/machine_spec.py), with its source.

namespace towpath::machine {

enum class DeviceKind : std::uint8_t { gpu, nvswitch, nic, network_switch, pcie_bridge, cpu };
enum class LinkKind : std::uint8_t { nvlink, pcie, network, socket };
// Their names in descriptions and in Python.
inline constexpr std::pair<const char*, LinkKind> kLinkKinds[] = {
    {"nvlink", LinkKind::nvlink},
    {"pcie", LinkKind::pcie},
    {"network", LinkKind::network},
    {"socket", LinkKind::socket},
};

struct Device {
  std::string name;
  DeviceKind kind = DeviceKind::gpu;
  int host = 0;           // number of its server; -1 for the network between servers
  bool forwards = false;  // whether traffic between two other devices may pass through
};

// One direction of a wire. A duplex wire is two links.
struct Link {
  int from = 0;
  int to = 0;
  LinkKind kind = LinkKind::nvlink;
  Rate rate;
  Time latency;
  Time message_overhead;
};

// Whether all but their ends is the same.
inline bool is_like(const Link& a, const Link& b) {
  return a.kind == b.kind && a.rate == b.rate && a.latency == b.latency &&
         a.message_overhead == b.message_overhead;
}

// What moving data costs a thread block of a GPU under one protocol.
struct ProtocolCost {
  Rate block_rate;
  Time send_overhead;
  Time receive_overhead;
  bool fences = false;
  Rate adapter_rate;
  Time adapter_overhead{};
  Rate copy_rate{};
  Rate forward_rate{};
  Time start_overhead{};
};

struct GpuCost {
  Time launch;
  bool in_switch_reduction = false;
  Rate in_switch_rate{};
  Time in_switch_staging{};
  std::array<ProtocolCost, kProtocols> protocol;  // indexed by Protocol
  std::optional<KernelCost> kernel{};             // none: no kernel runs on the machine
};

// Immutable once built; shared by every simulation on it.
class Machine {
 public:
  const std::string& name() const { return name_; }
  int ranks() const { return static_cast<int>(rank_device_.size()); }
  const std::vector<Device>& devices() const { return devices_; }
  const std::vector<Link>& links() const { return links_; }
  // Of every GPU, but for those of hosts with a cost of their own.
  const GpuCost& gpu() const { return gpu_; }
  const GpuCost& gpu_of_host(int host) const {
    const auto found = gpu_of_host_.find(host);
    return found == gpu_of_host_.end() ? gpu_ : found->second;
  }
  const GpuCost& gpu_of_rank(int rank) const {
    return gpu_of_host_.empty() ? gpu_ : gpu_of_host(host_of_rank(rank));
  }
  int device_of_rank(int rank) const { return rank_device_[static_cast<std::size_t>(rank)]; }
  int host_of_rank(int rank) const;

  // The links from one rank's device to another's: least latency, then fewest links. Among equals,
  // from the last link backwards, the lowest link number counts, but between network switches a
  // hash of both ranks, the link and the seed (ECMP). Only devices that forward are passed through.
  // A rank's route to itself is empty. Throws std::invalid_argument that names both ranks if there
  // is no path. Every call searches anew; for many see RouteSearch.
  std::vector<int> route(int from_rank, int to_rank) const;

  // Whether a route between these ranks takes a link rather than another that is as good.
  bool prefers(int link, int other, int from_rank, int to_rank) const {
    return is_preferred(link, other, device_of_rank(from_rank), device_of_rank(to_rank));
  }

  // Numbers of the links that leave a device, or come to it, in the order in which they were added.
  std::span<const int> links_from(int device) const { return links_from_.of(device); }
  std::span<const int> links_to(int device) const { return links_to_.of(device); }
  // Whether traffic between two other devices that forward may pass through.
  bool is_junction(int device) const { return is_junction_[static_cast<std::size_t>(device)]; }
  // Of a device that forwards, the links to and from junctions; where it is none itself, to and
  // from all that forward.
  std::span<const int> passages_from(int device) const { return passages_from_.of(device); }
  std::span<const int> passages_to(int device) const { return passages_to_.of(device); }
  // Whether some hosts have GPUs of a cost of their own.
  bool has_several_costs() const { return !gpu_of_host_.empty(); }

 private:
  int checked_device_of_rank(int rank) const;
  // Whether a route from source to target prefers a link to another that is as good.
  bool is_preferred(int link, int other, int source, int target) const;

  friend class MachineBuilder;
  friend class RouteSearch;
  std::string name_;
  std::vector<Device> devices_;
  std::vector<Link> links_;
  Adjacency links_from_;
  Adjacency links_to_;
  std::vector<bool> is_junction_;  // per device
  Adjacency passages_from_;
  Adjacency passages_to_;
  std::vector<int> rank_device_;
  GpuCost gpu_;
  std::map<int, GpuCost> gpu_of_host_;  // where hosts are of different kinds
  std::uint64_t hash_seed_ = 0;
};

class MachineBuilder {
 public:
  explicit MachineBuilder(std::string name);

  // Returns the device's number. Throws std::invalid_argument on a name already taken.
  int add_device(Device device);

  // Adds one direction. Throws DescriptionError on an unknown end, a link from a device to itself,
  // a rate that is not positive or a negative time.
  void add_link(const Link& link);

  // Throws DescriptionError on a cost out of its bounds.
  void set_gpu_cost(const GpuCost& cost);
  // For the GPUs of one host, where hosts are of different kinds. Throws likewise.
  void set_gpu_cost_of_host(int host, const GpuCost& cost);

  // What the choice among equal paths between network switches depends on besides their ends.
  void set_hash_seed(std::uint64_t seed) { machine_.hash_seed_ = seed; }

  // Throws std::invalid_argument if there is no GPU, if one of several cannot be reached by any
  // other, or if no GPU cost was set. The builder must not be used afterwards.
  std::shared_ptr<const Machine> build() &&;

 private:
  void place(const Link& link);
  void check(const GpuCost& cost) const;
  void check_every_gpu_is_reached() const;
  void join_links();
  void find_junctions();

  bool take_name(const std::string& name);

  Machine machine_;
  // Numbers of devices at places that their names tell, some of them free: a map from names to
  // numbers would be as large as all devices.
  std::vector<int> by_name_;
  bool has_gpu_cost_ = false;
  std::optional<Link> checked_;  // the last link whose figures were checked
};

}  // namespace towpath::machine
