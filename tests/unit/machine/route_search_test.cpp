// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/route_search.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "sentence.hpp"
#include "towpath/base/index.hpp"
#include "towpath/sim/random.hpp"

namespace towpath::machine {
namespace {
using namespace literals;

// The reference: Dijkstra over (latency, links), from one end to the other. Each link makes the
// second part grow, so all that leads to a device is known before it is settled.
struct Found {
  std::vector<int> route;
  std::set<std::pair<int, int>> ties;  // (taken, other)
};

class PlainSearch {
 public:
  PlainSearch(const Machine& machine, int from, int to)
      : machine_(machine),
        from_(from),
        to_(to),
        distance_(machine.devices().size(), {Time::max(), 0}),
        ways_(machine.devices().size()) {
    const int source = machine.device_of_rank(from);
    distance_[at(source)] = {};
    open_.emplace(Time(), 0, source);
    while (!open_.empty()) {
      const auto [latency, links, device] = open_.top();
      open_.pop();
      if (distance_[at(device)] != std::pair(latency, links)) continue;
      if (device != source && !machine.devices()[at(device)].forwards) continue;
      for (const int link : machine.links_from(device)) reach(link, latency, links);
    }
  }

  // Nothing where there is no path.
  std::optional<Found> found() const {
    Found found;
    const int source = machine_.device_of_rank(from_);
    for (int device = machine_.device_of_rank(to_); device != source;) {
      const std::vector<int>& ways = ways_[at(device)];
      if (ways.empty()) return std::nullopt;
      int taken = ways.front();
      for (const int other : ways) {
        if (machine_.prefers(other, taken, from_, to_)) taken = other;
      }
      for (const int other : ways) {
        if (other != taken) found.ties.emplace(taken, other);
      }
      found.route.insert(found.route.begin(), taken);
      device = machine_.links()[at(taken)].from;
    }
    return found;
  }

 private:
  static std::size_t at(int number) { return static_cast<std::size_t>(number); }

  void reach(int number, Time latency, int links) {
    const Link& link = machine_.links()[at(number)];
    const std::pair candidate(latency + link.latency, links + 1);
    auto& known = distance_[at(link.to)];
    if (candidate > known) return;
    if (candidate < known) {
      known = candidate;
      ways_[at(link.to)].clear();
      open_.emplace(candidate.first, candidate.second, link.to);
    }
    ways_[at(link.to)].push_back(number);
  }

