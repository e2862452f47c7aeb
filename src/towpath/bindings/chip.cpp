// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/chip.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string_view>
#include <tuple>
#include <utility>

#include "towpath/bindings/parameters.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace towpath::machine {
namespace {

using Place = std::pair<int, int>;                        // a Coordinate in Python
using WindowTuple = std::tuple<std::uint64_t, int, int>;  // size, count, reserved

nb::dict block_of(const Chip& chip, std::string_view path) {
  return bindings::values_of(&chip, chip_tables(), path);
}

Place place_of(Coordinate at) { return {at.x, at.y}; }

std::vector<Place> places_of(const std::vector<Coordinate>& coordinates) {
  std::vector<Place> places;
  for (const Coordinate at : coordinates) places.push_back(place_of(at));
  return places;
}

std::vector<std::vector<Place>> dram_groups_of(const Chip& chip) {
  std::vector<std::vector<Place>> groups;
  for (const auto& group : chip.dram_groups) groups.push_back(places_of(group));
  return groups;
}

}  // namespace
}  // namespace towpath::machine

void bind_chip(nb::module_& module) {
  using namespace towpath::machine;
  nb::enum_<TileKind>(module, "TileKind")
      .value("worker", TileKind::worker)
      .value("dram", TileKind::dram)
      .value("ethernet", TileKind::ethernet)
      .value("pcie", TileKind::pcie)
      .value("arc", TileKind::arc)
      .value("router_only", TileKind::router_only)
      .value("harvested", TileKind::harvested);
  nb::class_<Chip>(module, "Chip")
      .def_ro("name", &Chip::name)
      .def_ro("architecture", &Chip::architecture)
      .def_ro("width", &Chip::width)
      .def_ro("height", &Chip::height)
      .def_prop_ro("clock_mhz",
                   [](const Chip& chip) { return static_cast<double>(chip.clock.hz()) / 1e6; })
      .def_prop_ro("tiles",
                   [](const Chip& chip) {
                     std::vector<TileKind> kinds;
                     for (const Tile& tile : chip.tiles) kinds.push_back(tile.kind);
                     return kinds;
                   })
      .def_prop_ro("dram_groups", &dram_groups_of)
      .def_prop_ro("workers", [](const Chip& chip) { return places_of(chip.workers); })
      .def_ro("worker_columns", &Chip::worker_columns)
      .def_prop_ro("worker_rows", &Chip::worker_rows)
      .def(
          "worker", [](const Chip& chip, int x, int y) { return place_of(chip.worker(x, y)); },
          "logical_x"_a, "logical_y"_a, "The place (x, y) of a worker of the logical grid.")
      .def_prop_ro("ethernet_cores",
                   [](const Chip& chip) { return places_of(chip.ethernet_cores); })
      .def_ro("l1_bytes", &Chip::l1_bytes)
      .def_ro("ethernet_l1_bytes", &Chip::ethernet_l1_bytes)
      .def_prop_ro("router", [](const Chip& chip) { return block_of(chip, "router"); })
      .def_prop_ro("niu", [](const Chip& chip) { return block_of(chip, "niu"); })
      .def_prop_ro("dram", [](const Chip& chip) { return block_of(chip, "dram"); })
      .def_prop_ro("ethernet", [](const Chip& chip) { return block_of(chip, "ethernet"); })
      .def_prop_ro("pcie", [](const Chip& chip) { return block_of(chip, "pcie"); })
      .def_prop_ro("pcie_windows",
                   [](const Chip& chip) {
                     std::vector<WindowTuple> windows;
                     for (const WindowSize& one : chip.pcie.windows) {
                       windows.emplace_back(one.size_bytes, one.count, one.reserved);
                     }
                     return windows;
                   })
      .def_prop_ro("alignment", [](const Chip& chip) { return block_of(chip, "alignment"); });
}
