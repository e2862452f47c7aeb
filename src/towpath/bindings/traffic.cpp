// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/bench/traffic.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <stdexcept>
#include <utility>

#include "towpath/bindings/arrays.hpp"
#include "towpath/tenstorrent/core/call_costs.hpp"
#include "towpath/tenstorrent/host/host_cluster.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace towpath::tenstorrent::bench {
namespace {

using Pair = std::pair<int, int>;
machine::Coordinate coordinate(const Pair& pair) { return {pair.first, pair.second}; }

using Kind = TrafficStep::Kind;
constexpr std::array<std::pair<std::string_view, Kind>, 11> kKinds{{
    {"write", Kind::write},
    {"read", Kind::read},
    {"multicast", Kind::multicast},
    {"inline_write", Kind::inline_write},
    {"atomic", Kind::atomic},
    {"write_barrier", Kind::write_barrier},
    {"writes_flushed", Kind::writes_flushed},
    {"read_barrier", Kind::read_barrier},
    {"atomic_barrier", Kind::atomic_barrier},
    {"wait_until", Kind::wait_until},
    {"work", Kind::work},
}};

Kind kind_from(std::string_view name) {
  std::string known;
  for (const auto& [known_name, kind] : kKinds) {
    if (known_name == name) return kind;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", known_name);
  }
  throw std::invalid_argument(
      fmt::format("'{}' is not a kind of traffic; choose one of {}", name, known));
}

using Matrix = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<3>>;

using bindings::Column;
using bindings::column_of;
using bindings::owned;

template <typename Get>
Column column(const TrafficResult& result, Get get) {
  std::vector<std::int64_t> values;
  values.reserve(result.requests.size());
  for (const noc::RequestTimes& times : result.requests) values.push_back(get(times));
  return column_of(std::move(values));
}

nb::dict waits(const TrafficResult& result) {
  using noc::RequestTimes;
  nb::dict columns;
  const auto add = [&](const char* name, auto get) { columns[name] = column(result, get); };
  add("noc", [](const RequestTimes& t) { return std::int64_t{t.request.noc}; });
  add("x", [](const RequestTimes& t) { return std::int64_t{t.request.core.x}; });
  add("y", [](const RequestTimes& t) { return std::int64_t{t.request.core.y}; });
  add("to_x", [](const RequestTimes& t) { return std::int64_t{t.request.remote.tile.x}; });
  add("to_y", [](const RequestTimes& t) { return std::int64_t{t.request.remote.tile.y}; });
  add("size_bytes",
      [](const RequestTimes& t) { return static_cast<std::int64_t>(t.request.size_bytes); });
  add("issued", [](const RequestTimes& t) { return t.issued; });
  add("started", [](const RequestTimes& t) { return t.started; });
  add("sent", [](const RequestTimes& t) { return t.sent; });
  add("received", [](const RequestTimes& t) { return t.received; });
  add("completed", [](const RequestTimes& t) { return t.completed; });
  return columns;
}

Matrix link_samples(const TrafficResult& result) {
  const std::size_t rows = result.link_samples.size();
  const std::size_t links = rows == 0 ? 0 : result.link_samples.front().size();
  std::vector<std::int64_t> values;
  values.reserve(rows * links);
  for (const auto& row : result.link_samples) values.insert(values.end(), row.begin(), row.end());
  return owned<Matrix>(std::move(values), {rows / 2, 2, links});
}

template <typename Get>
nb::list per_program(const TrafficResult& result, Get get) {
  nb::list list;
  for (const auto& program : result.programs) list.append(get(program));
  return list;
}

// Returns the cycles of a kernel's calls by the name of the step, with or without "_with_state".
nb::dict call_cycles(const machine::Chip& chip) {
  const CallCosts& costs = kCallCosts.of(chip);
  const std::pair<const char*, int> named[] = {
      {"read", costs.read},           {"read_with_state", costs.read_with_state},
      {"write", costs.write},         {"write_with_state", costs.write_with_state},
      {"multicast", costs.multicast}, {"inline_write", costs.inline_write},
      {"atomic", costs.atomic},
  };
  nb::dict cycles;
  for (const auto& [name, count] : named) cycles[name] = count;
  return cycles;
}

void bind_step(nb::module_& module) {
  nb::class_<TrafficStep>(module, "TrafficStep", "Next action of a data-movement core.")
      .def(
          "__init__",
          [](TrafficStep* self, std::string_view kind, Pair to, Pair to_last,
             std::uint64_t size_bytes, int count, int first_vc, int vcs, bool dynamic_vc,
             bool has_state, bool posted, bool linked, bool includes_source, int channel,
             std::int64_t cycle, int last_call_cycles) {
            new (self) TrafficStep{kind_from(kind),
                                   coordinate(to),
                                   coordinate(to_last),
                                   size_bytes,
                                   count,
                                   first_vc,
                                   vcs,
                                   dynamic_vc,
                                   has_state,
                                   posted,
                                   linked,
                                   includes_source,
                                   channel,
                                   cycle,
                                   last_call_cycles};
          },
          "kind"_a, nb::kw_only(), "to"_a = Pair(), "to_last"_a = Pair(), "size_bytes"_a = 0,
          "count"_a = 1, "first_vc"_a = 1, "vcs"_a = 1, "dynamic_vc"_a = false,
          "has_state"_a = false, "posted"_a = false, "linked"_a = false,
          "includes_source"_a = false, "channel"_a = 0, "cycle"_a = 0, "last_call_cycles"_a = 0);
}

void bind_program(nb::module_& module) {
  nb::class_<TrafficProgram>(module, "TrafficProgram", "One core's traffic on one NoC.")
      .def(
          "__init__",
          [](TrafficProgram* self, Pair core, int noc, std::int64_t start_cycle,
             std::vector<TrafficStep> steps) {
            new (self) TrafficProgram{coordinate(core), noc, start_cycle, std::move(steps)};
          },
          nb::kw_only(), "core"_a, "noc"_a = 0, "start_cycle"_a = 0, "steps"_a);
}

}  // namespace
}  // namespace towpath::tenstorrent::bench

