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
#include "towpath/tenstorrent/device/call_costs.hpp"
#include "towpath/tenstorrent/device/core_observer.hpp"

// API of a kernel on a data-movement core, with the names and the order of arguments of its
// documentation (docs.tenstorrent.com, TT-Metalium, Data Movement APIs). A kernel is a C++ function
// that runs as a process of the simulation; its calls cost the cycles of kCallCosts, which depend
// on the chip's architecture parameters, and block where the hardware would make them wait.
//
//   [](DataMovementCore& core) {
//     core.noc_async_write(0x1000, core.get_noc_addr(2, 1, 0x1000), 4096);
//     core.noc_async_write_barrier();
//   }
//
// An address in the core's own L1 is an offset, any other is a NocAddress. Coordinates are those of
// NoC 0, whichever NoC is used. Every call uses the NoC of its kernel's configuration unless it is
// given another. A call that cannot be carried out throws std::invalid_argument, which names
// kernel, call and core.
//
// Wrong: while (core.load_word(flag) == 0) {}    No time passes. Use noc_semaphore_wait.

namespace towpath::tenstorrent {

// Source: tt-metal, dataflow_api.h: NOC_UNICAST_WRITE_VC and NOC_MULTICAST_WRITE_VC.
inline constexpr int kUnicastWriteVc = 1;
inline constexpr int kMulticastWriteVc = 4;
inline constexpr int kKernelNoc = -1;
// Of a kernel on the compute cores, which are behind no NoC.
inline constexpr int kNoNoc = -2;
inline constexpr int kOnlyChip = -1;

using NocAddress = noc::Address;

// The workers of a rectangle, and the same offset in each. The first corner has the least x and y.
struct NocMulticastAddress {
  machine::Coordinate first;
  machine::Coordinate last;
  std::uint64_t offset = 0;
};

// Number of workers that a multicast from `source` reaches, which its call must be given.
int multicast_destinations(const machine::Chip& chip, machine::Coordinate source,
                           const NocMulticastAddress& to, bool includes_source);

struct KernelConfig {
  machine::Coordinate core;
  std::string name;
  int noc_index = 0;
  std::vector<std::uint32_t> compile_args{};
  std::vector<std::uint32_t> runtime_args{};
  std::vector<std::uint64_t> semaphores{};  // offset of each; Program fills it in
  noc::Cycle start_cycle = 0;
  int chip = kOnlyChip;    // in its cluster; Program fills it in
  bool is_watched = true;  // for hazards, where they are looked for
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
  // Throws std::invalid_argument where no kernel can run. `observer` outlives the core; none
  // if null.
  DataMovementCore(noc::ChipNetwork& network, KernelConfig config,
                   CoreObserver* observer = nullptr);
  virtual ~DataMovementCore() = default;  // a program owns EthernetCores as DataMovementCores
  DataMovementCore(const DataMovementCore&) = delete;
  DataMovementCore& operator=(const DataMovementCore&) = delete;

  const KernelConfig& config() const { return config_; }
  CoreObserver& observer() const { return *observer_; }
  noc::ChipNetwork& network() const { return network_; }
  noc::Cycle cycle() const { return network_.cycle(); }
  // Keeps the core busy with other work for that many cycles, or until a cycle.
  void work(noc::Cycle cycles);
  void work_until(noc::Cycle cycle);

  // --- arguments, addresses ---------------------------------------------------------------------
  std::uint32_t get_arg_val(std::size_t number);
  std::uint32_t get_compile_time_arg_val(std::size_t number);
  // Offset of a semaphore, the same on every core.
  std::uint64_t get_semaphore(std::size_t id);
  static NocAddress get_noc_addr(int x, int y, std::uint64_t offset) { return {{x, y}, offset}; }
  NocAddress get_noc_addr(std::uint64_t offset) const { return {config_.core, offset}; }
  static NocMulticastAddress get_noc_multicast_addr(int x_first, int y_first, int x_last,
                                                    int y_last, std::uint64_t offset) {
    return {{x_first, y_first}, {x_last, y_last}, offset};
  }

