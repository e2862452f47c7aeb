// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/routing/static_routes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>

#include "chips.hpp"
#include "sentence.hpp"
#include "towpath/sim/random.hpp"
#include "towpath/tenstorrent/routing/route_order.hpp"

namespace towpath::tenstorrent::routing {
namespace {

using machine::ChipCluster;
using machine::EthernetEnd;

// Chips in a ring. Channels 0 and 2 lead to the next chip, 1 and 3 back to the one before; with
// one link per neighbour 2 and 3 are not connected.
std::shared_ptr<const ChipCluster> ring(int chips, int links_per_neighbour = 1) {
  ChipCluster cluster;
  cluster.name = "ring";
  const auto chip = machine::build_chip(machine::drawn_chip({"eeee", "wwww"}));
  for (int number = 0; number < chips; ++number) cluster.chips.push_back({chip, number});
  for (int number = 0; number < chips; ++number) {
    for (int link = 0; link < links_per_neighbour; ++link) {
      cluster.links.push_back({{{{number, 2 * link}, {(number + 1) % chips, 2 * link + 1}}}});
    }
  }
  return build_chip_cluster(std::move(cluster));
}

std::vector<Route> routes_on(const ChipCluster& cluster, std::vector<std::vector<int>> chips) {
  return route_over_links(cluster, chips);
}

// Every chip sends to the one opposite, over the one in between.
std::vector<Route> opposite() {
  return routes_on(*ring(4), {{0, 1, 2}, {1, 2, 3}, {2, 3, 0}, {3, 0, 1}});
}

int timesteps_of(std::span<const Route> routes, std::vector<int> order) {
  return execute(routes, commands_in_order(routes, order)).timesteps;
}

TEST(StaticRoutes, AHopIsACommandOfItsSenderAndOneOfItsReceiver) {
  const auto routes = routes_on(*ring(3), {{0, 1, 2}});
  ASSERT_EQ(routes.size(), 1U);
  EXPECT_EQ(routes[0], (Route{{{0, 0}, {1, 1}}, {{1, 0}, {2, 1}}}));
  const auto lists = commands_in_order(routes, given_order(routes));
  ASSERT_EQ(lists.size(), 4U);
  EXPECT_EQ(lists[0].core, (EthernetEnd{0, 0}));
  EXPECT_EQ(lists[0].commands, (std::vector<Command>{{Command::Kind::send, {0, 0}}}));
  EXPECT_EQ(lists[2].core, (EthernetEnd{1, 1}));
  EXPECT_EQ(lists[2].commands, (std::vector<Command>{{Command::Kind::receive, {0, 0}}}));
  const Outcome outcome = execute(routes, lists);
  EXPECT_EQ(outcome.timesteps, 2);
  EXPECT_EQ(outcome.timestep_of, (std::vector<std::vector<int>>{{1, 2}}));
}

// 0 to 2, 1 to 3, 2 to 0, 3 to 1 one after the other: each waits for the link that the one before
// takes last. Routes 0 and 2 share no core, nor do 1 and 3.
TEST(StaticRoutes, TheOrderOfFourRoutesRoundARingHalvesTheirTimesteps) {
  const auto routes = opposite();
  const Outcome naive = execute(routes, commands_in_order(routes, given_order(routes)));
  EXPECT_EQ(naive.timesteps, 8);
  EXPECT_EQ(naive.timestep_of, (std::vector<std::vector<int>>{{1, 2}, {3, 4}, {5, 6}, {7, 8}}));
  const RouteOrder best = find_route_order(routes);
  EXPECT_EQ(best.timesteps, 4);
  EXPECT_TRUE(best.is_best);
  EXPECT_EQ(timesteps_of(routes, best.order), 4);
  EXPECT_EQ(timesteps_of(routes, {0, 2, 1, 3}), 4);
}

TEST(StaticRoutes, ARouteRevisitsAnEdgeOverAnotherLink) {
  const auto cluster = ring(2, 2);
  const auto routes = routes_on(*cluster, {{0, 1, 0, 1}});
  std::set<std::size_t> links;
  for (const Hop& hop : routes[0]) links.insert(*cluster->link_at(hop.from));
  EXPECT_EQ(links.size(), 3U);
}

TEST(StaticRoutes, LeaveLinksOfTheDispatcherAlone) {
  ChipCluster cluster = *ring(3, 2);
  cluster.links[0].is_reserved = true;
  const auto built = build_chip_cluster(cluster);
  const auto routes = routes_on(*built, {{0, 1}, {0, 1}});
  EXPECT_EQ(routes[0][0].from, (EthernetEnd{0, 2}));
  EXPECT_EQ(routes[1][0].from, (EthernetEnd{0, 2}));
  cluster.links[1].is_reserved = true;
  EXPECT_EQ(sentence_of([&] { routes_on(*build_chip_cluster(cluster), {{2, 0}, {0, 1}}); }),
            "route 1 goes from chip 0 to chip 1, between which no link is available");
}

TEST(StaticRoutes, RefuseWhatIsNoRoute) {
  const auto cluster = ring(4);
  EXPECT_EQ(sentence_of([&] { routes_on(*cluster, {{0, 1}, {2}}); }),
            "route 1 has 1 chips; it needs at least two");
  EXPECT_EQ(sentence_of([&] { routes_on(*cluster, {{0, 2}}); }),
            "route 0 goes from chip 0 to chip 2, between which no link is available");
  EXPECT_EQ(sentence_of([&] { routes_on(*cluster, {{1, 1}}); }),
            "route 0 goes from chip 1 to chip 1, between which no link is available");
  EXPECT_EQ(sentence_of([&] { routes_on(*cluster, {{3, 4}}); }),
            "cluster 'ring': has no chip 4; it has 0 to 3");
}

TEST(StaticRoutes, RefuseAnOrderThatIsNoPermutation) {
  const auto routes = opposite();
  for (const std::vector<int>& order :
       {std::vector<int>{0, 1, 2}, {0, 1, 2, 2}, {0, 1, 2, 4}, {0, 1, 2, 3, 3}}) {
    EXPECT_EQ(sentence_of([&] { commands_in_order(routes, order); }),
              "the order must name the routes 0 to 3, each once");
  }
}

// The packet of route 1 lies in the only buffer of 1/1 until timestep 2, so that of route 2 cannot
// come in that one.
TEST(StaticRoutes, APacketKeepsItsBufferUntilItsNextHop) {
  const auto routes = routes_on(*ring(4), {{1, 2}, {0, 1, 2}, {0, 1}});
  EXPECT_EQ(timesteps_of(routes, {1, 2, 0}), 3);
  const auto lists = commands_in_order(routes, std::vector<int>{0, 1, 2});
  EXPECT_EQ(execute(routes, lists).timestep_of, (std::vector<std::vector<int>>{{1}, {1, 2}, {3}}));
  EXPECT_EQ(execute(routes, lists, 2).timestep_of,
            (std::vector<std::vector<int>>{{1}, {1, 2}, {2}}));
}

// --- any lists ---

// All first hops, then all second hops, and so on.
std::vector<CoreCommands> hop_by_hop(std::span<const Route> routes) {
  std::map<EthernetEnd, std::vector<Command>> lists;
  std::size_t hops = 0;
  for (const Route& route : routes) hops = std::max(hops, route.size());
  for (std::size_t hop = 0; hop < hops; ++hop) {
    for (std::size_t route = 0; route < routes.size(); ++route) {
      if (hop >= routes[route].size()) continue;
      const HopName name{static_cast<int>(route), static_cast<int>(hop)};
      lists[routes[route][hop].from].push_back({Command::Kind::send, name});
      lists[routes[route][hop].to].push_back({Command::Kind::receive, name});
    }
  }
  std::vector<CoreCommands> all;
  for (auto& [core, commands] : lists) all.push_back({core, commands});
  return all;
}

TEST(StaticRoutes, PacketsThatFillARingOfBuffersDeadlockAndTheCycleIsNamed) {
  const auto routes = opposite();
  const Outcome outcome = execute(routes, hop_by_hop(routes));
  EXPECT_EQ(outcome.timesteps, 0);
  EXPECT_TRUE(outcome.timestep_of.empty());
  ASSERT_EQ(outcome.deadlock.size(), 4U);
  EXPECT_EQ(describe_deadlock(routes, outcome),
            "hop 1 of route 0 (1/0 to 2/1) waits for hop 1 of route 1 (2/0 to 3/1) to free a "
            "buffer of 2/1, which waits for hop 1 of route 2 (3/0 to 0/1) to free a buffer of 3/1, "
            "which waits for hop 1 of route 3 (0/0 to 1/1) to free a buffer of 0/1, which waits "
            "for hop 1 of route 0 (1/0 to 2/1) to free a buffer of 1/1");
}

TEST(StaticRoutes, TheSameRoutesPassWithASecondBuffer) {
  const auto routes = opposite();
  const Outcome outcome = execute(routes, hop_by_hop(routes), 2);
  EXPECT_EQ(outcome.timesteps, 2);
  EXPECT_TRUE(outcome.deadlock.empty());
  EXPECT_EQ(describe_deadlock(routes, outcome), "");
}

TEST(StaticRoutes, CoresThatExpectTwoRoutesInOppositeOrderDeadlock) {
  const auto routes = routes_on(*ring(3), {{0, 1}, {0, 1}});
  auto lists = commands_in_order(routes, given_order(routes));
  std::swap(lists[1].commands[0], lists[1].commands[1]);
  EXPECT_EQ(describe_deadlock(routes, execute(routes, lists)),
            "hop 0 of route 0 (0/0 to 1/1) waits for hop 0 of route 1 (0/0 to 1/1) before it in "
            "the list of 1/1, which waits for hop 0 of route 0 (0/0 to 1/1) before it in the list "
            "of 0/0");
}

TEST(StaticRoutes, RefuseListsThatAreNotOfTheseRoutes) {
  const auto routes = routes_on(*ring(3), {{0, 1}, {1, 2}});
  const auto given = commands_in_order(routes, given_order(routes));
  const auto refusal = [&](const std::function<void(std::vector<CoreCommands>&)>& spoil) {
    auto lists = given;
    spoil(lists);
    return sentence_of([&] { execute(routes, lists); });
  };
  EXPECT_EQ(refusal([](auto& lists) { lists[0].commands.clear(); }),
            "no list has the command to send hop 0 of route 0 (0/0 to 1/1)");
  EXPECT_EQ(refusal([](auto& lists) { lists[0].commands.push_back(lists[0].commands[0]); }),
            "the list of 0/0 has the command to send hop 0 of route 0 (0/0 to 1/1) twice");
  EXPECT_EQ(refusal([](auto& lists) { lists[0].commands[0].of.hop = 1; }),
            "the list of 0/0 names hop 1 of route 0, which does not exist");
  EXPECT_EQ(refusal([](auto& lists) { lists[0].commands[0].of.route = -1; }),
            "the list of 0/0 names hop 0 of route -1, which does not exist");
  EXPECT_EQ(refusal([](auto& lists) { lists[0].commands[0].kind = Command::Kind::receive; }),
            "the list of 0/0 has the command to receive hop 0 of route 0 (0/0 to 1/1), which "
            "belongs to 1/1");
  EXPECT_EQ(sentence_of([&] { execute(routes, given, 0); }),
            "buffers_per_core is 0; a core needs at least one");
}

// --- against a machine that does one timestep after the other ---

struct Stepped {
  int timesteps = 0;
  bool is_stuck = false;
};

Stepped step(std::span<const Route> routes, const std::vector<CoreCommands>& lists, int buffers) {
  std::map<EthernetEnd, std::vector<Command>> todo;
  for (const CoreCommands& list : lists) todo[list.core] = list.commands;
  std::map<EthernetEnd, int> held;
  std::vector<int> done(routes.size());
  const auto has_next = [](const std::vector<Command>& list, Command::Kind kind, HopName name) {
    return !list.empty() && list.front() == Command{kind, name};
  };
  Stepped result;
  while (true) {
    std::vector<HopName> now;
    bool is_finished = true;
    for (std::size_t route = 0; route < routes.size(); ++route) {
      const auto hop = static_cast<std::size_t>(done[route]);
      if (hop == routes[route].size()) continue;
      is_finished = false;
      const HopName name{static_cast<int>(route), static_cast<int>(hop)};
      const auto& [from, to] = routes[route][hop];
      if (has_next(todo[from], Command::Kind::send, name) &&
          has_next(todo[to], Command::Kind::receive, name) && held[to] < buffers) {
        now.push_back(name);
      }
    }
    if (is_finished) return result;
    if (now.empty()) return {0, true};
    ++result.timesteps;
    for (const HopName& name : now) {
      const Route& route = routes[static_cast<std::size_t>(name.route)];
      const auto hop = static_cast<std::size_t>(name.hop);
      todo[route[hop].from].erase(todo[route[hop].from].begin());
      todo[route[hop].to].erase(todo[route[hop].to].begin());
      if (hop > 0) --held[route[hop - 1].to];
      if (hop + 1 < route.size()) ++held[route[hop].to];
      ++done[static_cast<std::size_t>(name.route)];
    }
  }
}

std::vector<Route> random_routes(const ChipCluster& cluster, sim::Random& random, int count) {
  const auto chips = static_cast<int>(cluster.chips.size());
  std::vector<std::vector<int>> lists;
  for (int route = 0; route < count; ++route) {
    std::vector<int> list = {static_cast<int>(random.between(0, chips - 1))};
    const int way = random.below(2) == 0 ? 1 : chips - 1;
    for (auto hops = random.between(1, 3); hops > 0; --hops) {
      list.push_back((list.back() + way) % chips);
    }
    lists.push_back(list);
  }
  return route_over_links(cluster, lists);
}

TEST(StaticRoutes, LongestWaitsAreWhatAMachineTakesThatStepsThroughTheLists) {
  sim::Random random(7, "static routes");
  int stuck = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const auto cluster =
        ring(3 + static_cast<int>(random.below(4)), 1 + static_cast<int>(random.below(2)));
    const auto routes = random_routes(*cluster, random, 1 + static_cast<int>(random.below(6)));
    auto lists = commands_in_order(routes, given_order(routes));
    for (auto swaps = random.below(4); swaps > 0; --swaps) {
      auto& commands = lists[random.below(lists.size())].commands;
      std::swap(commands[random.below(commands.size())], commands[random.below(commands.size())]);
    }
    const int buffers = 1 + static_cast<int>(random.below(2));
    const Stepped stepped = step(routes, lists, buffers);
    const Outcome outcome = execute(routes, lists, buffers);
    EXPECT_EQ(outcome.timesteps, stepped.timesteps) << "trial " << trial;
    EXPECT_EQ(!outcome.deadlock.empty(), stepped.is_stuck) << "trial " << trial;
    for (std::size_t place = 0; place < outcome.deadlock.size(); ++place) {
      const auto& next = outcome.deadlock[(place + 1) % outcome.deadlock.size()];
      EXPECT_EQ(outcome.deadlock[place].waits_for, next.hop);
    }
    stuck += stepped.is_stuck ? 1 : 0;
  }
  EXPECT_GT(stuck, 200);
  EXPECT_LT(stuck, 1800);
}

TEST(StaticRoutes, RoutesAddedWholeNeverDeadlockInAnyOrder) {
  sim::Random random(8, "static routes");
  for (int trial = 0; trial < 500; ++trial) {
    const auto cluster = ring(4);
    const auto routes = random_routes(*cluster, random, 8);
    std::vector<int> order = given_order(routes);
    for (std::size_t last = order.size(); last > 1; --last) {
      std::swap(order[last - 1], order[random.below(last)]);
    }
    const Outcome outcome = execute(routes, commands_in_order(routes, order));
    EXPECT_TRUE(outcome.deadlock.empty());
    EXPECT_GE(outcome.timesteps, timesteps_min(routes));
  }
}

// --- the order ---

int fewest_timesteps(std::span<const Route> routes, int buffers) {
  std::vector<int> order = given_order(routes);
  int fewest = 1'000'000;
  do {
    fewest = std::min(fewest, execute(routes, commands_in_order(routes, order), buffers).timesteps);
  } while (std::next_permutation(order.begin(), order.end()));
  return fewest;
}

TEST(RouteOrder, OfFewRoutesIsTheBestOfAllOrders) {
  sim::Random random(9, "route order");
  int better = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const auto cluster = ring(3 + static_cast<int>(random.below(3)));
    const auto routes = random_routes(*cluster, random, 6);
    OrderSearch search;
    search.buffers_per_core = 1 + trial % 2;
    const RouteOrder found = find_route_order(routes, search);
    EXPECT_EQ(found.timesteps, fewest_timesteps(routes, search.buffers_per_core));
    const auto lists = commands_in_order(routes, found.order);
    EXPECT_EQ(execute(routes, lists, search.buffers_per_core).timesteps, found.timesteps);
    EXPECT_TRUE(found.is_best);
    better += found.timesteps < timesteps_of(routes, given_order(routes)) ? 1 : 0;
  }
  EXPECT_GT(better, 20);
}

