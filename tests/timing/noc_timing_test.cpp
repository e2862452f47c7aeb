// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <span>

#include "noc_traffic.hpp"

// The parameters are the default ones: a hop 9 cycles, to and from the NIU 5 each, a credit back 7,
// a slot of its own per VC and 48 shared, of which a VC takes 15 and the last 3 are not given.

namespace towpath::noc {
namespace {

// A packet whose data is there from the start.
Packet packet(int source, int destination, int flits, int vc = 0) {
  Packet packet;
  packet.source = source;
  packet.destination = destination;
  packet.flits = flits;
  packet.packet_class = static_cast<std::uint8_t>(vc >> 1);
  packet.buddy = vc & 1;
  packet.lane = static_cast<std::uint8_t>(vc);
  return packet;
}

// `count` packets of full size, one behind the other.
void add_stream(Traffic& traffic, int source, int destination, int vc, int count) {
  for (int i = 0; i < count; ++i) {
    traffic.injections.push_back({0, packet(source, destination, 257, vc)});
  }
}

void hold_for_ever(Traffic& traffic, int node, int vc) {
  traffic.holds.push_back({0, node, vc, kNever - 1});
}

// Simulates all cycles before this one.
void run_until(Player<FlitNetwork>& player, Cycle cycle) {
  while (player.network().now() < cycle) player.step();
}

std::int64_t flits_in(Player<FlitNetwork>& player, int node, int port, Cycle cycles) {
  const std::int64_t before = player.network().link_flits(node, port);
  run_until(player, player.network().now() + cycles);
  return player.network().link_flits(node, port) - before;
}

void expect_received(const Traffic& traffic, Cycle at) {
  Player<FlitNetwork> player(traffic);
  const auto is_received = [&] {
    return !player.events().empty() && player.events().back().kind == Event::received;
  };
  run_until(player, at);  // hence not in the cycle before
  EXPECT_FALSE(is_received());
  player.step();
  EXPECT_TRUE(is_received());
}

// 5 + 9 hops + 5, whichever way it turns: node 0 to (3, 0), (0, 2), (3, 2), itself, and round the
// edge from (3, 2) to (2, 1): 3 + 2 hops.
TEST(NocTiming, AHeaderTakesNineCyclesAHopAndFiveForEachNiu) {
  for (const int noc : {0, 1}) {
    Traffic traffic{plain_chip(4, 4)};
    traffic.noc = noc;
    const auto expect = [&](int source, int destination, Cycle at) {
      traffic.injections = {{0, packet(source, destination, 1)}};
      traffic.injections[0].packet.header_at = 100;
      expect_received(traffic, at);
    };
    expect(0, 3, 100 + 5 + 27 + 5);
    expect(0, 8, 100 + 5 + 18 + 5);
    expect(0, 11, 100 + 5 + 45 + 5);
    expect(0, 0, 100 + 5 + 5);
    expect(11, 6, 100 + 5 + 54 + 5);
  }
}

TEST(NocTiming, EachWayOfTheNiuHasItsOwnLatency) {
  Traffic traffic{plain_chip(2, 1)};
  traffic.chip.router.niu_to_router_cycles = 3;
  traffic.chip.router.router_to_niu_cycles = 7;
  traffic.injections = {{0, packet(0, 1, 1)}};
  expect_received(traffic, 3 + 9 + 7);
}

// The last of 257 flits is 256 cycles behind the header.
TEST(NocTiming, APacketIsAFlitPerCycle) {
  Traffic traffic{plain_chip(2, 1)};
  traffic.injections = {{0, packet(0, 1, 257)}};
  expect_received(traffic, 5 + 9 + 5 + 256);
}

// The header leaves in cycle 10. Data flits are there from 50.5 on, 3 cycles apart: the fourth
// leaves in cycle ceil(59.5).
TEST(NocTiming, DataFlitsLeaveWhenTheyAreThere) {
  Traffic traffic{plain_chip(2, 1)};
  traffic.injections = {{0, packet(0, 1, 5)}};
  Packet& sent = traffic.injections[0].packet;
  sent.header_at = 10;
  sent.data_at = 50 * kPaceCycle + kPaceCycle / 2;
  sent.data_interval = 3 * kPaceCycle;
  Player<FlitNetwork> player(traffic);
  run_until(player, 10);
  EXPECT_EQ(player.network().link_flits(0, kFromNiu), 0);
  run_until(player, 51);
  EXPECT_EQ(player.network().link_flits(0, kFromNiu), 1);
  run_until(player, 52);
  EXPECT_EQ(player.network().link_flits(0, kFromNiu), 2);
  expect_received(traffic, 60 + 5 + 9 + 5);
}

// --- credits and buffers ------------------------------------------------------------------------

// 1 + 15 slots, and a slot is free again 9 + 7 = 16 cycles after the flit left for it: each flit
// finds the slot of the 16th before it. A cycle more, and of 17 cycles one stays empty.
TEST(NocTiming, AVcSustainsAFlitPerCycleAndOneCycleMoreOfTheCreditItCannot) {
  Traffic traffic{plain_chip(3, 1)};
  add_stream(traffic, 0, 2, 0, 20);
  Player<FlitNetwork> player(traffic);
  run_until(player, 100);
  EXPECT_EQ(flits_in(player, 0, kX, 3400), 3400);

  traffic.chip.router.credit_return_cycles = 8;
  Player<FlitNetwork> slower(traffic);
  run_until(slower, 100);
  EXPECT_EQ(flits_in(slower, 0, kX, 3400), 3200);
}

// The first leaves the NIU in cycle 0 and its router in cycle 5; the 16th 15 cycles later. With
// the credit of the first known in cycle 5 + 9 + 8, that is when the 17th leaves.
TEST(NocTiming, TheSeventeenthFlitWaitsForTheFirstCredit) {
  Traffic traffic{plain_chip(3, 1)};
  traffic.chip.router.credit_return_cycles = 8;
  add_stream(traffic, 0, 2, 0, 1);
  Player<FlitNetwork> player(traffic);
  run_until(player, 21);
  EXPECT_EQ(player.network().link_flits(0, kX), 16);
  run_until(player, 22);
  EXPECT_EQ(player.network().link_flits(0, kX), 16);
  run_until(player, 23);
  EXPECT_EQ(player.network().link_flits(0, kX), 17);
}

// 16 flits in front of the NIU that takes none, 16 before the link, 16 at the source's router.
TEST(NocTiming, AStalledVcTakesItsSlotAndFifteenOfThePool) {
  Traffic traffic{plain_chip(3, 1)};
  add_stream(traffic, 0, 1, 0, 1);
  hold_for_ever(traffic, 1, 0);
  Player<FlitNetwork> player(traffic);
  run_until(player, 2000);
  EXPECT_EQ(player.network().link_flits(1, kNiu), 16);
  EXPECT_EQ(player.network().link_flits(0, kX), 32);
  EXPECT_EQ(player.network().link_flits(0, kFromNiu), 48);
}

// With no cap a VC takes the pool of 48 but for the last 3, and its own slot.
TEST(NocTiming, ThePoolIsFullWithThreeSlotsLeft) {
  Traffic traffic{plain_chip(3, 1)};
  traffic.chip.router.pool_flits_per_vc_max = 48;
  add_stream(traffic, 0, 1, 0, 1);
  hold_for_ever(traffic, 1, 0);
  Player<FlitNetwork> player(traffic);
  run_until(player, 2000);
  EXPECT_EQ(player.network().link_flits(1, kNiu), 46);
  traffic.chip.router.pool_flits_reserved = 0;
  Player<FlitNetwork> whole(traffic);
  run_until(whole, 2000);
  EXPECT_EQ(whole.network().link_flits(1, kNiu), 49);
}

// Nodes 0 to 3 in a row. Node 1 stalls `stalled` VCs on the link to node 2, which takes nothing of
// them; a stream from node 0 to node 3 on a VC of its own passes there too. Its flits per 1,600
// cycles.
std::int64_t flits_beside_stalled_vcs(int stalled, int free_vc = 7, int for_responses = 0) {
  Traffic traffic{plain_chip(5, 1)};
  traffic.chip.router.pool_flits_for_responses = for_responses;
  for (int vc = 0; vc < stalled; ++vc) {
    add_stream(traffic, 1, 2, vc, 1);
    hold_for_ever(traffic, 2, vc);
  }
  const std::size_t stalling = traffic.injections.size();
  add_stream(traffic, 0, 3, free_vc, 20);
  for (Injection& injection : std::span(traffic.injections).subspan(stalling)) injection.at = 500;
  Player<FlitNetwork> player(traffic);
  run_until(player, 1000);
  return flits_in(player, 1, kX, 1600);
}

// As measured on silicon: the buffers suffice for three VCs. Two stalled ones hold 2 x 15 of the
// pool and leave 15. Three hold 45, the rest is reserved, and any further VC has only its own slot:
// a flit each 9 + 7 cycles.
TEST(NocTiming, BesideTwoStalledVcsAnotherRunsInFullAndBesideThreeAtASixteenth) {
  EXPECT_EQ(flits_beside_stalled_vcs(0), 1600);
  EXPECT_EQ(flits_beside_stalled_vcs(1), 1600);
  EXPECT_EQ(flits_beside_stalled_vcs(2), 1600);
  EXPECT_EQ(flits_beside_stalled_vcs(3), 100);
  EXPECT_EQ(flits_beside_stalled_vcs(5), 100);
}

// A response finds a slot of the reserve beside its own, two flits each 16 cycles; a request does
// not.
TEST(NocTiming, AReservedSlotForResponsesIsTakenByThemOnly) {
  EXPECT_EQ(flits_beside_stalled_vcs(3, 6, 1), 200);
  EXPECT_EQ(flits_beside_stalled_vcs(3, 7, 1), 200);
  EXPECT_EQ(flits_beside_stalled_vcs(3, 6, 3), 400);
  EXPECT_EQ(flits_beside_stalled_vcs(3, 3, 1), 100);
  EXPECT_EQ(flits_beside_stalled_vcs(3, 6, 0), 100);
}

TEST(NocTiming, AHeldVcIsTakenFromAgainInTheCycleNamed) {
  Traffic traffic{plain_chip(2, 1)};
  traffic.injections = {{0, packet(0, 1, 1)}};
  traffic.holds = {{0, 1, 0, 300}};
  expect_received(traffic, 300);
}

// --- arbitration --------------------------------------------------------------------------------

// The downward link of node (1, 1) is wanted from the left, from above and by its own NIU, which
// also has packets for itself on another VC. The NIU's port commits to the VC for the link and
// loses two cycles of three; the other VC, whose way is free all the time, comes up only after it
// has won. If ports were chosen first, it would have had two cycles of three.
TEST(NocTiming, AVcWithAFreeWayWaitsForTheOneThatItsPortCommittedTo) {
  Traffic traffic{plain_chip(2, 6)};
  const int node = 3;
  add_stream(traffic, 2, 5, 0, 20);  // from the left
  add_stream(traffic, 1, 7, 2, 20);  // from above
  add_stream(traffic, node, 9, 1, 20);
  add_stream(traffic, node, node, 3, 20);
  Player<FlitNetwork> player(traffic);
  run_until(player, 200);
  const std::int64_t down_before = player.network().link_flits(node, kY);
  EXPECT_EQ(flits_in(player, node, kNiu, 3000), 1000);
  EXPECT_EQ(player.network().link_flits(node, kY) - down_before, 3000);
}

// A header that waits for an output VC, static or dynamic, whose packets are stalled, lets the
// other VCs of its port pass in every cycle.
TEST(NocTiming, AVcThatWaitsForItsOutputVcTakesNoTurn) {
  for (const bool is_static : {true, false}) {
    Traffic traffic{plain_chip(4, 1)};
    for (const int vc : {0, 1}) {
      add_stream(traffic, 0, 2, vc, 1);
      hold_for_ever(traffic, 2, vc);
    }
    add_stream(traffic, 1, 1, 2, 20);
    traffic.injections.push_back({100, packet(1, 2, 1, 0)});
    traffic.injections.back().packet.keeps_buddy = is_static;
    Player<FlitNetwork> player(traffic);
    run_until(player, 300);
    EXPECT_EQ(flits_in(player, 1, kNiu, 1000), 1000);
    EXPECT_EQ(player.network().packets_in_flight(), 2 + 1 + 20 - 5);
  }
}

// Packets of two VCs for one NIU: requests are taken whole, one after the other, responses in turn.
TEST(NocTiming, ANiuTakesOneRequestAfterTheOtherAndResponsesInTurn) {
  const auto received = [](int vc) {
    Traffic traffic{plain_chip(4, 1)};
    traffic.injections = {{0, packet(0, 1, 10, vc)}, {0, packet(0, 1, 10, vc + 1)}};
    traffic.injections[1].packet.tag = 1;
    traffic.holds = {{0, 1, vc, 200}, {0, 1, vc + 1, 200}};
    Player<FlitNetwork> player(traffic);
    run_until(player, 300);
    std::vector<Cycle> times;
    for (const Event& event : player.events()) {
      if (event.kind == Event::received) times.push_back(event.at);
    }
    return times;
  };
  EXPECT_EQ(received(0), (std::vector<Cycle>{209, 219}));
  EXPECT_EQ(received(6), (std::vector<Cycle>{218, 219}));
}

// Packets of one flit for the same VC of the link from node 1, there in cycle 14: one from node 0,
// another right behind it, and one from node 1's NIU. That is next in turn, when the VC has been
// released 3 cycles after the first; the second from node 0 is last, 3 cycles after that.
TEST(NocTiming, AVcIsReleasedAndGoesToTheNextInTurn) {
  Traffic traffic{plain_chip(4, 1)};
  traffic.chip.router.vc_release_cycles = 3;
  traffic.injections = {{0, packet(0, 2, 1)}, {0, packet(0, 2, 1)}, {0, packet(1, 2, 1)}};
  traffic.injections[2].packet.header_at = 9;
  traffic.injections[2].packet.tag = 1;
  Player<FlitNetwork> player(traffic);
  const auto flits_before = [&](Cycle cycle) {
    run_until(player, cycle);
    return player.network().link_flits(1, kX);
  };
  EXPECT_EQ(flits_before(14), 0);
  EXPECT_EQ(flits_before(15), 1);
  EXPECT_EQ(flits_before(17), 1);
  EXPECT_EQ(flits_before(18), 2);
  EXPECT_EQ(flits_before(20), 2);
  EXPECT_EQ(flits_before(21), 3);
  run_until(player, 100);
  std::vector<std::uint64_t> order;
  for (const Event& event : player.events()) {
    if (event.kind == Event::received) order.push_back(event.tag);
  }
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 1, 0}));
}