  // --- the core's own L1; takes no time, add work() for it ---------------------------------------
  std::uint32_t load_word(std::uint64_t offset);
  void store_word(std::uint64_t offset, std::uint32_t value);
  void load(std::uint64_t offset, std::span<std::byte> to);
  void store(std::uint64_t offset, std::span<const std::byte> from);

  // --- reads ------------------------------------------------------------------------------------
  void noc_async_read(const NocAddress& from, std::uint64_t local_offset, std::uint64_t size_bytes,
                      const ReadOptions& options = {});
  // With state, the constant part of requests is set once, and each request then costs less. Any
  // other call of the same kind overwrites the state. "One packet": at most the size of a packet.
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

  // Writes to all workers of a rectangle except the core itself, whose number must be right; with
  // loopback_src also to the core, which then counts. A linked multicast keeps its path reserved
  // for the next to the same workers, and blocks others from it: the last one must not be linked.
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
  // Sets the id of all following reads, or writes.
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
  // One look, as long as one of a barrier: all of an id are answered, or have left the core.
  bool is_answered_with_trid(int transaction_id, int noc = kKernelNoc);
  bool is_write_flushed_with_trid(int transaction_id, int noc = kKernelNoc);
  // Resets the counters of the ids in the mask to zero.
  void reset_noc_trid_barrier_counter(std::uint32_t ids = 0xffff, int noc = kKernelNoc);

  // --- barriers ---------------------------------------------------------------------------------
  // Wait until all reads have arrived, all writes are acknowledged, all atomics are answered.
  void noc_async_read_barrier(int noc = kKernelNoc);
  void noc_async_write_barrier(int noc = kKernelNoc);
  void noc_async_atomic_barrier(int noc = kKernelNoc);
  // Wait until all writes, or all posted ones, have left the core: their sources may change.
  void noc_async_writes_flushed(int noc = kKernelNoc);
  void noc_async_posted_writes_flushed(int noc = kKernelNoc);
  void noc_async_full_barrier(int noc = kKernelNoc);

  // --- semaphores: words of L1 ------------------------------------------------------------------
  void noc_semaphore_set(std::uint64_t semaphore, std::uint32_t value);
  // Wait until it equals the value, or is at least the value.
  void noc_semaphore_wait(std::uint64_t semaphore, std::uint32_t value);
  void noc_semaphore_wait_min(std::uint64_t semaphore, std::uint32_t value);
  void noc_semaphore_inc(const NocAddress& semaphore, std::uint32_t increment,
                         const WriteOptions& options = {});
  void noc_semaphore_inc_multicast(const NocMulticastAddress& semaphore, std::uint32_t increment,
                                   int destinations, const MulticastOptions& options = {});
  // Writes the core's own word at `local_offset` to the semaphore.
  void noc_semaphore_set_remote(std::uint64_t local_offset, const NocAddress& semaphore,
                                const WriteOptions& options = {});
  void noc_semaphore_set_multicast(std::uint64_t local_offset, const NocMulticastAddress& semaphore,
                                   int destinations, const MulticastOptions& options = {});
  void noc_semaphore_set_multicast_loopback_src(std::uint64_t local_offset,
                                                const NocMulticastAddress& semaphore,
                                                int destinations,
                                                const MulticastOptions& options = {});

  // --- for layers above, whose calls it carries out ----------------------------------------------
  // Waits until a word is at least a value; errors name `call`, a literal.
  void wait_for_word_min(std::string_view call, std::uint64_t word, std::uint32_t value);
  // Waits until its L1 is written: for a kernel that has polled a word for long and seen nothing.
  void wait_for_l1_write(std::string_view call, std::uint64_t word);

  // --- for the caller that runs the kernel -------------------------------------------------------
  // "kernel 'a' on core (1, 1) in noc_async_read": the beginning of every error message.
  std::string where() const;
  bool is_waiting() const { return wait_.kind != Wait::Kind::nothing; }
  // Whether it waits, and does nothing until its condition holds.
  bool is_suspended() const { return is_waiting() && !wait_.has_turn; }
  // While it waits: "kernel 'a' on core (1, 1) in noc_semaphore_wait since cycle 12: ..."
  std::string describe_wait() const;
  // Requests that it has issued and not waited for; empty if there are none.
  std::string describe_unanswered() const;
  // Bytes of its own L1, one of which must change for it to continue; empty when it waits for
  // something else, or does not wait.
  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
  };
  Range awaited() const;

