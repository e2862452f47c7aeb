// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/kernel_runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/os/code_fault.hpp"
#include "towpath/tenstorrent/metalium/kernel_headers.hpp"

// Loads and stores, circular buffers, what a kernel reports. Its calls are in kernel_calls.cpp and
// kernel_ethernet.cpp.

namespace towpath::tenstorrent::metalium {

namespace {

// Source: tt-isa-documentation, TensixTile/L1.md: loads manage 4 in 7 cycles, stores about 6.4 bits
// per cycle.
constexpr noc::Cycle kLoadCycles = 2;
constexpr noc::Cycle store_cycles(std::uint32_t size_bytes) {
  return (size_bytes * 8 * 10 + 63) / 64;
}

// Polls of a sleeping Ethernet core between two turns of the base firmware, if its loop has some.
constexpr std::int64_t kPollsPerContextSwitch = 1000;

// Halves of the wall clock, at the offsets of RISCV_DEBUG_REG_WALL_CLOCK_L and _H.
constexpr std::uintptr_t kWallClockLow = 0xffb121f0;
constexpr std::uintptr_t kWallClockHigh = 0xffb121f8;

}  // namespace

KernelRuntime::KernelRuntime(DataMovementCore& core, const KernelTarget& target,
                             const KernelSetup& setup)
    : core_(core),
      setup_(setup),
      processor_(target.processor),
      instructions_(kInstructionFetch.of(core.network().chip()).cache_bytes) {
  for (std::size_t number = 0; number < setup_.circular_buffers.size(); ++number) {
    const std::uint32_t offset = setup_.circular_buffers[number].offset;
    pointers_[number] = {.read = offset, .write = offset};
  }
  fill_banks();
}

void KernelRuntime::fill_banks() {
  const machine::Chip& chip = core_.network().chip();
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

void KernelRuntime::run(const KernelLibrary& library) {
  const L1Window window;
  const KernelConfig& config = core_.config();
  if (config.runtime_args.size() > TOWPATH_ARGUMENTS_MAX ||
      setup_.common_args.size() > TOWPATH_ARGUMENTS_MAX) {
    refuse(
        fmt::format("it has {} runtime arguments and {} common ones; at most {} of each are "
                    "possible",
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
      .l1_bank_count = static_cast<std::uint32_t>(l1_banks_.size())};
  library_ = &library;
  os::throw_code_faults();
  try {
    library.entry()(&view);
  } catch (const os::CodeFault& fault) {
    const auto* const behind = static_cast<const char*>(fault.address()) + 1;
    const std::string place = at_place(behind);
    refuse(fmt::format("it {}{}{}", fault.what(), place.empty() ? "" : ",", place));
  }
  settled();
  if (!line_.empty()) print("\n");
}

void KernelRuntime::refuse(std::string_view sentence) const {
  throw std::invalid_argument(fmt::format("{}: {}", core_.where(), sentence));
}

std::string KernelRuntime::at_place(const void* place) const {
  if (place == nullptr) return {};
  for (const std::string& line : library_->places_before(place)) {
    if (line.find(kHeaderFolder) == std::string::npos) {
      return fmt::format(" at {}", std::filesystem::path(line).filename().string());
    }
  }
  return {};
}

void KernelRuntime::count_blocks(std::uint64_t blocks, const void* place) {
  looking();
  if (blocks_cycle_ != core_.cycle()) {
    blocks_cycle_ = core_.cycle();
    blocks_ = 0;
  }
  blocks_ += blocks;
  if (blocks_ < kBlocksMax) return;
  refuse(
      fmt::format("it is still in cycle {}{} after {} blocks of instructions, the most that a "
                  "kernel may run without a call, a load or a store that takes time; a loop must "
                  "end, or call or poll something in between",
                  core_.cycle(), at_place(place), kBlocksMax));
}

void KernelRuntime::refuse_endless_loop(const void* place) {
  looking();
  refuse(
      fmt::format("it comes in cycle {} to an empty loop that never ends{}; a loop must end, or "
                  "call or poll something in between",
                  core_.cycle(), at_place(place)));
}

std::uint64_t KernelRuntime::read_clock(ClockRead how) {
  noc::Cycle& seen = clock_seen_[static_cast<std::size_t>(how)];
  DataMovementCore& core = settled();
  if (seen == core.cycle()) core.work(kPollCycles);
  seen = core.cycle();
  return static_cast<std::uint64_t>(seen);
}

// --- loads and stores ---------------------------------------------------------------------------

void KernelRuntime::pay() { core_.work(std::exchange(debt_cycles_, 0)); }

void KernelRuntime::write_pending() {
  const std::span<const std::byte> bytes = pending_.window();
  if (bytes.size() == noc::kWordBytes && pending_.offset % noc::kWordBytes == 0) {
    std::uint32_t value = 0;
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(&value, 1)).begin());
    core_.store_word(pending_.offset, value);
  } else {
    core_.store(pending_.offset, bytes);
  }
}

void KernelRuntime::carry_out_store() {
  if (pending_.size_bytes == 0) return;
  if (!pending_.is_carried_out || !pending_.is_unchanged()) write_pending();
  pending_.size_bytes = 0;
}

void KernelRuntime::carry_out_store_before_load(bool is_volatile) {
  if (pending_.size_bytes == 0 || !pending_.is_unchanged()) return carry_out_store();
  if (!is_volatile || pending_.is_carried_out) return;
  write_pending();  // it may have stored the same value, and a volatile load takes time
  pending_.is_carried_out = true;
}

DataMovementCore& KernelRuntime::settled() {
  carry_out_store();
  pay();
  polls_ = 0;
  yields_ = false;
  return core_;
}

DataMovementCore& KernelRuntime::looking() {
  carry_out_store();
  pay();
  return core_;
}

void KernelRuntime::fetch_lines(int code, int lines) {
  if (processor_ != Processor::ethernet) return;
  const int fetch_cycles = kInstructionFetch.of(core_.network().chip()).line_cycles;
  debt_cycles_ += fetch_cycles * instructions_.run(code, lines);
}

void KernelRuntime::fetch_code(CallCode code) {
  fetch_lines(static_cast<int>(code), lines_of(code));
}

void KernelRuntime::fetch_code(TowpathEthernetCall call) {
  fetch_lines(static_cast<int>(CallCode::ethernet) + call, lines_of(call));
}

DataMovementCore& KernelRuntime::called(CallCode code) {
  if (processor_ == Processor::compute) {
    refuse("it uses the NoC or a semaphore, and runs on the compute cores, which have neither");
  }
  if (processor_ == Processor::ethernet) {
    debt_cycles_ += kSourceCallCycles;
  }
  fetch_code(code);
  return settled();
}

void KernelRuntime::access(std::uintptr_t address, std::uint32_t size_bytes, std::uint32_t access) {
  if ((access & kTowpathStore) != 0) {
    carry_out_store();
  } else {
    carry_out_store_before_load((access & kTowpathVolatile) != 0);
  }
  if (L1Window::is_register(address)) return access_register(address, size_bytes, access);
  const std::uint64_t l1_bytes = core_.network().memory(core_.config().core).size_bytes();
  if (address >= l1_bytes || size_bytes > l1_bytes - address) {
    refuse(fmt::format("it touches {} bytes at address {:#x}; its L1 has {} bytes", size_bytes,
                       address, l1_bytes));
  }
  if (address < L1Window::l1_begin()) {
    refuse(
        fmt::format("it follows a pointer to offset {:#x} of its L1; this system maps no address "
                    "below {:#x} (vm.mmap_min_addr), so that pointers to lower ones cannot be "
                    "followed",
                    address, L1Window::l1_begin()));
  }
  access_l1(static_cast<std::uint32_t>(address), size_bytes, access);
}

void KernelRuntime::access_l1(std::uint32_t offset, std::uint32_t size_bytes,
                              std::uint32_t access) {
  const bool is_volatile = (access & kTowpathVolatile) != 0;
  if ((access & kTowpathStore) != 0) {
    debt_cycles_ += store_cycles(size_bytes);
    if (is_volatile) pay();
    polls_ = 0;
    const std::span<std::byte> window = L1Window::bytes(offset, size_bytes);
    core_.network().load(core_.config().core, offset, window);
    pending_.offset = offset;
    pending_.size_bytes = size_bytes;
    pending_.is_carried_out = false;
    pending_.before.assign(window.begin(), window.end());
    return;
  }
  if (is_volatile) {
    debt_cycles_ += kPollCycles;
    pay();
    count_poll(offset);
  } else {
    debt_cycles_ += kLoadCycles;
  }
  const std::span<std::byte> window = L1Window::bytes(offset, size_bytes);
  if (size_bytes == noc::kWordBytes && offset % noc::kWordBytes == 0) {
    const std::uint32_t value = core_.load_word(offset);
    std::ranges::copy(std::as_bytes(std::span(&value, 1)), window.begin());
  } else {
    core_.load(offset, window);
  }
}

void KernelRuntime::access_register(std::uintptr_t address, std::uint32_t size_bytes,
                                    std::uint32_t access) {
  const bool is_clock = address == kWallClockLow || address == kWallClockHigh;
  if ((access & kTowpathStore) != 0 || !is_clock || size_bytes != 4) {
    refuse(
        fmt::format("it touches the register at {:#x}; of the core's registers only the wall "
                    "clock, at {:#x} and {:#x}, is modelled",
                    address, kWallClockLow, kWallClockHigh));
  }
  const std::uint64_t now = read_clock(address == kWallClockLow ? ClockRead::low : ClockRead::high);
  const auto value = static_cast<std::uint32_t>(address == kWallClockLow ? now : now >> 32);
  std::ranges::copy(std::as_bytes(std::span(&value, 1)), L1Window::bytes(address, 4).begin());
}

void KernelRuntime::count_poll(std::uint64_t word) {
  const std::uint64_t writes = core_.network().writes_to(core_.config().core);
  if (writes != std::exchange(writes_seen_, writes)) polls_ = 0;
  if (++polls_ <= kPollsMax) return;
  wait_for_change(word);
  polls_ = 0;
  yields_ = false;
}

// What an Ethernet core polls for may also come from its queues, its link or the NoC. A loop that
// never yields to the base firmware does not do so asleep either.
void KernelRuntime::wait_for_change(std::uint64_t word) {
  const noc::Cycle poll_cycles = kPollCycles;
  if (processor_ == Processor::ethernet) {
    ethernet().idle(poll_cycles, yields_ ? kPollsPerContextSwitch : EthernetCore::kNever);
  } else {
    core_.wait_for_l1_write("a loop that polls", word);
  }
}

// --- circular buffers ---------------------------------------------------------------------------

const CircularBuffer& KernelRuntime::buffer(std::uint32_t number) const {
  const std::size_t count = setup_.circular_buffers.size();
  if (number >= count || setup_.circular_buffers[number].page_bytes == 0) {
    refuse(fmt::format("there is no circular buffer {} on this core", number));
  }
  return setup_.circular_buffers[number];
}

std::uint32_t KernelRuntime::advance(std::uint32_t offset, std::uint32_t pages,
                                     const CircularBuffer& buffer) const {
  const std::uint32_t next = offset + pages * buffer.page_bytes;
  const std::uint32_t end = buffer.offset + pages_of(buffer) * buffer.page_bytes;
  if (next > end) {
    refuse(
        fmt::format("{} pages from offset {} go beyond the end of the circular buffer at {}; "
                    "what is pushed and popped at once must divide its {} pages",
                    pages, offset, end, pages_of(buffer)));
  }
  return next == end ? buffer.offset : next;
}

void KernelRuntime::reserve_back(std::uint32_t number, std::uint32_t pages) {
  const CircularBuffer& cb = buffer(number);
  if (pages > pages_of(cb)) {
    refuse(fmt::format("it reserves {} pages of circular buffer {}, which has {}", pages, number,
                       pages_of(cb)));
  }
  const std::uint32_t needed = pointers_[number].received + pages;
  if (needed <= pages_of(cb)) return;
  core_.wait_for_word_min("cb_reserve_back",
                          worker_memory_map::pages_acked_at(static_cast<int>(number)),
                          needed - pages_of(cb));
}

void KernelRuntime::push_back(std::uint32_t number, std::uint32_t pages) {
  const CircularBuffer& cb = buffer(number);
  Pointers& pointers = pointers_[number];
  pointers.write = advance(pointers.write, pages, cb);
  pointers.received += pages;
  core_.store_word(worker_memory_map::pages_received_at(static_cast<int>(number)),
                   pointers.received);
}

void KernelRuntime::wait_front(std::uint32_t number, std::uint32_t pages) {
  const CircularBuffer& cb = buffer(number);
  if (pages > pages_of(cb)) {
    refuse(fmt::format("it waits for {} pages of circular buffer {}, which has {}", pages, number,
                       pages_of(cb)));
  }
  core_.wait_for_word_min("cb_wait_front",
                          worker_memory_map::pages_received_at(static_cast<int>(number)),
                          pointers_[number].acked + pages);
}

void KernelRuntime::pop_front(std::uint32_t number, std::uint32_t pages) {
  const CircularBuffer& cb = buffer(number);
  Pointers& pointers = pointers_[number];
  pointers.read = advance(pointers.read, pages, cb);
  pointers.acked += pages;
  core_.store_word(worker_memory_map::pages_acked_at(static_cast<int>(number)), pointers.acked);
}

bool KernelRuntime::are_pages(std::uint32_t number, std::uint32_t pages, bool at_front) {
  const CircularBuffer& cb = buffer(number);
  const auto cb_number = static_cast<int>(number);
  core_.work(kPollCycles);
  if (at_front) {
    const std::uint32_t received = core_.load_word(worker_memory_map::pages_received_at(cb_number));
    return received - pointers_[number].acked >= pages;
  }
  const std::uint32_t acked = core_.load_word(worker_memory_map::pages_acked_at(cb_number));
  return pages_of(cb) - (pointers_[number].received - acked) >= pages;
}

// --- reports ------------------------------------------------------------------------------------

KernelLog::From KernelRuntime::from() const {
  const KernelConfig& config = core_.config();
  return {std::max(0, config.chip), config.core, config.name};
}

void KernelRuntime::print(std::string_view text) {
  count_report();
  if (setup_.log == nullptr) return;
  for (const char character : text) {
    if (character == '\n') {
      setup_.log->lines.push_back({from(), std::exchange(line_, {})});
    } else {
      line_ += character;
    }
  }
}

void KernelRuntime::zone(const char* name, bool begins) {
  count_report();
  if (setup_.log == nullptr) return;
  if (begins) {
    open_zones_.push_back({from(), name, core_.cycle(), 0});
    return;
  }
  KernelLog::Zone zone = std::move(open_zones_.back());
  open_zones_.pop_back();
  zone.end = core_.cycle();
  setup_.log->zones.push_back(std::move(zone));
}

// --- the kernel of a program --------------------------------------------------------------------

Kernel make_kernel(const CompiledKernel& compiled, KernelSetup setup) {
  return [library = std::shared_ptr<KernelLibrary>(), compiled,
          setup = std::move(setup)](DataMovementCore& core) mutable {
    library = std::make_shared<KernelLibrary>(compiled.library);
    KernelRuntime runtime(core, compiled.target, setup);
    runtime.run(*library);
  };
}

}  // namespace towpath::tenstorrent::metalium
