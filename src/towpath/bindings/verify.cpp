// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/verify/verify.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

void bind_verify(nb::module_& module) {
  using namespace towpath::collective;
  using ReleaseGil = nb::call_guard<nb::gil_scoped_release>;
  nb::enum_<FindingKind>(module, "FindingKind")
      .value("structure", FindingKind::structure)
      .value("mismatch", FindingKind::mismatch)
      .value("deadlock", FindingKind::deadlock)
      .value("race", FindingKind::race)
      .value("wrong_data", FindingKind::wrong_data)
      .value("input_overwritten", FindingKind::input_overwritten);
  // Fields that do not apply to a finding are -1.
  nb::class_<Finding>(module, "Finding", "What is wrong, in words and in fields.")
      .def_ro("kind", &Finding::kind)
      .def_ro("sentence", &Finding::sentence)
      .def_ro("rank", &Finding::rank)
      .def_ro("block", &Finding::block)
      .def_ro("channel", &Finding::channel)
      .def_ro("step", &Finding::step)
      .def_ro("other_rank", &Finding::other_rank)
      .def_ro("other_block", &Finding::other_block)
      .def_ro("other_step", &Finding::other_step)
      .def("__repr__", [](const Finding& self) { return "<Finding: " + self.sentence + ">"; });
  nb::class_<Verdict>(module, "Verdict", "What verify() found.")
      .def_ro("findings", &Verdict::findings)
      .def_ro("omitted", &Verdict::omitted)
      .def_ro("not_checked", &Verdict::not_checked)
      .def_ro("remarks", &Verdict::remarks)
      .def("is_correct", &Verdict::is_correct);
  nb::class_<SlotCounts>(module, "SlotCounts",
                         "How many slots the FIFO of a connection has, by where its ends are.")
      .def(
          "__init__",
          [](SlotCounts* slots, std::uint32_t within_host, std::uint32_t between_hosts,
             int ranks_per_host) {
            new (slots) SlotCounts{within_host, between_hosts, ranks_per_host};
          },
          nb::kw_only(), "within_host"_a = 0, "between_hosts"_a = 0, "ranks_per_host"_a = 0,
          "Slots 0 are those of the protocol; ranks_per_host 0 means that all share a host.");
  module.def("verify", &verify, "schedule"_a, "elements"_a, "element_bytes"_a,
             "slots"_a = SlotCounts(), ReleaseGil(),
             "Whether the schedule computes its collective at this size, without a race or a "
             "deadlock in any order of events.");
  module.def("smallest_hanging_size", &smallest_hanging_size, "schedule"_a, "element_bytes"_a,
             "elements_max"_a, "slots"_a = SlotCounts(), ReleaseGil(),
             "The smallest array, in elements, at which the schedule deadlocks, or None.");
}