TEST(RouteOrder, OfManyRoutesIsAsFewTimestepsAsItSaysAndTheSameForTheSameSeed) {
  sim::Random random(10, "route order");
  for (int trial = 0; trial < 10; ++trial) {
    const auto cluster = ring(8);
    const auto routes = random_routes(*cluster, random, 24);
    OrderSearch search;
    search.candidates_max = 2000;
    const RouteOrder found = find_route_order(routes, search);
    EXPECT_EQ(timesteps_of(routes, found.order), found.timesteps);
    EXPECT_LE(found.timesteps, timesteps_of(routes, given_order(routes)));
    EXPECT_GE(found.timesteps, timesteps_min(routes));
    EXPECT_EQ(find_route_order(routes, search).order, found.order);
  }
}

// Local search on what an exact search can do, too: how far it is from the best.
TEST(RouteOrder, LocalSearchFindsTheBestOrderOfTheRing) {
  const auto routes = opposite();
  OrderSearch search;
  search.exact_routes_max = 0;
  EXPECT_EQ(find_route_order(routes, search).timesteps, 4);
}

TEST(RouteOrder, OfNoRoutesIsEmpty) {
  const RouteOrder none = find_route_order({});
  EXPECT_TRUE(none.order.empty());
  EXPECT_EQ(none.timesteps, 0);
  EXPECT_TRUE(none.is_best);
}

}  // namespace
}  // namespace towpath::tenstorrent::routing