TEST(NocTiming, TheSameInputVcFollowsWithoutAGapWhenNoOtherWaits) {
  Traffic traffic{plain_chip(4, 1)};
  traffic.injections = {{0, packet(0, 2, 1)}, {0, packet(0, 2, 1)}};
  Player<FlitNetwork> player(traffic);
  run_until(player, 15);
  EXPECT_EQ(player.network().link_flits(1, kX), 1);
  run_until(player, 16);
  EXPECT_EQ(player.network().link_flits(1, kX), 2);
}

// --- rates --------------------------------------------------------------------------------------

// 25.6 bytes per cycle are a flit of 32 bytes each 1.25 cycles: beginning in cycle 10, the n-th
// after the first leaves in cycle 10 + floor(1.25 n).
TEST(NocTiming, ASourceKeepsItsPaceOverAHundredThousandFlits) {
  Traffic traffic{plain_chip(3, 1)};
  traffic.chip.niu.port_rate = machine::BytesPerCycle::from(25.6);
  add_stream(traffic, 0, 1, 0, 400);
  traffic.injections[0].packet.header_at = 10;
  Player<FlitNetwork> player(traffic);
  const auto flits_before = [&](Cycle cycle) {
    run_until(player, cycle);
    return player.network().link_flits(0, kFromNiu);
  };
  EXPECT_EQ(flits_before(10), 0);
  EXPECT_EQ(flits_before(11), 1);
  EXPECT_EQ(flits_before(12), 2);
  EXPECT_EQ(flits_before(13), 3);
  EXPECT_EQ(flits_before(14), 4);
  EXPECT_EQ(flits_before(15), 4);
  EXPECT_EQ(flits_before(10 + 125'000), 100'000);
  EXPECT_EQ(flits_before(10 + 125'001), 100'001);
}

// Two sources bring more than the sink takes. It begins in cycle 300, and takes the n-th after the
// first in cycle 300 + floor(1.25 n).
TEST(NocTiming, ASinkKeepsItsPaceOverAHundredThousandFlits) {
  Traffic traffic{plain_chip(3, 1)};
  traffic.chip.niu.port_rate = machine::BytesPerCycle::from(25.6);
  for (int i = 0; i < 50'100; ++i) {
    traffic.injections.push_back({0, packet(0, 1, 1, 0)});
    traffic.injections.push_back({0, packet(1, 1, 1, 2)});
  }
  traffic.holds = {{0, 1, 0, 300}, {0, 1, 2, 300}};
  Player<FlitNetwork> player(traffic);
  run_until(player, 300 + 125'001);
  Cycle count = 0;
  for (const Event& event : player.events()) {
    if (event.kind != Event::received) continue;
    ASSERT_EQ(event.at, 300 + count * 5 / 4);
    ++count;
  }
  EXPECT_EQ(count, 100'001);
}

// --- multicasts ---------------------------------------------------------------------------------

// The probe takes 2 + 9 a hop, the answer 7 a hop + 2. The header leaves the NIU when the farthest
// has answered: 4 + 16 a hop.
TEST(NocTiming, APathIsReservedInARoundTripToTheFarthest) {
  const auto expect = [](const std::vector<int>& destinations, int hops) {
    Traffic traffic{plain_chip(4, 4)};
    Packet sent = packet(0, 0, 1, 4);
    sent.header_at = 50;
    traffic.injections = {{0, sent, destinations}};
    const Cycle granted = 50 + 4 + 16 * hops;
    Player<FlitNetwork> player(traffic);
    run_until(player, granted);
    EXPECT_EQ(player.network().link_flits(0, kFromNiu), 0);
    run_until(player, granted + 1);
    EXPECT_EQ(player.network().link_flits(0, kFromNiu), 1);
    expect_received(traffic, granted + 5 + 9 * hops + 5);
  };
  expect({0}, 0);
  expect({3}, 3);
  expect({14}, 5);
}

TEST(NocTiming, TheFarthestOfManyDecides) {
  Traffic traffic{plain_chip(4, 4)};
  traffic.injections = {{0, packet(0, 0, 1, 4), {0, 1, 5, 14, 15}}};
  Player<FlitNetwork> player(traffic);
  run_until(player, 4 + 16 * 6);
  EXPECT_EQ(player.network().link_flits(0, kFromNiu), 0);
  run_until(player, 4 + 16 * 6 + 1);
  EXPECT_EQ(player.network().link_flits(0, kFromNiu), 1);
}

// Alone the header leaves in cycle 4 + 16 * 3, and the data, which could have been read before, is
// read from then on, 3 cycles a flit. Behind another packet, a cycle later, it is there with the
// path.
TEST(NocTiming, DataIsReadWhileAPathIsReservedOnlyBehindAnotherPacket) {
  Traffic traffic{plain_chip(4, 1)};
  Packet sent = packet(0, 0, 4, 4);
  sent.data_at = 3 * kPaceCycle;
  sent.data_interval = 3 * kPaceCycle;
  const auto expect_last_flit = [&](int flits, Cycle at) {
    Player<FlitNetwork> player(traffic);
    run_until(player, at);
    EXPECT_EQ(player.network().link_flits(0, kFromNiu), flits - 1);
    run_until(player, at + 1);
    EXPECT_EQ(player.network().link_flits(0, kFromNiu), flits);
  };
  traffic.injections = {{0, sent, {3}}};
  expect_last_flit(4, 4 + 16 * 3 + 3 * 3);
  traffic.injections.insert(traffic.injections.begin(), {0, packet(0, 0, 1, 0)});
  expect_last_flit(1 + 4, 1 + 4 + 16 * 3 + 3);
}

// The second follows right behind the first: its path is still there.
TEST(NocTiming, ALinkedMulticastNeedsNoSecondReservation) {
  Traffic traffic{plain_chip(4, 4)};
  Packet linked = packet(0, 0, 10, 4);
  linked.keeps_path = true;
  traffic.injections = {{0, linked, {3}}, {0, packet(0, 0, 10, 4), {3}}};
  Player<FlitNetwork> player(traffic);
  run_until(player, 4 + 16 * 3 + 20);
  EXPECT_EQ(player.network().link_flits(0, kFromNiu), 20);
}

}  // namespace
}  // namespace towpath::noc
