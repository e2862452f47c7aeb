// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "towpath/tenstorrent/core/core_process.hpp"
#include "towpath/tenstorrent/core/noc_requester.hpp"

// API of a kernel on a data-movement core, with the names and the order of arguments of its
// documentation (docs.tenstorrent.com, TT-Metalium, Data Movement APIs). A kernel is a C++ function
// that runs as a process of the simulation. Its calls cost the cycles of kCallCosts, and block if
// the hardware would make them wait.
//
//   [](DataMovementCore& core) {
//     core.noc_async_write(0x1000, core.get_noc_addr(2, 1, 0x1000), 4096);
//     core.noc_async_write_barrier();
//   }
//
// An address in the core's L1 is an offset; any other is a NocAddress. Coordinates are given for
// NoC 0, on either NoC. Every call uses the NoC of its kernel's configuration unless it is given
// another. An invalid call throws std::invalid_argument, which names kernel, call and core.
//
// Wrong: while (core.load_word(flag) == 0) {}    No time passes. Use noc_semaphore_wait.

namespace towpath::tenstorrent {

class DataMovementCore : public CoreProcess {
 public:
  DataMovementCore(noc::ChipNetwork& network, KernelConfig config, CoreObserver* observer = nullptr)
      : CoreProcess(network, std::move(config), observer), requests_(*this) {}
  virtual ~DataMovementCore() = default;  // a program owns EthernetCores as DataMovementCores

  // --- arguments, addresses ---------------------------------------------------------------------
  std::uint32_t get_arg_val(std::size_t number);
  std::uint32_t get_compile_time_arg_val(std::size_t number);
  // Offset of a semaphore, the same on every core.
  std::uint64_t get_semaphore(std::size_t id);
  static NocAddress get_noc_addr(int x, int y, std::uint64_t offset) { return {{x, y}, offset}; }
  NocAddress get_noc_addr(std::uint64_t offset) const { return {config().core, offset}; }
  static NocMulticastAddress get_noc_multicast_addr(int x_first, int y_first, int x_last,
                                                    int y_last, std::uint64_t offset) {
    return {{x_first, y_first}, {x_last, y_last}, offset};
  }

  // --- the L1 of the core, which takes no time: add work() for it --------------------------------
  std::uint32_t load_word(std::uint64_t offset);
  void store_word(std::uint64_t offset, std::uint32_t value);
  void load(std::uint64_t offset, std::span<std::byte> to);
  void store(std::uint64_t offset, std::span<const std::byte> from);

  // --- reads ------------------------------------------------------------------------------------
  void noc_async_read(const NocAddress& from, std::uint64_t local_offset, std::uint64_t size_bytes,
                      const ReadOptions& options = {}) {
    requests(__func__).read(from, {local_offset, size_bytes}, options);
  }
  // With state, the constant part of requests is set once, and each request then costs less. Any
  // other call of the same kind overwrites the state. "One packet": at most the size of a packet.
  void noc_async_read_set_state(const NocAddress& from, const ReadOptions& options = {}) {
    requests(__func__).set_read_state(from, 0, options);
  }
  void noc_async_read_with_state(std::uint64_t from_offset, std::uint64_t local_offset,
                                 std::uint64_t size_bytes, int noc = kKernelNoc) {
    requests(__func__).read_with_state(from_offset, local_offset, size_bytes, noc);
  }
  void noc_async_read_one_packet(const NocAddress& from, std::uint64_t local_offset,
                                 std::uint64_t size_bytes, const ReadOptions& options = {}) {
    one_packet(__func__, size_bytes).read(from, {local_offset, size_bytes}, options);
  }
  void noc_async_read_one_packet_set_state(const NocAddress& from, std::uint64_t size_bytes,
                                           const ReadOptions& options = {}) {
    one_packet(__func__, size_bytes).set_read_state(from, size_bytes, options);
  }
  void noc_async_read_one_packet_with_state(std::uint64_t from_offset, std::uint64_t local_offset,
                                            int noc = kKernelNoc) {
    requests(__func__).read_with_state(from_offset, local_offset, {}, noc);
  }

