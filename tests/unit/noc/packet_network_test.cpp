// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/packet_network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "noc_traffic.hpp"

// The network packet by packet, beside the one flit by flit: the same time where a packet is alone,
// the same bytes on the same links always, and where packets meet about the same time.

namespace towpath::noc {
namespace {

constexpr Cycle kCyclesMax = 100'000;

template <typename SomeNetwork>
void run(Player<SomeNetwork>& player) {
  SomeNetwork& network = player.network();
  while (!player.is_done() && network.now() < kCyclesMax) {
    const Cycle next = std::min(network.next_work(), player.next_action());
    ASSERT_NE(next, kNever) << "nothing moves in cycle " << network.now();
    if (next > network.now()) {
      network.skip_to(next);
    } else {
      player.step();
    }
  }
  ASSERT_TRUE(player.is_done()) << player.network().packets_in_flight() << " packets left";
}

Packet unicast(int source, int destination, int flits, std::uint64_t tag) {
  Packet packet;
  packet.source = source;
  packet.destination = destination;
  packet.flits = flits;
  packet.tag = tag;
  return packet;
}

Cycle received_at(const std::vector<Event>& events, std::uint64_t tag) {
  Cycle last = -1;
  for (const Event& event : events) {
    if (event.kind == Event::received && event.tag == tag) last = std::max(last, event.at);
  }
  return last;
}

// --- a packet alone -----------------------------------------------------------------------------

class PacketNetworkOn : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(PacketNetworkOn, MovesAPacketThatIsAloneInTheSameCycles) {
  const auto [width, height] = GetParam();
  for (const int noc : {0, 1}) {
    Traffic traffic{plain_chip(width, height), noc};
    sim::Random random(7, "alone");
    const int nodes = width * height;
    for (int i = 0; i < 400; ++i) {
      Packet packet = unicast(static_cast<int>(random.between(0, nodes - 1)),
                              static_cast<int>(random.between(0, nodes - 1)),
                              static_cast<int>(random.between(1, 200)), i);
      packet.packet_class = static_cast<std::uint8_t>(random.between(0, 3));
      packet.buddy = static_cast<std::uint8_t>(random.between(0, 1));
      packet.keeps_buddy = random.between(0, 1) == 0;
      packet.keeps_class = random.between(0, 1) == 0;
      const Cycle at = Cycle{i} * 1000;
      packet.header_at = at + random.between(0, 30);
      packet.data_at = (packet.header_at + random.between(0, 9)) * kPaceCycle;
      packet.data_interval = random.between(0, 1) == 0 ? 0 : random.between(900, 1900);
      traffic.injections.push_back({at, packet});
    }
    Player<FlitNetwork> flits(traffic);
    Player<PacketNetwork> packets(traffic);
    while (!flits.is_done()) flits.step();
    while (!packets.is_done()) packets.step();
    EXPECT_EQ(difference(packets.events(), flits.events()), "") << "NoC " << noc;
    EXPECT_EQ(link_flits(packets.network(), nodes), link_flits(flits.network(), nodes));
  }
}
INSTANTIATE_TEST_SUITE_P(Grids, PacketNetworkOn,
                         testing::Values(std::pair{1, 1}, std::pair{5, 1}, std::pair{3, 4},
                                         std::pair{10, 12}));

TEST(PacketNetwork, MovesAMulticastThatIsAloneInTheSameCycles) {
  for (const bool is_linked : {false, true}) {
    Traffic traffic{plain_chip(5, 4), 0};
    traffic.chip.niu.multicast_rate = machine::BytesPerCycle::from(16);
    for (int i = 0; i < 20; ++i) {
      Packet packet = unicast(i, 0, 1 + 17 * (i % 4), i);
      packet.source = is_linked ? 3 : i;
      packet.keeps_path = is_linked && i < 19;
      packet.header_at = Cycle{i} * 1000;
      traffic.injections.push_back({packet.header_at, packet, {1, 2, 6, 7, 11, 12}});
    }
    Player<FlitNetwork> flits(traffic);
    Player<PacketNetwork> packets(traffic);
    while (!flits.is_done()) flits.step();
    while (!packets.is_done()) packets.step();
    EXPECT_EQ(difference(packets.events(), flits.events()), "") << "linked " << is_linked;
    EXPECT_EQ(link_flits(packets.network(), 20), link_flits(flits.network(), 20));
  }
}

// --- packets that meet --------------------------------------------------------------------------

// How often each packet has been received at each node.
std::map<std::pair<std::uint64_t, int>, int> copies(const std::vector<Event>& events) {
  std::map<std::pair<std::uint64_t, int>, int> copies;
  for (const Event& event : events) {
    if (event.kind == Event::received) ++copies[{event.tag, event.node}];
  }
  return copies;
}

TEST(PacketNetwork, DeliversWhatFlitsDeliverOverTheSameLinks) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Traffic traffic = random_traffic(
        {.width = 4, .height = 5, .packets = 400, .has_multicasts = seed % 2 == 0}, seed);
    Player<PacketNetwork> packets(traffic);
    run(packets);
    Player<FlitNetwork> flits(traffic);
    while (!flits.is_done() && flits.network().now() < kCyclesMax) flits.step();
    if (!flits.is_done()) continue;  // a deadlock, which only that one has
    ++compared;
    EXPECT_TRUE(copies(packets.events()) == copies(flits.events()));
    EXPECT_TRUE(link_flits(packets.network(), 20) == link_flits(flits.network(), 20));
  }
  EXPECT_GE(compared, 20);
}

