// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/simulate/simulated_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "towpath/base/deadlock_error.hpp"
#include "towpath/base/index.hpp"
#include "towpath/collective/schedule/deadlock.hpp"

namespace towpath::simulate {

using namespace collective;

SimulatedRun::SimulatedRun(std::unique_ptr<SimulatedRanks> ranks, std::shared_ptr<const Plan> plan,
                           sim::Trace* trace)
    : plan_(std::move(plan)), ranks_(std::move(ranks)), connected_(ranks_->connected()) {
  if (trace == nullptr) time_only_ = ranks_->time_only(plan_);
  if (time_only_ == nullptr) make_executors(trace);
}

void SimulatedRun::make_executors(sim::Trace* trace) {
  if (connected_ != nullptr) connected_->set_plan(*plan_);
  const int simulated = simulated_ranks();
  for (int rank = 0; rank < simulated; ++rank) {
    executors_.push_back(std::make_unique<Executor>(ranks_->transport(rank), plan_));
    executors_.back()->on_finished = [this, number = executors_.size() - 1] {
      finish_rank(number);
    };
  }
  buffers_.resize(executors_.size());
  ranks_->on_begin = [this](int rank) {
    const auto number = static_cast<std::size_t>(rank);
    executors_[number]->start(buffers_[number]);
  };
  if (trace != nullptr) {
    ranks_->simulations().set_trace(trace);
    observe_steps();
  }
}

void SimulatedRun::observe_steps() {
  for (const auto& executor : executors_) {
    executor->on_step = [this](const StepRecord& record) {
      sim::Trace& trace = *ranks_->simulation(record.rank).trace();
      const auto track =
          trace.track(fmt::format("rank {} thread block {}", record.rank, record.block));
      const Step& step = plan_->schedule->ranks[static_cast<std::size_t>(record.rank)]
                             .blocks[record.block]
                             .steps[record.step];
      if (record.moving > record.entered) {
        trace.span(track, trace.name("wait"), record.entered, record.moving, record.step);
      }
      trace.span(track, trace.name(std::string(name_of(step.type))), record.moving, record.finished,
                 record.step);
    };
  }
}

std::optional<std::pair<std::size_t, sim::LinkLoad>> SimulatedRun::busiest() const {
  std::optional<std::pair<std::size_t, sim::LinkLoad>> busiest;
  const auto add = [&](std::size_t link, const sim::LinkLoad& load) {
    const bool is_first = !busiest || load.busy > busiest->second.busy ||
                          (load.busy == busiest->second.busy && link < busiest->first);
    if (is_first) busiest = std::pair(link, load);
  };
  if (time_only_ != nullptr) {
    // A representative is the first link of its orbit.
    for (const auto& [link, load] : time_only_->used_loads()) add(index(link), load);
  } else {
    const std::vector<sim::LinkLoad> loads = ranks_->loads();
    for (std::size_t link = 0; link < loads.size(); ++link) add(link, loads[link]);
  }
  return busiest;
}

// Ranks of different partitions may finish at the same moment.
void SimulatedRun::finish_rank(std::size_t rank) {
  finished_[rank] = ranks_->transport(static_cast<int>(rank)).now();
  if (connected_ != nullptr) connected_->close(static_cast<int>(rank));
}

Time SimulatedRun::invoke(const std::vector<Buffers>& buffers) {
  return *invoke(buffers, Time::max());
}

std::optional<Time> SimulatedRun::invoke_within(Time limit) {
  const std::optional<Time> time = invoke({}, limit);
  return time && *time <= limit ? time : std::nullopt;
}

std::optional<Time> SimulatedRun::invoke(const std::vector<Buffers>& buffers, Time limit) {
  if (time_only_ != nullptr) {
    const Time called = time_only_->now();
    const TimeOnlyRun::Outcome outcome = time_only_->invoke(limit);
    if (outcome.end == TimeOnlyRun::End::finished) return outcome.finished - called;
    if (outcome.end == TimeOnlyRun::End::beyond_limit) return std::nullopt;
    // Deadlock: executors report the wait chain.
    time_only_ = nullptr;
    make_executors(nullptr);
  }
  const Time called = now();
  finished_.assign(executors_.size(), Time::max());
  for (std::size_t rank = 0; rank < executors_.size(); ++rank) {
    buffers_[rank] = buffers.empty() ? Buffers{} : buffers.at(rank);
    ranks_->start(static_cast<int>(rank), *plan_->schedule);
  }
  ranks_->run(ranks_->simulation().from_now(limit));
  const Time last = std::ranges::max(finished_);
  if (last == Time::max() && ranks_->simulations().has_live_events()) return std::nullopt;
  if (last == Time::max()) fail_deadlocked();
  ranks_->run(Time::max());  // events after the end, such as credits
  const Time closed_at = connected_ != nullptr ? connected_->closed_at() : Time();
  return std::max(last, closed_at) - called;
}

void SimulatedRun::fail_deadlocked() const {
  std::vector<Blocked> blocked;
  for (const auto& executor : executors_) {
    const std::vector<Blocked> more = executor->blocked();
    blocked.insert(blocked.end(), more.begin(), more.end());
  }
  // Ranks that are not simulated wait in the same way, for the corresponding ranks.
  const int ranks = plan_->schedule->rank_count();
  const std::size_t simulated = blocked.size();
  for (int shift = static_cast<int>(executors_.size()); shift < ranks;
       shift += static_cast<int>(executors_.size())) {
    for (std::size_t i = 0; i < simulated; ++i) {
      Blocked image = blocked[i];
      image.rank += shift;
      image.waits_for_rank = (image.waits_for_rank + shift) % ranks;
      blocked.push_back(image);
    }
  }
  const std::string outages = connected_ != nullptr ? connected_->outages() : std::string();
  const WaitChain chain = find_wait_chain(blocked);
  throw DeadlockError((outages.empty() ? "" : outages + "; ") + describe(*plan_->schedule, chain),
                      describe_cycle(*plan_->schedule, chain));
}

}  // namespace towpath::simulate
