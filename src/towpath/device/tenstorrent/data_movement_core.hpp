// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/noc/chip_network.hpp"

// What a kernel on a data-movement core sees, under the names that its documentation uses. A kernel
// is a C++ function that runs as a process of the simulation; its calls cost the cycles that the
// chip's SoftwareFigures name, and block where the hardware would make them wait.
//
//   run_kernel(chip_network, {.core = {1, 1}}, [](DataMovementCore& core) {
//     core.noc_async_write(0x1000, core.get_noc_addr(2, 1, 0x1000), 4096);
//     core.noc_async_write_barrier();
//   });

namespace towpath::device::tenstorrent {

using NocAddress = noc::Address;

// The workers from one corner to the other and the same offset in each.
struct NocMulticastAddress {
  machine::Coordinate first;
  machine::Coordinate last;
  std::uint64_t offset = 0;
};

struct KernelConfig {
  machine::Coordinate core;
  std::string name;
  int noc_index = 0;
  std::vector<std::uint32_t> compile_args{};
  std::vector<std::uint32_t> runtime_args{};
};

class DataMovementCore {
 public:
  static constexpr int kUnicastWriteVc = 1;
  static constexpr int kMulticastVc = 4;

  DataMovementCore(noc::ChipNetwork& network, KernelConfig config)
      : network_(network), config_(std::move(config)) {}

  const KernelConfig& config() const { return config_; }
  noc::ChipNetwork& network() const { return network_; }
  noc::Cycle cycle() const { return network_.cycle(); }
  // The core is busy with something else for so many cycles, or until a cycle.
  void work(noc::Cycle cycles);
  void work_until(noc::Cycle cycle);

  // Throws std::invalid_argument when there is no such argument.
  std::uint32_t get_arg_val(std::size_t index) const;
  std::uint32_t get_compile_time_arg_val(std::size_t index) const;

  // Coordinates are those of NoC 0, whichever is used.
  static NocAddress get_noc_addr(int x, int y, std::uint64_t offset) { return {{x, y}, offset}; }
  static NocMulticastAddress get_noc_multicast_addr(int x_first, int y_first, int x_last,
                                                    int y_last, std::uint64_t offset) {
    return {{x_first, y_first}, {x_last, y_last}, offset};
  }

  struct WriteOptions {
    int vc = kUnicastWriteVc;
    bool is_static_vc = true;
    bool is_posted = false;
    int transaction_id = 0;
  };
  struct ReadOptions {
    int vc = kUnicastWriteVc;
    int transaction_id = 0;
  };
  struct MulticastOptions {
    int vc = kMulticastVc;
    bool is_linked = false;
    bool includes_source = false;
  };

  void noc_async_write(std::uint64_t local_offset, const NocAddress& to, std::uint64_t size_bytes,
                       const WriteOptions& options);
  void noc_async_read(const NocAddress& from, std::uint64_t local_offset, std::uint64_t size_bytes,
                      const ReadOptions& options);
  void noc_async_write(std::uint64_t local_offset, const NocAddress& to, std::uint64_t size_bytes) {
    noc_async_write(local_offset, to, size_bytes, WriteOptions());
  }
  void noc_async_read(const NocAddress& from, std::uint64_t local_offset,
                      std::uint64_t size_bytes) {
    noc_async_read(from, local_offset, size_bytes, ReadOptions());
  }
  // Destination and size are set once; requests with state then cost less. At most one packet.
  void noc_async_write_one_packet_set_state(const NocAddress& to, std::uint64_t size_bytes,
                                            const WriteOptions& options);
  void noc_async_write_one_packet_with_state(std::uint64_t local_offset, std::uint64_t to_offset);
  void noc_async_read_set_state(const NocAddress& from, std::uint64_t size_bytes,
                                const ReadOptions& options);
  void noc_async_read_with_state(std::uint64_t from_offset, std::uint64_t local_offset);

  void noc_async_write_multicast(std::uint64_t local_offset, const NocMulticastAddress& to,
                                 std::uint64_t size_bytes, const MulticastOptions& options);
  void noc_inline_dw_write(const NocAddress& to, std::uint32_t value, const WriteOptions& options);
  void noc_semaphore_inc(const NocAddress& semaphore, std::uint32_t increment,
                         const WriteOptions& options);

  // All writes have been acknowledged; all have left the core; all reads are here; all atomics
  // have been answered.
  void noc_async_write_barrier();
  void noc_async_writes_flushed();
  void noc_async_read_barrier();
  void noc_async_atomic_barrier();
  // The same of one transaction id.
  void noc_async_write_barrier_with_trid(int transaction_id);
  void noc_async_read_barrier_with_trid(int transaction_id);

 private:
  enum Initiator : int { kWrite, kRead, kInlineWrite, kAtomic };

  noc::Request request(noc::RequestKind kind, Initiator initiator, const NocAddress& remote,
                       std::uint64_t local_offset, std::uint64_t size_bytes) const;
  // Waits for the initiator, spends what the call costs, issues.
  void issue(const noc::Request& request, int cycles);
  const noc::NiuCounters& counters() const {
    return network_.counters(config_.noc_index, config_.core);
  }
  // Looks again every poll_cycles, from now on, until it is so.
  void poll(std::string_view waiting_for, const std::function<bool()>& is_so);

  noc::ChipNetwork& network_;
  KernelConfig config_;
  noc::Request write_state_;
  noc::Request read_state_;
};

// Starts a kernel now; it is over when the process is.
sim::Process& run_kernel(noc::ChipNetwork& network, KernelConfig config,
                         std::function<void(DataMovementCore&)> kernel);

}  // namespace towpath::device::tenstorrent
