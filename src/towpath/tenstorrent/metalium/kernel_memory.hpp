// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "towpath/tenstorrent/metalium/kernel_arrivals.hpp"
#include "towpath/tenstorrent/metalium/kernel_clock.hpp"

namespace towpath::tenstorrent::metalium {

// Host memory at the addresses that a kernel uses for its L1 and its registers, so that a pointer
// to such an address can be followed. There is one window in the process, and it stores nothing
// permanently: a kernel calls out before each access, the bytes of its core are copied in, and its
// stores are copied out at its next call. Every core therefore has the same window, no page is
// remapped when the simulator changes from one core to another, and the memory of a core stays in
// its place for the networks.
//
// A thread that runs such kernels holds the window. Others wait for it.

class L1Window {
 public:
  // Takes the window for this thread. A thread may take it several times. Throws std::runtime_error
  // if the system does not map the addresses.
  L1Window();
  ~L1Window();
  L1Window(const L1Window&) = delete;
  L1Window& operator=(const L1Window&) = delete;

  static bool is_l1(std::uintptr_t address) { return address < kL1End; }
  static bool is_register(std::uintptr_t address) {
    return address >= kRegisterBase && address < kRegisterBase + kRegisterBytes;
  }
  // Lowest mapped address.
  static std::uintptr_t l1_begin();
  // The bytes at an address of the window.
  static std::span<std::byte> bytes(std::uintptr_t address, std::size_t size_bytes) {
    return {reinterpret_cast<std::byte*>(address), size_bytes};
  }

  // No L1 is larger, and programs start at 4 MiB or above.
  static constexpr std::uintptr_t kL1End = 0x200000;
  // Registers of the debug block, with the wall clock (tt-isa-documentation,
  // TensixTile/TDM_RISC_and_DebugRegisters).
  static constexpr std::uintptr_t kRegisterBase = 0xffb12000;
  static constexpr std::size_t kRegisterBytes = 0x1000;
};

// Loads and stores of a kernel in source form, which the kernel itself carries out in the window.
//
// The bytes of a store are read at the kernel's next call. A copy calls for its store, then for its
// load, and then copies: if a store has not changed the window when a load follows, it may not have
// happened yet.
//
// A volatile load is a poll. After kPollsMax of them, or of the Ethernet interface's tests, during
// which the core's L1 has not changed and the kernel has only polled, the kernel sleeps until its
// L1 is written. Until then a loop that counts its polls is exact.
class KernelMemory {
 public:
  KernelMemory(DataMovementCore& core, KernelClock& clock, OwnArrivals& arrivals,
               Processor processor)
      : core_(core), clock_(clock), arrivals_(arrivals), processor_(processor) {}

  // The core before an externally visible action: stores are done, the debt is paid, and a series
  // of polls ends.
  DataMovementCore& settled();
  // The same before a call with this code, charged on an Ethernet core.
  DataMovementCore& called(CallCode code);
  // The core before one poll. Neither ends a series of polls nor counts as one.
  DataMovementCore& looking();
  // The kernel is about to load or store through a pointer, at the current place of its core.
  // `access` has bits of TowpathAccess.
  void access(std::uintptr_t address, std::uint32_t size_bytes, std::uint32_t access);
  // Counts a poll, after looking(), that a write to a word could end.
  void count_poll(std::uint64_t word);
  // Records that the kernel yielded to the base firmware during these polls.
  void note_yield() { yields_ = true; }

 private:
  static constexpr int kPollsMax = 20'000;

  // A store announced by the kernel's last call.
  struct PendingStore {
    std::uint32_t offset = 0;
    std::uint32_t size_bytes = 0;
    bool is_carried_out = false;
    std::vector<std::byte> before{};  // previous bytes of the window

    std::span<const std::byte> window() const { return L1Window::bytes(offset, size_bytes); }
    bool is_unchanged() const { return std::ranges::equal(window(), before); }
  };
  void write_pending();
  void carry_out_store();
  void carry_out_store_before_load(bool is_volatile);
  void check_access(std::uintptr_t address, std::uint32_t size_bytes, std::uint32_t access);
  void access_l1(std::uint32_t offset, std::uint32_t size_bytes, std::uint32_t access);
  void access_register(std::uintptr_t address, std::uint32_t size_bytes, std::uint32_t access);
  void wait_for_change(std::uint64_t word);

  DataMovementCore& core_;
  KernelClock& clock_;
  OwnArrivals& arrivals_;
  Processor processor_;
  PendingStore pending_;
  int polls_ = 0;
  bool yields_ = false;
  std::uint64_t writes_seen_ = 0;
};

}  // namespace towpath::tenstorrent::metalium
