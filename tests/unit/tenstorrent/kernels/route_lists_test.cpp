// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/kernels/route_lists.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "joined_chips.hpp"
#include "sentence.hpp"
#include "towpath/sim/random.hpp"
#include "towpath/tenstorrent/hazards/errors.hpp"

namespace towpath::tenstorrent::kernels {
namespace {

using machine::joined_chips;

struct Ring {
  std::shared_ptr<const machine::ChipCluster> chips;
  std::vector<routing::Route> routes;

  explicit Ring(int count, std::vector<std::vector<int>> chip_lists)
      : chips(joined_chips({.chips = count, .is_ring = true})),
        routes(routing::route_over_links(*chips, chip_lists)) {}

  RoutesRun run(const std::vector<int>& order, std::uint64_t packet_bytes = 1024,
                int buffers = 1) const {
    return run_lists(routing::commands_in_order(routes, order), packet_bytes, buffers);
  }
  RoutesRun run_lists(std::vector<routing::CoreCommands> lists, std::uint64_t packet_bytes,
                      int buffers = 1, std::int64_t skew_cycles = 0) const {
    Cluster cluster(chips, {.program_skew_cycles = skew_cycles});
    return run_route_lists(cluster, {routes, std::move(lists), packet_bytes, buffers});
  }
};

// Every chip sends to the one opposite: the document's example.
const std::vector<std::vector<int>> kOpposite = {{0, 1, 2}, {1, 2, 3}, {2, 3, 0}, {3, 0, 1}};

TEST(RouteLists, APacketArrivesHopByHopWithItsBytes) {
  const Ring ring(4, {{0, 1, 2, 3}});
  const RoutesRun run = ring.run({0});
  EXPECT_EQ(run.wrong_packets, 0);
  ASSERT_EQ(run.arrived.front().size(), 3U);
  EXPECT_GT(run.arrived[0][0].ps(), 0);
  EXPECT_LT(run.arrived[0][0], run.arrived[0][1]);
  EXPECT_LT(run.arrived[0][1], run.arrived[0][2]);
  EXPECT_LE(run.arrived[0][2], run.time);
}

TEST(RouteLists, HalfTheTimestepsAreAboutHalfTheTime) {
  const Ring ring(4, kOpposite);
  const std::vector<int> given = {0, 1, 2, 3}, good = {0, 2, 1, 3};
  const auto timesteps = [&](const std::vector<int>& order) {
    return routing::execute(ring.routes, routing::commands_in_order(ring.routes, order)).timesteps;
  };
  const RoutesRun slow = ring.run(given, 16'384), fast = ring.run(good, 16'384);
  EXPECT_EQ(slow.wrong_packets + fast.wrong_packets, 0);
  const double expected = static_cast<double>(timesteps(given)) / timesteps(good);
  EXPECT_NEAR(slow.time.ns() / fast.time.ns(), expected, 0.2 * expected);
}

TEST(RouteLists, ALargerPacketTakesItsTimeOnEveryHop) {
  const Ring ring(4, {{0, 1, 2}});
  const RoutesRun small = ring.run({0}, 16), large = ring.run({0}, 16 * 1024);
  const Rate line = ring.chips->chips.front().chip->ethernet.line_rate;
  const Time wire = transfer_time(Bytes(16 * 1024 - 16), line);
  EXPECT_GE(large.arrived[0][1] - small.arrived[0][1], wire + wire);
}

TEST(RouteLists, AnyRoutesInAnyOrderArriveHoweverProgramsStart) {
  sim::Random random(7, "routes");
  for (int round = 0; round < 12; ++round) {
    const int chips = static_cast<int>(random.between(3, 6));
    std::vector<std::vector<int>> lists;
    for (int route = 0; route < 6; ++route) {
      const int begin = static_cast<int>(random.between(0, chips - 1));
      const int step = random.between(0, 1) == 0 ? 1 : chips - 1;
      std::vector<int> list;
      for (int hop = 0; hop <= random.between(1, chips); ++hop) {
        list.push_back((begin + hop * step) % chips);
      }
      if (list.size() < 2) list.push_back((begin + step) % chips);
      lists.push_back(list);
    }
    const Ring ring(chips, lists);
    std::vector<int> order(lists.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1],
                order[static_cast<std::size_t>(random.between(0, std::int64_t(i) - 1))]);
    }
    const int buffers = static_cast<int>(random.between(1, 3));
    const RoutesRun run =
        ring.run_lists(routing::commands_in_order(ring.routes, order), 256, buffers, 20'000);
    EXPECT_EQ(run.wrong_packets, 0) << "round " << round;
  }
}

TEST(RouteLists, ListsThatWaitForEachOtherAreADeadlock) {
  // All first hops come before all second ones: with one buffer nobody can receive.
  const Ring ring(4, kOpposite);
  std::vector<routing::CoreCommands> lists =
      routing::commands_in_order(ring.routes, std::vector<int>{0, 1, 2, 3});
  for (routing::CoreCommands& list : lists) {
    std::ranges::stable_sort(list.commands, {},
                             [](const routing::Command& command) { return command.of.hop; });
  }
  ASSERT_FALSE(routing::execute(ring.routes, lists, 1).deadlock.empty());
  EXPECT_THROW(ring.run_lists(lists, 64, 1), DeadlockError);
  ASSERT_TRUE(routing::execute(ring.routes, lists, 2).deadlock.empty());
  EXPECT_EQ(ring.run_lists(lists, 64, 2).wrong_packets, 0);
}

TEST(RouteLists, RefusesWhatIsNoPacket) {
  const Ring ring(3, {{0, 1}});
  for (const std::uint64_t size_bytes : {0, 24}) {
    EXPECT_THROW(ring.run({0}, size_bytes), std::invalid_argument);
  }
}

}  // namespace
}  // namespace towpath::tenstorrent::kernels
