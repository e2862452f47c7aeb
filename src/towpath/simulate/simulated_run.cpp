// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/simulate/simulated_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include "towpath/ethernet/port.hpp"
#include "towpath/simulate/executors.hpp"
#include "towpath/transport/simulated/chips/fabric_cluster.hpp"
#include "towpath/transport/simulated/chips/link_faults.hpp"
#include "towpath/transport/simulated/gpu/cluster.hpp"

namespace towpath::simulate {

using namespace collective;

struct SimulatedRun::Ranks {
  // One rank's part in an invocation.
  struct Rank {
    Executor* executor = nullptr;
    Buffers buffers;
    // On chips, programs of neighbours wait for each other before they send.
    std::vector<transport::Move> greetings;
    transport::SignalWait greeted;
  };

  // Tells the ranks of a rank's connections that it is there, and waits for all of them.
  void greet(std::size_t number);
  void prepare_greetings(const Plan& plan);

  // Of GPUs, with their simulation, or of chips.
  std::unique_ptr<sim::Simulation> own_simulation;
  std::unique_ptr<transport::simulated::Cluster> gpus;
  std::unique_ptr<transport::simulated::chips::FabricCluster> chips;
  Time launch;

  sim::Simulation& simulation() { return chips ? chips->simulation() : *own_simulation; }
  transport::Transport& transport(int rank) {
    return chips ? chips->transport(rank) : gpus->transport(rank);
  }
  void run() {
    if (chips) {
      chips->run();
    } else {
      own_simulation->run();
    }
  }
  std::optional<Executors> executors;
  std::vector<Rank> ranks;
};

void SimulatedRun::Ranks::prepare_greetings(const Plan& plan) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    std::set<int> peers;
    for (const ThreadBlock& block : plan.schedule->ranks[r].blocks) {
      for (const int peer : {block.send_peer, block.receive_peer}) {
        if (peer != kNone) peers.insert(peer);
      }
    }
    Rank& rank = ranks[r];
    rank.greeted.signal = transport(static_cast<int>(r)).allocate_signals(1);
    rank.greeted.context = &rank;
    rank.greeted.ready = [](transport::SignalWait& wait) {
      auto& ready = *static_cast<Rank*>(wait.context);
      ready.executor->start(ready.buffers);
    };
    for (const int peer : peers) {
      transport::Move& move = rank.greetings.emplace_back();
      move.peer = peer;
      move.has_signal = true;
      move.signal = rank.greeted.signal;
      move.signal_value = 1;
      move.signal_operation = transport::SignalOperation::add;
    }
  }
}

void SimulatedRun::Ranks::greet(std::size_t number) {
  Rank& rank = ranks[number];
  transport::Transport& here = transport(static_cast<int>(number));
  for (transport::Move& move : rank.greetings) here.start(move);
  rank.greeted.value += rank.greetings.size();
  here.wait(rank.greeted);
}

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
    : plan_(std::move(plan)), options_(options), ranks_(std::make_unique<Ranks>()) {
  if (!options.link_faults.empty() || options.shape) {
    throw std::invalid_argument(
        fmt::format("machine '{}' has GPUs; link faults and the shape of a fabric are for clusters "
                    "of chips",
                    machine->name()));
  }
  ranks_->own_simulation = std::make_unique<sim::Simulation>(options.seed);
  ranks_->launch = machine->gpu().launch;
  ranks_->gpus = std::make_unique<transport::simulated::Cluster>(
      *ranks_->own_simulation, std::move(machine),
      transport::simulated::ClusterOptions{
          .gpus = placed(options.gpus, plan_->schedule->rank_count()),
          .carries_data = options.carries_data,
          .jitter_max = options.jitter_max});
  make_ranks();
}

SimulatedRun::SimulatedRun(std::shared_ptr<const machine::ChipCluster> cluster,
                           std::shared_ptr<const Plan> plan, const SimulatedRunOptions& options)
    : plan_(std::move(plan)), options_(options), ranks_(std::make_unique<Ranks>()) {
  if (options.jitter_max != Time()) {
    throw std::invalid_argument(fmt::format(
        "cluster '{}': a cluster of chips has no jitter, of which up to {} ns are asked "
        "for; a seed is enough",
        cluster->name, options.jitter_max.ns()));
  }
  ranks_->chips = std::make_unique<transport::simulated::chips::FabricCluster>(
      std::move(cluster),
      transport::simulated::chips::FabricClusterOptions{
          .shape = options.shape,
          .places = placed(options.gpus, plan_->schedule->rank_count()),
          .carries_data = options.carries_data,
          .run = {.seed = options.seed, .finds_hazards = false, .link_faults = options.link_faults},
          .deadline = options.deadline});
  make_ranks();
  ranks_->prepare_greetings(*plan_);
  ranks_->executors->on_finished = [this] { ranks_->chips->close_connections(); };
}

void SimulatedRun::make_ranks() {
  ranks_->executors.emplace(ranks_->simulation(), plan_);
  ranks_->ranks.resize(plan_->schedule->ranks.size());
  for (std::size_t r = 0; r < ranks_->ranks.size(); ++r) {
    ranks_->executors->add(ranks_->transport(static_cast<int>(r)));
    ranks_->ranks[r].executor = &(*ranks_->executors)[r];
  }
  if (options_.trace != nullptr) {
    ranks_->simulation().set_trace(options_.trace);
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
  const Time called = ranks_->simulation().now();
  ranks_->executors->begin();
  for (std::size_t r = 0; r < ranks_->ranks.size(); ++r) {
    Ranks::Rank& rank = ranks_->ranks[r];
    rank.buffers = buffers.empty() ? Buffers{} : buffers.at(r);
    if (ranks_->chips) {
      ranks_->greet(r);
      continue;
    }
    ranks_->simulation().at(
        called + ranks_->launch,
        [](void* context) {
          auto& starting = *static_cast<Ranks::Rank*>(context);
          starting.executor->start(starting.buffers);
        },
        &rank);
  }
  ranks_->run();
  if (!ranks_->chips) return ranks_->executors->end() - called;
  std::string outages = transport::simulated::chips::describe_outages(ranks_->chips->cluster());
  if (!outages.empty()) outages += "; ";
  const Time finished = ranks_->executors->end(outages);
  return std::max(finished, ranks_->chips->closed_at()) - called;
}

std::vector<gpu_links::LinkLoad> SimulatedRun::loads() const {
  if (ranks_->gpus) return ranks_->gpus->network().loads();
  std::vector<gpu_links::LinkLoad> loads;
  tenstorrent::Cluster& chips = ranks_->chips->cluster();
  for (std::size_t number = 0; number < chips.description().links.size(); ++number) {
    for (const ethernet::Port* port : chips.link(number).ports()) {
      const ethernet::PortCounters& counters = port->counters();
      loads.push_back({Bytes(counters.payload_bytes_sent), counters.wire_time, counters.commands});
    }
  }
  return loads;
}

std::vector<LinkFailure> SimulatedRun::link_failures() const {
  std::vector<LinkFailure> failures;
  for (std::size_t number = 0; number < options_.link_faults.size(); ++number) {
    if (options_.link_faults[number] == ethernet::LinkFaults{}) continue;
    const towpath::ethernet::Link& link = ranks_->chips->cluster().link(number);
    LinkFailure failure{.link = number,
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

std::uint64_t SimulatedRun::events() const { return ranks_->simulation().events(); }

Time SimulatedRun::now() const { return ranks_->simulation().now(); }

}  // namespace towpath::simulate
