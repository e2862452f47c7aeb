// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "towpath/base/index.hpp"
#include "towpath/tenstorrent/device/data_movement_core.hpp"

// Calls of a kernel that wait: transaction ids, barriers and semaphores.

namespace towpath::tenstorrent {

using noc::NiuCounters;
using noc::Request;
using noc::RequestKind;

// --- waiting ------------------------------------------------------------------------------------

void DataMovementCore::suspend_until(noc::ChipNetwork::Condition condition, int noc) {
  const NiuCounters& counters = network_.counters(noc, config_.core);
  const noc::Cycle since = cycle();
  while (!condition.holds(counters, condition.argument)) {
    wait_ = {.kind = Wait::Kind::network, .since = since, .noc = noc};
    sim::Simulation& simulation = network_.simulation();
    network_.wake_when(noc, config_.core, condition, *simulation.current());
    simulation.suspend("its NIU");
    wait_.kind = Wait::Kind::nothing;
  }
}

void DataMovementCore::wait_for(noc::ChipNetwork::Condition condition, int noc) {
  const noc::Cycle first = cycle();
  suspend_until(condition, noc);
  finish_polling(first);
}

void DataMovementCore::wait_for_semaphore(std::uint64_t semaphore, std::uint32_t value,
                                          bool is_minimum) {
  sim::Simulation& simulation = network_.simulation();
  const noc::Cycle first = cycle();
  while (true) {
    const std::uint32_t now = is_minimum ? look(semaphore, value) : look(semaphore);
    if (is_minimum ? now >= value : now == value) break;
    wait_ = {.kind = Wait::Kind::word,
             .since = first,
             .word = semaphore,
             .value = value,
             .relation = is_minimum ? "at least " : ""};
    network_.wake_on_write(config_.core, semaphore, *simulation.current());
    simulation.suspend("a semaphore");
    wait_.kind = Wait::Kind::nothing;
  }
  finish_polling(first);
}

// The look that saw it began at most one period ago.
void DataMovementCore::finish_polling(noc::Cycle first) {
  const noc::Cycle period = kPollCycles;
  work_until(first + ((cycle() - first) / period + 1) * period);
}

std::string DataMovementCore::describe_wait() const {
  const std::string who = fmt::format("{} since cycle {}: ", where(), wait_.since);
  switch (wait_.kind) {
    case Wait::Kind::nothing: return "";
    case Wait::Kind::network: {
      const std::string request = network_.describe_unanswered(wait_.noc, config_.core);
      return who +
             (request.empty() ? fmt::format("nothing of it is on NoC {}", wait_.noc) : request);
    }
    case Wait::Kind::change: return who + std::string(wait_.change);
    case Wait::Kind::word: break;
  }
  return who + fmt::format("its word at offset {} is {} and must become {}{}", wait_.word,
                           network_.load_word(config_.core, wait_.word), wait_.relation,
                           wait_.value);
}

DataMovementCore::Range DataMovementCore::awaited() const {
  switch (wait_.kind) {
    case Wait::Kind::nothing:
    case Wait::Kind::network: return {};
    case Wait::Kind::word: return {wait_.word, noc::kWordBytes};
    case Wait::Kind::change: break;
  }
  return {0, network_.memory(config_.core).size_bytes()};
}

std::string DataMovementCore::describe_unanswered() const {
  for (int noc = 0; noc < 2; ++noc) {
    if (!has_used_noc_[index(noc)]) continue;
    const std::string request = network_.describe_unanswered(noc, config_.core);
    if (!request.empty()) return request;
  }
  return "";
}

// --- barriers -----------------------------------------------------------------------------------

void DataMovementCore::noc_async_read_barrier(int noc) {
  call_ = __func__;
  wait_for({[](const NiuCounters& counters, int) {
             return counters.read_responses_received == counters.reads_issued;
           }},
           noc_of(noc));
}

void DataMovementCore::noc_async_write_barrier(int noc) {
  call_ = __func__;
  wait_for({[](const NiuCounters& counters, int) {
             return counters.write_acks_received == counters.write_acks_awaited;
           }},
           noc_of(noc));
}

void DataMovementCore::noc_async_atomic_barrier(int noc) {
  call_ = __func__;
  wait_for({[](const NiuCounters& counters, int) {
             return counters.atomic_responses_received == counters.atomic_responses_awaited;
           }},
           noc_of(noc));
}

void DataMovementCore::noc_async_writes_flushed(int noc) {
  call_ = __func__;
  wait_for({[](const NiuCounters& counters, int) {
             return counters.writes_sent == counters.writes_issued;
           }},
           noc_of(noc));
}

void DataMovementCore::noc_async_posted_writes_flushed(int noc) {
  call_ = __func__;
  wait_for({[](const NiuCounters& counters, int) {
             return counters.posted_writes_sent == counters.posted_writes_issued;
           }},
           noc_of(noc));
}

void DataMovementCore::noc_async_full_barrier(int noc) {
  noc_async_read_barrier(noc);
  noc_async_writes_flushed(noc);
  noc_async_write_barrier(noc);
  noc_async_atomic_barrier(noc);
  noc_async_posted_writes_flushed(noc);
}

// --- transaction ids ----------------------------------------------------------------------------

void DataMovementCore::check_transaction_id(int transaction_id) const {
  const int ids = network_.chip().niu.transaction_ids;
  if (transaction_id < 0 || transaction_id >= ids) {
    refuse("there is no transaction id {}; 0 to {} are possible", transaction_id, ids - 1);
  }
}

void DataMovementCore::set_transaction_id(Initiator initiator, int transaction_id, int noc) {
  check_transaction_id(transaction_id);
  state(noc_of(noc), initiator).transaction_id = transaction_id;
}

// The hardware's counters have 8 bits and go down with every answer, from any sender.
void DataMovementCore::check_outstanding(int transaction_id, int noc) const {
  check_transaction_id(transaction_id);
  const NiuCounters& counters = network_.counters(noc_of(noc), config_.core);
  const int outstanding_max = network_.chip().niu.outstanding_per_id_max;
  if ((counters.multicast_ids >> transaction_id & 1) != 0) {
    refuse(
        "transaction id {} was used by a multicast, which every receiver answers; its count "
        "means nothing before reset_noc_trid_barrier_counter",
        transaction_id);
  }
  if (counters.outstanding[index(transaction_id)] > outstanding_max) {
    refuse("transaction id {} has {} packets outstanding; its counter holds {}", transaction_id,
           counters.outstanding[index(transaction_id)], outstanding_max);
  }
}

void DataMovementCore::wait_for_outstanding(int transaction_id, int noc) {
  check_outstanding(transaction_id, noc);
  wait_for(
      {[](const NiuCounters& counters, int id) { return counters.outstanding[index(id)] == 0; },
       transaction_id},
      noc_of(noc));
}

void DataMovementCore::noc_async_read_set_trid(int transaction_id, int noc) {
  call_ = __func__;
  set_transaction_id(kRead, transaction_id, noc);
}

void DataMovementCore::noc_async_write_set_trid(int transaction_id, int noc) {
  call_ = __func__;
  set_transaction_id(kWrite, transaction_id, noc);
}

void DataMovementCore::noc_async_read_one_packet_with_state_with_trid(std::uint64_t from_base,
                                                                      std::uint64_t from_offset,
                                                                      std::uint64_t local_offset,
                                                                      int transaction_id, int noc) {
  call_ = __func__;
  set_transaction_id(kRead, transaction_id, noc);
  issue_with_state(request_with_state(kRead, noc, local_offset, from_base + from_offset),
                   costs_.read_with_state);
}

void DataMovementCore::noc_async_write_one_packet_with_trid(std::uint64_t local_offset,
                                                            const NocAddress& to,
                                                            std::uint64_t size_bytes,
                                                            int transaction_id,
                                                            const WriteOptions& options) {
  call_ = __func__;
  check_one_packet(size_bytes);
  set_transaction_id(kWrite, transaction_id, options.noc);
  issue(request(write_of(local_offset, size_bytes), to, options), costs_.write);
}

void DataMovementCore::noc_async_write_one_packet_with_trid_set_state(const NocAddress& to,
                                                                      const WriteOptions& options) {
  call_ = __func__;
  set_state(request(write_of(0, 0), to, options));
}

void DataMovementCore::noc_async_write_one_packet_with_trid_with_state(std::uint64_t local_offset,
                                                                       std::uint64_t to_offset,
                                                                       std::uint64_t size_bytes,
                                                                       int transaction_id,
                                                                       int noc) {
  call_ = __func__;
  check_one_packet(size_bytes);
  set_transaction_id(kWrite, transaction_id, noc);
  Request write = request_with_state(kWrite, noc, local_offset, to_offset);
  write.size_bytes = size_bytes;
  issue_with_state(write, costs_.write_with_state);
}

void DataMovementCore::noc_async_read_barrier_with_trid(int transaction_id, int noc) {
  call_ = __func__;
  wait_for_outstanding(transaction_id, noc);
}

void DataMovementCore::noc_async_write_barrier_with_trid(int transaction_id, int noc) {
  call_ = __func__;
  wait_for_outstanding(transaction_id, noc);
}

void DataMovementCore::noc_async_write_flushed_with_trid(int transaction_id, int noc) {
  call_ = __func__;
  check_transaction_id(transaction_id);
  wait_for({[](const NiuCounters& counters, int id) { return counters.outgoing[index(id)] == 0; },
            transaction_id},
           noc_of(noc));
}

bool DataMovementCore::is_answered_with_trid(int transaction_id, int noc) {
  call_ = __func__;
  check_outstanding(transaction_id, noc);
  work(kPollCycles);
  return network_.counters(noc_of(noc), config_.core).outstanding[index(transaction_id)] == 0;
}

bool DataMovementCore::is_write_flushed_with_trid(int transaction_id, int noc) {
  call_ = __func__;
  check_transaction_id(transaction_id);
  work(kPollCycles);
  return network_.counters(noc_of(noc), config_.core).outgoing[index(transaction_id)] == 0;
}

void DataMovementCore::reset_noc_trid_barrier_counter(std::uint32_t ids, int noc) {
  call_ = __func__;
  network_.clear_outstanding(noc_of(noc), config_.core, ids);
}

// --- semaphores ---------------------------------------------------------------------------------

void DataMovementCore::noc_semaphore_set(std::uint64_t semaphore, std::uint32_t value) {
  call_ = __func__;
  change(semaphore, value);
}

void DataMovementCore::noc_semaphore_wait(std::uint64_t semaphore, std::uint32_t value) {
  call_ = __func__;
  wait_for_semaphore(semaphore, value, false);
}

void DataMovementCore::noc_semaphore_wait_min(std::uint64_t semaphore, std::uint32_t value) {
  call_ = __func__;
  wait_for_semaphore(semaphore, value, true);
}

void DataMovementCore::wait_for_word_min(std::string_view call, std::uint64_t word,
                                         std::uint32_t value) {
  call_ = call;
  wait_for_semaphore(word, value, true);
}

void DataMovementCore::wait_for_l1_write(std::string_view call, std::uint64_t word) {
  call_ = call;
  sim::Simulation& simulation = network_.simulation();
  const noc::Cycle first = cycle();
  wait_ = {.kind = Wait::Kind::change,
           .since = first,
           .word = word,
           .change = "nothing changes that it polls"};
  network_.wake_on_write(config_.core, 0, *simulation.current(),
                         network_.memory(config_.core).size_bytes());
  simulation.suspend("a word that it polls");
  wait_.kind = Wait::Kind::nothing;
  finish_polling(first);
}

void DataMovementCore::noc_semaphore_inc(const NocAddress& semaphore, std::uint32_t increment,
                                         const WriteOptions& options) {
  call_ = __func__;
  Request atomic =
      request({RequestKind::atomic_increment, kAtomic, 0, noc::kWordBytes}, semaphore, options);
  atomic.value = increment;
  issue(atomic, costs_.atomic);
}

void DataMovementCore::noc_semaphore_inc_multicast(const NocMulticastAddress& semaphore,
                                                   std::uint32_t increment, int destinations,
                                                   const MulticastOptions& options) {
  call_ = __func__;
  Request atomic = multicast_request({RequestKind::atomic_increment, kAtomic, 0, noc::kWordBytes},
                                     semaphore, {destinations, false}, options);
  atomic.value = increment;
  issue(atomic, costs_.multicast);
}

void DataMovementCore::noc_semaphore_set_remote(std::uint64_t local_offset,
                                                const NocAddress& semaphore,
                                                const WriteOptions& options) {
  call_ = __func__;
  issue(
      request({RequestKind::write, kWriteWord, local_offset, noc::kWordBytes}, semaphore, options),
      costs_.write);
}

void DataMovementCore::noc_semaphore_set_multicast(std::uint64_t local_offset,
                                                   const NocMulticastAddress& semaphore,
                                                   int destinations,
                                                   const MulticastOptions& options) {
  call_ = __func__;
  issue(multicast_request({RequestKind::write, kWriteWord, local_offset, noc::kWordBytes},
                          semaphore, {destinations, false}, options),
        costs_.multicast);
}

void DataMovementCore::noc_semaphore_set_multicast_loopback_src(
    std::uint64_t local_offset, const NocMulticastAddress& semaphore, int destinations,
    const MulticastOptions& options) {
  call_ = __func__;
  issue(multicast_request({RequestKind::write, kWriteWord, local_offset, noc::kWordBytes},
                          semaphore, {destinations, true}, options),
        costs_.multicast);
}

}  // namespace towpath::tenstorrent
