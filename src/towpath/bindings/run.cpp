// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <optional>
#include <utility>

#include "towpath/bindings/plan.hpp"
#include "towpath/collective/data/call_data.hpp"
#include "towpath/collective/execute/executor.hpp"
#include "towpath/collective/schedule/plan.hpp"
#include "towpath/sim/trace.hpp"
#include "towpath/simulate/simulated_gpus.hpp"
#include "towpath/simulate/simulated_mailboxes.hpp"
#include "towpath/simulate/simulated_run.hpp"
#include "towpath/tenstorrent/ccl/simulated_chips.hpp"
#include "towpath/transport/transport.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace towpath;
using bindings::checked;
using bindings::reduction_from;
using collective::Buffers;
using collective::Plan;
using collective::RankBuffers;
using simulate::SimulatedRun;

void bind_plan(nb::module_& module) {
  nb::class_<Plan>(module, "Plan", "A schedule at one size.")
      .def(nb::new_([](std::shared_ptr<collective::Schedule> schedule, std::uint64_t elements,
                       std::string_view type, std::string_view operation,
                       std::uint32_t slots_factor) {
             const transport::Reduction reduction = reduction_from(type, operation);
             const nb::gil_scoped_release release;
             return std::const_pointer_cast<Plan>(
                 collective::make_plan(schedule, elements, reduction, slots_factor));
           }),
           "schedule"_a, "elements"_a, "type"_a = "float32", "operation"_a = "sum",
           "slots_factor"_a = 1,
           "`elements` is the size of the whole array; `slots_factor` multiplies the slots of each "
           "FIFO. Raises ValueError.")
      .def(
          "with_elements",
          [](const Plan& plan, std::uint64_t elements, std::uint32_t slots_factor) {
            const nb::gil_scoped_release release;
            return std::const_pointer_cast<Plan>(
                collective::with_elements(plan, elements, slots_factor));
          },
          "elements"_a, "slots_factor"_a = 1,
          "The same schedule at another size. What does not depend on the size is shared. Raises "
          "ValueError.")
      .def_prop_ro("input_bytes", &Plan::input_bytes)
      .def_prop_ro("output_bytes", &Plan::output_bytes)
      .def_prop_ro("heap_bytes", &Plan::heap_bytes,
                   "Symmetric memory that an executor of this plan allocates.")
      .def_prop_ro("signals", &Plan::signals)
      .def_prop_ro(
          "steps",
          [](const Plan& plan) {
            return collective::step_count(*plan.schedule) * plan.chunking.iterations();
          },
          "Of all ranks together, in all iterations.")
      .def_prop_ro(
          "statement", [](const Plan& plan) { return collective::statement(plan); },
          "What the ranks must agree on, in words.");
}

void bind_trace(nb::module_& module) {
  nb::class_<sim::Trace>(module, "Trace", "What happened in a simulation, and a hash of it.")
      .def(
          "__init__",
          [](sim::Trace* trace, bool keeps_records) {
            new (trace) sim::Trace(keeps_records ? sim::Trace::Mode::keep_records
                                                 : sim::Trace::Mode::hash_only);
          },
          "keeps_records"_a = true)
      .def_prop_ro("hash", &sim::Trace::hash)
      .def_prop_ro("tracks", &sim::Trace::tracks)
      .def_prop_ro("names", &sim::Trace::names)
      .def_prop_ro(
          "spans",
          [](const sim::Trace& trace) {
            nb::list spans;
            for (const sim::Trace::Record& record : trace.records()) {
              if (record.kind != sim::Trace::Kind::span) continue;
              spans.append(nb::make_tuple(static_cast<std::uint32_t>(record.track),
                                          static_cast<std::uint32_t>(record.name),
                                          record.begin.ps(), record.end.ps(), record.value));
            }
            return spans;
          },
          "(track, name, begin_ps, end_ps, value) each, in the order of the run.");
}

