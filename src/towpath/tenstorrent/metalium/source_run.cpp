// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/source_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "towpath/tenstorrent/metalium/kernel_arrivals.hpp"

namespace towpath::tenstorrent::metalium {

machine::Coordinate tile_of(const machine::Chip& chip, machine::Coordinate core,
                            Processor processor) {
  if (processor != Processor::ethernet) return chip.worker(core.x, core.y);
  const std::size_t channels = chip.ethernet_cores.size();
  if (core.x != 0 || core.y < 0 || static_cast<std::size_t>(core.y) >= channels) {
    throw std::invalid_argument(fmt::format(
        "there is no Ethernet core ({}, {}); name it (0, channel), with a channel below {}", core.x,
        core.y, channels));
  }
  return chip.ethernet_cores[static_cast<std::size_t>(core.y)];
}

std::shared_ptr<const machine::ChipCluster> cluster_of(std::shared_ptr<const machine::Chip> chip) {
  machine::ChipCluster cluster;
  cluster.name = chip->name;
  const bool has_host_link = chip->has_host_link();
  cluster.chips.push_back({.chip = std::move(chip), .has_host_link = has_host_link});
  return machine::build_chip_cluster(std::move(cluster));
}

namespace {

// With the arguments of connections: the router's channel, and two semaphores that are not needed
// here.
std::vector<std::uint32_t> arguments_of(int chip, const PlacedKernel& kernel,
                                        const KernelFabric* fabric) {
  if (!kernel.connections.empty() && fabric == nullptr) {
    throw std::invalid_argument(
        fmt::format("kernel '{}' is connected to a router, but its program runs without a fabric",
                    kernel.source.file.string()));
  }
  std::vector<std::uint32_t> arguments = kernel.runtime_args;
  for (auto at = kernel.connections.rbegin(); at != kernel.connections.rend(); ++at) {
    const auto place = arguments.begin() + static_cast<std::ptrdiff_t>(at->position);
    arguments.insert(place, {fabric->channel_to(chip, at->to_chip, at->link), 0, 0});
  }
  return arguments;
}

}  // namespace

int noc_of(const PlacedKernel& kernel) {
  return kernel.processor == Processor::compute ? kNoNoc : kernel.noc_index;
}

Kernel compiled_body(const machine::Chip& chip, const PlacedKernel& kernel,
                     const SharedByKernels& shared) {
  const bool computes = kernel.processor == Processor::compute;
  const std::shared_ptr<const machine::Chip> alias(std::shared_ptr<const machine::Chip>(), &chip);
  KernelSource source = kernel.source;
  source.circular_buffers = kernel.circular_buffers;
  if (shared.fabric != nullptr) {
    source.defines.insert(shared.fabric->defines().begin(), shared.fabric->defines().end());
  }
  const CompiledKernel compiled = compile_kernel(
      source,
      {.chip = alias, .processor = kernel.processor, .noc_index = computes ? 0 : kernel.noc_index});
  return make_kernel(compiled, {.logical = kernel.core,
                                .circular_buffers = kernel.circular_buffers,
                                .common_args = kernel.common_args,
                                .log = &shared.log,
                                .fabric = shared.fabric,
                                .arrivals = shared.arrivals});
}

std::size_t add_kernel(Device& device, Program& program, const PlacedKernel& kernel,
                       const SharedByKernels& shared) {
  const machine::Chip& chip = device.chip();
  const int noc = noc_of(kernel);
  std::string name = kernel.source.file.stem().string();
  Kernel body = compiled_body(chip, kernel, shared);
  const std::vector<std::uint32_t> runtime_args = arguments_of(device.id(), kernel, shared.fabric);
  const machine::Coordinate tile = tile_of(chip, kernel.core, kernel.processor);
  if (kernel.processor == Processor::ethernet) {
    return program.create_kernel(
        LogicalCore{kernel.core.x, kernel.core.y},
        {.name = std::move(name), .noc_index = noc, .runtime_args = runtime_args},
        [body = std::move(body)](EthernetCore& core) { body(core); });
  }
  for (std::size_t number = 0; number < kernel.circular_buffers.size(); ++number) {
    const auto buffer = static_cast<int>(number);
    program.set_at_start({tile}, worker_memory_map::pages_received_at(buffer), 0);
    program.set_at_start({tile}, worker_memory_map::pages_acked_at(buffer), 0);
  }
  return program.create_kernel(
      {.core = tile, .name = std::move(name), .noc_index = noc, .runtime_args = runtime_args},
      std::move(body));
}

namespace {

void set_semaphores(Program& program, const machine::Chip& chip,
                    const std::vector<std::uint32_t>& values) {
  for (std::size_t id = 0; id < values.size(); ++id) {
    const std::uint64_t offset = id * kSemaphoreBytes;
    program.set_at_start(chip.workers, worker_memory_map::kSemaphoreBase + offset, values[id]);
    program.set_at_start(chip.ethernet_cores, kEthernetSemaphoreBase + offset, values[id]);
  }
}

// The memory of a block.
noc::Memory& memory_of(Cluster& chips, const MemoryBlock& block) {
  noc::Memory& memory = chips.device(block.chip).memory(block.tile);
  if (block.offset > memory.size_bytes() ||
      block.bytes.size() > memory.size_bytes() - block.offset) {
    throw std::invalid_argument(fmt::format(
        "{} bytes at offset {:#x} of tile ({}, {}) of chip {} are beyond its memory, which has {}",
        block.bytes.size(), block.offset, block.tile.x, block.tile.y, block.chip,
        memory.size_bytes()));
  }
  return memory;
}

// Routers continue for a while after the last kernel has ended.
Time last_end(const std::vector<SourceResult::KernelTimes>& kernels, const noc::ChipNetwork& chip) {
  noc::Cycle end = 0;
  for (const SourceResult::KernelTimes& times : kernels) end = std::max(end, times.end);
  return chip.clock().edge(Cycles(end));
}

}  // namespace

SourceResult run_source_program(std::shared_ptr<const machine::ChipCluster> cluster,
                                const SourceProgram& source) {
  SourceResult result;
  KernelArrivals arrivals;
  Cluster chips(std::move(cluster), source.options);
  std::optional<KernelFabric> fabric;
  if (source.fabric) fabric.emplace(chips, *source.fabric);
  std::map<int, Program*> programs;
  std::vector<std::pair<Program*, std::size_t>> numbers;
  for (const MemoryBlock& block : source.before) {
    memory_of(chips, block).write(block.offset, block.bytes);
  }
  for (const MemoryBlock& block : source.after) memory_of(chips, block);
  for (const PlacedKernel& kernel : source.kernels) {
    Device& device = chips.device(kernel.chip);
    Program*& program = programs[kernel.chip];
    if (program == nullptr) {
      program = fabric ? &fabric->program(kernel.chip) : &chips.create_program(kernel.chip);
      set_semaphores(*program, device.chip(), source.semaphores);
    }
    const SharedByKernels shared{.log = result.log,
                                 .arrivals = source.options.finds_hazards ? &arrivals : nullptr,
                                 .fabric = fabric ? &*fabric : nullptr};
    numbers.emplace_back(program, add_kernel(device, *program, kernel, shared));
  }
  result.time = fabric ? fabric->run() : chips.run();
  for (const auto& [program, number] : numbers) {
    const ProgramResult::KernelTimes& times = program->result().kernels[number];
    result.kernels.push_back({times.begin, times.end});
  }
  if (fabric) result.time = last_end(result.kernels, chips.device(0).network());
  for (MemoryBlock block : source.after) {
    chips.device(block.chip).memory(block.tile).read(block.offset, block.bytes);
    result.after.push_back(std::move(block));
  }
  return result;
}

struct KernelsBeside::State {
  SourceResult result;
  KernelArrivals arrivals;
  std::size_t running = 0;
};

namespace {

void check(const SourceProgram& program) {
  std::set<std::tuple<int, int, int>> taken;
  for (const PlacedKernel& kernel : program.kernels) {
    const std::string name = kernel.source.file.stem().string();
    if (kernel.processor == Processor::ethernet) {
      throw std::invalid_argument(fmt::format(
          "kernel '{}' is for an Ethernet core; during a host's calls only workers can run kernels",
          name));
    }
    if (program.fabric || !kernel.connections.empty()) {
      throw std::invalid_argument(fmt::format(
          "kernel '{}' uses a fabric, which is not available during a host's calls", name));
    }
    if (!taken.emplace(kernel.core.x, kernel.core.y, noc_of(kernel)).second) {
      throw std::invalid_argument(fmt::format(
          "kernel '{}' is the second one on NoC {} of core ({}, {}), which can serve only one",
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
        compiled_body(network.chip(), kernel,
                      {.log = state_->result.log, .arrivals = &state_->arrivals}));
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
