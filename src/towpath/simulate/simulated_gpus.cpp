// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/simulate/simulated_gpus.hpp"

#include "towpath/base/invariant.hpp"

namespace towpath::simulate {

SimulatedGpus::SimulatedGpus(std::shared_ptr<const machine::Machine> machine, int ranks,
                             const SimulatedGpusOptions& options)
    : fold_(options.fold),
      simulation_(options.seed),
      ranks_(simulation_, machine,
             {.places = places_of_ranks(options.places, ranks),
              .carries_data = options.carries_data,
              .jitter_max = options.jitter_max,
              .period = options.fold.period,
              .representative = options.fold.representative}) {
  const bool is_exact = !options.carries_data && options.jitter_max == Time();
  TOWPATH_CHECK(!fold_ || is_exact, "ranks with data or jitter have no mirror images");
  for (int rank = 0; rank < simulated_ranks(ranks); ++rank) launches_.push_back({this, rank});
}

std::vector<gpu_links::LinkLoad> SimulatedGpus::loads() {
  const std::vector<gpu_links::LinkLoad>& loads = ranks_.network().loads();
  if (!fold_) return loads;
  std::vector<gpu_links::LinkLoad> of_all;
  of_all.reserve(loads.size());
  for (const int link : *fold_.representative) {
    of_all.push_back(loads[static_cast<std::size_t>(link)]);
  }
  return of_all;
}

void SimulatedGpus::start(int rank, Protocol protocol) {
  const machine::GpuCost& cost = ranks_.cost_of(rank);
  simulation_.after(
      cost.launch + cost.protocol[static_cast<std::size_t>(protocol)].start_overhead,
      [](void* context) {
        const Launch& launch = *static_cast<Launch*>(context);
        launch.gpus->on_begin(launch.rank);
      },
      &launches_[static_cast<std::size_t>(rank)]);
}

}  // namespace towpath::simulate