std::vector<Buffers> all_checked(const Plan& plan, const std::vector<const RankBuffers*>& ranks) {
  std::vector<Buffers> buffers;
  for (const RankBuffers* const each : ranks) {
    buffers.push_back(checked(plan, each->input(), each->output()));
  }
  return buffers;
}

constexpr double kFaultTimeUsMax = 1e9;
constexpr double kLimitUsMax = 1e12;  // close to the maximum of a Time

void bind_link_failures(nb::module_& module) {
  using ethernet::LinkFaults;
  using simulate::LinkFailure;
  nb::class_<LinkFaults>(module, "LinkFaults", "The faults of a link; by default none.")
      .def(
          "__init__",
          [](LinkFaults* faults, double frame_loss, double drop_at_us, double drop_period_us,
             double dead_time_us, std::optional<double> training_time_us) {
            const auto time = [](double us) {
              if (us == INFINITY) return Time::max();
              if (!(std::abs(us) <= kFaultTimeUsMax)) {
                throw std::invalid_argument(
                    fmt::format("a fault has a time of {} us; it must be at most {}, or infinity",
                                us, kFaultTimeUsMax));
              }
              return Time::from_us(us);
            };
            new (faults) LinkFaults{frame_loss, time(drop_at_us), time(drop_period_us),
                                    time(dead_time_us), std::nullopt};
            if (!training_time_us) return;
            if (*training_time_us == INFINITY) {
              throw std::invalid_argument(
                  "a link's training never ends; for a link that never comes back, set an infinite "
                  "dead_time_us");
            }
            faults->training_time = time(*training_time_us);
          },
          nb::kw_only(), "frame_loss"_a = 0.0, "drop_at_us"_a = INFINITY,
          "drop_period_us"_a = INFINITY, "dead_time_us"_a = 0.0, "training_time_us"_a = nb::none(),
          "An infinite time means never; an infinite dead time, that the link stays down.");
  nb::class_<LinkFailure>(module, "LinkFailure", "What the faults of a link have done.")
      .def_ro("link", &LinkFailure::link)
      .def_ro("drops", &LinkFailure::drops)
      .def_prop_ro("down_us", [](const LinkFailure& failure) { return failure.down_time.us(); })
      .def_ro("frames_lost", &LinkFailure::frames_lost)
      .def_prop_ro("resent_bytes",
                   [](const LinkFailure& failure) {
                     return std::pair(failure.resent[0].count(), failure.resent[1].count());
                   })
      .def_ro("is_up", &LinkFailure::is_up);
}

std::unique_ptr<SimulatedRun> run_on(std::unique_ptr<simulate::SimulatedRanks> ranks,
                                     std::shared_ptr<Plan> plan, sim::Trace* trace) {
  return std::make_unique<SimulatedRun>(std::move(ranks), std::move(plan), trace);
}

// A constructor for each kind of machine.
void bind_gpus(nb::class_<SimulatedRun>& run) {
  run.def_static(
      "on_gpus",
      [](std::shared_ptr<machine::Machine> machine, std::shared_ptr<Plan> plan,
         std::vector<int> places, bool carries_data, std::uint64_t seed, double jitter_ns,
         sim::Trace* trace, const simulate::Fold* fold, int threads) {
        const nb::gil_scoped_release release;
        const bool is_whole = collective::has_one_sided_steps(*plan->schedule);
        return run_on(
            std::make_unique<simulate::SimulatedGpus>(
                std::move(machine), plan->schedule->rank_count(),
                simulate::SimulatedGpusOptions{.places = std::move(places),
                                               .carries_data = carries_data,
                                               .seed = seed,
                                               .jitter_max = Time::from_ns(jitter_ns),
                                               .fold = fold == nullptr ? simulate::Fold() : *fold,
                                               .threads = is_whole ? 0 : threads}),
            plan, trace);
      },
      "machine"_a, "plan"_a, nb::kw_only(), "places"_a = std::vector<int>(),
      "carries_data"_a = true, "seed"_a = 1, "jitter_ns"_a = 0.0, "trace"_a = nb::none(),
      "fold"_a = nb::none(), "threads"_a = 1, nb::keep_alive<0, 7>(),
      "A run on the GPUs of a machine; `places` has the GPU of each rank, or none for the\n"
      "first ones; `fold` is what find_fold says of machine, plan and places, and only for\n"
      "runs without data, jitter and trace. So many `threads` run the hosts where bytes are\n"
      "carried; 0: the reference, all hosts in one simulation. Raises ValueError.");
}

