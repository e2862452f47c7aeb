// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>

#include "noc_reference.hpp"
#include "noc_traffic.hpp"
#include "towpath/base/invariant.hpp"

namespace towpath::noc {
namespace {

// Long enough for every traffic here; traffic that deadlocks is compared up to this cycle.
constexpr Cycle kCyclesMax = 20'000;

bool is_long() { return std::getenv("TOWPATH_LONG_TESTS") != nullptr; }

// Runs the network, skipping cycles without work only where allowed.
void run_skipping(Player<FlitNetwork>& player, Cycle end) {
  FlitNetwork& network = player.network();
  while (network.now() < end && !player.is_done()) {
    const Cycle next = std::min({network.next_work(), player.next_action(), end});
    if (next > network.now()) {
      network.skip_to(next);
    } else {
      player.step();
    }
  }
}

void expect_same(const RandomTraffic& options, std::uint64_t seed) {
  SCOPED_TRACE(testing::Message() << options.width << " x " << options.height << ", "
                                  << options.packets << " packets, seed " << seed);
  const Traffic traffic = random_traffic(options, seed);
  Player<ReferenceNetwork> reference(traffic);
  while (reference.network().now() < kCyclesMax && !reference.is_done()) reference.step();
  Player<FlitNetwork> player(traffic);
  run_skipping(player, reference.network().now());
  ASSERT_EQ(difference(player.events(), reference.events()), "");
  const int nodes = options.width * options.height;
  EXPECT_EQ(link_flits(player.network(), nodes), link_flits(reference.network(), nodes));
  EXPECT_EQ(player.network().flit_hops(), reference.network().flit_hops());
  EXPECT_EQ(player.network().packets_in_flight(), reference.network().packets_in_flight());
}

void expect_same(const RandomTraffic& options, std::uint64_t first_seed, int seeds) {
  const int times = is_long() ? 20 : 1;
  for (int i = 0; i < seeds * times && !testing::Test::HasFailure(); ++i) {
    expect_same(options, first_seed + static_cast<std::uint64_t>(i));
  }
}

TEST(NocNetwork, IsTheReferenceOnTwoByTwo) {
  expect_same({.width = 2, .height = 2, .packets = 300}, 1000, 40);
}
TEST(NocNetwork, IsTheReferenceOnThreeByFive) {
  expect_same({.width = 3, .height = 5, .packets = 600}, 2000, 12);
}
TEST(NocNetwork, IsTheReferenceOnARing) {
  expect_same({.width = 6, .height = 1, .packets = 300}, 3000, 8);
  expect_same({.width = 1, .height = 7, .packets = 300}, 4000, 8);
}
TEST(NocNetwork, IsTheReferenceOnEightByEight) {
  expect_same({.width = 8, .height = 8, .packets = 1500}, 5000, 3);
}
TEST(NocNetwork, IsTheReferenceOnTheGridOfWormhole) {
  expect_same({.width = 10, .height = 12, .packets = 2000}, 6000, 2);
}
TEST(NocNetwork, IsTheReferenceOnTheGridOfBlackhole) {
  expect_same({.width = 17, .height = 12, .packets = 2500}, 7000, 1);
}
TEST(NocNetwork, MulticastsAsTheReference) {
  expect_same({.width = 2, .height = 2, .packets = 200, .has_multicasts = true}, 10'000, 20);
  expect_same({.width = 3, .height = 5, .packets = 300, .has_multicasts = true}, 11'000, 10);
  expect_same({.width = 10, .height = 12, .packets = 400, .has_multicasts = true}, 12'000, 1);
}

// Every flit of every link in every cycle.
TEST(NocNetwork, MovesEveryFlitInTheCycleOfTheReference) {
  for (const bool has_multicasts : {false, true}) {
    for (std::uint64_t seed = 20'000; seed < 20'006; ++seed) {
      const Traffic traffic = random_traffic(
          {.width = 3, .height = 3, .packets = 200, .has_multicasts = has_multicasts}, seed);
      Player<ReferenceNetwork> reference(traffic);
      Player<FlitNetwork> player(traffic);
      while (reference.network().now() < 5000 && !reference.is_done()) {
        reference.step();
        player.step();
        ASSERT_EQ(link_flits(player.network(), 9), link_flits(reference.network(), 9))
            << "seed " << seed << ", cycle " << reference.network().now();
      }
    }
  }
}

// --- conservation -------------------------------------------------------------------------------

// Counts every flit that a NIU takes.
class FlitCounter final : public Endpoint {
 public:
  void packet_started(const Packet&, Cycle) override {}
  void packet_sent(const Packet&, Cycle) override {}
  void packet_received(const Packet& packet, int node, int, Cycle) override {
    received.emplace_back(node, packet);
  }
  Cycle flit_received(const Packet& packet, int node, Cycle now) override {
    ++flits[{packet.tag, node}];
    return now + 1;
  }

  std::map<std::pair<std::uint64_t, int>, int> flits;  // by packet and where it arrived
  std::vector<std::pair<int, Packet>> received;
};

struct Outcome {
  FlitCounter counter;
  std::vector<std::int64_t> link_flits;
};

// All packets at once, each NIU taking a flit per cycle.
void run(const std::vector<Packet>& packets, int width, int height, Outcome& outcome) {
  const machine::Chip chip = plain_chip(width, height);
  FlitNetwork network(chip, 0, outcome.counter, 1);
  for (int node = 0; node < width * height; ++node) network.pace_by_endpoint(node);
  for (const Packet& packet : packets) network.send(packet);
  while (network.packets_in_flight() > 0 && network.now() < 1'000'000) network.step();
  ASSERT_EQ(network.packets_in_flight(), 0) << network.describe_deadlock();
  outcome.link_flits = link_flits(network, width * height);
}

std::vector<Packet> random_packets(int nodes, int count, bool keeps_vc) {
  sim::Random random(1, "packets");
  const auto between = [&](int first, int last) {
    return static_cast<int>(random.between(first, last));
  };
  std::vector<Packet> packets(static_cast<std::size_t>(count));
  for (Packet& packet : packets) {
    packet.source = between(0, nodes - 1);
    packet.destination = between(0, nodes - 1);
    packet.flits = between(0, 1) == 0 ? 1 : between(1, 257);
    packet.packet_class = static_cast<std::uint8_t>(between(0, 3));
    packet.buddy = static_cast<std::uint8_t>(between(0, 1));
    packet.keeps_buddy = packet.keeps_class = keeps_vc;
    packet.lane = static_cast<std::uint8_t>(packet.packet_class << 1 | packet.buddy);
    packet.tag = static_cast<std::uint64_t>(&packet - packets.data());
  }
  return packets;
}

TEST(NocNetwork, DeliversEveryFlitOnceAndToItsDestination) {
  const std::vector<Packet> packets = random_packets(30, 2000, false);
  Outcome outcome;
  run(packets, 5, 6, outcome);
  ASSERT_EQ(outcome.counter.flits.size(), packets.size());
  ASSERT_EQ(outcome.counter.received.size(), packets.size());
  for (const Packet& packet : packets) {
    EXPECT_EQ((outcome.counter.flits[{packet.tag, packet.destination}]), packet.flits);
  }
}

// A packet crosses its own hops and no more: counted link by link.
TEST(NocNetwork, TakesTheShortestWayTheTorusHas) {
  const std::vector<Packet> packets = random_packets(30, 500, false);
  Outcome outcome;
  run(packets, 5, 6, outcome);
  std::vector<std::int64_t> expected(30 * 4, 0);
  for (const Packet& packet : packets) {
    int x = packet.source % 5;
    int y = packet.source / 5;
    const auto cross = [&](int port) {
      expected[static_cast<std::size_t>((y * 5 + x) * 4 + port)] += packet.flits;
    };
    cross(kFromNiu);
    for (; x != packet.destination % 5; x = (x + 1) % 5) cross(kX);
    for (; y != packet.destination / 5; y = (y + 1) % 6) cross(kY);
    cross(kNiu);
  }
  EXPECT_EQ(outcome.link_flits, expected);
}

// Sent on one lane, hence one VC, and static: no packet overtakes another on the same route.
TEST(NocNetwork, KeepsTheOrderOfAStaticVc) {
  const std::vector<Packet> packets = random_packets(12, 3000, true);
  Outcome outcome;
  run(packets, 3, 4, outcome);
  std::map<std::tuple<int, int, int>, std::uint64_t> last;  // by source, VC, destination
  for (const auto& [node, packet] : outcome.counter.received) {
    EXPECT_EQ(node, packet.destination);
    const auto [known, is_first] =
        last.try_emplace({packet.source, packet.lane, packet.destination}, packet.tag);
    if (is_first) continue;
    EXPECT_LT(known->second, packet.tag);
    known->second = packet.tag;
  }
}

// --- skipping -----------------------------------------------------------------------------------

TEST(NocNetwork, MaySkipOnlyCyclesWithoutWork) {
  Traffic traffic{plain_chip(4, 4)};
  traffic.injections.push_back({0, {.source = 0, .destination = 1, .header_at = 100}});
  Player<FlitNetwork> player(traffic);
  FlitNetwork& network = player.network();
  player.step();
  EXPECT_EQ(network.next_work(), 100);
  EXPECT_THROW(network.skip_to(101), InvariantError);
  network.skip_to(100);
  network.step();
  EXPECT_EQ(network.link_flits(0, kFromNiu), 1);
  EXPECT_THROW(network.skip_to(100), InvariantError);
}

TEST(NocNetwork, HasNoMoreWorkOnceEverythingArrived) {
  Traffic traffic{plain_chip(4, 4)};
  traffic.injections.push_back({0, {.source = 0, .destination = 15, .flits = 257}});
  Player<FlitNetwork> player(traffic);
  for (int i = 0; i < 1000; ++i) player.step();
  EXPECT_TRUE(player.is_done());
  EXPECT_EQ(player.network().next_work(), kNever);
}

TEST(NocNetwork, RefusesPacketsOfImpossibleSize) {
  Traffic traffic{plain_chip(2, 2)};
  Player<FlitNetwork> player(traffic);
  EXPECT_THROW(player.network().send({.flits = 0}), InvariantError);
  EXPECT_THROW(player.network().send({.flits = 258}), InvariantError);
  EXPECT_THROW(player.network().send({.flits = 1, .lane = 8}), InvariantError);
}

void run(Player<FlitNetwork>& player, Cycle cycles) {
  while (!player.is_done() && player.network().now() < cycles) player.step();
}

Cycle received(const Player<FlitNetwork>& player) {
  for (const Event& event : player.events()) {
    if (event.kind == Event::received) return event.at;
  }
  return -1;
}

// The end of the first hold ends the second as well.
TEST(NocNetwork, TheLongerOfTwoHoldsCounts) {
  Traffic traffic{plain_chip(2, 1)};
  traffic.injections = {{0, {.source = 0, .destination = 1, .tag = 1}}};
  traffic.holds = {{0, 1, 0, 100}, {0, 1, 0, 300}};
  Player<FlitNetwork> player(traffic);
  run(player, 1000);
  EXPECT_EQ(received(player), 300);
}

// The link from node 1, whose VCs are released 30 cycles after a packet. Node 0's first packet
// leaves on VC 0 in cycles 14 and 34, its second is there in cycle 35; a packet of one flit leaves
// on VC 1 in cycle 24. A dynamic one waits for either from cycle 25 on and gets VC 1 when that is
// released, in cycle 54. From then on the second from node 0 is alone with VC 0, where it may
// follow the first: in cycle 55. It leaves when VC 0 is released for all, in cycle 64.
TEST(NocNetwork, AVcGoesToItsOnlyContenderAlsoWhenTheOtherHasLeft) {
  Traffic traffic{plain_chip(4, 1)};
  traffic.chip.router.vc_release_cycles = 30;
  Packet first{.source = 0, .destination = 2, .flits = 2};
  first.data_at = 20 * kPaceCycle;
  const Packet second{.source = 0, .destination = 2};
  const Packet on_vc_1{.source = 1, .destination = 2, .buddy = 1, .lane = 1, .header_at = 19};
  const Packet dynamic{
      .source = 1, .destination = 2, .keeps_buddy = false, .lane = 2, .header_at = 20};
  traffic.injections = {{0, first}, {0, second}, {0, on_vc_1}, {0, dynamic}};
  Player<FlitNetwork> player(traffic);
  run(player, 54);
  EXPECT_EQ(player.network().link_flits(1, kX), 3);
  run(player, 55);
  EXPECT_EQ(player.network().link_flits(1, kX), 4);
  run(player, 56);
  EXPECT_EQ(player.network().link_flits(1, kX), 5);
}

// With one class the other class is the dateline's VC of the first.
TEST(NocNetwork, APacketOfANetworkWithOneClassStaysInIt) {
  Traffic traffic{plain_chip(4, 1)};
  traffic.chip.router.classes = 1;
  for (int i = 0; i < 2; ++i) {
    Packet packet{.source = 0, .destination = 1, .flits = 257, .keeps_class = false};
    packet.lane = static_cast<std::uint8_t>(i);
    packet.tag = static_cast<std::uint64_t>(i);
    traffic.injections.push_back({0, packet});
  }
  Player<FlitNetwork> player(traffic);
  run(player, 2000);
  for (const Event& event : player.events()) {
    EXPECT_LT(event.vc, 2) << to_string(event);
  }
}

TEST(NocNetwork, RefusesAClassThatItHasNot) {
  Traffic traffic{plain_chip(2, 1)};
  traffic.chip.router.classes = 2;
  Player<FlitNetwork> player(traffic);
  EXPECT_THROW(player.network().send({.packet_class = 2}), InvariantError);
}

}  // namespace
}  // namespace towpath::noc