 protected:
  // The hardware's command buffers, by the calls that use them.
  enum Initiator : int { kWrite, kRead, kWriteWord, kAtomic, kInitiators };
  struct InitiatorState {
    noc::Request request;  // as set_state left it
    bool is_set = false;
    int transaction_id = 0;
  };
  struct Wait {
    enum class Kind : std::uint8_t { nothing, network, word, change };
    Kind kind = Kind::nothing;
    noc::Cycle since = 0;
    int noc = 0;
    std::uint64_t word = 0;  // or, with `change`, the whole L1
    std::uint32_t value = 0;
    std::string_view relation{};  // "", "at least "
    std::string_view change{};    // the awaited event
    bool has_turn = false;        // it continues by itself to yield to the base firmware
  };

  InitiatorState& state(int noc, int initiator);
  // Part of a request that is independent of its destination.
  struct Command {
    noc::RequestKind kind;
    Initiator initiator;
    std::uint64_t local_offset = 0;
    std::uint64_t size_bytes = 0;
  };
  static Command write_of(std::uint64_t local_offset, std::uint64_t size_bytes) {
    return {noc::RequestKind::write, kWrite, local_offset, size_bytes};
  }
  struct Receivers {
    int workers = 0;  // as the kernel says; checked
    bool includes_source = false;
  };
  noc::Request request(const Command& command, const NocAddress& remote,
                       const WriteOptions& options);
  noc::Request read_request(const NocAddress& from, std::uint64_t local_offset,
                            std::uint64_t size_bytes, const ReadOptions& options);
  noc::Request multicast_request(const Command& command, const NocMulticastAddress& to,
                                 const Receivers& receivers, const MulticastOptions& options);
  void set_state(const noc::Request& request);
  noc::Request request_with_state(Initiator initiator, int noc, std::uint64_t local_offset,
                                  std::uint64_t remote_offset);
  void check_one_packet(std::uint64_t size_bytes) const;
  void set_transaction_id(Initiator initiator, int transaction_id, int noc);
  void check_transaction_id(int transaction_id) const;
  void check_outstanding(int transaction_id, int noc) const;
  void wait_for_outstanding(int transaction_id, int noc);

  // Waits for the initiator, spends the cost of the call, issues.
  void issue(const noc::Request& request, int cycles);
  // The same, without changing what set_state has left.
  void issue_with_state(const noc::Request& request, int cycles);
  void wait_for_initiator(int noc, int initiator);
  void wait_for_last_packet(int noc, int initiator);
  // Works at the NIU's registers, which each read response that the NIU sends delays.
  void work_at_niu(int noc, int cycles);
  void suspend_until(noc::ChipNetwork::Condition condition, int noc);
  // Polls every poll_cycles, from now on, until the condition holds.
  void wait_for(noc::ChipNetwork::Condition condition, int noc);
  void wait_for_semaphore(std::uint64_t semaphore, std::uint32_t value, bool is_minimum);
  void finish_polling(noc::Cycle first);

  int noc_of(int noc) const;
  // Reads and writes a word of the core's own L1, and tells the observer.
  // `minimum` is the value that the kernel waits for, at least.
  std::uint32_t look(std::uint64_t offset, std::uint32_t minimum = ~std::uint32_t{0});
  void change(std::uint64_t offset, std::uint32_t value);
  template <typename... Arguments>
  [[noreturn]] void refuse(fmt::format_string<Arguments...> format, Arguments&&... arguments) const;
  // Runs an action that the network may refuse.
  template <typename Action>
  decltype(auto) named(Action action) const;

  noc::ChipNetwork& network_;
  const CallCosts& costs_;
  KernelConfig config_;
  CoreObserver ignores_everything_;
  CoreObserver* observer_;
  std::array<std::array<InitiatorState, kInitiators>, 2> states_;
  std::array<bool, 2> has_used_noc_{};
  std::string_view call_;  // current call, or the last one
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

// Starts a kernel; it has ended when the process has.
sim::Process& run_kernel(noc::ChipNetwork& network, KernelConfig config, Kernel kernel);

}  // namespace towpath::tenstorrent
