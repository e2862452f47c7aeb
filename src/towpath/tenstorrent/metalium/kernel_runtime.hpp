// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "towpath/os/library_copy.hpp"
#include "towpath/tenstorrent/core/data_movement_core.hpp"
#include "towpath/tenstorrent/metalium/kernel_fabric.hpp"
#include "towpath/tenstorrent/metalium/kernel_include/towpath_kernel.h"
#include "towpath/tenstorrent/metalium/kernel_log.hpp"
#include "towpath/tenstorrent/metalium/kernel_memory.hpp"
#include "towpath/tenstorrent/metalium/source_kernel.hpp"

namespace towpath::tenstorrent::metalium {

// The circular buffers of a core in one of its kernels. Their page counts are words of L1.
class KernelBuffers {
 public:
  KernelBuffers(DataMovementCore& core, OwnArrivals& arrivals, const CircularBuffers& buffers);

  // The buffer with a number. Rejects the call if there is none.
  const CircularBuffer& at(std::uint32_t number) const;
  static std::uint32_t pages_of(const CircularBuffer& buffer) {
    return buffer.size_bytes / buffer.page_bytes;
  }
  void reserve_back(std::uint32_t number, std::uint32_t pages);
  void push_back(std::uint32_t number, std::uint32_t pages);
  void wait_front(std::uint32_t number, std::uint32_t pages);
  void pop_front(std::uint32_t number, std::uint32_t pages);
  // One poll for pages at the front, or for free ones.
  bool are_pages(std::uint32_t number, std::uint32_t pages, bool at_front);
  std::uint32_t read_pointer(std::uint32_t number) const { return pointers_[number].read; }
  std::uint32_t write_pointer(std::uint32_t number) const { return pointers_[number].write; }

 private:
  struct Pointers {
    std::uint32_t read = 0;
    std::uint32_t write = 0;
    std::uint32_t received = 0;  // pages pushed and popped by this kernel
    std::uint32_t acked = 0;
  };
  std::uint32_t advance(std::uint32_t offset, std::uint32_t pages,
                        const CircularBuffer& buffer) const;
  void check_push(std::uint32_t number, std::uint32_t pages);
  void check_pop(std::uint32_t number, std::uint32_t pages);
  std::uint32_t word(std::uint64_t offset) const;

  DataMovementCore& core_;
  OwnArrivals& arrivals_;
  const CircularBuffers& buffers_;
  std::array<Pointers, kCircularBuffers> pointers_{};
};

// Connections of a kernel in source form to fabric routers, identified by the router's Ethernet
// channel.
class KernelConnections {
 public:
  // `fabric` is null if there is none.
  KernelConnections(DataMovementCore& core, KernelClock& clock, KernelMemory& memory,
                    const KernelFabric* fabric)
      : core_(core), clock_(clock), memory_(memory), fabric_(fabric) {}
  ~KernelConnections();

  void open(std::uint32_t channel);
  void close(std::uint32_t channel);
  bool has_slot(std::uint32_t channel);
  void wait_for_slot(std::uint32_t channel);
  void write_payload(std::uint32_t channel, std::uint32_t from, std::uint32_t size_bytes);
  void send(std::uint32_t channel, const TowpathPacket& packet);
  std::uint32_t direction(std::uint32_t channel) const;
  std::uint32_t direction_to(std::uint32_t chip) const;

 private:
  struct Connection {
    fabric::RouterPort port;
    std::unique_ptr<fabric::Connection> worker{};
    std::uint64_t headers = 0;
    std::uint32_t packets = 0;
  };
  const KernelFabric& fabric() const;
  int chip() const { return std::max(0, core_.config().chip); }
  Connection& at(std::uint32_t channel);
  // Runs an action that the fabric may reject.
  template <typename Action>
  decltype(auto) named(Action action) const;

  DataMovementCore& core_;
  KernelClock& clock_;
  KernelMemory& memory_;
  const KernelFabric* fabric_;
  std::map<std::uint32_t, Connection> connections_;
};

// The Ethernet interface of a kernel in source form.
class KernelEthernet {
 public:
  KernelEthernet(DataMovementCore& core, KernelClock& clock, KernelMemory& memory,
                 Processor processor)
      : core_(core), clock_(clock), memory_(memory), processor_(processor) {}

  // A call of TowpathEthernetCall with up to six arguments. A test of the interface is a poll. Any
  // other call ends a series of polls. A turn of the base firmware does neither, because polling
  // loops contain one.
  std::uint32_t call(int call, const std::uint32_t* arguments);

 private:
  // Rejects the call on a worker.
  EthernetCore& core() const;
  std::uint32_t test(int call, int channel);
  std::uint32_t barrier(int call, int noc);
  std::uint32_t channel_call(int call, const std::uint32_t* arguments);
  std::uint32_t wait(int call, const std::uint32_t* arguments);

  DataMovementCore& core_;
  KernelClock& clock_;
  KernelMemory& memory_;
  Processor processor_;
};

// A copy of a compiled kernel in memory, with a copy of its global variables.
class KernelLibrary {
 public:
  // Throws std::runtime_error if the file cannot be loaded.
  explicit KernelLibrary(const std::filesystem::path& file);

  using Entry = void (*)(const TowpathCore*);
  Entry entry() const { return entry_; }
  // " at FILE:LINE" in the kernel's source of the instruction before a place, or empty.
  std::string words_of(const void* place) const;

 private:
  os::LibraryCopy library_;
  Entry entry_ = nullptr;
};

// One run of a kernel in source form on a core. The table of kernel_calls.cpp dispatches its calls,
// loads and stores to the parts.
class KernelRuntime {
 public:
  KernelRuntime(DataMovementCore& core, const KernelTarget& target, const KernelSetup& setup,
                std::shared_ptr<const KernelLibrary> library);
  KernelRuntime(const KernelRuntime&) = delete;
  KernelRuntime& operator=(const KernelRuntime&) = delete;

  void run();

  DataMovementCore& core;
  KernelClock clock;
  OwnArrivals arrivals;
  KernelMemory memory;
  KernelBuffers buffers;
  KernelEthernet ethernet;
  KernelConnections connections;
  KernelReports reports;

  // Counts executed basic blocks, the last one before `place`. Rejects an endless loop.
  void count_blocks(std::uint64_t blocks, const void* place);
  void count_report() { count_blocks(KernelClock::kBlocksPerReport, nullptr); }
  // Leaves the kernel from one of its calls; run() throws the stored exception.
  void keep(std::exception_ptr exception) { kept_ = std::move(exception); }
  [[noreturn]] void leave();
  // The kernel reaches a loop that consists of a jump to itself.
  [[noreturn]] void refuse_endless_loop(const void* place);

 private:
  void fill_banks();
  // Calls the kernel, and returns when it ends, or when leave() ends it.
  void enter(KernelLibrary::Entry entry, const TowpathCore& view);

  const KernelSetup& setup_;
  std::shared_ptr<const KernelLibrary> library_;
  std::array<void*, 5> outside_{};  // of the kernel, for __builtin_longjmp
  std::exception_ptr kept_;
  std::vector<std::uint64_t> dram_banks_;
  std::vector<std::uint64_t> l1_banks_;
};

// The function table for kernels.
const TowpathCalls& kernel_calls();

}  // namespace towpath::tenstorrent::metalium
