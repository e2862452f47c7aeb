// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/device/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "towpath/tenstorrent/device/device.hpp"

namespace towpath::tenstorrent {

using machine::TileKind;

namespace {

std::size_t kind_index(TileKind kind) { return kind == TileKind::ethernet ? 1 : 0; }

}  // namespace

std::string name_of(const KernelConfig& config) {
  const std::string name =
      fmt::format("kernel '{}' on core ({}, {})", config.name, config.core.x, config.core.y);
  return config.chip == kOnlyChip ? name : fmt::format("{} of chip {}", name, config.chip);
}

Program::Program(Device& device, int generation) { place_on(device, generation); }

void Program::place_on(Device& device, int generation) {
  allocated_bytes_ = {device.options().launches_programs() ? device.options().launch_bytes : 0,
                      device.free_ethernet_l1()};
  generation_ = generation;
  number_ = device.enqueue(*this);
  device_ = &device;
}

noc::ChipNetwork& Program::network() { return device_->network(); }

std::uint64_t Program::l1_bytes(TileKind kind) const {
  const machine::Chip& chip = device_->chip();
  return kind == TileKind::ethernet ? chip.ethernet_l1_bytes : chip.l1_bytes;
}

std::uint64_t Program::next_offset(TileKind kind) const {
  const machine::Alignment& alignment = device_->chip().alignment;
  const auto step = static_cast<std::uint64_t>(
      std::max({alignment.l1_bytes, alignment.dram_read_bytes, alignment.dram_write_bytes}));
  return (allocated_bytes_[kind_index(kind)] + step - 1) / step * step;
}

std::uint64_t Program::free_bytes(TileKind kind) const {
  return l1_bytes(kind) - std::min(next_offset(kind), l1_bytes(kind));
}

std::uint64_t Program::allocate(std::uint64_t size_bytes, TileKind kind) {
  if (size_bytes > free_bytes(kind)) {
    throw std::invalid_argument(
        fmt::format("{} bytes of L1 are requested, but only {} of {} are left", size_bytes,
                    free_bytes(kind), l1_bytes(kind)));
  }
  const std::uint64_t offset = next_offset(kind);
  allocated_bytes_[kind_index(kind)] = offset + size_bytes;
  return offset;
}

const std::vector<machine::Coordinate>& Program::cores_of(TileKind kind) {
  const machine::Chip& chip = device_->chip();
  return kind == TileKind::ethernet ? chip.ethernet_cores : chip.workers;
}

void Program::initialise(const Word& word) {
  for (const machine::Coordinate core : word.cores) {
    network().memory(core).store_word(word.offset, word.initial_value);
    if (HazardMonitor* monitor = device_->monitor(); monitor != nullptr) {
      monitor->words.initialise(device_->id(), core, word.offset);
    }
  }
}

std::size_t Program::create_semaphore(std::uint32_t initial_value, TileKind kind) {
  semaphores_.push_back({allocate(noc::kWordBytes, kind), initial_value, cores_of(kind)});
  if (device_->programs() == 1) initialise(semaphores_.back());  // no kernel runs yet
  return semaphores_.size() - 1;
}

std::size_t Program::create_kernel(KernelConfig config, Kernel kernel) {
  for (const Entry& entry : kernels_) {
    const KernelConfig& other = entry.config;
    if (other.core == config.core && other.noc_index == config.noc_index) {
      throw std::invalid_argument(
          config.noc_index == kNoNoc
              ? fmt::format(
                    "{} and kernel '{}' both use the compute cores, which can run only one kernel",
                    name_of(other), config.name)
              : fmt::format(
                    "{} and kernel '{}' both use NoC {}, which can serve only one kernel of a core",
                    name_of(other), config.name, config.noc_index));
    }
  }
  if (!device_->is_only_one()) config.chip = device_->id();
  Entry entry{.config = std::move(config), .kernel = std::move(kernel)};
  static_cast<void>(make_core(entry));  // for its check
  kernels_.push_back(std::move(entry));
  return kernels_.size() - 1;
}

std::size_t Program::create_kernel(LogicalCore core, KernelConfig config, EthernetKernel kernel) {
  const machine::Coordinate place = device_->ethernet_core(core);
  const Entry* other = device_->resident_at(place);
  for (const Entry& entry : kernels_) {
    if (entry.config.core == place) other = &entry;
  }
  if (other != nullptr) {
    throw std::invalid_argument(fmt::format(
        "{} and kernel '{}' are both on Ethernet core ({}, {}), which can run only one kernel",
        name_of(other->config), config.name, core.x, core.y));
  }
  if (device_->is_reserved(core)) {
    throw std::invalid_argument(
        fmt::format("kernel '{}': the link of Ethernet core ({}, {}) of chip {} belongs to the "
                    "dispatcher; use get_active_ethernet_cores(true), which leaves such cores out",
                    config.name, core.x, core.y, device_->id()));
  }
  config.core = place;
  if (!device_->is_only_one()) config.chip = device_->id();
  Entry entry{.config = std::move(config),
              .kernel = [kernel = std::move(kernel)](
                            DataMovementCore& on) { kernel(static_cast<EthernetCore&>(on)); },
              .tile = &device_->ethernet_tile(core)};
  static_cast<void>(make_core(entry));  // for its check
  kernels_.push_back(std::move(entry));
  return kernels_.size() - 1;
}

std::unique_ptr<DataMovementCore> Program::make_core(const Entry& entry) const {
  noc::ChipNetwork& network = device_->network();
  if (entry.tile == nullptr) {
    return std::make_unique<DataMovementCore>(network, entry.config, entry.watch);
  }
  return std::make_unique<EthernetCore>(network, entry.config, *entry.tile, entry.watch);
}

void Program::start() {
  result_.kernels.resize(kernels_.size());
  running_ = static_cast<std::size_t>(std::ranges::count_if(
      kernels_, [](const Entry& entry) { return !entry.config.is_resident; }));
  flit_hops_before_ = device_->flit_hops();
  sim::Simulation& simulation = network().simulation();
  sim::Random skew =
      simulation.random(fmt::format("start of program {} on chip {}", generation_, device_->id()));
  HazardMonitor* const monitor = device_->monitor();
  if (monitor != nullptr) monitor->kernels.begin_program(device_->id());
  for (const Word& semaphore : semaphores_) initialise(semaphore);
  for (const Word& word : words_) initialise(word);
  const noc::Cycle begin =
      network().cycle() + skew.between(0, device_->options().program_skew_cycles);
  for (std::size_t number = 0; number < kernels_.size(); ++number) {
    Entry& entry = kernels_[number];
    for (const Word& semaphore : semaphores_) {
      entry.config.semaphores.push_back(semaphore.offset);
    }
    if (monitor != nullptr && entry.config.is_watched) {
      entry.watch = &monitor->add_kernel({.chip = device_->id(),
                                          .core = entry.config.core,
                                          .noc_index = entry.config.noc_index,
                                          .name = entry.config.name,
                                          .generation = generation_});
    }
    entry.core = make_core(entry);
    const noc::Cycle start =
        begin + entry.config.start_cycle + skew.between(0, device_->options().start_skew_cycles);
    simulation.spawn(name_of(entry.config), [this, number, start] { run_kernel(number, start); });
  }
}

void Program::run_kernel(std::size_t number, noc::Cycle start) {
  Entry& entry = kernels_[number];
  if (device_->options().launches_programs()) wait_for_launch(entry);
  entry.is_launched = true;
  entry.core->work_until(start);
  if (entry.tile != nullptr) static_cast<EthernetCore&>(*entry.core).take_core();
  result_.kernels[number].begin = network().cycle();
  if (entry.watch != nullptr) entry.watch->start(*entry.core);
  entry.kernel(*entry.core);
  result_.kernels[number].end = network().cycle();
  const std::string unanswered = entry.core->describe_unanswered();
  if (!unanswered.empty()) {
    throw std::runtime_error(fmt::format("{} ends in cycle {} without the barrier it needs: {}",
                                         name_of(entry.config), network().cycle(), unanswered));
  }
  if (entry.watch != nullptr) entry.watch->end();
  if (entry.tile != nullptr) entry.tile->set_firmware_running(true);
  entry.is_over = true;
  if (device_->options().slow_dispatch) report_end(entry);
  if (entry.config.is_resident) return;
  const bool is_last = --running_ == 0;
  if (is_last) {
    result_.cycles = network().cycle();
    result_.flit_hops = device_->flit_hops() - flit_hops_before_;
    device_->program_over();
  }
  if (device_->dispatcher()) tell_dispatcher(entry);
}

std::uint64_t Program::resident_l1_end() const {
  const bool has_resident =
      std::ranges::any_of(kernels_, [](const Entry& entry) { return entry.config.is_resident; });
  return has_resident ? allocated_bytes_[kind_index(TileKind::ethernet)] : 0;
}

void Program::declare_words(HazardMonitor& monitor) const {
  if (number_ == 0) return;  // its words are set before any kernel starts
  for (const std::vector<Word>* words : {&semaphores_, &words_}) {
    for (const Word& word : *words) {
      monitor.buffers.add_word_at_start(device_->id(), number_, generation_, word.cores,
                                        word.offset);
    }
  }
}

bool Program::all_blocked() const {
  return std::ranges::all_of(kernels_, [](const Entry& entry) {
    return entry.is_over || !entry.is_launched || entry.core->is_suspended();
  });
}

// --- launching by the host ----------------------------------------------------------------------

std::vector<machine::Coordinate> Program::cores() const {
  std::vector<machine::Coordinate> cores;
  for (const Entry& entry : kernels_) {
    if (std::ranges::find(cores, entry.config.core) == cores.end()) {
      cores.push_back(entry.config.core);
    }
  }
  return cores;
}

std::uint64_t Program::launch_at(machine::Coordinate core) const {
  return device_->chip().tile(core).kind == TileKind::ethernet ? ethernet_memory_map::kLaunchBase
                                                               : 0;
}

// Number of the program, from 1, until its kernels of the core have ended. 0 after that.
std::uint64_t Program::launch_word(machine::Coordinate core) const {
  return launch_at(core) + device_->options().launch_bytes - noc::kWordBytes;
}

void Program::wait_for_launch(Entry& entry) {
  const machine::Coordinate core = entry.config.core;
  const std::uint64_t word = launch_word(core);
  sim::Simulation& simulation = network().simulation();
  sim::Process& self = *simulation.current();
  while (network().load_word(core, word) != static_cast<std::uint32_t>(number_ + 1)) {
    network().wake_on_write(core, word, self);
    simulation.suspend("its launch");
    network().stop_waking(core, self);
  }
}

bool Program::are_all_over(machine::Coordinate core) const {
  return std::ranges::all_of(
      kernels_, [&](const Entry& other) { return other.config.core != core || other.is_over; });
}

std::uint32_t Program::cores_that_end() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(cores(), [&](machine::Coordinate core) {
    return std::ranges::none_of(kernels_, [&](const Entry& entry) {
      return entry.config.core == core && entry.config.is_resident;
    });
  }));
}

void Program::report_end(const Entry& entry) {
  const machine::Coordinate core = entry.config.core;
  if (are_all_over(core)) network().store_word(core, launch_word(core), 0);
}

// A core's firmware increments the dispatcher's counter, once for all kernels of the core.
void Program::tell_dispatcher(const Entry& entry) {
  if (!are_all_over(entry.config.core)) return;
  DataMovementCore firmware(network(), {.core = entry.config.core,
                                        .name = "firmware",
                                        .noc_index = std::max(0, entry.config.noc_index),
                                        .chip = device_->id()});
  firmware.noc_semaphore_inc(*device_->dispatcher(), 1);
}

}  // namespace towpath::tenstorrent
