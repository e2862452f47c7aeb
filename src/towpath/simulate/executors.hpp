// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "towpath/collective/execute/executor.hpp"
#include "towpath/collective/schedule/plan.hpp"
#include "towpath/sim/simulation.hpp"

// The executors of all ranks of a plan in one simulation, and how far an invocation has come.
//
//   executors.begin();
//   for (std::size_t rank = 0; rank < ranks; ++rank) executors[rank].start(buffers[rank]);
//   simulation.run();
//   const Time finished = executors.end();

namespace towpath::simulate {

class Executors {
 public:
  // The simulation outlives them.
  Executors(sim::Simulation& simulation, std::shared_ptr<const collective::Plan> plan);
  Executors(const Executors&) = delete;
  Executors& operator=(const Executors&) = delete;

  // That of the next rank, on its transport.
  void add(transport::Transport& transport);
  collective::Executor& operator[](std::size_t rank) { return *executors_[rank]; }
  std::size_t size() const { return executors_.size(); }

  void begin();
  // When the last rank has finished. Throws transport::TransportError::Kind::deadlock, `outages`
  // and who waits for whom, when some never will.
  Time end(const std::string& outages = {}) const;

  std::function<void()> on_finished;  // called when the last rank has; may be empty

 private:
  sim::Simulation& simulation_;
  std::shared_ptr<const collective::Plan> plan_;
  std::vector<std::unique_ptr<collective::Executor>> executors_;
  std::size_t running_ = 0;
  Time finished_;
};

}  // namespace towpath::simulate
