// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/tenstorrent/core/ethernet_core.hpp"
#include "towpath/tenstorrent/metalium/instruction_cache.hpp"
#include "towpath/tenstorrent/metalium/kernel_include/towpath_kernel.h"
#include "towpath/tenstorrent/metalium/kernel_library.hpp"
#include "towpath/tenstorrent/metalium/l1_window.hpp"
#include "towpath/tenstorrent/metalium/source_kernel.hpp"

namespace towpath::tenstorrent::metalium {

// One run of a kernel in source form on a core: what its calls and its loads and stores become.
//
// Loads and stores cost what they cost on the core. A plain one adds to a debt of cycles, which is
// paid before anything that others could notice: a call, or a volatile access. What a store has
// stored is known at the kernel's next call. A copy calls out for its store, then for its load, and
// copies: a store that has not changed the window when a load follows may be yet to come.
//
// A volatile load is
// a poll: after kPollsMax of them, or of the Ethernet interface's tests, during which the core's L1
// has not changed and the kernel has done nothing else, the kernel sleeps until something is
// written there. Up to then a loop that counts its polls is exact.
//
// Instructions take no time, so that a loop without calls would go on for ever: the compiler makes
// each block of instructions count (trace-pc), and after kBlocksMax of them in one cycle of
// simulated time the run is refused. This does not depend on the speed of the host. A loop that is
// nothing but a jump to itself is refused when the kernel comes there.
class KernelRuntime {
 public:
  KernelRuntime(DataMovementCore& core, const KernelTarget& target, const KernelSetup& setup);
  KernelRuntime(const KernelRuntime&) = delete;
  KernelRuntime& operator=(const KernelRuntime&) = delete;

  void run(const KernelLibrary& library);

 private:
  friend struct KernelCalls;

  static constexpr int kPollsMax = 20'000;
  // Of instructions, while no simulated time passes: four seconds of a core's time at least.
  // tt-metal's Ethernet microbenchmarks wait in loops of 2,000,000,000. A report (a line, a zone, a
  // value) counts as kBlocksPerReport.
  static constexpr std::uint64_t kBlocksMax = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kBlocksPerReport = std::uint64_t{1} << 14;

  struct Pointers {
    std::uint32_t read = 0;
    std::uint32_t write = 0;
    std::uint32_t received = 0;  // pages that this kernel has pushed, and has popped
    std::uint32_t acked = 0;
  };
  // A store that the kernel was going to carry out when it last called.
  struct PendingStore {
    std::uint32_t offset = 0;
    std::uint32_t size_bytes = 0;
    bool is_carried_out = false;
    std::vector<std::byte> before{};  // what the window showed then

    std::span<const std::byte> window() const { return L1Window::bytes(offset, size_bytes); }
    bool is_unchanged() const { return std::ranges::equal(window(), before); }
  };

  // The core, before anything that others could notice: stores are carried out, the debt is paid.
  DataMovementCore& settled();
  // The core, before a call; on an Ethernet core the code around it has its cost.
  DataMovementCore& called(CallCode code);
  // The core, before one look, which neither ends a series of polls nor is one.
  DataMovementCore& looking();
  // On an Ethernet core, fetching what is not in the cache of the code up to the end of a call.
  void fetch_code(CallCode code);
  void fetch_code(TowpathEthernetCall call);
  void fetch_lines(int code, int lines);
  EthernetCore& ethernet();
  void carry_out_store();
  void carry_out_store_before_load(bool is_volatile);
  void write_pending();
  void pay();
  void count_poll(std::uint64_t word);
  void wait_for_change(std::uint64_t word);
  void count_blocks(std::uint64_t blocks, const void* place);
  [[noreturn]] void refuse_endless_loop(const void* place);
  void count_report() { count_blocks(kBlocksPerReport, nullptr); }
  // The first read in a cycle takes no time, the next a poll's, so that a loop that reads ends.
  enum class ClockRead : std::uint8_t { whole, low, high };
  std::uint64_t read_clock(ClockRead how);
  // " at FILE:LINE" in the kernel's own source, as far as it is known.
  std::string at_place(const void* place) const;
  [[noreturn]] void refuse(std::string_view sentence) const;

  void access(std::uintptr_t address, std::uint32_t size_bytes, std::uint32_t access);
  void access_l1(std::uint32_t offset, std::uint32_t size_bytes, std::uint32_t access);
  void access_register(std::uintptr_t address, std::uint32_t size_bytes, std::uint32_t access);

  const CircularBuffer& buffer(std::uint32_t number) const;
  static std::uint32_t pages_of(const CircularBuffer& buffer) {
    return buffer.size_bytes / buffer.page_bytes;
  }
  void reserve_back(std::uint32_t number, std::uint32_t pages);
  void push_back(std::uint32_t number, std::uint32_t pages);
  void wait_front(std::uint32_t number, std::uint32_t pages);
  void pop_front(std::uint32_t number, std::uint32_t pages);
  bool are_pages(std::uint32_t number, std::uint32_t pages, bool at_front);
  std::uint32_t advance(std::uint32_t offset, std::uint32_t pages,
                        const CircularBuffer& buffer) const;

  std::uint32_t ethernet_call(int call, const std::uint32_t* arguments);
  std::uint32_t ethernet_barrier(int call, int noc);
  std::uint32_t ethernet_channel_call(int call, const std::uint32_t* arguments);
  std::uint32_t ethernet_wait(int call, const std::uint32_t* arguments);

  struct Connection;
  const KernelFabric& fabric() const;
  int chip() const { return std::max(0, core_.config().chip); }
  Connection& connection(std::uint32_t channel);
  void fabric_open(std::uint32_t channel);
  void fabric_close(std::uint32_t channel);
  bool fabric_has_slot(std::uint32_t channel);
  void fabric_wait_for_slot(std::uint32_t channel);
  std::uint32_t fabric_direction(std::uint32_t channel) const;
  std::uint32_t fabric_direction_to(std::uint32_t chip) const;
  void fabric_write_payload(std::uint32_t channel, std::uint32_t from, std::uint32_t size_bytes);
  void fabric_send(std::uint32_t channel, const TowpathPacket& packet);
  // Runs an action that the fabric may refuse.
  template <typename Action>
  decltype(auto) named(Action action) const;

  void print(std::string_view text);
  void zone(const char* name, bool begins);
  KernelLog::From from() const;
  void fill_banks();

  DataMovementCore& core_;
  const KernelSetup& setup_;
  Processor processor_;
  noc::Cycle debt_cycles_ = 0;
  InstructionCache instructions_;
  PendingStore pending_;
  const KernelLibrary* library_ = nullptr;  // while it runs
  std::uint64_t blocks_ = 0;                // of instructions, in this cycle
  noc::Cycle blocks_cycle_ = 0;
  std::array<noc::Cycle, 3> clock_seen_{-1, -1, -1};  // by how it was read
  int polls_ = 0;
  bool yields_ = false;  // the base firmware has had a turn among these polls
  std::uint64_t writes_seen_ = 0;
  std::array<Pointers, kCircularBuffers> pointers_{};
  std::vector<std::uint64_t> dram_banks_;
  std::vector<std::uint64_t> l1_banks_;
  std::map<std::uint32_t, std::shared_ptr<Connection>> connections_;  // by Ethernet channel
  std::vector<KernelLog::Zone> open_zones_;
  std::string line_;
};

// The calls as the kernel sees them.
const TowpathCalls& kernel_calls();

}  // namespace towpath::tenstorrent::metalium
