// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <stdexcept>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/machine/checks.hpp"
#include "towpath/machine/route_search.hpp"

namespace towpath::machine {

namespace {

constexpr int kNone = -1;

// Mixes a number into a hash: the finalizer of SplitMix64.
std::uint64_t mixed(std::uint64_t hash, int number) {
  hash += 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(number);
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

}  // namespace

int Machine::host_of_rank(int rank) const { return devices_[index(device_of_rank(rank))].host; }

int Machine::checked_device_of_rank(int rank) const {
  if (rank < 0 || rank >= ranks()) {
    throw std::invalid_argument(
        fmt::format("machine '{}' has no rank {}; it has 0 to {}", name_, rank, ranks() - 1));
  }
  return device_of_rank(rank);
}

bool Machine::is_preferred(int link, int other, int source, int target) const {
  const auto is_between_switches = [this](int number) {
    const Link& wire = links_[index(number)];
    return devices_[index(wire.from)].kind == DeviceKind::network_switch &&
           devices_[index(wire.to)].kind == DeviceKind::network_switch;
  };
  if (!is_between_switches(link) || !is_between_switches(other)) return link < other;
  const std::uint64_t pair = mixed(mixed(hash_seed_, source), target);
  return mixed(pair, link) < mixed(pair, other);
}

std::vector<int> Machine::route(int from_rank, int to_rank) const {
  return RouteSearch(*this).route(from_rank, to_rank);
}

MachineBuilder::MachineBuilder(std::string name) { machine_.name_ = std::move(name); }

int MachineBuilder::add_device(Device device) {
  const int number = static_cast<int>(machine_.devices_.size());
  if (!take_name(device.name)) {
    throw std::invalid_argument(
        fmt::format("machine '{}' has two devices named '{}'", machine_.name_, device.name));
  }
  if (device.kind == DeviceKind::gpu) machine_.rank_device_.push_back(number);
  machine_.devices_.push_back(std::move(device));
  return number;
}

// Takes the name for the next device. Returns false if it is in use.
bool MachineBuilder::take_name(const std::string& name) {
  const auto& devices = machine_.devices_;
  const auto place_of = [&](const std::string& wanted) {
    std::size_t place = std::hash<std::string>()(wanted) % by_name_.size();
    while (by_name_[place] != kNone && devices[index(by_name_[place])].name != wanted) {
      place = (place + 1) % by_name_.size();
    }
    return place;
  };
  if (2 * devices.size() >= by_name_.size()) {
    by_name_.assign(std::max<std::size_t>(64, 4 * devices.size()), kNone);
    for (std::size_t n = 0; n < devices.size(); ++n) {
      by_name_[place_of(devices[n].name)] = static_cast<int>(n);
    }
  }
  int& number = by_name_[place_of(name)];
  if (number != kNone) return false;
  number = static_cast<int>(devices.size());
  return true;
}

void MachineBuilder::add_link(const Link& link) {
  const int devices = static_cast<int>(machine_.devices_.size());
  for (const int end : {link.from, link.to}) {
    if (end < 0 || end >= devices) {
      throw std::invalid_argument(fmt::format(
          "machine '{}': a link ends at device {}; there are {}", machine_.name_, end, devices));
    }
  }
  const bool is_checked = checked_ && is_like(link, *checked_);
  if (is_checked && link.from != link.to) return place(link);
  const std::string where =
      fmt::format("machine '{}', link {} -> {}", machine_.name_,
                  machine_.devices_[index(link.from)].name, machine_.devices_[index(link.to)].name);
  if (link.from == link.to) {
    throw std::invalid_argument(fmt::format("{}: a link must join two different devices", where));
  }
  // Parallel wires form one link with their total rate, so the rate has no upper bound.
  const Checks checks(where);
  if (link.rate <= Rate()) {
    checks.fail_at("rate_gb_per_s", "is {}; it must be positive", link.rate.gb_per_s());
  }
  for (const Parameter& row : link_parameters()) {
    if (row.name != "rate_gb_per_s") checks.parameter("", &link, row);
  }
  checked_ = link;
  place(link);
}

void MachineBuilder::place(const Link& link) { machine_.links_.push_back(link); }

void MachineBuilder::set_gpu_cost(const GpuCost& cost) {
  check(cost);
  machine_.gpu_ = cost;
  has_gpu_cost_ = true;
}

void MachineBuilder::set_gpu_cost_of_host(int host, const GpuCost& cost) {
  check(cost);
  machine_.gpu_of_host_[host] = cost;
}

void MachineBuilder::check(const GpuCost& cost) const {
  const Checks checks(fmt::format("machine '{}', GPU cost", machine_.name_));
  for (const BlockTable& table : gpu_cost_tables()) checks.blocks(&cost, table);
  if (cost.kernel) checks.block("kernel", &*cost.kernel, kernel_parameters());
}

// Keeps two different GPUs per device, so that at least one of the GPUs that reach a GPU is a
// different one. Every link is followed at most twice, for any number of GPUs.
void MachineBuilder::check_every_gpu_is_reached() const {
  std::vector<std::array<int, 2>> reached_by(machine_.devices_.size(), {kNone, kNone});
  std::queue<std::pair<int, int>> open;  // device, and the GPU that reaches it
  for (const int gpu : machine_.rank_device_) open.emplace(gpu, gpu);
  while (!open.empty()) {
    const auto [device, gpu] = open.front();
    open.pop();
    if (device != gpu && !machine_.devices_[index(device)].forwards) continue;
    for (const int number : machine_.links_from(device)) {
      const int next = machine_.links_[index(number)].to;
      if (next == gpu) continue;
      std::array<int, 2>& known = reached_by[index(next)];
      if (known[0] == gpu || known[1] == gpu || known[1] != kNone) continue;
      known[known[0] == kNone ? 0 : 1] = gpu;
      open.emplace(next, gpu);
    }
  }
  for (const int gpu : machine_.rank_device_) {
    if (reached_by[index(gpu)][0] == kNone) {
      throw std::invalid_argument(fmt::format("machine '{}': no other GPU can reach {}",
                                              machine_.name_, machine_.devices_[index(gpu)].name));
    }
  }
}

void MachineBuilder::join_links() {
  const auto& links = machine_.links_;
  const std::size_t devices = machine_.devices_.size();
  machine_.links_from_ = {devices, links.size(), [&](std::size_t n) { return links[n].from; }};
  machine_.links_to_ = {devices, links.size(), [&](std::size_t n) { return links[n].to; }};
}

void MachineBuilder::find_junctions() {
  const auto& links = machine_.links_;
  const auto& devices = machine_.devices_;
  // One forwarding neighbour per device. A second one makes it a junction.
  std::vector<int> neighbour(devices.size(), kNone);
  machine_.is_junction_.assign(devices.size(), false);
  const auto note = [&](int device, int other) {
    int& known = neighbour[index(device)];
    if (known == kNone) known = other;
    if (known != other) machine_.is_junction_[index(device)] = true;
  };
  const auto is_through = [&](const Link& link) {
    return devices[index(link.from)].forwards && devices[index(link.to)].forwards;
  };
  for (const Link& link : links) {
    if (!is_through(link)) continue;
    note(link.from, link.to);
    note(link.to, link.from);
  }
  const auto is_passage = [&](const Link& link, int from, int to) {
    return is_through(link) && (machine_.is_junction(to) || !machine_.is_junction(from));
  };
  machine_.passages_from_ = {devices.size(), links.size(), [&](std::size_t n) {
                               const Link& link = links[n];
                               return is_passage(link, link.from, link.to) ? link.from : kNone;
                             }};
  machine_.passages_to_ = {devices.size(), links.size(), [&](std::size_t n) {
                             const Link& link = links[n];
                             return is_passage(link, link.to, link.from) ? link.to : kNone;
                           }};
}

std::shared_ptr<const Machine> MachineBuilder::build() && {
  if (machine_.rank_device_.empty()) {
    throw std::invalid_argument(
        fmt::format("machine '{}' has no GPU; it needs at least one", machine_.name_));
  }
  if (!has_gpu_cost_) {
    throw std::invalid_argument(
        fmt::format("machine '{}' has no costs of its GPUs", machine_.name_));
  }
  join_links();
  find_junctions();
  if (machine_.rank_device_.size() > 1) check_every_gpu_is_reached();
  return std::make_shared<const Machine>(std::move(machine_));
}

}  // namespace towpath::machine
