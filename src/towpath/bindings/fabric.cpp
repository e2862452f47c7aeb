// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "towpath/tenstorrent/bench/fabric_bench.hpp"
#include "towpath/tenstorrent/fabric/fabric_topology.hpp"
#include "towpath/tenstorrent/fabric/router_costs.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace towpath;
using tenstorrent::fabric::Shape;
using Cluster = std::shared_ptr<machine::ChipCluster>;

void bind_round_trip(nb::module_& module) {
  using tenstorrent::bench::FabricRoundTrip;
  nb::class_<FabricRoundTrip>(module, "FabricRoundTrip", "Mean times of a packet and a response.")
      .def_prop_ro(
          "total_ns", [](const FabricRoundTrip& trip) { return trip.total.ns(); },
          "From the last of the sender's calls until it sees the response.")
      .def_prop_ro(
          "flush_ns", [](const FabricRoundTrip& trip) { return trip.flush.ns(); },
          "Part of it, until the packet has left the sender.")
      .def_prop_ro(
          "response_ns", [](const FabricRoundTrip& trip) { return trip.response.ns(); },
          "Part of it that the responder's calls take.");
  module.def(
      "fabric_round_trip",
      [](const Cluster& cluster, const Shape& shape, int from, int to, std::uint64_t payload_bytes,
         bool is_fused, int worker_noc) {
        return tenstorrent::bench::fabric_round_trip(cluster, shape,
                                                     {.from = from,
                                                      .to = to,
                                                      .payload_bytes = payload_bytes,
                                                      .is_fused = is_fused,
                                                      .worker_noc = worker_noc});
      },
      "cluster"_a, "shape"_a, nb::kw_only(), "source"_a, "destination"_a, "payload_bytes"_a,
      "is_fused"_a = false, "worker_noc"_a = 0,
      "From a worker at one place to one at another and back, or all round a ring to its own.");
}

}  // namespace

void bind_fabric(nb::module_& module) {
  module.def(
      "fabric_payload_bytes",
      [](const machine::Chip& chip) {
        return tenstorrent::fabric::kRouterCosts.of(chip).payload_bytes;
      },
      "chip"_a, "Payload of a packet, as collectives use it.");
  nb::class_<Shape>(module, "FabricShape", "Which chips a fabric joins, in lines or rings.")
      .def_static("line", &tenstorrent::fabric::line_of, "chips"_a)
      .def_static("ring", &tenstorrent::fabric::ring_of, "chips"_a)
      .def_static("mesh", &tenstorrent::fabric::mesh_of, "cluster"_a,
                  "All chips of a cluster by where they sit. Raises ValueError.")
      .def_static("usual", &tenstorrent::fabric::default_shape, "cluster"_a,
                  "The ring round a mesh of two rows or columns; else the mesh or torus.")
      .def_prop_ro("chips", [](const Shape& shape) { return shape.chips; })
      .def_prop_ro("dimensions", [](const Shape& shape) {
        std::vector<std::pair<int, bool>> dimensions;
        for (const auto& [size, is_ring] : shape.dimensions) dimensions.push_back({size, is_ring});
        return dimensions;
      });
  module.def(
      "fabric_planes",
      [](const Cluster& cluster, const Shape& shape) {
        return tenstorrent::fabric::Topology(*cluster, shape).planes();
      },
      "cluster"_a, "shape"_a, "Parallel links between neighbours. Raises ValueError.");
  bind_round_trip(module);
  module.def(
      "fabric_stream_gb_per_s",
      [](const Cluster& cluster, const Shape& shape,
         const std::vector<std::pair<int, int>>& streams, std::uint64_t payload_bytes, int packets,
         std::uint64_t slot_bytes, bool forwards, bool long_way, bool multicast, bool fused,
         bool scattered) {
        using tenstorrent::fabric::Operation;
        constexpr Operation operations[2][2] = {
            {Operation::write, Operation::scatter_write},
            {Operation::write_flush_increment, Operation::scatter_write_flush_increment}};
        std::vector<tenstorrent::bench::FabricStream> all;
        for (const auto& [from, to] : streams) all.push_back({from, to});
        return tenstorrent::bench::fabric_stream_rate(cluster, shape, all,
                                                      {.payload_bytes = payload_bytes,
                                                       .packets = packets,
                                                       .slot_bytes = slot_bytes,
                                                       .forwards = forwards,
                                                       .goes_the_long_way = long_way,
                                                       .is_multicast = multicast,
                                                       .operation = operations[fused][scattered]})
            .gb_per_s();
      },
      "cluster"_a, "shape"_a, "streams"_a, nb::kw_only(), "payload_bytes"_a, "packets"_a = 400,
      "slot_bytes"_a = 4352, "forwards"_a = true, "long_way"_a = false, "multicast"_a = false,
      "fused"_a = false, "scattered"_a = false,
      "Rate of the slowest of all streams, given as (source, destination), at once; with long_way "
      "each goes round its ring the longer way, with multicast every chip on the way gets a copy. "
      "Packets write, with fused increment a word behind everything, or write two halves. "
      "Raises ValueError.");
}
