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

// A described machine: devices connected by directed links, and the costs of a GPU's thread block.
//
// MachineBuilder checks every name and number and returns an immutable Machine. Ranks are the
// devices of kind gpu in insertion order. Every value comes from a spec
// (python/towpath/specs/machine_spec.py), with its source.

namespace towpath::machine {

enum class DeviceKind : std::uint8_t { gpu, nvswitch, nic, network_switch, pcie_bridge, cpu };
enum class LinkKind : std::uint8_t { nvlink, pcie, network, socket };
// Names in descriptions and in Python.
inline constexpr std::pair<const char*, LinkKind> kLinkKinds[] = {
    {"nvlink", LinkKind::nvlink},
    {"pcie", LinkKind::pcie},
    {"network", LinkKind::network},
    {"socket", LinkKind::socket},
};

struct Device {
  std::string name;
  DeviceKind kind = DeviceKind::gpu;
  int host = 0;           // server number; -1 for the network between servers
  bool forwards = false;  // whether traffic between other devices may pass through
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

// Equal except for their ends.
inline bool is_like(const Link& a, const Link& b) {
  return a.kind == b.kind && a.rate == b.rate && a.latency == b.latency &&
         a.message_overhead == b.message_overhead;
}

// Data-movement costs of a GPU's thread block under one protocol.
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
  Time overlap{};
};

struct GpuCost {
  Time launch;
  Time launch_by_threads{};
  Time launch_in_graph{};
  Time host_launch{};
  Time direct_overhead{};
  Rate direct_rate{};
  bool in_switch_reduction = false;
  Rate in_switch_rate{};
  Time in_switch_stage{};
  Rate in_switch_copy_rate{};
  std::array<ProtocolCost, kProtocols> protocol;  // indexed by Protocol
  std::optional<KernelCost> kernel{};             // empty: the machine runs no kernels
};

// Immutable. Shared by all simulations of the machine.
class Machine {
 public:
  const std::string& name() const { return name_; }
  int ranks() const { return static_cast<int>(rank_device_.size()); }
  const std::vector<Device>& devices() const { return devices_; }
  const std::vector<Link>& links() const { return links_; }
  // For every GPU, except on hosts with a separate cost.
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

  // The links from one rank's device to another's: least latency, then fewest links. Ties are
  // broken from the last link backwards: lowest link number, but between network switches a hash of
  // both ranks, the link and the seed (ECMP). The route passes only through forwarding devices. A
  // rank's route to itself is empty. Throws std::invalid_argument that names both ranks if there is
  // no path. Every call searches from scratch; for many routes use RouteSearch.
  std::vector<int> route(int from_rank, int to_rank) const;

  // True if a route between these ranks prefers one link to another of equal cost.
  bool prefers(int link, int other, int from_rank, int to_rank) const {
    return is_preferred(link, other, device_of_rank(from_rank), device_of_rank(to_rank));
  }

  // Outgoing or incoming links of a device, in insertion order.
  std::span<const int> links_from(int device) const { return links_from_.of(device); }
  std::span<const int> links_to(int device) const { return links_to_.of(device); }
  // True if traffic between two other forwarding devices may pass through.
  bool is_junction(int device) const { return is_junction_[static_cast<std::size_t>(device)]; }
  // For a forwarding device: the links from or to junctions. If it is not a junction itself, the
  // links from or to all forwarding devices.
  std::span<const int> passages_from(int device) const { return passages_from_.of(device); }
  std::span<const int> passages_to(int device) const { return passages_to_.of(device); }
  // True if some hosts have GPUs with a separate cost.
  bool has_several_costs() const { return !gpu_of_host_.empty(); }

 private:
  int checked_device_of_rank(int rank) const;
  // True if a route from source to target prefers a link to another of equal cost.
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
  std::map<int, GpuCost> gpu_of_host_;  // only for hosts with a separate cost
  std::uint64_t hash_seed_ = 0;
};

class MachineBuilder {
 public:
  explicit MachineBuilder(std::string name);

  // Returns the device's number. Throws std::invalid_argument if the name is in use.
  int add_device(Device device);

  // Adds one direction. Throws DescriptionError for an unknown end, a link from a device to itself,
  // a rate that is not positive or a negative time.
  void add_link(const Link& link);

  // Throws DescriptionError for a cost out of bounds.
  void set_gpu_cost(const GpuCost& cost);
  // For the GPUs of one host, if hosts differ. Throws DescriptionError for a cost out of bounds.
  void set_gpu_cost_of_host(int host, const GpuCost& cost);

  // Seed of the choice among equal paths between network switches.
  void set_hash_seed(std::uint64_t seed) { machine_.hash_seed_ = seed; }

  // Throws std::invalid_argument if there is no GPU, if one of several GPUs cannot be reached by
  // any other, or if no GPU cost was set. Invalidates the builder.
  std::shared_ptr<const Machine> build() &&;

 private:
  void place(const Link& link);
  void check(const GpuCost& cost) const;
  void check_every_gpu_is_reached() const;
  void join_links();
  void find_junctions();

  bool take_name(const std::string& name);

  Machine machine_;
  // A hash table of device numbers, by name. A map from names to numbers would be as large as all
  // devices.
  std::vector<int> by_name_;
  bool has_gpu_cost_ = false;
  std::optional<Link> checked_;  // the last link with checked parameters
};

}  // namespace towpath::machine
