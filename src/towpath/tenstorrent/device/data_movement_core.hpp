// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "towpath/noc/chip_network.hpp"

// What a kernel on a data-movement core sees, under the names that its documentation uses
// (docs.tenstorrent.com, TT-Metalium, Data Movement APIs) and with arguments in the same order. A
// kernel is a C++ function that runs as a process of the simulation; its calls cost the cycles that
// the chip's SoftwareParameters name, and block where the hardware would make them wait.
//
//   [](DataMovementCore& core) {
//     core.noc_async_write(0x1000, core.get_noc_addr(2, 1, 0x1000), 4096);
//     core.noc_async_write_barrier();
//   }
//
// A place in the core's own L1 is an offset, a place elsewhere a NocAddress. Coordinates are those
// of NoC 0, whichever NoC is used. Every call takes the NoC that its kernel was given unless told
// another. A call that cannot be carried out throws std::invalid_argument, which names kernel, call
// and core.
//
// Wrong: while (core.load_word(flag) == 0) {}    No time passes. Use noc_semaphore_wait.

namespace towpath::tenstorrent {

class KernelWatch;

inline constexpr int kUnicastWriteVc = 1;
inline constexpr int kMulticastWriteVc = 4;
inline constexpr int kKernelNoc = -1;
inline constexpr int kOnlyChip = -1;

using NocAddress = noc::Address;

// The workers of a rectangle, the first corner the one with the least x and y, and the same offset
// in each.
struct NocMulticastAddress {
  machine::Coordinate first;
  machine::Coordinate last;
  std::uint64_t offset = 0;
};

// How many workers a multicast from `source` reaches, which its call must be told.
int multicast_destinations(const machine::Chip& chip, machine::Coordinate source,
                           const NocMulticastAddress& to, bool includes_source);

struct KernelConfig {
  machine::Coordinate core;
  std::string name;
  int noc_index = 0;
  std::vector<std::uint32_t> compile_args{};
  std::vector<std::uint32_t> runtime_args{};
  std::vector<std::uint64_t> semaphores{};  // where each lies; Program fills it in
  noc::Cycle start_cycle = 0;
  int chip = kOnlyChip;  // of a cluster; Program fills it in
};

struct WriteOptions {
  int vc = kUnicastWriteVc;
  bool is_static_vc = true;
  bool is_posted = false;
  int noc = kKernelNoc;
};
struct ReadOptions {
  int vc = kUnicastWriteVc;
  int noc = kKernelNoc;
};
struct MulticastOptions {
  int vc = kMulticastWriteVc;
  bool is_linked = false;
  int noc = kKernelNoc;
};

class DataMovementCore {
 public:
  // Throws std::invalid_argument where no kernel can run. `watch` is told what the kernel does, and
  // outlives it.
  DataMovementCore(noc::ChipNetwork& network, KernelConfig config, KernelWatch* watch = nullptr);
  DataMovementCore(const DataMovementCore&) = delete;
  DataMovementCore& operator=(const DataMovementCore&) = delete;

  const KernelConfig& config() const { return config_; }
  noc::ChipNetwork& network() const { return network_; }
  noc::Cycle cycle() const { return network_.cycle(); }
  // The core is busy with something else for so many cycles, or until a cycle.
  void work(noc::Cycle cycles);
  void work_until(noc::Cycle cycle);

  // --- arguments, addresses ---------------------------------------------------------------------
  std::uint32_t get_arg_val(std::size_t number);
  std::uint32_t get_compile_time_arg_val(std::size_t number);
  // Where a semaphore lies, on every core.
  std::uint64_t get_semaphore(std::size_t id);
  static NocAddress get_noc_addr(int x, int y, std::uint64_t offset) { return {{x, y}, offset}; }
  NocAddress get_noc_addr(std::uint64_t offset) const { return {config_.core, offset}; }
  static NocMulticastAddress get_noc_multicast_addr(int x_first, int y_first, int x_last,
                                                    int y_last, std::uint64_t offset) {
    return {{x_first, y_first}, {x_last, y_last}, offset};
  }

