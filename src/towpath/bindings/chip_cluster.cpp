// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/chip_cluster.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

namespace nb = nanobind;
using namespace nb::literals;

namespace towpath::machine {
namespace {

using End = std::pair<int, int>;  // an EthernetEnd in Python: chip, channel

EthernetEnd end_from(End end) { return {end.first, end.second}; }
End shown(EthernetEnd end) { return {end.chip, end.channel}; }

std::shared_ptr<const ChipCluster> cluster_from(std::string name, std::vector<ClusterChip> chips,
                                                std::vector<EthernetLink> links) {
  ChipCluster cluster;
  cluster.name = std::move(name);
  cluster.chips = std::move(chips);
  cluster.links = std::move(links);
  return build_chip_cluster(std::move(cluster));
}

void bind_cluster_parts(nb::module_& module) {
  nb::class_<ClusterChip>(module, "ClusterChip")
      .def(nb::init<std::shared_ptr<const Chip>, int, int, int, int, bool>(), "chip"_a,
           nb::kw_only(), "x"_a = 0, "y"_a = 0, "rack"_a = 0, "shelf"_a = 0,
           "has_host_link"_a = false)
      .def_ro("chip", &ClusterChip::chip)
      .def_ro("x", &ClusterChip::x)
      .def_ro("y", &ClusterChip::y)
      .def_ro("rack", &ClusterChip::rack)
      .def_ro("shelf", &ClusterChip::shelf)
      .def_ro("has_host_link", &ClusterChip::has_host_link);
  nb::class_<EthernetLink>(module, "EthernetLink")
      .def(
          "__init__",
          [](EthernetLink* place, End a, End b, bool is_reserved) {
            new (place) EthernetLink{{end_from(a), end_from(b)}, is_reserved};
          },
          "a"_a, "b"_a, nb::kw_only(), "is_reserved"_a = false)
      .def_prop_ro("ends",
                   [](const EthernetLink& link) {
                     return std::pair(shown(link.ends[0]), shown(link.ends[1]));
                   })
      .def_ro("is_reserved", &EthernetLink::is_reserved);
}

}  // namespace
}  // namespace towpath::machine

void bind_chip_cluster(nb::module_& module) {
  using namespace towpath::machine;
  bind_cluster_parts(module);
  nb::class_<ChipCluster>(module, "ChipCluster")
      .def(nb::new_(&cluster_from), nb::kw_only(), "name"_a, "chips"_a, "links"_a)
      .def_ro("name", &ChipCluster::name)
      .def_ro("chips", &ChipCluster::chips)
      .def_ro("links", &ChipCluster::links)
      .def(
          "link_at",
          [](const ChipCluster& cluster, End end) { return cluster.link_at(end_from(end)); },
          "end"_a, "The number of the link at (chip, channel); None if nothing is connected.")
      .def(
          "connected",
          [](const ChipCluster& cluster, End end) -> std::optional<End> {
            const auto other = cluster.connected(end_from(end));
            return other ? std::optional(shown(*other)) : std::nullopt;
          },
          "end"_a, "The (chip, channel) at the other end of the link, if there is a link.")
      .def("active_channels", &ChipCluster::active_channels, "chip"_a, "with_reserved"_a = false,
           "Channels of a chip with a link.")
      .def("channels_to", &ChipCluster::channels_to, "chip"_a, "other"_a, "with_reserved"_a = false,
           "Channels of a chip whose link ends at another.")
      .def(
          "core_of",
          [](const ChipCluster& cluster, End end) {
            const Coordinate at = cluster.core_of(end_from(end));
            return std::pair(at.x, at.y);
          },
          "end"_a, "The tile (x, y) of a (chip, channel).");
}
