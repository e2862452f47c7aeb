// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/kernel_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "towpath/tenstorrent/core/call_costs.hpp"
#include "towpath/tenstorrent/metalium/worker_memory_map.hpp"

namespace towpath::tenstorrent::metalium {

namespace {

// Source: tt-isa-documentation, TensixTile/L1.md: 4 loads in 7 cycles, stores about 6.4 bits per
// cycle.
constexpr noc::Cycle kLoadCycles = 2;
constexpr noc::Cycle store_cycles(std::uint32_t size_bytes) {
  return (size_bytes * 8 * 10 + 63) / 64;
}

// Polls of a sleeping Ethernet core between two turns of the base firmware, if its loop yields.
constexpr std::int64_t kPollsPerContextSwitch = 1000;

// Addresses of a core have 32 bits.
constexpr std::uintptr_t kAddressMax = 0xffffffff;

// Halves of the wall clock, at the offsets of RISCV_DEBUG_REG_WALL_CLOCK_L and _H.
constexpr std::uintptr_t kWallClockLow = 0xffb121f0;
constexpr std::uintptr_t kWallClockHigh = 0xffb121f8;

}  // namespace

void KernelMemory::write_pending() {
  const std::span<const std::byte> bytes = pending_.window();
  if (bytes.size() == noc::kWordBytes && pending_.offset % noc::kWordBytes == 0) {
    std::uint32_t value = 0;
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(&value, 1)).begin());
    core_.store_word(pending_.offset, value);
    arrivals_.store_word(pending_.offset, value);
  } else {
    core_.store(pending_.offset, bytes);
  }
}

void KernelMemory::carry_out_store() {
  if (pending_.size_bytes == 0) return;
  if (!pending_.is_carried_out || !pending_.is_unchanged()) write_pending();
  pending_.size_bytes = 0;
}

void KernelMemory::carry_out_store_before_load(bool is_volatile) {
  if (pending_.size_bytes == 0 || !pending_.is_unchanged()) return carry_out_store();
  if (!is_volatile || pending_.is_carried_out) return;
  write_pending();  // it may have stored the same value, and a volatile load takes time
  pending_.is_carried_out = true;
}

DataMovementCore& KernelMemory::settled() {
  carry_out_store();
  clock_.pay();
  polls_ = 0;
  yields_ = false;
  return core_;
}

DataMovementCore& KernelMemory::called(CallCode code) {
  if (processor_ == Processor::compute) {
    refuse(core_,
           "it uses the NoC or a semaphore, but runs on the compute cores, which have neither");
  }
  clock_.owe_call();
  clock_.fetch(code);
  return settled();
}

DataMovementCore& KernelMemory::looking() {
  carry_out_store();
  clock_.pay();
  return core_;
}

void KernelMemory::access(std::uintptr_t address, std::uint32_t size_bytes, std::uint32_t access) {
  if ((access & kTowpathStore) != 0) {
    carry_out_store();
  } else {
    carry_out_store_before_load((access & kTowpathVolatile) != 0);
  }
  if (L1Window::is_register(address)) return access_register(address, size_bytes, access);
  check_access(address, size_bytes, access);
  access_l1(static_cast<std::uint32_t>(address), size_bytes, access);
}

void KernelMemory::check_access(std::uintptr_t address, std::uint32_t size_bytes,
                                std::uint32_t access) {
  const auto refuse_access = [&](const std::string& why) {
    core_.leave_call(core_.place());
    refuse(core_, fmt::format("it {} {} byte{} at address {:#x}{}",
                              (access & kTowpathStore) != 0 ? "stores" : "loads", size_bytes,
                              size_bytes == 1 ? "" : "s", address, why));
  };
  const std::uint64_t l1_bytes = core_.network().memory(core_.config().core).size_bytes();
  if (address > kAddressMax) {
    refuse_access(", which is neither in its L1 nor memory of the kernel's own variables");
  }
  if (address >= l1_bytes || size_bytes > l1_bytes - address) {
    refuse_access(fmt::format(", beyond its L1 of {} bytes", l1_bytes));
  }
  const bool is_of_counts = address < worker_memory_map::kConnections &&
                            address + size_bytes > worker_memory_map::kCircularBufferWords;
  if (is_of_counts && (access & kTowpathStore) != 0 && processor_ != Processor::ethernet) {
    refuse_access(
        ", where the page counts of circular buffers are; change them with cb_push_back and "
        "cb_pop_front");
  }
  if (address < L1Window::l1_begin()) {
    refuse_access(
        fmt::format("; this system maps no address below {:#x} (vm.mmap_min_addr), so pointers to "
                    "lower addresses cannot be followed",
                    L1Window::l1_begin()));
  }
  // A register of a core has 32 bits.
  const std::uint32_t step = std::min<std::uint32_t>(size_bytes, noc::kWordBytes);
  if ((access & kTowpathAligned) != 0 && address % step != 0) {
    refuse_access(fmt::format(", which must be a multiple of {}", step));
  }
}

