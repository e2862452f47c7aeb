// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "towpath/sim/simulation.hpp"

namespace towpath::sim {

// Calls a process from outside the simulation: runs until `body` returns as a process. An exception
// from the body propagates to the caller, and the simulation stays usable.
//
// Returns false if no pending event can resume the process. It keeps waiting and may finish in a
// later call, so the body must own its captures and its result.
[[nodiscard]] inline bool run_process(sim::Simulation& simulation, std::string name,
                                      std::function<void()> body) {
  auto is_over = std::make_shared<bool>(false);
  simulation.spawn(std::move(name), [is_over, body = std::move(body)] {
    body();
    *is_over = true;
  });
  while (!*is_over && simulation.step()) continue;
  return *is_over;
}

}  // namespace towpath::sim