  using Entry = std::tuple<Time, int, int>;
  const Machine& machine_;
  int from_;
  int to_;
  std::vector<std::pair<Time, int>> distance_;
  std::vector<std::vector<int>> ways_;  // per device, the links of best ways to it
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open_;
};

// Any devices, any links; equal latencies, so that routes have many ties.
std::shared_ptr<const Machine> random_machine(sim::Random& random) {
  MachineBuilder builder("random");
  const DeviceKind kinds[] = {DeviceKind::nvswitch, DeviceKind::nic, DeviceKind::network_switch,
                              DeviceKind::network_switch};
  const int gpus = 2 + static_cast<int>(random.below(8));
  const int others = 1 + static_cast<int>(random.below(12));
  for (int g = 0; g < gpus; ++g) {
    builder.add_device({fmt::format("gpu {}", g), DeviceKind::gpu, g, random.below(4) == 0});
  }
  for (int d = 0; d < others; ++d) {
    builder.add_device({fmt::format("other {}", d), kinds[random.below(4)], -1, true});
  }
  const auto devices = static_cast<std::uint64_t>(gpus + others);
  for (std::uint64_t l = 0; l < 4 * devices; ++l) {
    Link link{static_cast<int>(random.below(devices)),
              static_cast<int>(random.below(devices)),
              LinkKind::network,
              50_GBps,
              100_ns * static_cast<std::int64_t>(random.below(3)),
              {}};
    if (link.from != link.to) builder.add_link(link);
  }
  builder.set_hash_seed(random.below(1000));
  GpuCost cost;
  for (ProtocolCost& protocol : cost.protocol) protocol.block_rate = 50_GBps;
  builder.set_gpu_cost(cost);
  try {
    return std::move(builder).build();
  } catch (const std::invalid_argument&) {
    return nullptr;  // some GPU is out of reach
  }
}

// Hosts with an adapter per GPU, or for two, at leaves that spines or a chain of switches join: a
// device that forwards may have one neighbour that does, several, or none.
std::shared_ptr<const Machine> random_cluster(sim::Random& random) {
  MachineBuilder builder("cluster");
  const auto below = [&](std::uint64_t most) { return static_cast<int>(random.below(most)); };
  const auto join = [&](int a, int b, LinkKind kind) {
    const Time latency = 100_ns * below(3);
    builder.add_link({a, b, kind, 50_GBps, latency, {}});
    builder.add_link({b, a, kind, 50_GBps, latency, {}});
  };
  std::vector<int> switches;
  for (int s = 0; s < 1 + below(5); ++s) {
    switches.push_back(
        builder.add_device({fmt::format("switch {}", s), DeviceKind::network_switch, -1, true}));
    for (int other = 0; other < s; ++other) {
      if (below(2) == 0) join(switches[index(other)], switches.back(), LinkKind::network);
    }
  }
  const bool has_bridge = below(2) == 0;
  const int gpus_of_adapter = 1 + below(2);
  for (int host = 0; host < 2 + below(4); ++host) {
    const auto add = [&](const std::string& name, DeviceKind kind, bool forwards) {
      return builder.add_device({fmt::format("{} of {}", name, host), kind, host, forwards});
    };
    const int hub = add("hub", DeviceKind::nvswitch, true);
    const int bridge = add("bridge", DeviceKind::pcie_bridge, true);
    int adapter = 0;
    for (int g = 0; g < 1 + below(4); ++g) {
      const int gpu = add(fmt::format("gpu {}", g), DeviceKind::gpu, below(6) == 0);
      join(gpu, hub, LinkKind::nvlink);
      if (g % gpus_of_adapter == 0) {
        adapter = add(fmt::format("nic {}", g), DeviceKind::nic, true);
        join(adapter, switches[random.below(switches.size())], LinkKind::network);
        if (has_bridge) join(adapter, bridge, LinkKind::pcie);
      }
      join(gpu, has_bridge && below(2) == 0 ? bridge : adapter, LinkKind::pcie);
    }
  }
  builder.set_hash_seed(random.below(1000));
  GpuCost cost;
  for (ProtocolCost& protocol : cost.protocol) protocol.block_rate = 50_GBps;
  builder.set_gpu_cost(cost);
  try {
    return std::move(builder).build();
  } catch (const std::invalid_argument&) {
    return nullptr;
  }
}

// Returns how many routes had another that was as good.
int expect_routes_of_reference(const std::shared_ptr<const Machine>& machine, sim::Random& random) {
  int tied = 0;
  RouteSearch search(*machine);
  const auto ranks = static_cast<std::uint64_t>(machine->ranks());
  for (std::uint64_t i = 0; i < 3 * ranks; ++i) {
    const int from = static_cast<int>(random.below(ranks));
    for (std::uint64_t j = 0; j < ranks; ++j) {
      const int to = static_cast<int>(random.below(ranks));
      const std::optional<Found> expected = PlainSearch(*machine, from, to).found();
      if (!expected) {
        EXPECT_NE(sentence_of<std::invalid_argument>([&] { search.route(from, to); }), "");
        continue;
      }
      EXPECT_EQ(search.route(from, to), expected->route) << from << " > " << to;
      EXPECT_EQ(machine->route(from, to), expected->route) << from << " > " << to;
      std::set<std::pair<int, int>> ties;
      for (const RouteTie& tie : search.ties(from, to)) ties.emplace(tie.taken, tie.other);
      EXPECT_EQ(ties, expected->ties) << from << " > " << to;
      tied += !ties.empty();
      if (testing::Test::HasFailure()) return tied;
    }
  }
  return tied;
}

TEST(RouteSearch, FindsTheRoutesAndTiesOfAPlainSearch) {
  for (const bool is_cluster : {false, true}) {
    int tried = 0;
    int tied = 0;
    for (std::uint64_t seed = 0; tried < 400; ++seed) {
      sim::Random random(seed, "routes");
      const auto machine = is_cluster ? random_cluster(random) : random_machine(random);
      if (machine == nullptr) continue;
      ++tried;
      SCOPED_TRACE(fmt::format("seed {}, cluster {}", seed, is_cluster));
      tied += expect_routes_of_reference(machine, random);
      if (HasFailure()) return;
    }
    EXPECT_GT(tied, 1000);
  }
}

}  // namespace
}  // namespace towpath::machine
