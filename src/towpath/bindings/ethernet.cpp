// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "towpath/tenstorrent/core/ethernet_memory_map.hpp"
#include "towpath/tenstorrent/kernels/link_benchmarks.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace towpath::tenstorrent::kernels {
namespace {

using MutableCluster = std::shared_ptr<machine::ChipCluster>;
using Place = std::pair<int, int>;

constexpr std::array<std::pair<std::string_view, LinkBandwidthKind>, 3> kKinds{{
    {"erisc", LinkBandwidthKind::erisc},
    {"erisc_write_worker", LinkBandwidthKind::erisc_write_worker},
    {"erisc_write_worker_no_trid", LinkBandwidthKind::erisc_write_worker_no_trid},
}};

LinkBandwidthKind kind_from(std::string_view name) {
  std::string known;
  for (const auto& [known_name, kind] : kKinds) {
    if (known_name == name) return kind;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", known_name);
  }
  throw std::invalid_argument(
      fmt::format("'{}' is not a test of a link; choose one of {}", name, known));
}

// A new cluster for each test.
struct Links {
  Links(const MutableCluster& description, std::uint64_t seed, bool finds_hazards)
      : cluster(description,
                {.seed = seed, .program_skew_cycles = 1000, .finds_hazards = finds_hazards}) {}
  Socket between(Place place) { return socket_between(cluster, place.first, place.second); }

  Cluster cluster;
};

void bind_times(nb::module_& module) {
  using Times = LinkPingTimes;
  nb::class_<Times>(module, "LinkPingTimes", "One ping, as the profilers of both cores see it.")
      .def_prop_ro("send_and_receive_ns", [](const Times& t) { return t.send_and_receive.ns(); })
      .def_prop_ro("send_ns", [](const Times& t) { return t.send.ns(); })
      .def_prop_ro("wait_ns", [](const Times& t) { return t.wait.ns(); })
      .def_prop_ro("wait_and_answer_ns", [](const Times& t) { return t.wait_and_answer.ns(); });
}

void bind_link_tests(nb::module_& module) {
  module.def(
      "link_ping",
      [](const MutableCluster& cluster, Place link, std::uint64_t payload_bytes, int samples,
         std::uint64_t seed, bool finds_hazards) {
        nb::gil_scoped_release released;
        Links links(cluster, seed, finds_hazards);
        return run_link_ping(links.cluster, links.between(link), {payload_bytes, samples});
      },
      "cluster"_a, nb::kw_only(), "link"_a = Place(0, 1), "payload_bytes"_a, "samples"_a = 100,
      "seed"_a = 1, "finds_hazards"_a = true,
      "Round trips over the first free link between two chips.");
  module.def(
      "link_test_ns",
      [](const MutableCluster& cluster, Place link, std::string_view kind,
         std::uint64_t message_bytes, int slots, int messages, bool returns_payload, bool both_ways,
         std::uint64_t seed, bool finds_hazards) {
        nb::gil_scoped_release released;
        Links links(cluster, seed, finds_hazards);
        return run_link_bandwidth(
                   links.cluster, links.between(link),
                   {kind_from(kind), message_bytes, slots, messages, returns_payload, both_ways})
            .ns();
      },
      "cluster"_a, nb::kw_only(), "link"_a = Place(0, 1), "kind"_a = "erisc", "message_bytes"_a,
      "slots"_a = 16, "messages"_a = 4096, "returns_payload"_a = false, "both_ways"_a = false,
      "seed"_a = 1, "finds_hazards"_a = true,
      "The time of the sender, or of the later of both, for all messages and their answers.");
  module.def(
      "bidirectional_gb_per_s",
      [](const MutableCluster& cluster, Place link, std::uint64_t packet_bytes, bool merged,
         int channels, int packets, std::uint64_t seed, bool finds_hazards) {
        nb::gil_scoped_release released;
        Links links(cluster, seed, finds_hazards);
        return run_duplex_bandwidth(links.cluster, links.between(link),
                                    {packet_bytes, merged, channels, packets});
      },
      "cluster"_a, nb::kw_only(), "link"_a = Place(0, 1), "packet_bytes"_a, "merged"_a = true,
      "channels"_a, "packets"_a = 64, "seed"_a = 1, "finds_hazards"_a = true,
      "Rate of both directions of a link together, each with this number of channels.");
}

}  // namespace
}  // namespace towpath::tenstorrent::kernels

void bind_ethernet(nb::module_& module) {
  using namespace towpath::tenstorrent::kernels;
  bind_times(module);
  // First L1 offset available to programs on an Ethernet core, in bytes.
  module.attr("ETHERNET_ALLOCATED_BASE") =
      towpath::tenstorrent::ethernet_memory_map::kAllocatedBase;
  bind_link_tests(module);
  module.def(
      "ring_ping_ns",
      [](const MutableCluster& cluster, std::vector<int> chips, std::uint64_t packet_bytes,
         int channels, bool merged, int samples, std::uint64_t seed, bool finds_hazards,
         std::vector<int> links_of_hops) {
        nb::gil_scoped_release released;
        Links links(cluster, seed, finds_hazards);
        std::vector<double> times_ns;
        for (const towpath::Time time :
             run_ring_ping(links.cluster, {std::move(chips), packet_bytes, channels, merged,
                                           samples, std::move(links_of_hops)})) {
          times_ns.push_back(time.ns());
        }
        return times_ns;
      },
      "cluster"_a, nb::kw_only(), "chips"_a, "packet_bytes"_a = 16, "channels"_a = 1,
      "merged"_a = true, "samples"_a = 100, "seed"_a = 1, "finds_hazards"_a = true,
      "links"_a = std::vector<int>{}, "The time of each trip around a ring of chips.");
  module.def("t3000_ring", &t3000_ring, "hops"_a,
             "The chips of the rings of 2, 4, 8 and 12 hops through a T3000.");
}
