// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "noc_traffic.hpp"
#include "towpath/sim/invariant.hpp"

// What Network does not do yet as its contract says.

namespace towpath::noc {
namespace {

Packet multicast(int source, int flits, std::uint64_t tag) {
  Packet packet;
  packet.source = source;
  packet.flits = flits;
  packet.packet_class = static_cast<std::uint8_t>(PacketClass::broadcast);
  packet.tag = tag;
  return packet;
}

void run(Player<Network>& player, Cycle cycles) {
  while (!player.is_done() && player.network().now() < cycles) player.step();
}

Cycle time_of(Event::Kind kind, const Player<Network>& player, std::uint64_t tag) {
  for (const Event& event : player.events()) {
    if (event.kind == kind && event.tag == tag) return event.at;
  }
  return -1;
}
Cycle sent(const Player<Network>& player, std::uint64_t tag) {
  return time_of(Event::sent, player, tag);
}
Cycle received(const Player<Network>& player, std::uint64_t tag) {
  return time_of(Event::received, player, tag);
}

// The end of the first hold ends the second as well.
TEST(NocOpen, TheLongerOfTwoHoldsCounts) {
  Traffic traffic{plain_chip(2, 1)};
  traffic.injections = {{0, {.source = 0, .destination = 1, .tag = 1}}};
  traffic.holds = {{0, 1, 0, 100}, {0, 1, 0, 300}};
  Player<Network> player(traffic);
  run(player, 1000);
  EXPECT_EQ(received(player, 1), 300);
}

// Software sends a block as linked packets of one initiator and a flag, not linked, of another.
// The flag must not come in between: it would be there before the data, and give back the path
// that the second packet of data then takes all the same.
TEST(NocOpen, LinkedPacketsStayTogetherWhateverTheirLanes) {
  Traffic traffic{plain_chip(4, 1)};
  Packet data = multicast(0, 257, 1);
  data.keeps_path = true;
  Packet more = data;
  more.tag = 2;
  Packet flag = multicast(0, 1, 3);
  flag.lane = 1;
  traffic.injections = {{0, data, {1, 2}}, {0, more, {1, 2}}, {0, flag, {1, 2}}};
  Player<Network> player(traffic);
  run(player, 10'000);
  EXPECT_LT(received(player, 1), received(player, 2));
  EXPECT_LT(received(player, 2), received(player, 3));
}

// Between the two linked packets another initiator's multicast takes the VC to the router and waits
// for the path that only the second linked packet gives back.
TEST(NocOpen, AMulticastOfAnotherLaneWaitsForTheEndOfLinkedOnes) {
  Traffic traffic{plain_chip(4, 1)};
  Packet data = multicast(0, 257, 1);
  data.keeps_path = true;
  const Packet last = multicast(0, 257, 2);
  Packet other = multicast(0, 1, 3);
  other.lane = 1;
  traffic.injections = {{0, data, {1, 2}}, {0, last, {1, 2}}, {0, other, {1, 2}}};
  Player<Network> player(traffic);
  run(player, 10'000);
  EXPECT_TRUE(player.is_done());
}

// The second takes the buddy's VC at the NIU and then the first one's at every router, where their
// flits mix: node 3 is said to have received the first before it has it all.
TEST(NocOpen, AMulticastKeepsTheVcThatWasReserved) {
  Traffic traffic{plain_chip(4, 1)};
  Packet first = multicast(0, 257, 1);
  first.keeps_path = true;
  first.keeps_buddy = false;
  Packet second = multicast(0, 257, 2);
  second.keeps_buddy = false;
  second.lane = 1;
  traffic.injections = {{0, first, {3}}, {0, second, {3}}};
  Player<Network> player(traffic);
  run(player, 10'000);
  EXPECT_LT(sent(player, 1), received(player, 1));
}

// Node 1's multicast has the link from node 1 when node 2's refuses it, and gives it back when it
// knows, in cycle 5 + 9 + 7 + 5. Since cycle 14 the unicast has waited for that VC.
TEST(NocOpen, AUnicastGetsAVcThatARefusedReservationGaveBack) {
  Traffic traffic{plain_chip(6, 1)};
  traffic.injections = {{0, multicast(2, 257, 1), {4}},
                        {0, multicast(1, 1, 2), {4}},
                        {0, {.source = 0, .destination = 2, .packet_class = 2, .tag = 3}}};
  Player<Network> player(traffic);
  run(player, 10'000);
  EXPECT_EQ(received(player, 3), 26 + 9 + 5);
}

// The link from node 1, whose VCs are released 30 cycles after a packet. Node 0's first packet
// leaves on VC 0 in cycles 14 and 34, its second is there in cycle 35; a packet of one flit leaves
// on VC 1 in cycle 24. A dynamic one waits for either from cycle 25 on and gets VC 1 when that is
// released, in cycle 54. From then on the second from node 0 is alone with VC 0, where it may
// follow the first: in cycle 55. It leaves when VC 0 is released for all, in cycle 64.
TEST(NocOpen, AVcGoesToItsOnlyContenderAlsoWhenTheOtherHasLeft) {
  Traffic traffic{plain_chip(4, 1)};
  traffic.chip.router.vc_release_cycles = 30;
  Packet first{.source = 0, .destination = 2, .flits = 2};
  first.data_at = 20 * kPaceCycle;
  const Packet second{.source = 0, .destination = 2};
  const Packet on_vc_1{.source = 1, .destination = 2, .buddy = 1, .lane = 1, .header_at = 19};
  const Packet dynamic{
      .source = 1, .destination = 2, .keeps_buddy = false, .lane = 2, .header_at = 20};
  traffic.injections = {{0, first}, {0, second}, {0, on_vc_1}, {0, dynamic}};
  Player<Network> player(traffic);
  run(player, 54);
  EXPECT_EQ(player.network().link_flits(1, Network::kX), 3);
  run(player, 55);
  EXPECT_EQ(player.network().link_flits(1, Network::kX), 4);
  run(player, 56);
  EXPECT_EQ(player.network().link_flits(1, Network::kX), 5);
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t times = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++times;
  return times;
}

// Buffers are counted, not packets, and a packet stands in two of them.
TEST(NocOpen, ADeadlockNamesEachPacketOnce) {
  Traffic traffic{plain_chip(4, 1)};
  traffic.chip.router.has_dateline = false;
  for (int node = 0; node < 4; ++node) {
    const int destination = (node + 2) % 4;
    traffic.injections.push_back({0, {.source = node, .destination = destination, .flits = 257}});
  }
  Player<Network> player(traffic);
  run(player, 2000);
  const std::string sentence = player.network().describe_deadlock();
  EXPECT_TRUE(sentence.starts_with("deadlock of 4 packets: ")) << sentence;
  EXPECT_EQ(count(sentence, "the packet from"), 4) << sentence;
}

// With one class the other class is the dateline's VC of the first.
TEST(NocOpen, APacketOfANetworkWithOneClassStaysInIt) {
  Traffic traffic{plain_chip(4, 1)};
  traffic.chip.router.classes = 1;
  for (int i = 0; i < 2; ++i) {
    Packet packet{.source = 0, .destination = 1, .flits = 257, .keeps_class = false};
    packet.lane = static_cast<std::uint8_t>(i);
    packet.tag = static_cast<std::uint64_t>(i);
    traffic.injections.push_back({0, packet});
  }
  Player<Network> player(traffic);
  run(player, 2000);
  for (const Event& event : player.events()) {
    EXPECT_LT(event.vc, 2) << to_string(event);
  }
}

TEST(NocOpen, RefusesAClassThatItHasNot) {
  Traffic traffic{plain_chip(2, 1)};
  traffic.chip.router.classes = 2;
  Player<Network> player(traffic);
  EXPECT_THROW(player.network().send({.packet_class = 2}), sim::InvariantError);
}

}  // namespace
}  // namespace towpath::noc
