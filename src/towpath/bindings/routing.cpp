// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>

#include "towpath/tenstorrent/kernels/route_lists.hpp"
#include "towpath/tenstorrent/routing/route_order.hpp"
#include "towpath/tenstorrent/routing/static_routes.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace towpath::tenstorrent::routing {
namespace {

using End = std::pair<int, int>;  // an EthernetEnd in Python: chip, channel

End shown(machine::EthernetEnd end) { return {end.chip, end.channel}; }

std::tuple<double, std::vector<std::vector<double>>, int> run_lists(
    std::shared_ptr<machine::ChipCluster> chips, const std::vector<Route>& routes,
    const std::vector<CoreCommands>& lists, std::uint64_t packet_bytes, int buffers_per_core) {
  Cluster cluster(std::move(chips), {});
  const kernels::RoutesRun run =
      kernels::run_route_lists(cluster, {routes, lists, packet_bytes, buffers_per_core});
  std::vector<std::vector<double>> arrived;
  for (const std::vector<Time>& route : run.arrived) {
    arrived.emplace_back();
    for (const Time time : route) arrived.back().push_back(time.ns());
  }
  return {run.time.ns(), std::move(arrived), run.wrong_packets};
}

void bind_lists(nb::module_& module) {
  nb::class_<Hop>(module, "Hop")
      .def_prop_ro("sender", [](const Hop& hop) { return shown(hop.from); })
      .def_prop_ro("receiver", [](const Hop& hop) { return shown(hop.to); });
  nb::class_<Command> command(module, "Command");
  nb::enum_<Command::Kind>(command, "Kind")
      .value("send", Command::Kind::send)
      .value("receive", Command::Kind::receive);
  command
      .def(
          "__init__",
          [](Command* place, Command::Kind kind, int route, int hop) {
            new (place) Command{kind, {route, hop}};
          },
          "kind"_a, "route"_a, "hop"_a)
      .def_ro("kind", &Command::kind)
      .def_prop_ro("route", [](const Command& one) { return one.of.route; })
      .def_prop_ro("hop", [](const Command& one) { return one.of.hop; });
  nb::class_<CoreCommands>(module, "CoreCommands")
      .def(
          "__init__",
          [](CoreCommands* place, End core, std::vector<Command> commands) {
            new (place) CoreCommands{{core.first, core.second}, std::move(commands)};
          },
          "core"_a, "commands"_a)
      .def_prop_ro("core", [](const CoreCommands& list) { return shown(list.core); })
      .def_ro("commands", &CoreCommands::commands);
}

}  // namespace
}  // namespace towpath::tenstorrent::routing

void bind_routing(nb::module_& module) {
  using namespace towpath::tenstorrent::routing;
  using towpath::machine::ChipCluster;
  bind_lists(module);
  nb::class_<Outcome>(module, "RouteOutcome")
      .def_ro("timesteps", &Outcome::timesteps)
      .def_ro("timestep_of", &Outcome::timestep_of,
              "By route and hop, from 1; empty on a deadlock.");
  nb::class_<RouteOrder>(module, "RouteOrder")
      .def_ro("order", &RouteOrder::order)
      .def_ro("timesteps", &RouteOrder::timesteps)
      .def_ro("is_best", &RouteOrder::is_best);
  using Routes = std::vector<Route>;
  module.def(
      "route_over_links",
      [](const ChipCluster& cluster, const std::vector<std::vector<int>>& chip_lists) {
        return route_over_links(cluster, chip_lists);
      },
      "cluster"_a, "chip_lists"_a, "A route over links, as hops, for each list of chips.");
  module.def(
      "commands_in_order",
      [](const Routes& routes, const std::vector<int>& order) {
        return commands_in_order(routes, order);
      },
      "routes"_a, "order"_a, "The lists of all Ethernet cores, routes added one by one.");
  module.def(
      "execute_routes",
      [](const Routes& routes, const std::vector<CoreCommands>& lists, int buffers_per_core) {
        const Outcome outcome = execute(routes, lists, buffers_per_core);
        return std::pair(outcome, describe_deadlock(routes, outcome));
      },
      "routes"_a, "lists"_a, "buffers_per_core"_a = 1,
      "What becomes of any lists, and a sentence about their deadlock, empty without one.");
  module.def("run_route_lists", &run_lists, "chips"_a, "routes"_a, "lists"_a, "packet_bytes"_a,
             "buffers_per_core"_a = 1, nb::call_guard<nb::gil_scoped_release>(),
             "The lists as kernels: time, arrival of each packet after each hop, wrong packets.");
  module.def(
      "timesteps_min", [](const Routes& routes) { return timesteps_min(routes); }, "routes"_a,
      "Timesteps that no order goes below.");
  module.def(
      "find_route_order",
      [](const Routes& routes, int buffers_per_core, int exact_routes_max, int candidates_max,
         std::uint64_t seed) {
        return find_route_order(routes, {buffers_per_core, exact_routes_max, candidates_max, seed});
      },
      "routes"_a, nb::kw_only(), "buffers_per_core"_a = 1, "exact_routes_max"_a = 10,
      "candidates_max"_a = 20'000, "seed"_a = 1, nb::call_guard<nb::gil_scoped_release>(),
      "An order of adding routes that takes few timesteps, the fewest for few routes.");
}