void KernelMemory::access_l1(std::uint32_t offset, std::uint32_t size_bytes, std::uint32_t access) {
  const bool is_volatile = (access & kTowpathVolatile) != 0;
  if ((access & kTowpathStore) != 0) {
    clock_.owe(store_cycles(size_bytes));
    if (is_volatile) clock_.pay();
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
    clock_.owe(kPollCycles);
    clock_.pay();
    count_poll(offset);
  } else {
    clock_.owe(kLoadCycles);
  }
  arrivals_.load({offset, std::uint64_t{offset} + size_bytes}, is_volatile);
  const std::span<std::byte> window = L1Window::bytes(offset, size_bytes);
  if (size_bytes == noc::kWordBytes && offset % noc::kWordBytes == 0) {
    const std::uint32_t value = core_.load_word(offset);
    std::ranges::copy(std::as_bytes(std::span(&value, 1)), window.begin());
    arrivals_.see_word(offset);
  } else {
    core_.load(offset, window);
    arrivals_.learn();
  }
}

void KernelMemory::access_register(std::uintptr_t address, std::uint32_t size_bytes,
                                   std::uint32_t access) {
  const bool is_clock = address == kWallClockLow || address == kWallClockHigh;
  if ((access & kTowpathStore) != 0 || !is_clock || size_bytes != 4) {
    refuse(core_, fmt::format("it accesses the register at {:#x}; only the wall clock, at {:#x} "
                              "and {:#x}, is modeled",
                              address, kWallClockLow, kWallClockHigh));
  }
  settled();
  using Read = KernelClock::Read;
  const std::uint64_t now = clock_.read(address == kWallClockLow ? Read::low : Read::high);
  const auto value = static_cast<std::uint32_t>(address == kWallClockLow ? now : now >> 32);
  std::ranges::copy(std::as_bytes(std::span(&value, 1)), L1Window::bytes(address, 4).begin());
}

void KernelMemory::count_poll(std::uint64_t word) {
  const std::uint64_t writes = core_.network().writes_to(core_.config().core);
  if (writes != std::exchange(writes_seen_, writes)) polls_ = 0;
  if (++polls_ <= kPollsMax) return;
  wait_for_change(word);
  polls_ = 0;
  yields_ = false;
}

// An Ethernet core may also poll for a change of its queues, its link or the NoC. A loop that never
// yields to the base firmware does not yield while it sleeps either.
void KernelMemory::wait_for_change(std::uint64_t word) {
  const noc::Cycle poll_cycles = kPollCycles;
  if (processor_ == Processor::ethernet) {
    static_cast<EthernetCore&>(core_).idle(poll_cycles,
                                           yields_ ? kPollsPerContextSwitch : EthernetCore::kNever);
  } else {
    core_.wait_for_l1_write("a loop that polls", word);
  }
}

namespace {

// The addresses belong to the process, and so does their lock.
std::recursive_mutex window_mutex;

bool map(std::uintptr_t begin, std::size_t size_bytes) {
  void* const wanted = reinterpret_cast<void*>(begin);
  void* const mapped = mmap(wanted, size_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (mapped == wanted) return true;
  if (mapped != MAP_FAILED) munmap(mapped, size_bytes);
  return false;
}

// The first address that could be mapped. Page 0 is excluded, so that null pointers still fault.
std::uintptr_t map_window() {
  for (const std::uintptr_t begin : {std::uintptr_t{0x1000}, std::uintptr_t{0x10000}}) {
    if (!map(begin, L1Window::kL1End - begin)) continue;
    if (map(L1Window::kRegisterBase, L1Window::kRegisterBytes)) return begin;
    munmap(reinterpret_cast<void*>(begin), L1Window::kL1End - begin);
    break;
  }
  throw std::runtime_error(
      fmt::format("kernels in source form need the addresses from 0x10000 to {:#x} and from {:#x}, "
                  "but this process cannot map them: {}",
                  L1Window::kL1End, L1Window::kRegisterBase, std::strerror(errno)));
}

}  // namespace

std::uintptr_t L1Window::l1_begin() {
  static const std::uintptr_t begin = map_window();
  return begin;
}

L1Window::L1Window() {
  static_cast<void>(l1_begin());
  window_mutex.lock();
}

L1Window::~L1Window() { window_mutex.unlock(); }

}  // namespace towpath::tenstorrent::metalium