  // --- the core's own L1; takes no time, say work() for it --------------------------------------
  std::uint32_t load_word(std::uint64_t offset);
  void store_word(std::uint64_t offset, std::uint32_t value);
  void load(std::uint64_t offset, std::span<std::byte> to);
  void store(std::uint64_t offset, std::span<const std::byte> from);

  // --- reads ------------------------------------------------------------------------------------
  void noc_async_read(const NocAddress& from, std::uint64_t local_offset, std::uint64_t size_bytes,
                      const ReadOptions& options = {});
  // With state, what does not change is set once and each request then costs less. Any other call
  // of the same kind overwrites the state. "One packet": no more than a packet may hold.
  void noc_async_read_set_state(const NocAddress& from, const ReadOptions& options = {});
  void noc_async_read_with_state(std::uint64_t from_offset, std::uint64_t local_offset,
                                 std::uint64_t size_bytes, int noc = kKernelNoc);
  void noc_async_read_one_packet(const NocAddress& from, std::uint64_t local_offset,
                                 std::uint64_t size_bytes, const ReadOptions& options = {});
  void noc_async_read_one_packet_set_state(const NocAddress& from, std::uint64_t size_bytes,
                                           const ReadOptions& options = {});
  void noc_async_read_one_packet_with_state(std::uint64_t from_offset, std::uint64_t local_offset,
                                            int noc = kKernelNoc);

  // --- writes -----------------------------------------------------------------------------------
  void noc_async_write(std::uint64_t local_offset, const NocAddress& to, std::uint64_t size_bytes,
                       const WriteOptions& options = {});
  void noc_async_write_set_state(const NocAddress& to, const WriteOptions& options = {});
  void noc_async_write_with_state(std::uint64_t local_offset, std::uint64_t to_offset,
                                  std::uint64_t size_bytes, int noc = kKernelNoc);
  void noc_async_write_one_packet(std::uint64_t local_offset, const NocAddress& to,
                                  std::uint64_t size_bytes, const WriteOptions& options = {});
  void noc_async_write_one_packet_set_state(const NocAddress& to, std::uint64_t size_bytes,
                                            const WriteOptions& options = {});
  void noc_async_write_one_packet_with_state(std::uint64_t local_offset, std::uint64_t to_offset,
                                             int noc = kKernelNoc);

  // To all workers of a rectangle but the core itself, whose number must be right; with
  // loopback_src also to the core, which then counts. A linked one keeps its path reserved for the
  // next to the same workers, and everybody else off it: the last must not be linked.
  void noc_async_write_multicast(std::uint64_t local_offset, const NocMulticastAddress& to,
                                 std::uint64_t size_bytes, int destinations,
                                 const MulticastOptions& options = {});
  void noc_async_write_multicast_one_packet(std::uint64_t local_offset,
                                            const NocMulticastAddress& to, std::uint64_t size_bytes,
                                            int destinations, const MulticastOptions& options = {});
  void noc_async_write_multicast_loopback_src(std::uint64_t local_offset,
                                              const NocMulticastAddress& to,
                                              std::uint64_t size_bytes, int destinations,
                                              const MulticastOptions& options = {});

  void noc_inline_dw_write(const NocAddress& to, std::uint32_t value,
                           const WriteOptions& options = {});
  void noc_inline_dw_write_set_state(const NocAddress& to, const WriteOptions& options = {});
  void noc_inline_dw_write_with_state(std::uint32_t value, int noc = kKernelNoc);

