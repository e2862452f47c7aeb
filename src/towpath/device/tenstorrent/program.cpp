// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/device/tenstorrent/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "towpath/sim/invariant.hpp"

namespace towpath::device::tenstorrent {

namespace {

// Of those who wait for ever, so many are named.
constexpr std::size_t kNamedMax = 8;

// Longer than nothing moves in a network that will go on: many tries to reserve a path, or a
// memory that takes its time.
noc::Cycle longest_pause(const machine::Chip& chip) {
  constexpr noc::Cycle kTries = 64;
  const machine::NiuFigures& niu = chip.niu;
  const noc::Cycle memory_cycles = niu.request_cycles + niu.read_response_cycles +
                                   niu.acknowledge_cycles + chip.dram.read_cycles +
                                   chip.dram.write_cycles;
  return kTries * (niu.backoff_cycles_max + memory_cycles);
}

std::string name_of(const KernelConfig& config) {
  return fmt::format("kernel '{}' on core ({}, {})", config.name, config.core.x, config.core.y);
}

}  // namespace

Program::Program(std::shared_ptr<const machine::Chip> chip, const Options& options)
    : options_(options),
      simulation_(options.seed),
      network_(simulation_, std::move(chip),
               {.carries_data = options.carries_data,
                .records_requests = options.records_requests,
                .checks_sources = true}) {}

std::uint64_t Program::allocate(std::uint64_t size_bytes) {
  const machine::Chip& chip = network_.chip();
  const machine::Alignment& alignment = chip.alignment;
  const auto step = static_cast<std::uint64_t>(
      std::max({alignment.l1_bytes, alignment.dram_read_bytes, alignment.dram_write_bytes}));
  const std::uint64_t offset = (allocated_bytes_ + step - 1) / step * step;
  if (offset > chip.l1_bytes || size_bytes > chip.l1_bytes - offset) {
    throw std::invalid_argument(
        fmt::format("{} bytes of L1 are asked for; {} of {} are left", size_bytes,
                    chip.l1_bytes - std::min(offset, chip.l1_bytes), chip.l1_bytes));
  }
  allocated_bytes_ = offset + size_bytes;
  return offset;
}

std::size_t Program::create_semaphore(std::uint32_t initial_value) {
  const std::uint64_t offset = allocate(noc::kWordBytes);
  for (const machine::Coordinate worker : network_.chip().workers) {
    network_.memory(worker).store_word(offset, initial_value);
  }
  semaphores_.push_back(offset);
  return semaphores_.size() - 1;
}

std::size_t Program::create_kernel(KernelConfig config, Kernel kernel) {
  for (const Entry& entry : kernels_) {
    const KernelConfig& other = entry.config;
    if (other.core == config.core && other.noc_index == config.noc_index) {
      throw std::invalid_argument(
          fmt::format("{} and kernel '{}' both use NoC {}; a NoC of a core serves one kernel",
                      name_of(other), config.name, config.noc_index));
    }
  }
  static_cast<void>(DataMovementCore(network_, config));  // for its checks
  kernels_.push_back({std::move(config), std::move(kernel), nullptr, false});
  return kernels_.size() - 1;
}

ProgramResult Program::run() {
  TOWPATH_CHECK(!has_run_, "a program of {} kernels was run before; it runs once", kernels_.size());
  has_run_ = true;
  result_.kernels.resize(kernels_.size());
  running_ = kernels_.size();
  sim::Random skew = simulation_.random("kernel start");
  for (std::size_t number = 0; number < kernels_.size(); ++number) {
    Entry& entry = kernels_[number];
    entry.config.semaphores = semaphores_;
    entry.core = std::make_unique<DataMovementCore>(network_, entry.config);
    const noc::Cycle start = entry.config.start_cycle + skew.between(0, options_.start_skew_cycles);
    simulation_.spawn(name_of(entry.config), [this, number, start] { run_kernel(number, start); });
  }
  run_until_over();
  for (const ProgramResult::KernelTimes& times : result_.kernels) {
    result_.cycles = std::max(result_.cycles, times.end);
  }
  result_.flit_hops = flit_hops();
  return result_;
}

void Program::run_kernel(std::size_t number, noc::Cycle start) {
  Entry& entry = kernels_[number];
  entry.core->work_until(start);
  result_.kernels[number].begin = network_.cycle();
  entry.kernel(*entry.core);
  result_.kernels[number].end = network_.cycle();
  const std::string unanswered = entry.core->describe_unanswered();
  if (!unanswered.empty()) {
    throw std::runtime_error(fmt::format("{} ends in cycle {} without the barrier it needs: {}",
                                         name_of(entry.config), network_.cycle(), unanswered));
  }
  entry.is_over = true;
  --running_;
}

// In slices, because cores that try in vain to reserve a path do so for ever: nothing is under way
// when all wait from the beginning of a slice to its end and no flit moves.
void Program::run_until_over() {
  const noc::Cycle slice = longest_pause(network_.chip());
  const noc::Cycle limit = options_.cycles_max;
  while (running_ > 0) {
    const bool did_everybody_wait = does_everybody_wait();
    const std::int64_t hops_before = flit_hops();
    noc::Cycle until = network_.cycle() + slice;
    if (limit > 0) until = std::min(until, limit);
    simulation_.run_until(network_.clock().edge(Cycles(until)));
    if (running_ == 0) break;
    if (limit > 0 && network_.cycle() >= limit) {
      throw std::runtime_error(fmt::format("after {} cycles, the limit, {} of {} kernels go on: {}",
                                           limit, running_, kernels_.size(), describe_waits()));
    }
    if (did_everybody_wait && does_everybody_wait() && flit_hops() == hops_before) {
      throw std::runtime_error(fmt::format("{} of {} kernels wait for ever: {}", running_,
                                           kernels_.size(), describe_waits()));
    }
  }
  simulation_.run();  // posted writes still have to arrive
}

bool Program::does_everybody_wait() const {
  return std::ranges::all_of(
      kernels_, [](const Entry& entry) { return entry.is_over || entry.core->is_waiting(); });
}

std::int64_t Program::flit_hops() const {
  return network_.network(0).flit_hops() + network_.network(1).flit_hops();
}

std::string Program::describe_waits() const {
  std::string text;
  std::size_t named = 0;
  for (const Entry& entry : kernels_) {
    if (entry.is_over) continue;
    if (++named > kNamedMax) continue;
    if (!text.empty()) text += "; ";
    text += entry.core->is_waiting() ? entry.core->describe_wait()
                                     : name_of(entry.config) + " is at work";
  }
  if (named > kNamedMax) text += fmt::format("; and {} more", named - kNamedMax);
  const std::string deadlock = network_.describe_deadlock();
  return deadlock.empty() ? text : text + "; " + deadlock;
}

}  // namespace towpath::device::tenstorrent
