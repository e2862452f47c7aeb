// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "noc_traffic.hpp"
#include "towpath/base/invariant.hpp"
#include "towpath/sim/random.hpp"

namespace towpath::noc {
namespace {

Packet multicast(int source, int flits, std::uint64_t tag, int buddy = 0) {
  Packet packet;
  packet.source = source;
  packet.flits = flits;
  packet.packet_class = static_cast<std::uint8_t>(PacketClass::broadcast);
  packet.buddy = static_cast<std::uint8_t>(buddy);
  packet.tag = tag;
  return packet;
}

Packet linked(Packet packet) {
  packet.keeps_path = true;
  return packet;
}

void run_until_done(Player<FlitNetwork>& player) {
  while (!player.is_done() && player.network().now() < 1'000'000) player.step();
  ASSERT_TRUE(player.is_done());
}

// How often each packet was received, by packet and node.
std::map<std::pair<std::uint64_t, int>, int> copies(const Player<FlitNetwork>& player) {
  std::map<std::pair<std::uint64_t, int>, int> result;
  for (const Event& event : player.events()) {
    if (event.kind == Event::received) ++result[{event.tag, event.node}];
  }
  return result;
}

Cycle last_received(const Player<FlitNetwork>& player, std::uint64_t tag) {
  Cycle last = -1;
  for (const Event& event : player.events()) {
    if (event.kind == Event::received && event.tag == tag) last = event.at;
  }
  return last;
}

Cycle first_received(const Player<FlitNetwork>& player, std::uint64_t tag) {
  for (const Event& event : player.events()) {
    if (event.kind == Event::received && event.tag == tag) return event.at;
  }
  return -1;
}

// Any set of destinations, with or without the source, from any source and on either NoC.
TEST(NocMulticast, GivesOneCopyToEachDestinationAndToNoOtherNode) {
  sim::Random random(1, "destinations");
  for (int noc = 0; noc < 2; ++noc) {
    Traffic traffic{plain_chip(5, 6), noc};
    std::map<std::pair<std::uint64_t, int>, int> expected;
    for (int number = 0; number < 200; ++number) {
      const auto tag = static_cast<std::uint64_t>(number);
      const int source = static_cast<int>(random.below(30));
      Injection injection{0, multicast(source, static_cast<int>(random.between(1, 40)), tag)};
      const std::uint64_t one_in = 1 + random.below(6);
      for (int node = 0; node < 30; ++node) {
        if (random.below(one_in) == 0) injection.destinations.push_back(node);
      }
      if (injection.destinations.empty()) injection.destinations.push_back(source);
      for (const int node : injection.destinations) expected[{tag, node}] = 1;
      traffic.injections.push_back(injection);
    }
    Player<FlitNetwork> player(traffic);
    run_until_done(player);
    EXPECT_EQ(copies(player), expected);
  }
}

using Place = std::pair<int, int>;  // node and port

// Each of the 7 flits of a multicast goes once over its source's link, each link that is named and
// each destination's, and over no other. Nodes of a 4 x 4 grid are numbered along the axis that the
// NoC takes first.
void expect_links(int noc, int source, const std::vector<int>& destinations,
                  const std::vector<Place>& links) {
  Traffic traffic{plain_chip(4, 4), noc};
  traffic.injections = {{0, multicast(source, 7, 1), destinations}};
  Player<FlitNetwork> player(traffic);
  run_until_done(player);
  std::map<Place, std::int64_t> expected{{{source, kFromNiu}, 7}};
  for (const Place& link : links) expected[link] = 7;
  for (const int node : destinations) expected[{node, kNiu}] = 7;
  for (int node = 0; node < 16; ++node) {
    for (int port = 0; port <= kFromNiu; ++port) {
      EXPECT_EQ(player.network().link_flits(node, port), (expected[{node, port}]))
          << "node " << node << " port " << port;
    }
  }
}

// Along the source's row to the first column, down that column, and from it along both rows.
TEST(NocMulticast, GoesAlongTheRowDownTheFirstColumnAndAlongTheRows) {
  expect_links(0, 0, {5, 6, 9, 10}, {{0, kX}, {1, kY}, {5, kY}, {5, kX}, {9, kX}});
}

// From a column that has destinations it goes down at once, and round the edge of each row.
TEST(NocMulticast, ToTheRowAboveStartsInTheColumnOfItsSource) {
  expect_links(0, 5, {0, 1, 2, 3}, {{5, kY}, {9, kY}, {13, kY}, {1, kX}, {2, kX}, {3, kX}});
}

// NoC 1 takes the chip's y axis first for all other packets, and multicasts along x as NoC 0.
TEST(NocMulticast, GoesAlongTheRowFirstOnNoc1Too) {
  expect_links(1, 0, {5, 6, 9, 10}, {{0, kY}, {4, kX}, {5, kX}, {5, kY}, {6, kY}});
}

// Between the two linked ones and the last, long after they have gone, no other packet gets the
// path.
TEST(NocMulticast, LinkedKeepsThePathUntilOneThatIsNot) {
  Traffic traffic{plain_chip(4, 4)};
  traffic.injections = {{0, linked(multicast(0, 10, 1)), {1, 2, 3}},
                        {0, linked(multicast(0, 10, 2)), {1, 2, 3}},
                        {300, multicast(1, 1, 3), {2}},
                        {5000, multicast(0, 10, 4), {1, 2, 3}}};
  Player<FlitNetwork> player(traffic);
  run_until_done(player);
  EXPECT_LT(last_received(player, 2), 300);
  EXPECT_EQ(last_received(player, 4), 5000 + 5 + 3 * 9 + 5 + 9);  // no reservation any more
  // Its last flit leaves node 1 in cycle 5000 + 9 + 5 + 9; only then is there a path for the third.
  EXPECT_GT(first_received(player, 3), 5023 + 9);
}

// The VC of the other buddy is another path.
TEST(NocMulticast, OfTheOtherBuddyPassesALinkedOne) {
  Traffic traffic{plain_chip(4, 4)};
  traffic.injections = {{0, linked(multicast(0, 10, 1)), {1, 2, 3}},
                        {300, multicast(1, 1, 2, 1), {2}},
                        {5000, multicast(0, 10, 3), {1, 2, 3}}};
  Player<FlitNetwork> player(traffic);
  run_until_done(player);
  EXPECT_EQ(first_received(player, 2), 300 + 4 + 16 + 5 + 9 + 5);
}

// Both need the links to nodes 2 and 3. A refused one releases what it has and tries again.
TEST(NocMulticast, TwoInConflictFinishOneAfterTheOther) {
  Traffic traffic{plain_chip(4, 4)};
  traffic.injections = {{0, multicast(0, 100, 1), {2, 3}}, {0, multicast(1, 100, 2), {2, 3}}};
  Player<FlitNetwork> player(traffic);
  run_until_done(player);
  EXPECT_EQ(copies(player).size(), 4);
  const bool is_one_first = last_received(player, 1) < last_received(player, 2);
  EXPECT_GT(first_received(player, is_one_first ? 2 : 1),
            last_received(player, is_one_first ? 1 : 2));
}

// Probes of both set out at once and meet all over the grid.
TEST(NocMulticast, TwoThatRefuseEachOtherBothFinish) {
  for (int distance = 1; distance < 16; ++distance) {
    Traffic traffic{plain_chip(4, 4)};
    std::vector<int> all;
    for (int node = 0; node < 16; ++node) all.push_back(node);
    traffic.injections = {{0, multicast(0, 100, 1), all}, {0, multicast(distance, 100, 2), all}};
    Player<FlitNetwork> player(traffic);
    run_until_done(player);
    EXPECT_EQ(copies(player).size(), 32);
  }
}

TEST(NocMulticast, OfEveryNodeToEveryNodeAllFinish) {
  Traffic traffic{plain_chip(6, 6)};
  std::vector<int> all;
  for (int node = 0; node < 36; ++node) all.push_back(node);
  for (int node = 0; node < 36; ++node) {
    traffic.injections.push_back({0, multicast(node, 20, static_cast<std::uint64_t>(node)), all});
  }
  Player<FlitNetwork> player(traffic);
  run_until_done(player);
  EXPECT_EQ(copies(player).size(), 36 * 36);
}

TEST(NocMulticast, NeedsADestinationAndAClassOfItsOwn) {
  Traffic traffic{plain_chip(4, 4)};
  Player<FlitNetwork> player(traffic);
  EXPECT_THROW(player.network().send_multicast(multicast(0, 1, 1), {}), InvariantError);
  traffic.chip.router.classes = 2;
  Player<FlitNetwork> of_two_classes(traffic);
  EXPECT_THROW(of_two_classes.network().send_multicast(multicast(0, 1, 1), {1}), InvariantError);
}

void run(Player<FlitNetwork>& player, Cycle cycles) {
  while (!player.is_done() && player.network().now() < cycles) player.step();
}

Cycle sent(const Player<FlitNetwork>& player, std::uint64_t tag) {
  for (const Event& event : player.events()) {
    if (event.kind == Event::sent && event.tag == tag) return event.at;
  }
  return -1;
}

// Software sends a block as linked packets of one initiator and a flag, not linked, of another. The
// flag must not come in between: it would arrive before the data, and release the path that the
// second packet of data then takes anyway.
TEST(NocMulticast, LinkedPacketsStayTogetherWhateverTheirLanes) {
  Traffic traffic{plain_chip(4, 1)};
  Packet data = multicast(0, 257, 1);
  data.keeps_path = true;
  Packet more = data;
  more.tag = 2;
  Packet flag = multicast(0, 1, 3);
  flag.lane = 1;
  traffic.injections = {{0, data, {1, 2}}, {0, more, {1, 2}}, {0, flag, {1, 2}}};
  Player<FlitNetwork> player(traffic);
  run(player, 10'000);
  EXPECT_LT(last_received(player, 1), last_received(player, 2));
  EXPECT_LT(last_received(player, 2), last_received(player, 3));
}

// Between the two linked packets another initiator's multicast takes the VC to the router and waits
// for the path that only the second linked packet gives back.
TEST(NocMulticast, OfAnotherLaneWaitsForTheEndOfLinkedOnes) {
  Traffic traffic{plain_chip(4, 1)};
  Packet data = multicast(0, 257, 1);
  data.keeps_path = true;
  const Packet last = multicast(0, 257, 2);
  Packet other = multicast(0, 1, 3);
  other.lane = 1;
  traffic.injections = {{0, data, {1, 2}}, {0, last, {1, 2}}, {0, other, {1, 2}}};
  Player<FlitNetwork> player(traffic);
  run(player, 10'000);
  EXPECT_TRUE(player.is_done());
}

// The second takes the buddy's VC at the NIU and then the first one's at every router, where their
// flits mix: node 3 is said to have received the first before it has it all.
TEST(NocMulticast, KeepsTheVcThatWasReserved) {
  Traffic traffic{plain_chip(4, 1)};
  Packet first = multicast(0, 257, 1);
  first.keeps_path = true;
  first.keeps_buddy = false;
  Packet second = multicast(0, 257, 2);
  second.keeps_buddy = false;
  second.lane = 1;
  traffic.injections = {{0, first, {3}}, {0, second, {3}}};
  Player<FlitNetwork> player(traffic);
  run(player, 10'000);
  EXPECT_LT(sent(player, 1), last_received(player, 1));
}

// Node 1's multicast has the link from node 1 when node 2's refuses it, and gives it back when the
// refusal passes, in cycle 2 + 9 + 7. Since cycle 14 the unicast has waited for that VC.
TEST(NocMulticast, AUnicastGetsAVcThatARefusedReservationGaveBack) {
  Traffic traffic{plain_chip(6, 1)};
  traffic.injections = {{0, multicast(2, 257, 1), {4}},
                        {0, multicast(1, 1, 2), {4}},
                        {0, {.source = 0, .destination = 2, .packet_class = 2, .tag = 3}}};
  Player<FlitNetwork> player(traffic);
  run(player, 10'000);
  EXPECT_EQ(last_received(player, 3), 18 + 9 + 5);
}

}  // namespace
}  // namespace towpath::noc
