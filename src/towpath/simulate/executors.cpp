// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/simulate/executors.hpp"

#include <utility>

#include "towpath/collective/schedule/deadlock.hpp"

namespace towpath::simulate {

using collective::Blocked;
using transport::TransportError;

Executors::Executors(sim::Simulation& simulation, std::shared_ptr<const collective::Plan> plan)
    : simulation_(simulation), plan_(std::move(plan)) {}

void Executors::add(transport::Transport& transport) {
  executors_.push_back(std::make_unique<collective::Executor>(transport, plan_));
  executors_.back()->on_finished = [this] {
    if (--running_ > 0) return;
    finished_ = simulation_.now();
    if (on_finished) on_finished();
  };
}

void Executors::begin() { running_ = executors_.size(); }

Time Executors::end(const std::string& outages) const {
  if (running_ == 0) return finished_;
  std::vector<Blocked> blocked;
  for (const auto& executor : executors_) {
    const std::vector<Blocked> more = executor->blocked();
    blocked.insert(blocked.end(), more.begin(), more.end());
  }
  throw TransportError(TransportError::Kind::deadlock, transport::kNoPeer,
                       outages + describe_deadlock(*plan_->schedule, blocked));
}

}  // namespace towpath::simulate
