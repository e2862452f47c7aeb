// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "conformance/transports.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::conformance {

// The body on each rank of `all`, as processes of the simulation, while `run` is called; how each
// ended.
template <typename Ranks>
std::vector<std::string> run_ranks(sim::Simulation& simulation, Ranks& all, int ranks,
                                   const Body& body, const std::function<void()>& run) {
  std::vector<std::string> ended(static_cast<std::size_t>(ranks), "it never finished");
  for (int rank = 0; rank < ranks; ++rank) {
    simulation.spawn("rank " + std::to_string(rank), [&, rank] {
      std::string& mine = ended[static_cast<std::size_t>(rank)];
      try {
        body(all.transport(rank));
        mine.clear();
      } catch (const std::exception& error) {
        mine = error.what();
      }
    });
  }
  run();
  return ended;
}

}  // namespace towpath::conformance