TEST(PacketNetwork, KeepsTheOrderOfPacketsOnTheSameVc) {
  Traffic traffic{plain_chip(6, 6), 0};
  sim::Random random(3, "order");
  for (int i = 0; i < 3000; ++i) {
    Packet packet = unicast(static_cast<int>(random.between(0, 35)),
                            static_cast<int>(random.between(0, 2)) * 14,
                            static_cast<int>(random.between(0, 1)) == 0 ? 1 : 65, i);
    packet.header_at = i / 4;
    traffic.injections.push_back({packet.header_at, packet});
  }
  Player<PacketNetwork> player(traffic);
  run(player);
  std::map<std::pair<int, int>, std::uint64_t> last;  // by source and destination
  for (const Event& event : player.events()) {
    if (event.kind != Event::received) continue;
    const Packet& packet = traffic.injections[event.tag].packet;
    std::uint64_t& before = last[{packet.source, packet.destination}];
    EXPECT_GE(event.tag, before) << packet.source << " to " << packet.destination;
    before = event.tag;
  }
}

// Streams that meet on a link get all of it, and no more.
TEST(PacketNetwork, GivesALinkToStreamsAtItsRate) {
  for (const int streams : {1, 2, 3}) {
    Traffic traffic{plain_chip(8, 1), 0};
    constexpr int kPackets = 50;
    constexpr int kFlits = 100;
    for (int i = 0; i < kPackets; ++i) {
      for (int stream = 0; stream < streams; ++stream) {
        Packet packet = unicast(stream, 5, kFlits, static_cast<std::uint64_t>(i * 3 + stream));
        packet.packet_class = static_cast<std::uint8_t>(stream % 2);
        packet.buddy = static_cast<std::uint8_t>(stream / 2);
        traffic.injections.push_back({0, packet});
      }
    }
    Player<PacketNetwork> packets(traffic);
    run(packets);
    const Cycle flits = Cycle{kPackets} * kFlits * streams;
    EXPECT_GE(packets.network().now(), flits);
    EXPECT_LE(packets.network().now(), flits * 21 / 20);
  }
}

// A packet of one flit takes turns with a long one on another VC; it does not wait for its end.
TEST(PacketNetwork, LetsAShortPacketPassALongOneOfAnotherVc) {
  Traffic traffic{plain_chip(8, 1), 0};
  traffic.injections.push_back({0, unicast(0, 6, 250, 1)});
  Packet word = unicast(1, 7, 1, 2);
  word.packet_class = 1;
  word.header_at = 30;
  traffic.injections.push_back({30, word});
  Player<PacketNetwork> packets(traffic);
  run(packets);
  EXPECT_LT(received_at(packets.events(), 2), 120);
  EXPECT_GT(received_at(packets.events(), 1), 250);
}