  // --- writes -----------------------------------------------------------------------------------
  void noc_async_write(std::uint64_t local_offset, const NocAddress& to, std::uint64_t size_bytes,
                       const WriteOptions& options = {}) {
    requests(__func__).write({local_offset, size_bytes}, to, options);
  }
  void noc_async_write_set_state(const NocAddress& to, const WriteOptions& options = {}) {
    requests(__func__).set_write_state(to, 0, options);
  }
  void noc_async_write_with_state(std::uint64_t local_offset, std::uint64_t to_offset,
                                  std::uint64_t size_bytes, int noc = kKernelNoc) {
    requests(__func__).write_with_state(local_offset, to_offset, size_bytes, noc);
  }
  void noc_async_write_one_packet(std::uint64_t local_offset, const NocAddress& to,
                                  std::uint64_t size_bytes, const WriteOptions& options = {}) {
    one_packet(__func__, size_bytes).write({local_offset, size_bytes}, to, options);
  }
  void noc_async_write_one_packet_set_state(const NocAddress& to, std::uint64_t size_bytes,
                                            const WriteOptions& options = {}) {
    one_packet(__func__, size_bytes).set_write_state(to, size_bytes, options);
  }
  void noc_async_write_one_packet_with_state(std::uint64_t local_offset, std::uint64_t to_offset,
                                             int noc = kKernelNoc) {
    requests(__func__).write_with_state(local_offset, to_offset, {}, noc);
  }

  // Writes to all workers of a rectangle except the core itself; their number must be right. With
  // loopback_src also to the core, which then counts. A linked multicast keeps its path reserved
  // for the next one to the same workers, and blocks others from it: the last one must not be
  // linked.
  void noc_async_write_multicast(std::uint64_t local_offset, const NocMulticastAddress& to,
                                 std::uint64_t size_bytes, int destinations,
                                 const MulticastOptions& options = {}) {
    requests(__func__).multicast({local_offset, size_bytes}, to, {destinations, false}, options);
  }
  void noc_async_write_multicast_one_packet(std::uint64_t local_offset,
                                            const NocMulticastAddress& to, std::uint64_t size_bytes,
                                            int destinations,
                                            const MulticastOptions& options = {}) {
    one_packet(__func__, size_bytes)
        .multicast({local_offset, size_bytes}, to, {destinations, false}, options);
  }
  void noc_async_write_multicast_loopback_src(std::uint64_t local_offset,
                                              const NocMulticastAddress& to,
                                              std::uint64_t size_bytes, int destinations,
                                              const MulticastOptions& options = {}) {
    requests(__func__).multicast({local_offset, size_bytes}, to, {destinations, true}, options);
  }

  void noc_inline_dw_write(const NocAddress& to, std::uint32_t value,
                           const WriteOptions& options = {}) {
    requests(__func__).write_value(value, to, options);
  }
  void noc_inline_dw_write_set_state(const NocAddress& to, const WriteOptions& options = {}) {
    requests(__func__).set_value_state(to, options);
  }
  void noc_inline_dw_write_with_state(std::uint32_t value, int noc = kKernelNoc) {
    requests(__func__).write_value_with_state(value, noc);
  }

  // --- transaction ids --------------------------------------------------------------------------
  // Sets the id of all following reads, or writes.
  void noc_async_read_set_trid(int transaction_id, int noc = kKernelNoc) {
    requests(__func__).set_transaction_id(NocRequester::kRead, transaction_id, noc);
  }
  void noc_async_write_set_trid(int transaction_id, int noc = kKernelNoc) {
    requests(__func__).set_transaction_id(NocRequester::kWrite, transaction_id, noc);
  }
  void noc_async_read_one_packet_with_state_with_trid(std::uint64_t from_base,
                                                      std::uint64_t from_offset,
                                                      std::uint64_t local_offset,
                                                      int transaction_id, int noc = kKernelNoc);
  void noc_async_write_one_packet_with_trid(std::uint64_t local_offset, const NocAddress& to,
                                            std::uint64_t size_bytes, int transaction_id,
                                            const WriteOptions& options = {});
  void noc_async_write_one_packet_with_trid_set_state(const NocAddress& to,
                                                      const WriteOptions& options = {}) {
    requests(__func__).set_write_state(to, 0, options);
  }
  void noc_async_write_one_packet_with_trid_with_state(std::uint64_t local_offset,
                                                       std::uint64_t to_offset,
                                                       std::uint64_t size_bytes, int transaction_id,
                                                       int noc = kKernelNoc);
  void noc_async_read_barrier_with_trid(int transaction_id, int noc = kKernelNoc) {
    requests(__func__).wait_for_answers(transaction_id, noc);
  }
  void noc_async_write_barrier_with_trid(int transaction_id, int noc = kKernelNoc) {
    requests(__func__).wait_for_answers(transaction_id, noc);
  }
  void noc_async_write_flushed_with_trid(int transaction_id, int noc = kKernelNoc) {
    requests(__func__).wait_until_sent(transaction_id, noc);
  }
  // One look, as long as one of a barrier: all of an id are answered, or have left the core.
  bool is_answered_with_trid(int transaction_id, int noc = kKernelNoc) {
    return requests(__func__).is_answered(transaction_id, noc);
  }
  bool is_write_flushed_with_trid(int transaction_id, int noc = kKernelNoc) {
    return requests(__func__).is_sent(transaction_id, noc);
  }
  // Resets the counters of the ids in the mask to zero.
  void reset_noc_trid_barrier_counter(std::uint32_t ids = 0xffff, int noc = kKernelNoc) {
    requests(__func__).reset_outstanding(ids, noc);
  }

