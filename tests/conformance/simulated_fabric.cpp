// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "conformance/simulated_fabric.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>

#include "conformance/simulated_ranks.hpp"
#include "fabrics.hpp"
#include "towpath/tenstorrent/ccl/simulated_chips.hpp"

namespace towpath::conformance {
namespace {

using tenstorrent::ccl::SimulatedChips;
using tenstorrent::ccl::SimulatedChipsOptions;

std::shared_ptr<const machine::ChipCluster> chips_for(FabricForm form, int ranks) {
  if (form != FabricForm::torus) {
    return machine::chips_on_grid(ranks, 1, form != FabricForm::line, 2);
  }
  return machine::chips_on_grid(3, std::max((ranks + 2) / 3, 1), true, 2);
}

}  // namespace

std::vector<std::string> run_simulated_fabric(int ranks, const Body& body, FabricForm form) {
  SimulatedChipsOptions options;
  options.run.threads = 0;
  const auto chips = chips_for(form, ranks);
  options.shape = tenstorrent::fabric::mesh_of(*chips);
  options.places.resize(static_cast<std::size_t>(ranks));
  std::iota(options.places.begin(), options.places.end(), 0);
  if (form == FabricForm::failing_ring) {
    options.run.link_faults.assign(chips->links.size(), {.frame_loss = 0.02,
                                                         .drop_at = Time::from_us(10),
                                                         .drop_period = Time::from_us(100),
                                                         .training_time = Time::from_us(2)});
    options.deadline = Time::max();  // tests wait for seconds
  }
  SimulatedChips cluster(chips, ranks, options);
  return run_ranks(cluster.simulation(), cluster, ranks, body, [&] { cluster.run(); });
}

}  // namespace towpath::conformance
