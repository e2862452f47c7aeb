// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "random_gpus.hpp"
#include "towpath/collective/algorithms/algorithms.hpp"
#include "towpath/collective/schedule/plan.hpp"
#include "towpath/machine/machine.hpp"

// Clusters of hosts that are all alike, schedules and sizes at random, for tests.
namespace towpath::random_hosts {

using namespace literals;
using collective::AlgorithmOptions;
using collective::Plan;
using collective::Schedule;
using machine::DeviceKind;
using machine::LinkKind;
using machine::MachineBuilder;

struct Size {
  int hosts = 1;
  int gpus = 1;  // of each
};

inline machine::Link random_link(LinkKind kind, Figures& figures) {
  const Rate rate = figures.rate();
  const Time latency = figures.time(1_us);
  return {0, 0, kind, rate, latency, figures.flip() ? figures.time(50_ns) : Time()};
}

// Hosts that are all alike: GPUs at a switch or each joined to each, an adapter per GPU or for all,
// and a network switch per adapter or for all.
class RandomMachine {
 public:
  RandomMachine(const Size& size, Figures& figures)
      : size_(size),
        cost_(random_cost(figures)),
        within_(random_link(LinkKind::nvlink, figures)),
        to_adapter_(random_link(LinkKind::pcie, figures)),
        outside_(random_link(LinkKind::network, figures)),
        has_switch_(figures.flip()),
        has_rails_(has_switch_ && figures.flip()),  // otherwise rails do not meet
        adapters_(figures.flip() ? size.gpus : 1) {}

  std::shared_ptr<const machine::Machine> build() && {
    for (int i = 0; i < (has_rails_ ? adapters_ : 1); ++i) {
      leaves_.push_back(
          builder_.add_device({fmt::format("leaf{}", i), DeviceKind::network_switch, -1, true}));
    }
    for (int host = 0; host < size_.hosts; ++host) add_adapters(host, add_gpus(host));
    builder_.set_gpu_cost(cost_);
    return std::move(builder_).build();
  }

 private:
  std::vector<int> add_gpus(int host) {
    std::vector<int> gpus;
    for (int i = 0; i < size_.gpus; ++i) {
      const int gpu =
          builder_.add_device({fmt::format("host{}/gpu{}", host, i), DeviceKind::gpu, host, false});
      for (const int other : gpus) {
        if (!has_switch_) join(builder_, gpu, other, within_);
      }
      gpus.push_back(gpu);
    }
    if (!has_switch_) return gpus;
    const int hub =
        builder_.add_device({fmt::format("host{}/switch", host), DeviceKind::nvswitch, host, true});
    for (const int gpu : gpus) join(builder_, gpu, hub, within_);
    return gpus;
  }
  void add_adapters(int host, const std::vector<int>& gpus) {
    for (int i = 0; i < adapters_; ++i) {
      const int nic =
          builder_.add_device({fmt::format("host{}/nic{}", host, i), DeviceKind::nic, host, true});
      join(builder_, nic, leaves_[static_cast<std::size_t>(has_rails_ ? i : 0)], outside_);
      for (int gpu = 0; gpu < size_.gpus; ++gpu) {
        if (adapters_ > 1 && gpu != i) continue;
        join(builder_, gpus[static_cast<std::size_t>(gpu)], nic, to_adapter_);
      }
    }
  }

  Size size_;
  machine::GpuCost cost_;
  machine::Link within_;
  machine::Link to_adapter_;
  machine::Link outside_;
  bool has_switch_;
  bool has_rails_;
  int adapters_;
  MachineBuilder builder_{"random"};
  std::vector<int> leaves_;
};

inline Schedule random_schedule(const Size& size, Figures& figures) {
  constexpr std::array kAlgorithms = {
      "ring_all_reduce", "ring_all_gather",  "ring_reduce_scatter", "hierarchical_all_reduce",
      "pat_all_gather",  "bruck_all_gather", "pat_reduce_scatter",  "bruck_all_to_all"};
  AlgorithmOptions options;
  options.ranks = size.hosts * size.gpus;
  options.gpus_per_host = size.gpus;
  options.channels = figures.between(1, 4);
  options.protocol = static_cast<Protocol>(figures.between(0, 2));
  if (figures.flip())
    options.rings = collective::rail_rings(size.hosts, size.gpus, options.channels);
  const auto chosen = static_cast<std::size_t>(figures.between(0, kAlgorithms.size() - 1));
  return collective::make_schedule(kAlgorithms[chosen], options);
}

inline std::shared_ptr<const Plan> plan_of(const Schedule& schedule, std::uint64_t chunk_elements) {
  return collective::make_plan(std::make_shared<Schedule>(schedule),
                               chunk_elements * schedule.chunks,
                               {transport::DataType::float32, transport::ReductionOperation::sum});
}

// Rails do not meet, so a schedule that crosses between them cannot run.
inline bool has_ways(const machine::Machine& machine, const Plan& plan) {
  for (int rank = 0; rank < plan.schedule->rank_count(); ++rank) {
    for (const auto& block : plan.schedule->ranks[static_cast<std::size_t>(rank)].blocks) {
      try {
        if (block.send_peer >= 0) machine.route(rank, block.send_peer);
      } catch (const std::invalid_argument&) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace towpath::random_hosts