void bind_traffic(nb::module_& module) {
  using namespace towpath::tenstorrent::bench;
  bind_step(module);
  bind_program(module);
  module.def("call_cycles", &call_cycles, "chip"_a,
             "Cycles that the calls of a kernel cost, by kind of step.");
  nb::class_<TrafficResult>(module, "TrafficResult")
      .def_ro("flit_hops", &TrafficResult::flit_hops,
              "Number of times that a flit passed a router.")
      .def_ro("cycles", &TrafficResult::cycles)
      .def_prop_ro("begin_cycles",
                   [](const TrafficResult& result) {
                     return per_program(result, [](const auto& p) { return p.begin; });
                   })
      .def_prop_ro("end_cycles",
                   [](const TrafficResult& result) {
                     return per_program(result, [](const auto& p) { return p.end; });
                   })
      .def_prop_ro("step_begin_cycles",
                   [](const TrafficResult& result) {
                     return per_program(result, [](const auto& p) { return p.step_begin; });
                   })
      .def_prop_ro("step_end_cycles",
                   [](const TrafficResult& result) {
                     return per_program(result, [](const auto& p) { return p.step_end; });
                   })
      .def_prop_ro("link_samples", &link_samples, nb::rv_policy::move,
                   "Total flits that had left on each link: [sample, NoC, tile * 4 + port].")
      .def_prop_ro("waits", &waits, "Cycles of each request by name, -1 where it never happened.");
  nb::class_<TrafficBeside>(module, "TrafficBeside",
                            "Traffic on the network of a host's chip, which others use too.")
      .def(
          "__init__",
          [](TrafficBeside* self, towpath::tenstorrent::HostCluster& cluster, int chip,
             const std::vector<TrafficProgram>& programs) {
            new (self) TrafficBeside(cluster.share_noc(chip), programs);
          },
          "cluster"_a, "chip"_a, "programs"_a, nb::keep_alive<1, 2>())
      .def_prop_ro("is_over", &TrafficBeside::is_over)
      .def_prop_ro("begin_cycles",
                   [](const TrafficBeside& traffic) {
                     nb::list list;
                     for (const auto& program : traffic.programs()) list.append(program.begin);
                     return list;
                   })
      .def_prop_ro("end_cycles", [](const TrafficBeside& traffic) {
        nb::list list;
        for (const auto& program : traffic.programs()) list.append(program.end);
        return list;
      });
  module.def(
      "run_traffic",
      [](std::shared_ptr<towpath::machine::Chip> chip, const std::vector<TrafficProgram>& programs,
         std::uint64_t seed, bool carries_data, bool records_requests,
         std::int64_t link_sample_cycles, std::int64_t cycles_max) {
        nb::gil_scoped_release released;
        return run_traffic(chip, programs,
                           {seed, carries_data, records_requests, link_sample_cycles, cycles_max});
      },
      "chip"_a, "programs"_a, nb::kw_only(), "seed"_a = 1, "carries_data"_a = false,
      "records_requests"_a = false, "link_sample_cycles"_a = 0, "cycles_max"_a = 0,
      "Runs traffic programs on a chip. DeadlockError when it deadlocks, with the cycle of "
      "packets.");
}