void bind_chips(nb::class_<SimulatedRun>& run) {
  run.def_static(
      "on_chips",
      [](std::shared_ptr<machine::ChipCluster> cluster, std::shared_ptr<Plan> plan,
         std::vector<int> places, bool carries_data, std::uint64_t seed, sim::Trace* trace,
         std::vector<ethernet::LinkFaults> link_faults, double deadline_us,
         std::optional<tenstorrent::fabric::Shape> shape, int threads, bool by_packets,
         std::uint64_t payload_bytes) {
        return run_on(std::make_unique<tenstorrent::ccl::SimulatedChips>(
                          std::move(cluster), plan->schedule->rank_count(),
                          tenstorrent::ccl::SimulatedChipsOptions{
                              .places = std::move(places),
                              .carries_data = carries_data,
                              .shape = std::move(shape),
                              .payload_bytes_max = payload_bytes,
                              .deadline = Time::from_us(deadline_us),
                              .run = {.seed = seed,
                                      .finds_hazards = false,
                                      .link_faults = std::move(link_faults),
                                      .threads = threads,
                                      .network = by_packets ? noc::NetworkModel::packets
                                                            : noc::NetworkModel::flits}}),
                      plan, trace);
      },
      "cluster"_a, "plan"_a, nb::kw_only(), "places"_a = std::vector<int>(),
      "carries_data"_a = true, "seed"_a = 1, "trace"_a = nb::none(),
      "link_faults"_a = std::vector<ethernet::LinkFaults>(), "deadline_us"_a = 1e6,
      "shape"_a = nb::none(), "threads"_a = 1, "by_packets"_a = false, "payload_bytes"_a = 0,
      nb::keep_alive<0, 6>(),
      "A run on chips that Ethernet joins; `places` has the place of each rank in the\n"
      "fabric's `shape`, or none for the first ones. `link_faults` go by the cluster's\n"
      "links; missing ones mean no fault. With faults, an invocation may take\n"
      "`deadline_us` of simulated time. So many `threads` run them; 0: the reference, all\n"
      "chips in one simulation. `by_packets`: the chips' networks are simulated packet by\n"
      "packet, not flit by flit. Packets of the fabric have at most `payload_bytes`; 0:\n"
      "what the chip's spec says. Raises ValueError.");
}

void bind_mailboxes(nb::class_<SimulatedRun>& run) {
  run.def_static(
      "on_mailboxes",
      [](std::shared_ptr<machine::MailboxCluster> cluster, std::shared_ptr<Plan> plan,
         bool carries_data, std::uint64_t seed, sim::Trace* trace) {
        return run_on(
            std::make_unique<simulate::SimulatedMailboxes>(
                std::move(cluster), plan->schedule->rank_count(),
                simulate::SimulatedMailboxesOptions{.carries_data = carries_data, .seed = seed}),
            plan, trace);
      },
      "cluster"_a, "plan"_a, nb::kw_only(), "carries_data"_a = true, "seed"_a = 1,
      "trace"_a = nb::none(), nb::keep_alive<0, 5>(),
      "A run on the nodes of a cluster with mailboxes, rank r on node r. Raises ValueError.");
}

nb::tuple load_of(const sim::LinkLoad& load) {
  return nb::make_tuple(load.bytes.count(), load.busy.us(), load.messages);
}

