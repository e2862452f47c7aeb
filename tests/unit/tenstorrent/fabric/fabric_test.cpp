// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/fabric/fabric.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "fabrics.hpp"
#include "sentence.hpp"
#include "towpath/tenstorrent/bench/fabric_bench.hpp"

namespace towpath::tenstorrent::fabric {
namespace {

using machine::chips_on_grid;
using tenstorrent::Cluster;
using tenstorrent::DataMovementCore;

std::vector<int> numbers(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

constexpr Direction kRight = direction_of(0, false);
constexpr Direction kLeft = direction_of(0, true);
constexpr Direction kDown = direction_of(1, false);

// --- routes -------------------------------------------------------------------------------------

TEST(FabricTopology, RoutesGoAlongTheFirstDimensionFirst) {
  const auto chips = chips_on_grid(3, 2, false, 1);
  const Topology topology(*chips, mesh_of(*chips));
  EXPECT_EQ(topology.route(0, 5), (std::vector<Direction>{kRight, kRight, kDown}));
  EXPECT_EQ(topology.route(5, 5), std::vector<Direction>{});
}

TEST(FabricTopology, RoutesGoRoundARingTheShorterWay) {
  const auto chips = chips_on_grid(5, 1, true, 1);
  const Topology topology(*chips, mesh_of(*chips));
  EXPECT_TRUE(topology.shape().dimensions[0].is_ring);
  EXPECT_EQ(topology.route(0, 2), (std::vector<Direction>{kRight, kRight}));
  EXPECT_EQ(topology.route(0, 4), std::vector<Direction>{kLeft});
}

TEST(FabricTopology, HalfWayRoundOddPlacesGoDown) {
  const auto chips = chips_on_grid(4, 1, true, 1);
  const Topology topology(*chips, mesh_of(*chips));
  EXPECT_EQ(topology.route(0, 2), (std::vector<Direction>{kRight, kRight}));
  EXPECT_EQ(topology.route(1, 3), (std::vector<Direction>{kLeft, kLeft}));
}

TEST(FabricTopology, TheDefaultShapeOfTwoRowsIsTheRingRoundThem) {
  const auto chips = chips_on_grid(4, 2, false, 1);
  const Shape shape = default_shape(*chips);
  EXPECT_EQ(shape.chips, (std::vector<int>{0, 1, 2, 3, 7, 6, 5, 4}));
  EXPECT_TRUE(shape.dimensions[0].is_ring);
}

// Channel 0 is to the left of channel 1; both links are crossed.
TEST(FabricTopology, PlanesGoFromLeftToRightOnTheChipWithTheHigherNumber) {
  machine::ChipCluster crossed;
  crossed.name = "crossed";
  const auto chip = machine::chips_on_grid(1, 1, false, 1)->chips[0].chip;
  crossed.chips = {{.chip = chip, .x = 0}, {.chip = chip, .x = 1}};
  crossed.links = {{{{{0, 0}, {1, 1}}}}, {{{{0, 1}, {1, 0}}}}};
  const auto chips = machine::build_chip_cluster(std::move(crossed));
  ASSERT_LT(chip->ethernet_cores[0].x, chip->ethernet_cores[1].x);
  const Topology topology(*chips, mesh_of(*chips));
  for (int plane = 0; plane < 2; ++plane) {
    EXPECT_EQ(topology.end(1, kLeft, plane)->channel, plane);
    EXPECT_EQ(topology.end(0, kRight, plane)->channel, 1 - plane);
  }
}

TEST(FabricTopology, PlacesThatItDoesNotHaveAreRefused) {
  const auto chips = chips_on_grid(3, 1, false, 1);
  const Topology topology(*chips, mesh_of(*chips));
  EXPECT_EQ(sentence_of([&] { topology.route(0, 3); }),
            "place 3 is not one of the fabric; it has 0 to 2");
  EXPECT_EQ(sentence_of([&] { topology.route(-1, 0); }),
            "place -1 is not one of the fabric; it has 0 to 2");
}

TEST(FabricTopology, NeighboursWithoutALinkAreRefused) {
  const auto chips = chips_on_grid(3, 1, false, 1);
  EXPECT_EQ(sentence_of([&] { Topology(*chips, line_of({0, 2, 1})); }),
            "chips 0 and 2 of cluster 'grid' are neighbors in the fabric, but no link between them "
            "is available to the fabric");
}

// --- deadlock -----------------------------------------------------------------------------------

TEST(FabricDeadlock, RingsAreSafeWithBubblesOnly) {
  const auto chips = chips_on_grid(5, 1, true, 1);
  const Topology topology(*chips, mesh_of(*chips));
  check_deadlock_free(topology, true);
  const std::string sentence = sentence_of([&] { check_deadlock_free(topology, false); });
  EXPECT_NE(sentence.find("packets may wait for each other forever"), std::string::npos);
  EXPECT_NE(sentence.find("chip 0 channel"), std::string::npos) << sentence;
}

TEST(FabricDeadlock, LinesAndMeshesNeedNoBubble) {
  const auto chips = chips_on_grid(3, 3, false, 1);
  check_deadlock_free(Topology(*chips, mesh_of(*chips)), false);
}

TEST(FabricDeadlock, OnlyTheRoutesThatAreUsedCount) {
  const auto chips = chips_on_grid(5, 1, true, 1);
  const Topology topology(*chips, mesh_of(*chips));
  check_deadlock_free(topology, false, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}});
}

// --- packets ------------------------------------------------------------------------------------

constexpr std::uint64_t kInbox = 0x10000;
constexpr std::uint64_t kCounter = 0x30000;

// From every place to every other one, `packets` of each size, all at once.
void exchange(const std::shared_ptr<const machine::ChipCluster>& chips, int packets) {
  Cluster cluster(chips, {.finds_hazards = false});
  Fabric fabric(cluster, mesh_of(*chips), {});
  const int places = fabric.topology().places();
  std::vector<std::vector<int>> senders(static_cast<std::size_t>(places * kDirections));
  for (int from = 0; from < places; ++from) {
    for (int to = 0; to < places; ++to) {
      if (from == to) continue;
      senders[static_cast<std::size_t>(from * kDirections + fabric.first_hop(from, to))].push_back(
          to);
    }
  }
  const auto inbox = [](int from) { return kInbox + static_cast<std::uint64_t>(from) * 4096; };
  for (int from = 0; from < places; ++from) {
    for (Direction direction = 0; direction < kDirections; ++direction) {
      const auto& targets = senders[static_cast<std::size_t>(from * kDirections + direction)];
      if (targets.empty()) continue;
      const auto worker = fabric.device(from).chip().workers[direction];
      fabric.program(from).create_kernel(
          {.core = worker, .name = "sender"}, [&, from, direction](DataMovementCore& core) {
            Connection connection(core, fabric.port(from, direction, 0), kWorkerWords);
            connection.open();
            for (int packet = 1; packet <= packets; ++packet) {
              for (const int to : targets) {
                Header header = fabric.header(from, to);
                const auto target = fabric.device(to).chip().workers.back();
                header.payload_to = pack({target, inbox(from)});
                header.payload_bytes = static_cast<std::uint16_t>(packet * 512 % 4096 + 16);
                header.word_at = pack({target, kCounter});
                header.increment = 1;
                header.operation =
                    packet % 2 == 0 ? Operation::write_flush_increment : Operation::write_increment;
                core.store_word(kWorkerPayloads, static_cast<std::uint32_t>(100 * from + packet));
                connection.send(header, kWorkerHeaders, kWorkerPayloads);
                connection.wait_until_sent();
              }
            }
            connection.close();
          });
    }
  }
  fabric.run();
  for (int to = 0; to < places; ++to) {
    const auto target = fabric.device(to).chip().workers.back();
    noc::Memory& memory = fabric.device(to).memory(target);
    EXPECT_EQ(memory.load_word(kCounter), static_cast<std::uint32_t>((places - 1) * packets));
    for (int from = 0; from < places; ++from) {
      if (from == to) continue;
      EXPECT_EQ(memory.load_word(inbox(from)), static_cast<std::uint32_t>(100 * from + packets))
          << "from " << from << " to " << to;
    }
  }
}

// As tt-metal's: packets on NoC 1, to the next router and to memory, and credits on NoC 0.
TEST(Fabric, RoutersKeepToTheirNocs) {
  const auto chips = chips_on_grid(3, 1, false, 1);
  Cluster cluster(chips, {.finds_hazards = false});
  Fabric fabric(cluster, mesh_of(*chips), {});
  fabric.program(0).create_kernel(
      {.core = fabric.device(0).chip().workers.front(), .name = "sender"},
      [&](DataMovementCore& core) {
        Connection connection(core, fabric.port(0, kRight, 0), kWorkerWords);
        connection.open();
        Header header = fabric.header(0, 2);
        header.payload_to = pack({fabric.device(2).chip().workers.front(), kInbox});
        header.payload_bytes = 256;
        header.operation = Operation::write;
        connection.send(header, kWorkerHeaders, kWorkerPayloads);
        connection.close();
      });
  fabric.run();
  const auto counters = [&](int place, Direction direction, int noc) {
    const machine::Coordinate tile = fabric.port(place, direction, 0).tile;
    return fabric.device(place).network().counters(noc, tile);
  };
  // The router that the packet reaches on chip 1, and its number behind it; and chip 2's.
  EXPECT_EQ(counters(1, kLeft, 1).writes_issued, 2u);
  EXPECT_EQ(counters(2, kLeft, 1).writes_issued, 1u);
  for (const int place : {1, 2}) EXPECT_EQ(counters(place, kLeft, 0).writes_issued, 0u);
  // What tells the worker, and the router of chip 1 that handed the packet on.
  EXPECT_GT(counters(0, kRight, 0).posted_writes_issued, 0u);
  EXPECT_EQ(counters(0, kRight, 1).posted_writes_issued, 0u);
  EXPECT_EQ(counters(1, kRight, 0).posted_writes_issued, 1u);
}

TEST(Fabric, AllToAllOnALineArrives) { exchange(chips_on_grid(3, 1, false, 1), 20); }
// More packets than all the slots of the rings hold.
TEST(Fabric, AllToAllRoundARingArrivesWithoutDeadlock) {
  exchange(chips_on_grid(5, 1, true, 1), 40);
}

// Every packet crosses five links, so nearly all that a receiver holds has to go on. Without the
// bubble the ring fills up with packets that have just entered, and nothing moves any more.
TEST(Fabric, LongWaysRoundAFullRingArriveWithoutDeadlock) {
  constexpr int kPlaces = 12;
  constexpr int kPackets = 60;
  const auto chips = chips_on_grid(kPlaces, 1, true, 1);
  Cluster cluster(chips, {.finds_hazards = false});
  Fabric fabric(cluster, mesh_of(*chips), {});
  for (int from = 0; from < kPlaces; ++from) {
    const int to = (from + 5) % kPlaces;
    ASSERT_EQ(fabric.first_hop(from, to), kRight);
    fabric.program(from).create_kernel(
        {.core = fabric.device(from).chip().workers.front(), .name = "sender"},
        [&fabric, from, to](DataMovementCore& core) {
          Connection connection(core, fabric.port(from, kRight, 0), kWorkerWords);
          connection.open();
          Header header = fabric.header(from, to);
          const auto target = fabric.device(to).chip().workers.back();
          header.payload_to = pack({target, kInbox});
          header.payload_bytes = 16;
          header.word_at = pack({target, kCounter});
          header.increment = 1;
          header.operation = Operation::write_increment;
          for (int packet = 0; packet < kPackets; ++packet) {
            connection.send(header, kWorkerHeaders, kWorkerPayloads);
            connection.wait_until_sent();
          }
          connection.close();
        });
  }
  fabric.run();
  for (int to = 0; to < kPlaces; ++to) {
    const auto target = fabric.device(to).chip().workers.back();
    EXPECT_EQ(fabric.device(to).memory(target).load_word(kCounter), kPackets) << "at " << to;
  }
}

TEST(Fabric, AllToAllOnATorusArrivesWithoutDeadlock) { exchange(chips_on_grid(3, 3, true, 1), 20); }

TEST(Fabric, AWorkerThatWaitsForeverIsNamed) {
  const auto chips = chips_on_grid(2, 1, false, 1);
  Cluster cluster(chips, {.finds_hazards = false});
  Fabric fabric(cluster, mesh_of(*chips), {});
  fabric.program(1).create_kernel(
      {.core = fabric.device(1).chip().workers.front(), .name = "listener"},
      [](DataMovementCore& core) { core.noc_semaphore_wait(kCounter, 1); });
  try {
    fabric.run();
    FAIL() << "it ended";
  } catch (const DeadlockError& error) {
    EXPECT_NE(std::string(error.what()).find("kernel 'listener'"), std::string::npos)
        << error.what();
  }
}

TEST(Fabric, APacketToItsOwnPlaceIsRefused) {
  const auto chips = chips_on_grid(2, 1, false, 1);
  Cluster cluster(chips, {.finds_hazards = false});
  const Fabric fabric(cluster, mesh_of(*chips), {});
  const std::string sentence = "a packet goes from place 1 to itself; the places must be different";
  EXPECT_EQ(sentence_of([&] { fabric.first_hop(1, 1); }), sentence);
  EXPECT_EQ(sentence_of([&] { fabric.header(1, 1); }), sentence);
}

// Without bytes there is no header to read.
TEST(Fabric, ClustersWithoutDataAreRefused) {
  const auto chips = chips_on_grid(2, 1, false, 1);
  Cluster cluster(chips, {.carries_data = false, .finds_hazards = false});
  EXPECT_EQ(
      sentence_of([&] { Fabric(cluster, mesh_of(*chips), {}); }),
      "a fabric on cluster 'grid', which simulates only time; use a cluster that carries data");
}

TEST(Fabric, PacketsThatLeaveNoRoomForSlotsAreRefused) {
  const auto chips = chips_on_grid(2, 1, false, 1);
  Cluster cluster(chips, {.finds_hazards = false});
  EXPECT_EQ(sentence_of([&] { Fabric(cluster, mesh_of(*chips), {.payload_bytes_max = 60'000}); }),
            "packets of 60000 bytes leave no room for two slots per channel in the 153568 bytes of "
            "an Ethernet core of drawn");
}

// --- multicast and scatter ----------------------------------------------------------------------

// From every place to a rectangle, `packets` in each part, all at once.
void multicast_from_all(const std::shared_ptr<const machine::ChipCluster>& chips, int first,
                        int last, std::uint32_t packets) {
  Cluster cluster(chips, {.finds_hazards = false});
  Fabric fabric(cluster, mesh_of(*chips), {});
  const Topology& topology = fabric.topology();
  const auto is_inside = [&](int place) {
    const auto is_between = [&](int dimension) {
      return topology.coordinate(first, dimension) <= topology.coordinate(place, dimension) &&
             topology.coordinate(place, dimension) <= topology.coordinate(last, dimension);
    };
    return is_between(0) && is_between(1);
  };
  const auto inbox = [](int from) { return kInbox + static_cast<std::uint64_t>(from) * 4096; };
  std::uint32_t senders = 0;
  for (int from = 0; from < topology.places(); ++from) {
    ++senders;
    for (const Fabric::Multicast& part : fabric.multicast(from, first, last)) {
      fabric.program(from).create_kernel(
          {.core = fabric.device(from).chip().workers[part.first_hop], .name = "sender"},
          [&, from, part](DataMovementCore& core) {
            Connection connection(core, fabric.port(from, part.first_hop, 0), kWorkerWords);
            connection.open();
            const auto target = core.network().chip().workers.back();
            Header header = part.header;
            header.payload_to = pack({target, inbox(from)});
            header.payload_bytes = 2064;
            header.word_at = pack({target, kCounter});
            header.increment = 1;
            header.operation = Operation::write_increment;
            for (std::uint32_t packet = 1; packet <= packets; ++packet) {
              core.store_word(kWorkerPayloads + 2060,
                              1000 * static_cast<std::uint32_t>(from) + packet);
              connection.send(header, kWorkerHeaders, kWorkerPayloads);
              connection.wait_until_sent();
            }
            connection.close();
          });
    }
  }
  fabric.run();
  for (int to = 0; to < topology.places(); ++to) {
    const auto target = fabric.device(to).chip().workers.back();
    noc::Memory& memory = fabric.device(to).memory(target);
    EXPECT_EQ(memory.load_word(kCounter), is_inside(to) ? (senders - 1) * packets : 0u) << to;
    for (int from = 0; from < topology.places() && is_inside(to); ++from) {
      if (from == to) continue;
      EXPECT_EQ(memory.load_word(inbox(from) + 2060),
                1000 * static_cast<std::uint32_t>(from) + packets)
          << "from " << from << " to " << to;
    }
  }
}

// More packets than the slots hold.
TEST(FabricMulticast, ReachesEveryChipOfAMeshOnce) {
  multicast_from_all(chips_on_grid(4, 3, false, 1), 0, 11, 25);
}
TEST(FabricMulticast, ReachesEveryChipOfARectangleAndNoOther) {
  multicast_from_all(chips_on_grid(4, 4, false, 1), 5, 10, 5);
  multicast_from_all(chips_on_grid(4, 4, false, 1), 2, 7, 5);
}
TEST(FabricMulticast, ReachesEveryChipOfATorusWithoutDeadlock) {
  multicast_from_all(chips_on_grid(3, 3, true, 1), 0, 8, 25);
}

// When the far end of a line of five has a packet for it alone, and one for all on the way; and
// what the first link carries.
struct Arrival {
  Time at;
  std::uint64_t bytes = 0;
};
Arrival send_along(bool is_multicast) {
  constexpr int kPlaces = 5;
  const auto chips = chips_on_grid(kPlaces, 1, false, 1);
  Cluster cluster(chips, {.finds_hazards = false});
  Fabric fabric(cluster, line_of(numbers(kPlaces)), {});
  const auto target = fabric.device(0).chip().workers.back();
  Arrival arrival;
  fabric.program(0).create_kernel(
      {.core = fabric.device(0).chip().workers.front(), .name = "sender"},
      [&](DataMovementCore& core) {
        Connection connection(core, fabric.port(0, kRight, 0), kWorkerWords);
        connection.open();
        Header header = is_multicast ? fabric.multicast_along(0, kRight, kPlaces - 1)
                                     : fabric.header(0, kPlaces - 1);
        header.payload_to = pack({target, kInbox});
        header.payload_bytes = 4096;
        header.word_at = pack({target, kCounter});
        header.increment = 1;
        header.operation = Operation::write_increment;
        connection.send(header, kWorkerHeaders, kWorkerPayloads);
        connection.close();
      });
  fabric.program(kPlaces - 1)
      .create_kernel({.core = target, .name = "receiver"}, [&](DataMovementCore& core) {
        core.noc_semaphore_wait(kCounter, 1);
        arrival.at = core.network().simulation().now();
      });
  fabric.run();
  const auto end = *fabric.topology().end(0, kRight, 0);
  arrival.bytes =
      fabric.device(0).ethernet_tile({0, end.channel}).port().counters().payload_bytes_sent;
  return arrival;
}

TEST(FabricMulticast, GoesAlongALineAsFastAsAPacketForItsEndAndOverEachLinkOnce) {
  const Arrival one = send_along(false), all = send_along(true);
  EXPECT_EQ(all.bytes, one.bytes);
  // Three chips on the way send it on before they write it to their workers.
  EXPECT_EQ(all.at, one.at);
}

TEST(FabricMulticast, WhatReachesNobodyIsRefused) {
  const auto chips = chips_on_grid(3, 2, false, 1);
  Cluster cluster(chips, {.finds_hazards = false});
  const Fabric fabric(cluster, mesh_of(*chips), {});
  EXPECT_EQ(sentence_of([&] { fabric.multicast(1, 1, 1); }),
            "a multicast from place 1 to places 1 to 1 reaches no other chip; the last must be to "
            "the right of and below the first");
  EXPECT_EQ(sentence_of([&] { fabric.multicast(0, 0, 6); }),
            "place 6 is not one of the fabric; it has 0 to 5");
  EXPECT_EQ(sentence_of([&] { fabric.multicast_along(0, kRight, 3); }),
            "a packet makes 3 hops from place 0, but the line ends after 2");
}

TEST(FabricScatter, SegmentsGoToAddressesOfTheirOwn) {
  const auto chips = chips_on_grid(3, 1, false, 1);
  Cluster cluster(chips, {.finds_hazards = false});
  Fabric fabric(cluster, mesh_of(*chips), {});
  const auto& workers = fabric.device(2).chip().workers;
  ASSERT_GE(workers.size(), 2u);
  const NocAddress first{workers.back(), kInbox}, second{workers.front(), kInbox + 512},
      third{workers.back(), kInbox + 4096}, fourth{workers.front(), kCounter};
  fabric.program(0).create_kernel(
      {.core = fabric.device(0).chip().workers.front(), .name = "sender"},
      [&](DataMovementCore& core) {
        Connection connection(core, fabric.port(0, kRight, 0), kWorkerWords);
        connection.open();
        const SegmentList list{{pack(second), pack(third), pack(fourth)}, {1024, 16, 512, 4}};
        Header header = fabric.header(0, 2);
        header.payload_to = pack(first);
        header = scattered(header, list);
        core.store(kWorkerPayloads + list_offset(header), bytes_of(list));
        for (std::uint64_t at = 0; at < 1556; at += 4) {
          core.store_word(kWorkerPayloads + at, static_cast<std::uint32_t>(at + 1));
        }
        connection.send(header, kWorkerHeaders, kWorkerPayloads);
        connection.close();
      });
  fabric.run();
  const auto word = [&](const NocAddress& at, std::uint64_t offset) {
    return fabric.device(2).memory(at.tile).load_word(at.offset + offset);
  };
  EXPECT_EQ(word(first, 0), 1u);
  EXPECT_EQ(word(first, 1020), 1021u);
  EXPECT_EQ(word(first, 1024), 0u);
  EXPECT_EQ(word(second, 0), 1025u);
  EXPECT_EQ(word(third, 0), 1041u);
  EXPECT_EQ(word(third, 508), 1549u);
  EXPECT_EQ(word(fourth, 0), 1553u);
  EXPECT_EQ(word(fourth, 4), 0u);
}

// When the last of so many segments of 16 bytes has arrived at the next chip.
Time last_of_segments(std::size_t segments) {
  const auto chips = chips_on_grid(2, 1, false, 1);
  Cluster cluster(chips, {.finds_hazards = false});
  Fabric fabric(cluster, line_of(numbers(2)), {});
  const auto target = fabric.device(1).chip().workers.back();
  Time at;
  fabric.program(0).create_kernel(
      {.core = fabric.device(0).chip().workers.front(), .name = "sender"},
      [&](DataMovementCore& core) {
        Connection connection(core, fabric.port(0, kRight, 0), kWorkerWords);
        connection.open();
        SegmentList list{{pack({target, kInbox}), pack({target, kInbox}), pack({target, kCounter})},
                         {}};
        for (std::size_t i = 0; i < segments; ++i) list.bytes[3 - i] = 16;
        Header header = fabric.header(0, 1);
        header.payload_to = pack({target, kInbox});
        header = scattered(header, list);
        core.store(kWorkerPayloads + list_offset(header), bytes_of(list));
        core.store_word(kWorkerPayloads + 16 * (segments - 1), 1);
        connection.send(header, kWorkerHeaders, kWorkerPayloads);
        connection.close();
      });
  fabric.program(1).create_kernel({.core = target, .name = "receiver"},
                                  [&](DataMovementCore& core) {
                                    core.noc_semaphore_wait(kCounter, 1);
                                    at = core.network().simulation().now();
                                  });
  fabric.run();
  return at;
}

TEST(FabricScatter, EachSegmentTakesTheRoutersProgram) {
  const double one = last_of_segments(1).ns();
  // The list, and a call and what is beside it; 16 bytes more each on the wire and the NoC.
  EXPECT_NEAR(last_of_segments(2).ns() - one, 38 + 70, 12);
  EXPECT_NEAR(last_of_segments(4).ns() - one, 38 + 3 * 70, 16);
}

TEST(FabricScatter, SegmentsThatCannotBeAreRefused) {
  EXPECT_EQ(sentence_of([] { scattered({}, {}); }),
            "a scatter write has no bytes; it must have at least 1");
  EXPECT_EQ(sentence_of([] { scattered({}, {{}, {24, 16, 0, 0}}); }),
            "segment 1 of a scatter write starts 24 bytes after the first one; it must be a "
            "multiple of 16");
}

// --- latency ------------------------------------------------------------------------------------

// Each further hop costs the same there and back, and more for a larger packet: it is stored whole.
TEST(Fabric, EveryHopCostsTheSame) {
  const auto chips = chips_on_grid(5, 1, false, 1);
  const Shape line = line_of(numbers(5));
  const auto round_trip = [&](int hops, std::uint64_t payload_bytes) {
    return tenstorrent::bench::fabric_round_trip(
               chips, line,
               {.from = 0, .to = hops, .payload_bytes = payload_bytes, .is_fused = true})
        .total.ns();
  };
  for (const std::uint64_t payload_bytes : {16, 4096}) {
    const double second = round_trip(2, payload_bytes) - round_trip(1, payload_bytes);
    const double fourth = round_trip(4, payload_bytes) - round_trip(3, payload_bytes);
    EXPECT_NEAR(fourth, second, 0.06 * second) << payload_bytes;
  }
  // 4080 bytes more, each way: 326 ns on the wire, once more 87 ns for the last frame's difference,
  // and 128 ns over the NoC to the next router.
  const double more =
      round_trip(4, 4096) - round_trip(3, 4096) - (round_trip(4, 16) - round_trip(3, 16));
  EXPECT_NEAR(more / 2, 541, 75);
}

}  // namespace
}  // namespace towpath::tenstorrent::fabric
