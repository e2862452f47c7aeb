// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "towpath/tenstorrent/metalium/kernel_clock.hpp"
#include "towpath/tenstorrent/metalium/l1_window.hpp"

namespace towpath::tenstorrent::metalium {

// Loads and stores of a kernel in source form, which it carries out itself in the window.
//
// The bytes of a store are read at the kernel's next call. A copy calls for its store, then for
// its load, and copies: a store that has not changed the window when a load follows may be yet to
// come.
//
// A volatile load is a poll. After kPollsMax of them, or of the Ethernet interface's tests, during
// which the core's L1 has not changed and the kernel has only polled, the kernel sleeps until
// something is written there. Up to then a loop that counts its polls is exact.
class KernelMemory {
 public:
  KernelMemory(DataMovementCore& core, KernelClock& clock, Processor processor)
      : core_(core), clock_(clock), processor_(processor) {}

  // The core before an externally visible action: stores are done, the debt is paid, and a series
  // of polls ends.
  DataMovementCore& settled();
  // The same before a call with this code, charged on an Ethernet core.
  DataMovementCore& called(CallCode code);
  // The core before one poll. Neither ends a series of polls nor counts as one.
  DataMovementCore& looking();
  // The kernel is going to load or store by a pointer. `access` has bits of TowpathAccess.
  void access(std::uintptr_t address, std::uint32_t size_bytes, std::uint32_t access);
  // A poll, after looking(), that a write to a word could end.
  void count_poll(std::uint64_t word);
  // The base firmware had a turn among these polls.
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
  void access_l1(std::uint32_t offset, std::uint32_t size_bytes, std::uint32_t access);
  void access_register(std::uintptr_t address, std::uint32_t size_bytes, std::uint32_t access);
  void wait_for_change(std::uint64_t word);

  DataMovementCore& core_;
  KernelClock& clock_;
  Processor processor_;
  PendingStore pending_;
  int polls_ = 0;
  bool yields_ = false;
  std::uint64_t writes_seen_ = 0;
};

}  // namespace towpath::tenstorrent::metalium
