// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/simulate/simulated_gpus.hpp"

#include <utility>

#include "towpath/base/invariant.hpp"
#include "towpath/transport/simulated/gpu/step_cost.hpp"

namespace towpath::simulate {

namespace {

// More partitions than cores only add synchronization cost.
constexpr std::size_t kPartsMax = 64;

gpu_links::HostParts cut_of(const machine::Machine& machine, const SimulatedGpusOptions& options,
                            bool is_time_only) {
  const bool is_whole =
      options.threads == 0 || is_time_only || options.fold || options.jitter_max != Time();
  return is_whole ? gpu_links::HostParts() : gpu_links::cut_between_hosts(machine, kPartsMax);
}

transport::simulated::Kernel kernel_of(const collective::Schedule& schedule) {
  const bool is_direct = has_one_sided_steps(schedule) && !has_fifo_steps(schedule);
  return {.has_work_loop = !is_direct || schedule.has_switch_stages,
          .has_switch_stages = schedule.has_switch_stages,
          .has_half_blocks = schedule.has_half_blocks};
}

}  // namespace

SimulatedGpus::SimulatedGpus(std::shared_ptr<const machine::Machine> machine, int ranks,
                             const SimulatedGpusOptions& options)
    : is_time_only_(!options.carries_data && options.jitter_max == Time() && !options.is_plain),
      fold_(options.fold),
      cut_(cut_of(*machine, options, is_time_only_)),
      simulations_({.seed = options.seed,
                    .partitions = cut_.count,
                    .lookahead = cut_.lookahead,
                    .threads = options.threads}),
      ranks_(gpu_links::Parts(simulations_, cut_), machine,
             {.places = places_of_ranks(options.places, ranks),
              .carries_data = options.carries_data,
              .jitter_max = options.jitter_max,
              .period = options.fold.period,
              .folded_links = options.fold.links}) {
  const bool is_exact = !options.carries_data && options.jitter_max == Time();
  TOWPATH_CHECK(!fold_ || is_exact, "ranks with data or jitter have no mirror images");
  for (int rank = 0; rank < simulated_ranks(ranks); ++rank) launches_.push_back({this, rank});
}

collective::TimeOnlyRun* SimulatedGpus::time_only(std::shared_ptr<const collective::Plan> plan) {
  using collective::TimeOnlyRun;
  bool is_possible = is_time_only_ && plan->schedule->rank_count() == ranks_.ranks() &&
                     TimeOnlyRun::can_run(*plan);
  if (plan->window_bytes > 0) {
    is_possible = is_possible && !fold_ && TimeOnlyRun::can_run(ranks_, *plan);
  }
  if (!is_possible) return nullptr;
  ranks_.set_kernel(kernel_of(*plan->schedule));
  time_only_ = std::make_unique<TimeOnlyRun>(ranks_, std::move(plan));
  return time_only_.get();
}

void SimulatedGpus::start(int rank, const collective::Schedule& schedule) {
  ranks_.set_kernel(kernel_of(schedule));
  simulation(rank).after(
      ranks_.step_cost(rank, schedule.protocol).start(),
      [](void* context) {
        const Launch& launch = *static_cast<Launch*>(context);
        launch.gpus->on_begin(launch.rank);
      },
      &launches_[static_cast<std::size_t>(rank)]);
}

}  // namespace towpath::simulate