  // --- transaction ids --------------------------------------------------------------------------
  // The id of all reads, or writes, from now on.
  void noc_async_read_set_trid(int transaction_id, int noc = kKernelNoc);
  void noc_async_write_set_trid(int transaction_id, int noc = kKernelNoc);
  void noc_async_read_one_packet_with_state_with_trid(std::uint64_t from_base,
                                                      std::uint64_t from_offset,
                                                      std::uint64_t local_offset,
                                                      int transaction_id, int noc = kKernelNoc);
  void noc_async_write_one_packet_with_trid(std::uint64_t local_offset, const NocAddress& to,
                                            std::uint64_t size_bytes, int transaction_id,
                                            const WriteOptions& options = {});
  void noc_async_write_one_packet_with_trid_set_state(const NocAddress& to,
                                                      const WriteOptions& options = {});
  void noc_async_write_one_packet_with_trid_with_state(std::uint64_t local_offset,
                                                       std::uint64_t to_offset,
                                                       std::uint64_t size_bytes, int transaction_id,
                                                       int noc = kKernelNoc);
  void noc_async_read_barrier_with_trid(int transaction_id, int noc = kKernelNoc);
  void noc_async_write_barrier_with_trid(int transaction_id, int noc = kKernelNoc);
  void noc_async_write_flushed_with_trid(int transaction_id, int noc = kKernelNoc);
  // Counts the ids in the mask from zero again.
  void reset_noc_trid_barrier_counter(std::uint32_t ids = 0xffff, int noc = kKernelNoc);

  // --- barriers ---------------------------------------------------------------------------------
  // All reads are here; all writes are acknowledged; all atomics are answered.
  void noc_async_read_barrier(int noc = kKernelNoc);
  void noc_async_write_barrier(int noc = kKernelNoc);
  void noc_async_atomic_barrier(int noc = kKernelNoc);
  // All writes, or all posted ones, have left the core: their sources may change.
  void noc_async_writes_flushed(int noc = kKernelNoc);
  void noc_async_posted_writes_flushed(int noc = kKernelNoc);
  void noc_async_full_barrier(int noc = kKernelNoc);

  // --- semaphores: words of L1 ------------------------------------------------------------------
  void noc_semaphore_set(std::uint64_t semaphore, std::uint32_t value);
  // Until it is the value, or at least the value.
  void noc_semaphore_wait(std::uint64_t semaphore, std::uint32_t value);
  void noc_semaphore_wait_min(std::uint64_t semaphore, std::uint32_t value);
  void noc_semaphore_inc(const NocAddress& semaphore, std::uint32_t increment,
                         const WriteOptions& options = {});
  void noc_semaphore_inc_multicast(const NocMulticastAddress& semaphore, std::uint32_t increment,
                                   int destinations, const MulticastOptions& options = {});
  // Writes the core's own word at `local_offset` there.
  void noc_semaphore_set_remote(std::uint64_t local_offset, const NocAddress& semaphore,
                                const WriteOptions& options = {});
  void noc_semaphore_set_multicast(std::uint64_t local_offset, const NocMulticastAddress& semaphore,
                                   int destinations, const MulticastOptions& options = {});
  void noc_semaphore_set_multicast_loopback_src(std::uint64_t local_offset,
                                                const NocMulticastAddress& semaphore,
                                                int destinations,
                                                const MulticastOptions& options = {});

  // --- for whoever runs the kernel --------------------------------------------------------------
  // "kernel 'a' on core (1, 1) in noc_async_read": what every error begins with.
  std::string where() const;
  bool is_waiting() const { return wait_.kind != Wait::Kind::nothing; }
  // It waits, and does nothing before what it waits for comes about.
  bool is_suspended() const { return is_waiting() && !wait_.has_turn; }
  // While it waits: "kernel 'a' on core (1, 1) in noc_semaphore_wait since cycle 12: ..."
  std::string describe_wait() const;
  // What it has issued and not waited for; empty if there is nothing.
  std::string describe_unanswered() const;
  // The bytes of its own L1 of which one must change for it to go on; empty when it does not wait
  // for that.
  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
  };
  Range awaited() const;

