// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "towpath/sim/simulation.hpp"

namespace towpath::sim {

// A call from outside of the simulation: runs it until `body`, as a process of it, has ended. What
// the body throws leaves here, and the simulation may go on.
//
// False when nothing is under way that could bring the process on. It waits on then, and may go on
// in a later call: the body owns what it refers to, its result too.
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
