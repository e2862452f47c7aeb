// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/run/simulated_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "towpath/collective/deadlock.hpp"
#include "towpath/transport/simulated/cluster.hpp"

namespace towpath::run {

using namespace collective;

struct SimulatedRun::Ranks {
  // One rank's part in an invocation.
  struct Rank {
    SimulatedRun::Ranks* all = nullptr;
    std::unique_ptr<Executor> executor;
    Buffers buffers;
  };

  Ranks(sim::Simulation& simulation, std::shared_ptr<const machine::Machine> machine,
        const transport::simulated::ClusterOptions& options)
      : cluster(simulation, std::move(machine), options) {}

  transport::simulated::Cluster cluster;
  std::vector<Rank> ranks;
  Time finished;
  std::size_t running = 0;
};

namespace {

std::vector<int> placed(std::vector<int> gpus, int ranks) {
  if (gpus.empty()) {
    gpus.resize(static_cast<std::size_t>(ranks));
    std::iota(gpus.begin(), gpus.end(), 0);
  }
  if (gpus.size() != static_cast<std::size_t>(ranks)) {
    throw std::invalid_argument(
        fmt::format("{} ranks are placed on {} GPUs; one for each", ranks, gpus.size()));
  }
  return gpus;
}

}  // namespace

SimulatedRun::SimulatedRun(std::shared_ptr<const machine::Machine> machine,
                           std::shared_ptr<const Plan> plan, const SimulatedRunOptions& options)
    : machine_(std::move(machine)),
      plan_(std::move(plan)),
      options_(options),
      simulation_(options.seed) {
  transport::simulated::ClusterOptions cluster_options;
  cluster_options.gpus = placed(options.gpus, plan_->schedule->rank_count());
  cluster_options.carries_data = options.carries_data;
  cluster_options.jitter_max = options.jitter_max;
  ranks_ = std::make_unique<Ranks>(simulation_, machine_, cluster_options);
  ranks_->ranks.resize(plan_->schedule->ranks.size());
  for (std::size_t r = 0; r < ranks_->ranks.size(); ++r) {
    Ranks::Rank& rank = ranks_->ranks[r];
    rank.all = ranks_.get();
    rank.executor =
        std::make_unique<Executor>(ranks_->cluster.transport(static_cast<int>(r)), plan_);
    rank.executor->on_finished = [this] {
      ranks_->finished = std::max(ranks_->finished, simulation_.now());
      --ranks_->running;
    };
  }
  if (options.trace != nullptr) {
    simulation_.set_trace(options.trace);
    observe_steps();
  }
}

SimulatedRun::~SimulatedRun() = default;

void SimulatedRun::observe_steps() {
  for (Ranks::Rank& rank : ranks_->ranks) {
    rank.executor->on_step = [this](const StepRecord& record) {
      sim::Trace& trace = *options_.trace;
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

Time SimulatedRun::invoke(const std::vector<Buffers>& buffers) {
  const Time called = simulation_.now();
  ranks_->running = ranks_->ranks.size();
  ranks_->finished = called;
  for (std::size_t r = 0; r < ranks_->ranks.size(); ++r) {
    Ranks::Rank& rank = ranks_->ranks[r];
    rank.buffers = buffers.empty() ? Buffers{} : buffers.at(r);
    simulation_.at(
        called + machine_->gpu().launch,
        [](void* context) {
          auto& starting = *static_cast<Ranks::Rank*>(context);
          starting.executor->start(starting.buffers);
        },
        &rank);
  }
  simulation_.run();
  if (ranks_->running > 0) {
    std::vector<Blocked> blocked;
    for (const Ranks::Rank& rank : ranks_->ranks) {
      const std::vector<Blocked> more = rank.executor->blocked();
      blocked.insert(blocked.end(), more.begin(), more.end());
    }
    throw transport::TransportError(transport::TransportError::Kind::deadlock, transport::kNoPeer,
                                    describe_deadlock(*plan_->schedule, blocked));
  }
  return ranks_->finished - called;
}

const std::vector<cluster::LinkLoad>& SimulatedRun::loads() const {
  return ranks_->cluster.network().loads();
}

std::uint64_t SimulatedRun::events() const { return simulation_.events(); }

Time SimulatedRun::now() const { return simulation_.now(); }

}  // namespace towpath::run