 protected:
  // The hardware's command buffers and what each serves.
  enum Initiator : int { kWrite, kRead, kWriteWord, kAtomic, kInitiators };
  struct InitiatorState {
    noc::Request request;  // what set_state has left
    bool is_set = false;
    int transaction_id = 0;
  };
  struct Wait {
    enum class Kind : std::uint8_t { nothing, network, word, change };
    Kind kind = Kind::nothing;
    noc::Cycle since = 0;
    int noc = 0;
    std::uint64_t word = 0;  // or, of `change`, the whole L1
    std::uint32_t value = 0;
    std::string_view relation{};  // "", "at least "
    std::string_view change{};    // what has to happen
    bool has_turn = false;        // it goes on by itself to yield to the base firmware
  };

  InitiatorState& state(int noc, int initiator);
  noc::Request request(noc::RequestKind kind, Initiator initiator, const NocAddress& remote,
                       std::uint64_t local_offset, std::uint64_t size_bytes,
                       const WriteOptions& options);
  noc::Request read_request(const NocAddress& from, std::uint64_t local_offset,
                            std::uint64_t size_bytes, const ReadOptions& options);
  noc::Request multicast_request(noc::RequestKind kind, Initiator initiator,
                                 const NocMulticastAddress& to, std::uint64_t local_offset,
                                 std::uint64_t size_bytes, int destinations, bool includes_source,
                                 const MulticastOptions& options);
  void set_state(const noc::Request& request);
  noc::Request request_with_state(Initiator initiator, int noc, std::uint64_t local_offset,
                                  std::uint64_t remote_offset);
  void check_one_packet(std::uint64_t size_bytes) const;
  void set_transaction_id(Initiator initiator, int transaction_id, int noc);
  void check_transaction_id(int transaction_id) const;
  void wait_for_outstanding(int transaction_id, int noc);

  // Waits for the initiator, spends what the call costs, issues.
  void issue(const noc::Request& request, int cycles);
  // The same; what set_state has left stays.
  void issue_with_state(const noc::Request& request, int cycles);
  void wait_for_initiator(int noc, int initiator);
  void wait_for_last_packet(int noc, int initiator);
  // Work at the NIU's registers, which is held up by each read response that the NIU handles.
  void work_at_niu(int noc, int cycles);
  void suspend_until(noc::ChipNetwork::Condition condition, int noc);
  // Looks every poll_cycles, from now on, until it holds.
  void wait_for(noc::ChipNetwork::Condition condition, int noc);
  void wait_for_semaphore(std::uint64_t semaphore, std::uint32_t value, bool is_minimum);
  void finish_polling(noc::Cycle first);

  int noc_of(int noc) const;
  // A word of the own L1, as the kernel sees and as it changes it.
  std::uint32_t look(std::uint64_t offset);
  void change(std::uint64_t offset, std::uint32_t value);
  template <typename... Arguments>
  [[noreturn]] void refuse(fmt::format_string<Arguments...> format, Arguments&&... arguments) const;
  // Does what the network may refuse.
  template <typename Action>
  decltype(auto) named(Action action) const;

  noc::ChipNetwork& network_;
  KernelConfig config_;
  KernelWatch* watch_;
  std::array<std::array<InitiatorState, kInitiators>, 2> states_;
  std::array<bool, 2> has_used_noc_{};
  std::string_view call_;  // that it is in, or was in last
  Wait wait_;
};

template <typename... Arguments>
void DataMovementCore::refuse(fmt::format_string<Arguments...> format,
                              Arguments&&... arguments) const {
  throw std::invalid_argument(
      fmt::format("{}: {}", where(), fmt::format(format, std::forward<Arguments>(arguments)...)));
}

template <typename Action>
decltype(auto) DataMovementCore::named(Action action) const {
  try {
    return action();
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{}: {}", where(), error.what()));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}", where(), error.what()));
  }
}

using Kernel = std::function<void(DataMovementCore&)>;

// Starts a kernel; it is over when the process is.
sim::Process& run_kernel(noc::ChipNetwork& network, KernelConfig config, Kernel kernel);

}  // namespace towpath::tenstorrent