  // --- barriers ---------------------------------------------------------------------------------
  // Wait until all reads have arrived, all writes are acknowledged, all atomics are answered.
  void noc_async_read_barrier(int noc = kKernelNoc) {
    requests(__func__)
        .wait_for_counts<&noc::NiuCounters::read_responses_received,
                         &noc::NiuCounters::reads_issued>(noc);
  }
  void noc_async_write_barrier(int noc = kKernelNoc) {
    requests(__func__)
        .wait_for_counts<&noc::NiuCounters::write_acks_received,
                         &noc::NiuCounters::write_acks_awaited>(noc);
  }
  void noc_async_atomic_barrier(int noc = kKernelNoc);
  // Wait until all writes, or all posted ones, have left the core: their sources may then change.
  void noc_async_writes_flushed(int noc = kKernelNoc) {
    requests(__func__)
        .wait_for_counts<&noc::NiuCounters::writes_sent, &noc::NiuCounters::writes_issued>(noc);
  }
  void noc_async_posted_writes_flushed(int noc = kKernelNoc) {
    requests(__func__)
        .wait_for_counts<&noc::NiuCounters::posted_writes_sent,
                         &noc::NiuCounters::posted_writes_issued>(noc);
  }
  void noc_async_full_barrier(int noc = kKernelNoc);

  // --- semaphores: words of L1 ------------------------------------------------------------------
  void noc_semaphore_set(std::uint64_t semaphore, std::uint32_t value);
  // Wait until it equals the value, or is at least the value.
  void noc_semaphore_wait(std::uint64_t semaphore, std::uint32_t value);
  void noc_semaphore_wait_min(std::uint64_t semaphore, std::uint32_t value);
  void noc_semaphore_inc(const NocAddress& semaphore, std::uint32_t increment,
                         const WriteOptions& options = {}) {
    requests(__func__).increment(semaphore, increment, options);
  }
  void noc_semaphore_inc_multicast(const NocMulticastAddress& semaphore, std::uint32_t increment,
                                   int destinations, const MulticastOptions& options = {}) {
    requests(__func__).multicast_increment(semaphore, increment, destinations, options);
  }
  // Writes the core's word at `local_offset` to the semaphore.
  void noc_semaphore_set_remote(std::uint64_t local_offset, const NocAddress& semaphore,
                                const WriteOptions& options = {}) {
    requests(__func__).write_word(local_offset, semaphore, options);
  }
  void noc_semaphore_set_multicast(std::uint64_t local_offset, const NocMulticastAddress& semaphore,
                                   int destinations, const MulticastOptions& options = {}) {
    requests(__func__).multicast_word(local_offset, semaphore, {destinations, false}, options);
  }
  void noc_semaphore_set_multicast_loopback_src(std::uint64_t local_offset,
                                                const NocMulticastAddress& semaphore,
                                                int destinations,
                                                const MulticastOptions& options = {}) {
    requests(__func__).multicast_word(local_offset, semaphore, {destinations, true}, options);
  }

  // --- for layers above, whose calls it carries out ----------------------------------------------
  // Waits until a word is at least a value. Errors name `call`, a literal.
  void wait_for_word_min(std::string_view call, std::uint64_t word, std::uint32_t value);
  // Waits until its L1 is written: for a kernel that has polled a word for a long time without a
  // change.
  void wait_for_l1_write(std::string_view call, std::uint64_t word);
  // Requests that it has issued and not awaited, or an empty text.
  std::string describe_unanswered() const { return requests_.describe_unanswered(); }

 protected:
  // The requester, for a call, a literal.
  NocRequester& requests(std::string_view call) {
    begin_call(call);
    return requests_;
  }

 private:
  // The requester, for a call with at most the bytes of a packet.
  NocRequester& one_packet(std::string_view call, std::uint64_t size_bytes);

  NocRequester requests_;
};

using Kernel = std::function<void(DataMovementCore&)>;

// Starts a kernel, which ends with its process.
sim::Process& run_kernel(noc::ChipNetwork& network, KernelConfig config, Kernel kernel);

}  // namespace towpath::tenstorrent