std::optional<std::tuple<std::size_t, std::uint64_t, double>> busiest_of(const SimulatedRun& run) {
  const auto busiest = run.busiest();
  if (!busiest) return std::nullopt;
  return std::tuple(busiest->first, busiest->second.bytes.count(), busiest->second.busy.us());
}

void bind_fold(nb::module_& module) {
  using simulate::Fold;
  nb::class_<Fold>(module, "Fold", "Which ranks stand for all in a simulation.")
      .def_ro("period", &Fold::period, "The first ranks that are simulated; 0: all.")
      .def_ro("refusal", &Fold::refusal, "Why all are, in words; empty if not all are.");
  module.def(
      "find_fold",
      [](const machine::Machine& machine, const Plan& plan, std::vector<int> places) {
        const nb::gil_scoped_release release;
        const int ranks = plan.schedule->rank_count();
        return simulate::find_fold(machine, plan,
                                   simulate::places_of_ranks(std::move(places), ranks));
      },
      "machine"_a, "plan"_a, "places"_a = std::vector<int>(),
      "Looks for ranks that do the same at the same time without data; `places` has the GPU of\n"
      "each rank, or none for the first ones. Raises ValueError.");
}

void bind_simulated_run(nb::module_& module) {
  nb::class_<SimulatedRun> run(module, "SimulatedRun", "All ranks of one plan on one machine.");
  bind_gpus(run);
  bind_chips(run);
  bind_mailboxes(run);
  run.def(
         "invoke",
         [](SimulatedRun& run, const Plan& plan, const std::vector<const RankBuffers*>& ranks) {
           const std::vector<Buffers> buffers = all_checked(plan, ranks);
           nb::gil_scoped_release release;
           return run.invoke(buffers).us();
         },
         "plan"_a, "ranks"_a = std::vector<const RankBuffers*>(),
         "Runs one invocation on every rank and returns its time in microseconds. Without buffers\n"
         "the run keeps time only. Raises DeadlockError.")
      .def(
          "invoke_within",
          [](SimulatedRun& run, double limit_us) -> std::optional<double> {
            const nb::gil_scoped_release release;
            const bool is_long = limit_us > kLimitUsMax;
            const auto time = run.invoke_within(is_long ? Time::max() : Time::from_us(limit_us));
            return time ? std::optional(time->us()) : std::nullopt;
          },
          "limit_us"_a,
          "The same without buffers, unless it takes longer than the limit: then None, and the\n"
          "run is over.")
      .def_prop_ro("simulated_ranks", &SimulatedRun::simulated_ranks,
                   "How many ranks are simulated; the others do as these.")
      .def_prop_ro("events", &SimulatedRun::events)
      .def_prop_ro("now_us", [](const SimulatedRun& run) { return run.now().us(); })
      .def_prop_ro(
          "loads",
          [](const SimulatedRun& run) {
            nb::list loads;
            for (const sim::LinkLoad& load : run.loads()) loads.append(load_of(load));
            return loads;
          },
          "(size_bytes, busy_us, messages) per link of a GPU machine; two per link of a chip\n"
          "cluster, from its first end and from its second; none for mailboxes.")
      .def_prop_ro("busiest", &busiest_of,
                   "(number, size_bytes, busy_us) of the first of the busiest links; None without\n"
                   "links.")
      .def_prop_ro("may_differ", &SimulatedRun::may_differ,
                   "Whether ranks that are not simulated may have done something else.")
      .def_prop_ro(
          "windows",
          [](const SimulatedRun& run) {
            const sim::SimulationGroup::Windows& windows = run.windows();
            return std::tuple(windows.windows, windows.events, windows.critical_events);
          },
          "What threads could win: windows, their events, and those of the busiest thread in each.")
      .def_prop_ro("link_failures", &SimulatedRun::link_failures, "One per link with faults.");
}

}  // namespace

void bind_run(nb::module_& module) {
  bind_plan(module);
  bind_trace(module);
  bind_link_failures(module);
  bind_fold(module);
  bind_simulated_run(module);
}
