// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/kernels_beside.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

namespace towpath::tenstorrent::metalium {

struct KernelsBeside::State {
  SourceResult result;
  std::size_t running = 0;
};

namespace {

void check(const SourceProgram& program) {
  std::set<std::tuple<int, int, int>> taken;
  for (const PlacedKernel& kernel : program.kernels) {
    const std::string name = kernel.source.file.stem().string();
    if (kernel.processor == Processor::ethernet) {
      throw std::invalid_argument(fmt::format(
          "kernel '{}' is for an Ethernet core; beside a host's calls workers run kernels", name));
    }
    if (program.fabric || !kernel.connections.empty()) {
      throw std::invalid_argument(
          fmt::format("kernel '{}' uses a fabric, and there is none beside a host's calls", name));
    }
    if (!taken.emplace(kernel.core.x, kernel.core.y, noc_of(kernel)).second) {
      throw std::invalid_argument(
          fmt::format("kernel '{}' is the second one on NoC {} of core ({}, {}); it serves one",
                      name, kernel.noc_index, kernel.core.x, kernel.core.y));
    }
  }
}

// The state of a program at its start: its semaphores, and circular buffers without pages.
void initialise(noc::ChipNetwork& network, const SourceProgram& program) {
  for (const machine::Coordinate worker : network.chip().workers) {
    for (std::size_t id = 0; id < program.semaphores.size(); ++id) {
      network.memory(worker).store_word(worker_memory_map::kSemaphoreBase + id * kSemaphoreBytes,
                                        program.semaphores[id]);
    }
  }
  for (const PlacedKernel& kernel : program.kernels) {
    noc::Memory& memory = network.memory(tile_of(network.chip(), kernel.core, kernel.processor));
    for (std::size_t number = 0; number < kernel.circular_buffers.size(); ++number) {
      memory.store_word(worker_memory_map::pages_received_at(static_cast<int>(number)), 0);
      memory.store_word(worker_memory_map::pages_acked_at(static_cast<int>(number)), 0);
    }
  }
}

}  // namespace

KernelsBeside::KernelsBeside(noc::ChipNetwork& network, const SourceProgram& program)
    : state_(std::make_shared<State>()) {
  check(program);
  std::vector<std::pair<KernelConfig, Kernel>> kernels;
  for (const PlacedKernel& kernel : program.kernels) {
    kernels.emplace_back(
        KernelConfig{.core = tile_of(network.chip(), kernel.core, kernel.processor),
                     .name = kernel.source.file.stem().string(),
                     .noc_index = noc_of(kernel),
                     .runtime_args = kernel.runtime_args},
        compiled_body(network.chip(), kernel, state_->result.log));
  }
  initialise(network, program);
  state_->result.kernels.resize(kernels.size());
  state_->running = kernels.size();
  for (std::size_t number = 0; number < kernels.size(); ++number) {
    auto& [config, body] = kernels[number];
    run_kernel(network, std::move(config),
               [state = state_, number, body = std::move(body)](DataMovementCore& core) {
                 SourceResult::KernelTimes& times = state->result.kernels[number];
                 times.begin = core.cycle();
                 body(core);
                 times.end = core.cycle();
                 if (--state->running == 0) {
                   state->result.time = core.network().simulation().now();
                 }
                 const std::string unanswered = core.describe_unanswered();
                 if (unanswered.empty()) return;
                 throw std::runtime_error(
                     fmt::format("{} ends in cycle {} without the barrier it needs: {}",
                                 name_of(core.config()), core.cycle(), unanswered));
               });
  }
}

bool KernelsBeside::is_over() const { return state_->running == 0; }

const SourceResult& KernelsBeside::result() const { return state_->result; }

}  // namespace towpath::tenstorrent::metalium
