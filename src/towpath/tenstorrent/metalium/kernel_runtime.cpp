// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/kernel_runtime.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/os/code_fault.hpp"
#include "towpath/tenstorrent/metalium/kernel_headers.hpp"

namespace towpath::tenstorrent::metalium {

KernelRuntime::KernelRuntime(DataMovementCore& on, const KernelTarget& target,
                             const KernelSetup& setup, std::shared_ptr<const KernelLibrary> library)
    : core(on),
      clock(on, target.processor),
      arrivals(on, setup.arrivals),
      memory(on, clock, arrivals, target.processor),
      buffers(on, arrivals, setup.circular_buffers),
      ethernet(on, clock, memory, target.processor),
      connections(on, clock, memory, setup.fabric),
      reports(on, setup.log),
      setup_(setup),
      library_(std::move(library)) {
  fill_banks();
  core.name_places_by([library = library_](const void* place) { return library->words_of(place); });
}

void KernelRuntime::fill_banks() {
  const machine::Chip& chip = core.network().chip();
  const auto address = [](machine::Coordinate tile, std::uint64_t offset) {
    const auto place = static_cast<std::uint64_t>(tile.x | tile.y << TOWPATH_COORDINATE_BITS);
    return place << TOWPATH_COORDINATE_SHIFT | offset;
  };
  for (const std::vector<machine::Coordinate>& tiles : chip.dram_groups) {
    for (int channel = 0; channel < chip.dram.channels_per_group; ++channel) {
      dram_banks_.push_back(
          address(tiles[index(channel) % tiles.size()], index(channel) * chip.dram.channel_bytes));
    }
  }
  for (const machine::Coordinate worker : chip.workers) l1_banks_.push_back(address(worker, 0));
}

void KernelRuntime::run() {
  const L1Window window;
  const KernelConfig& config = core.config();
  if (config.runtime_args.size() > TOWPATH_ARGUMENTS_MAX ||
      setup_.common_args.size() > TOWPATH_ARGUMENTS_MAX) {
    refuse(core,
           fmt::format(
               "it has {} runtime arguments and {} common ones; it must have at most {} of each",
               config.runtime_args.size(), setup_.common_args.size(), TOWPATH_ARGUMENTS_MAX));
  }
  const TowpathCore view{
      .calls = &kernel_calls(),
      .core = this,
      .x = static_cast<std::uint32_t>(config.core.x),
      .y = static_cast<std::uint32_t>(config.core.y),
      .logical_x = static_cast<std::uint32_t>(setup_.logical.x),
      .logical_y = static_cast<std::uint32_t>(setup_.logical.y),
      .semaphore_base = {static_cast<std::uint32_t>(worker_memory_map::kSemaphoreBase),
                         static_cast<std::uint32_t>(kEthernetSemaphoreBase)},
      .arguments = config.runtime_args.data(),
      .argument_count = static_cast<std::uint32_t>(config.runtime_args.size()),
      .common_arguments = setup_.common_args.data(),
      .common_argument_count = static_cast<std::uint32_t>(setup_.common_args.size()),
      .dram_banks = dram_banks_.data(),
      .dram_bank_count = static_cast<std::uint32_t>(dram_banks_.size()),
      .l1_banks = l1_banks_.data(),
      .l1_bank_count = static_cast<std::uint32_t>(l1_banks_.size()),
      .stack_bytes = static_cast<std::uint32_t>(sim::Simulation::kStackBytes)};
  os::throw_code_faults();
  try {
    enter(library_->entry(), view);
  } catch (const os::CodeFault& fault) {
    core.leave_call(static_cast<const char*>(fault.address()) + 1);
    refuse(core, fmt::format("it {}", fault.what()));
  }
  if (kept_ != nullptr) std::rethrow_exception(std::exchange(kept_, nullptr));
  memory.settled();
  core.leave_call();
  reports.end();
}

void KernelRuntime::enter(KernelLibrary::Entry entry, const TowpathCore& view) {
  if (__builtin_setjmp(outside_.data()) == 0) entry(&view);
}

// Not longjmp(), because ThreadSanitizer searches for its buffer on the stack of the thread.
void KernelRuntime::leave() { __builtin_longjmp(outside_.data(), 1); }

std::string KernelLibrary::words_of(const void* place) const {
  for (const std::string& line : library_.places_before(place)) {
    if (line.find(kHeaderFolder) == std::string::npos) {
      return fmt::format(" at {}", std::filesystem::path(line).filename().string());
    }
  }
  return {};
}

void KernelRuntime::count_blocks(std::uint64_t blocks, const void* place) {
  memory.looking();
  if (clock.count_blocks(blocks)) return;
  core.leave_call(place);
  refuse(core,
         fmt::format("it is still in cycle {} after {} blocks of instructions, the most that a "
                     "kernel may run without a call, a load or a store that takes time; a loop "
                     "must end, or call or poll something in between",
                     core.cycle(), KernelClock::kBlocksMax));
}

void KernelRuntime::refuse_endless_loop(const void* place) {
  memory.looking();
  core.leave_call(place);
  refuse(core, fmt::format("in cycle {} it reaches an empty loop that never ends; a loop must "
                           "end, or call or poll something in between",
                           core.cycle()));
}

Kernel make_kernel(const CompiledKernel& compiled, KernelSetup setup) {
  return [library = std::shared_ptr<KernelLibrary>(), compiled,
          setup = std::move(setup)](DataMovementCore& core) mutable {
    library = std::make_shared<KernelLibrary>(compiled.library);
    KernelRuntime runtime(core, compiled.target, setup, library);
    runtime.run();
  };
}

KernelLibrary::KernelLibrary(const std::filesystem::path& file)
    : library_(file), entry_(reinterpret_cast<Entry>(library_.symbol("towpath_kernel_entry"))) {
  if (entry_ == nullptr) {
    throw std::runtime_error(fmt::format("{} is not a compiled kernel", file.string()));
  }
}

}  // namespace towpath::tenstorrent::metalium