// Two long packets that meet on a link both take twice as long from there on.
TEST(PacketNetwork, SlowsDownAPacketThatAnotherOneJoins) {
  Traffic traffic{plain_chip(8, 1), 0};
  traffic.injections.push_back({0, unicast(0, 6, 200, 1)});
  Packet other = unicast(1, 7, 200, 2);
  other.packet_class = 1;
  traffic.injections.push_back({0, other});
  Player<PacketNetwork> packets(traffic);
  Player<FlitNetwork> flits(traffic);
  run(packets);
  run(flits);
  for (const std::uint64_t tag : {1, 2}) {
    const Cycle expected = received_at(flits.events(), tag);
    EXPECT_GT(expected, 400);
    EXPECT_NEAR(static_cast<double>(received_at(packets.events(), tag)),
                static_cast<double>(expected), 12.0);
  }
}

// The packet on the VC may be slowed down while another one waits for the VC.
TEST(PacketNetwork, GivesAVcWhenTheTailOfItsOwnerHasPassed) {
  Traffic traffic{plain_chip(8, 1), 0};
  traffic.injections.push_back({0, unicast(0, 6, 200, 1)});
  Packet waiting = unicast(1, 7, 1, 2);
  waiting.header_at = 20;
  traffic.injections.push_back({20, waiting});
  Packet joining = unicast(1, 5, 200, 3);
  joining.packet_class = 1;
  joining.lane = 1;
  joining.header_at = 30;
  traffic.injections.push_back({30, joining});
  Player<PacketNetwork> packets(traffic);
  Player<FlitNetwork> flits(traffic);
  run(packets);
  run(flits);
  for (const std::uint64_t tag : {1, 2, 3}) {
    EXPECT_NEAR(static_cast<double>(received_at(packets.events(), tag)),
                static_cast<double>(received_at(flits.events(), tag)), 30.0)
        << "packet " << tag;
  }
}

TEST(PacketNetwork, HoldsAVcUntilItIsReleased) {
  Traffic traffic{plain_chip(4, 1), 0};
  traffic.holds.push_back({0, 2, 0, 500});
  traffic.injections.push_back({1, unicast(0, 2, 8, 1)});
  traffic.injections.push_back({1, unicast(0, 2, 8, 2)});
  Packet other = unicast(1, 2, 8, 3);
  other.buddy = 1;
  traffic.injections.push_back({1, other});
  Player<PacketNetwork> packets(traffic);
  run(packets);
  EXPECT_LT(received_at(packets.events(), 3), 100);
  EXPECT_GE(received_at(packets.events(), 1), 500);
  EXPECT_GT(received_at(packets.events(), 2), received_at(packets.events(), 1));
}

// Latencies of random traffic. Beyond saturation they are far too short, since what waits keeps
// nobody waiting behind it.
TEST(PacketNetwork, TakesAboutTheTimeOfFlitsBelowSaturation) {
  double worst = 0;
  double sum = 0;
  int runs = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Traffic traffic{plain_chip(6, 5), 0};
    sim::Random random(seed, "load");
    const int gap = 18 + 2 * static_cast<int>(seed);  // below saturation
    for (int i = 0; i < 600; ++i) {
      Packet packet =
          unicast(static_cast<int>(random.between(0, 29)), static_cast<int>(random.between(0, 29)),
                  static_cast<int>(random.between(1, 130)), i);
      packet.packet_class = static_cast<std::uint8_t>(random.between(0, 1));
      packet.keeps_buddy = false;
      packet.header_at = Cycle{i} * gap;
      traffic.injections.push_back({packet.header_at, packet});
    }
    Player<FlitNetwork> flits(traffic);
    Player<PacketNetwork> packets(traffic);
    run(flits);
    run(packets);
    double latency = 0;
    double reference = 0;
    for (std::uint64_t tag = 0; tag < 600; ++tag) {
      const auto sent_at = static_cast<double>(traffic.injections[tag].at);
      latency += static_cast<double>(received_at(packets.events(), tag)) - sent_at;
      reference += static_cast<double>(received_at(flits.events(), tag)) - sent_at;
    }
    const double error = latency / reference - 1;
    worst = std::max(worst, std::abs(error));
    sum += std::abs(error);
    ++runs;
  }
  EXPECT_LT(worst, 0.10);
  EXPECT_LT(sum / runs, 0.05);
}

}  // namespace
}  // namespace towpath::noc
