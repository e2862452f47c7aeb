// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "noc_traffic.hpp"
#include "towpath/sim/random.hpp"

namespace towpath::noc {
namespace {

// A row of `width` nodes, each of which sends a packet of `flits` flits to the second node to its
// right.
Traffic traffic_round_a_ring(int width, int flits, bool has_dateline) {
  Traffic traffic;
  traffic.chip = plain_chip(width, 1);
  traffic.chip.router.has_dateline = has_dateline;
  for (int node = 0; node < width; ++node) {
    Packet packet;
    packet.source = node;
    packet.destination = (node + 2) % width;
    packet.flits = flits;
    packet.tag = static_cast<std::uint64_t>(node);
    traffic.injections.push_back({0, packet});
  }
  return traffic;
}

void run_until_idle(Player<FlitNetwork>& player) {
  FlitNetwork& network = player.network();
  player.step();
  while (network.next_work() != kNever) {
    if (network.next_work() > network.now()) network.skip_to(network.next_work());
    network.step();
  }
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t times = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++times;
  return times;
}

// Each packet owns the VC of its first link and waits at the next node for the second link, which
// that node's packet owns. 257 flits exceed the 2 x 16 slots on the way.
TEST(NocDeadlock, OfARingWithoutADatelineNamesItsPackets) {
  const Traffic traffic = traffic_round_a_ring(4, 257, false);
  Player<FlitNetwork> player(traffic);
  EXPECT_EQ(player.network().describe_deadlock(), "");
  run_until_idle(player);
  EXPECT_EQ(player.network().packets_in_flight(), 4);
  const std::string sentence = player.network().describe_deadlock();
  EXPECT_TRUE(sentence.starts_with("deadlock of ")) << sentence;
  std::size_t named = 0;
  for (int node = 0; node < 4; ++node) {
    const std::string packet =
        fmt::format("the packet from ({}, 0) to ({}, 0)", node, (node + 2) % 4);
    EXPECT_GE(count(sentence, packet), 1) << sentence;
    named += count(sentence, packet);
  }
  EXPECT_EQ(count(sentence, "the packet from"), named) << sentence;
}

// With a dynamic VC each packet waits for two VCs, and their owners wait too.
TEST(NocDeadlock, OfDynamicVcsIsFound) {
  Traffic traffic = traffic_round_a_ring(4, 257, false);
  for (Injection& injection : traffic.injections) injection.packet.keeps_buddy = false;
  const std::vector<Injection> lane_0 = traffic.injections;
  for (Injection injection : lane_0) {
    injection.packet.lane = 1;
    traffic.injections.push_back(injection);
  }
  Player<FlitNetwork> player(traffic);
  run_until_idle(player);
  EXPECT_EQ(player.network().packets_in_flight(), 8);
  EXPECT_NE(player.network().describe_deadlock(), "");
}

// One more packet waits for the three that wait for each other, and is not part of the cycle.
TEST(NocDeadlock, IsFoundBesidePacketsThatOnlyWait) {
  Traffic traffic = traffic_round_a_ring(3, 257, false);
  Packet packet = traffic.injections[0].packet;
  packet.destination = 1;
  packet.lane = 1;
  traffic.injections.push_back({0, packet});
  Player<FlitNetwork> player(traffic);
  run_until_idle(player);
  EXPECT_EQ(player.network().packets_in_flight(), 4);
  const std::string sentence = player.network().describe_deadlock();
  EXPECT_NE(sentence, "");
  EXPECT_EQ(count(sentence, "from (0, 0) to (1, 0)"), 0) << sentence;
}

TEST(NocDeadlock, DoesNotHappenWithADateline) {
  for (const int width : {3, 4, 7}) {
    const Traffic traffic = traffic_round_a_ring(width, 257, true);
    Player<FlitNetwork> player(traffic);
    run_until_idle(player);
    EXPECT_TRUE(player.is_done());
    EXPECT_EQ(player.network().describe_deadlock(), "");
  }
}

// A packet held forever is stuck, but it is not a cycle.
TEST(NocDeadlock, IsNotReportedForPacketsThatNoNiuTakes) {
  Traffic traffic = traffic_round_a_ring(4, 257, true);
  for (int vc = 0; vc < kVcsMax; ++vc) traffic.holds.push_back({0, 0, vc, kNever - 1});
  Player<FlitNetwork> player(traffic);
  for (int i = 0; i < 10'000; ++i) player.step();
  EXPECT_GT(player.network().packets_in_flight(), 0);
  EXPECT_EQ(player.network().describe_deadlock(), "");
}

// Random packets without end: every node has `kDepth` queued at any time, and up to
// `kMulticastsMax` in all are multicasts. More of them would in the end be all that is left.
class EndlessTraffic final : public Endpoint {
 public:
  static constexpr int kDepth = 6;
  static constexpr int kMulticastsMax = 4;

  EndlessTraffic(int width, int height, int noc, std::uint64_t seed)
      : chip_(plain_chip(width, height)),
        random_(seed, "endless traffic"),
        network_(chip_, noc, *this, seed) {}

  void start() {
    is_finishing_ = false;
    for (int node = 0; node < chip_.width * chip_.height; ++node) {
      for (int i = 0; i < kDepth; ++i) send_from(node);
    }
  }

  FlitNetwork& network() { return network_; }
  void finish() { is_finishing_ = true; }
  std::int64_t copies_sent() const { return copies_sent_; }
  std::int64_t copies_received() const { return copies_received_; }

  void packet_started(const Packet&, Cycle) override {}
  void packet_sent(const Packet& packet, Cycle) override {
    multicasts_ -= packet.tree >= 0 ? 1 : 0;
    if (!is_finishing_) send_from(packet.source);
  }
  void packet_received(const Packet& packet, int node, int, Cycle) override {
    ++copies_received_;
    is_misled_ |= packet.tree < 0 && packet.destination != node;
  }
  Cycle flit_received(const Packet&, int, Cycle now) override { return now + 1; }
  bool is_misled() const { return is_misled_; }

 private:
  int below(int bound) {
    return static_cast<int>(random_.below(static_cast<std::uint64_t>(bound)));
  }

  // Half of the unicasts have a static VC. A multicast goes to a part of a row.
  void send_from(int node) {
    const std::uint64_t bits = random_.bits();
    Packet packet;
    packet.source = node;
    packet.destination = below(chip_.width * chip_.height);
    packet.flits = (bits & 3) == 0 ? 1 + below(257) : 1 + below(16);
    constexpr std::uint8_t kClasses[] = {0, 1, 3, 3};
    packet.packet_class = kClasses[bits >> 2 & 3];
    packet.buddy = bits >> 4 & 1;
    packet.keeps_buddy = (bits >> 5 & 1) != 0;
    packet.keeps_class = packet.keeps_buddy;
    packet.lane = bits >> 6 & 7;
    if (multicasts_ == kMulticastsMax) {
      ++copies_sent_;
      network_.send(packet);
      return;
    }
    ++multicasts_;
    packet.keeps_buddy = true;
    std::vector<int> destinations;
    const int columns = network_.torus().width();
    const int first = below(columns);
    const int last = first + below(columns - first);
    const int row = packet.destination / columns;
    for (int x = first; x <= last; ++x) destinations.push_back(row * columns + x);
    copies_sent_ += static_cast<std::int64_t>(destinations.size());
    network_.send_multicast(packet, destinations);
  }

  machine::Chip chip_;
  sim::Random random_;
  FlitNetwork network_;
  int multicasts_ = 0;
  bool is_finishing_ = false;
  bool is_misled_ = false;
  std::int64_t copies_sent_ = 0;
  std::int64_t copies_received_ = 0;
};

// Sends in bursts, each of which has to drain: then no packet is left behind, even while others
// move. Every cycle is simulated, and in each there are packets under way.
void expect_no_deadlock(int width, int height, int noc, Cycle cycles) {
  SCOPED_TRACE(testing::Message() << width << " x " << height << ", NoC " << noc);
  constexpr Cycle kBurst = 200'000;
  constexpr Cycle kDrainMax = 1'000'000;
  EndlessTraffic traffic(width, height, noc, 7);
  FlitNetwork& network = traffic.network();
  while (network.now() < cycles) {
    traffic.start();
    const Cycle end = std::min(network.now() + kBurst, cycles);
    while (network.now() < end) network.step();
    traffic.finish();
    while (network.now() < end + kDrainMax && network.packets_in_flight() > 0) network.step();
    ASSERT_EQ(network.packets_in_flight(), 0)
        << "cycle " << network.now() << ": " << network.describe_deadlock();
    ASSERT_EQ(traffic.copies_received(), traffic.copies_sent());
    ASSERT_FALSE(traffic.is_misled());
  }
  testing::Test::RecordProperty(fmt::format("flit_hops_{}x{}_noc_{}", width, height, noc),
                                std::to_string(network.flit_hops()));
}

// The long run simulates 10^8 cycles.
TEST(NocDeadlock, DoesNotHappenUnderHeavyRandomTraffic) {
  const Cycle cycles = std::getenv("TOWPATH_LONG_TESTS") != nullptr ? 25'000'000 : 20'000;
  for (const int noc : {0, 1}) {
    expect_no_deadlock(10, 12, noc, cycles);
    expect_no_deadlock(17, 12, noc, cycles);
  }
}

// The cycle consists of buffers, and a packet may occupy two of them.
TEST(NocDeadlock, NamesEachPacketOnce) {
  Traffic traffic{plain_chip(4, 1)};
  traffic.chip.router.has_dateline = false;
  for (int node = 0; node < 4; ++node) {
    const int destination = (node + 2) % 4;
    traffic.injections.push_back({0, {.source = node, .destination = destination, .flits = 257}});
  }
  Player<FlitNetwork> player(traffic);
  run_until_idle(player);
  const std::string sentence = player.network().describe_deadlock();
  EXPECT_TRUE(sentence.starts_with("deadlock of 4 packets: ")) << sentence;
  EXPECT_EQ(count(sentence, "the packet from"), 4) << sentence;
}

}  // namespace
}  // namespace towpath::noc
