// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/simulated_chips.hpp"

#include <utility>

#include "towpath/ethernet/port.hpp"
#include "towpath/tenstorrent/ccl/link_faults.hpp"

namespace towpath::tenstorrent::ccl {

SimulatedChips::SimulatedChips(std::shared_ptr<const machine::ChipCluster> cluster, int ranks,
                               const SimulatedChipsOptions& options)
    : link_faults_(options.link_faults),
      chips_(std::move(cluster), {.shape = options.shape,
                                  .places = simulate::places_of_ranks(options.places, ranks),
                                  .carries_data = options.carries_data,
                                  .payload_bytes_max = options.payload_bytes_max,
                                  .run = {.seed = options.seed,
                                          .finds_hazards = false,
                                          .link_faults = options.link_faults,
                                          .threads = options.threads,
                                          .network = options.network},
                                  .deadline = options.deadline}) {}

void SimulatedChips::set_plan(const collective::Plan& plan) {
  chips_.set_plan(plan, [this](int rank) { on_begin(rank); });
}

std::string SimulatedChips::outages() const { return describe_outages(chips_.cluster()); }

std::vector<sim::LinkLoad> SimulatedChips::loads() {
  std::vector<sim::LinkLoad> loads;
  Cluster& cluster = chips_.cluster();
  for (std::size_t number = 0; number < cluster.description().links.size(); ++number) {
    for (const ethernet::Port* port : cluster.link(number).ports()) {
      const ethernet::PortCounters& counters = port->counters();
      loads.push_back({Bytes(counters.payload_bytes_sent), counters.wire_time, counters.commands});
    }
  }
  return loads;
}

std::vector<simulate::LinkFailure> SimulatedChips::link_failures() const {
  std::vector<simulate::LinkFailure> failures;
  for (std::size_t number = 0; number < link_faults_.size(); ++number) {
    if (link_faults_[number] == ethernet::LinkFaults{}) continue;
    const ethernet::Link& link = chips_.cluster().link(number);
    simulate::LinkFailure failure{.link = number,
                                  .drops = link.drops(),
                                  .down_time = link.down_time(),
                                  .resent = {},
                                  .is_up = link.is_up()};
    for (std::size_t end = 0; end < 2; ++end) {
      const ethernet::PortCounters& counters = link.ports()[end]->counters();
      failure.frames_lost += counters.frames_lost;
      failure.resent[end] = Bytes(counters.payload_bytes_resent);
    }
    failures.push_back(failure);
  }
  return failures;
}

}  // namespace towpath::tenstorrent::ccl
