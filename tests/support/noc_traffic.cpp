// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "noc_traffic.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "chips.hpp"
#include "towpath/sim/random.hpp"

namespace towpath::noc {

namespace {

class TrafficMaker {
 public:
  TrafficMaker(const RandomTraffic& options, std::uint64_t seed)
      : options_(options), random_(seed, "traffic"), nodes_(options.width * options.height) {}

  Traffic make() {
    traffic_.chip = plain_chip(options_.width, options_.height);
    traffic_.noc = between(0, 1);
    if (!one_in(3)) spoil_figures();
    if (options_.has_multicasts) traffic_.chip.router.classes = 4;
    traffic_.answers = one_in(2);
    if (one_in(4)) traffic_.paced_nodes = {between(0, nodes_ - 1)};
    hot_node_ = one_in(3) ? between(0, nodes_ - 1) : -1;
    lane_max_ = between(0, kLanes - 1);
    interval_max_ = one_in(2) ? 1024 : 4000;
    // From a load that leaves the network nearly empty to one that fills every buffer.
    const int cycles = options_.packets * between(1, 500) / nodes_ + 1;
    for (int i = 0; i < options_.packets; ++i) add_packet(i, between(0, cycles));
    for (int i = between(0, 40); i > 0; --i) add_hold(between(0, cycles));
    const auto is_earlier = [](const auto& left, const auto& right) { return left.at < right.at; };
    std::stable_sort(traffic_.injections.begin(), traffic_.injections.end(), is_earlier);
    std::stable_sort(traffic_.holds.begin(), traffic_.holds.end(), is_earlier);
    return std::move(traffic_);
  }

 private:
  int between(int first, int last) { return static_cast<int>(random_.between(first, last)); }
  bool one_in(std::uint64_t count) { return random_.below(count) == 0; }

  void spoil_figures() {
    machine::RouterParameters& router = traffic_.chip.router;
    router.hop_cycles = between(1, 12);
    router.niu_to_router_cycles = between(1, 7);
    router.router_to_niu_cycles = between(1, 7);
    router.credit_return_cycles = between(1, 9);
    router.vc_release_cycles = between(1, 20);
    router.classes = between(1, 4);
    router.pool_flits = between(one_in(4) ? 1 : 16, 64);
    router.pool_flits_per_vc_max = between(1, std::min(router.pool_flits, 31));
    router.pool_flits_reserved = between(0, std::min(router.pool_flits, 5));
    router.pool_flits_for_responses = between(0, router.pool_flits_reserved);
    router.has_dateline = !one_in(8);
    traffic_.chip.niu.port_rate = machine::BytesPerCycle::from(0.1 * between(80, 400));
    traffic_.chip.niu.multicast_rate = machine::BytesPerCycle::from(0.1 * between(80, 400));
    traffic_.chip.niu.path_link_cycles = between(0, 7);
    traffic_.chip.niu.backoff_cycles_min = between(1, 40);
    traffic_.chip.niu.backoff_cycles_max = between(40, 2000);
    router.picks_vc_first = !one_in(4);
  }

  int flits() {
    if (one_in(3)) return 1;
    return one_in(3) ? between(1, 257) : between(2, 20);
  }

  void add_packet(int number, Cycle at) {
    Injection injection;
    injection.at = at;
    Packet& packet = injection.packet;
    packet.source = between(0, nodes_ - 1);
    packet.destination = hot_node_ >= 0 && one_in(2) ? hot_node_ : between(0, nodes_ - 1);
    packet.flits = flits();
    packet.packet_class = static_cast<std::uint8_t>(between(0, traffic_.chip.router.classes - 1));
    packet.buddy = static_cast<std::uint8_t>(between(0, 1));
    packet.keeps_buddy = one_in(2);
    packet.keeps_class = one_in(2);
    packet.lane = static_cast<std::uint8_t>(between(0, lane_max_));
    packet.header_at = one_in(4) ? at + between(0, 300) : at - between(0, 10);
    packet.data_at = packet.header_at * kPaceCycle + between(0, one_in(8) ? 100'000 : 3000);
    packet.data_interval = between(0, interval_max_);
    packet.tag = static_cast<std::uint64_t>(number) + 1;
    if (options_.has_multicasts && one_in(6)) {
      for (int node = 0; node < nodes_; ++node) {
        if (one_in(3)) injection.destinations.push_back(node);
      }
      if (injection.destinations.empty()) injection.destinations.push_back(packet.source);
      packet.keeps_path = one_in(3);
    }
    traffic_.injections.push_back(injection);
    if (!packet.keeps_path) return;
    injection.packet.keeps_path = false;
    injection.packet.lane = static_cast<std::uint8_t>(between(0, lane_max_));
    injection.packet.tag += kLast;
    traffic_.injections.push_back(injection);
  }

  void add_hold(Cycle at) {
    const machine::RouterParameters& router = traffic_.chip.router;
    const int vcs = 2 * router.classes * (router.has_dateline ? 2 : 1);
    traffic_.holds.push_back(
        {at, between(0, nodes_ - 1), between(0, vcs - 1), at + between(1, 2000)});
  }

  static constexpr std::uint64_t kLast = 1 << 20;  // of the tags of linked packets

  RandomTraffic options_;
  sim::Random random_;
  int nodes_;
  int hot_node_ = -1;
  int lane_max_ = 0;
  int interval_max_ = 0;
  Traffic traffic_;
};

}  // namespace

machine::Chip plain_chip(int width, int height) {
  machine::Chip chip = machine::chip_without_tiles();
  chip.name = fmt::format("{} x {}", width, height);
  chip.width = width;
  chip.height = height;
  chip.niu.port_rate = machine::BytesPerCycle::from(32);
  chip.niu.multicast_rate = machine::BytesPerCycle::from(32);
  return chip;
}

Traffic random_traffic(const RandomTraffic& options, std::uint64_t seed) {
  return TrafficMaker(options, seed).make();
}

std::string to_string(const Event& event) {
  constexpr const char* kKinds[] = {"started", "sent", "received"};
  return fmt::format("packet {} {} in cycle {} at node {} on VC {}", event.tag, kKinds[event.kind],
                     event.at, event.node, event.vc);
}

std::string difference(std::vector<Event> left, std::vector<Event> right) {
  std::sort(left.begin(), left.end());
  std::sort(right.begin(), right.end());
  const auto [at_left, at_right] =
      std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  if (at_left == left.end() && at_right == right.end()) return "";
  return fmt::format("{} against {}", at_left == left.end() ? "nothing more" : to_string(*at_left),
                     at_right == right.end() ? "nothing more" : to_string(*at_right));
}

}  // namespace towpath::noc
