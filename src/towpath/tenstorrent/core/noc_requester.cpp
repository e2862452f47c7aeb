// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/core/noc_requester.hpp"

#include <fmt/format.h>

#include "towpath/base/index.hpp"

namespace towpath::tenstorrent {

using noc::NiuCounters;
using noc::Request;
using noc::RequestKind;

int multicast_destinations(const machine::Chip& chip, machine::Coordinate source,
                           const noc::MulticastRectangle& to, bool includes_source) {
  int count = 0;
  for (const machine::Coordinate worker : chip.workers) {
    if (to.holds(worker) && (worker != source || includes_source)) ++count;
  }
  return count;
}

// --- the parts of a request ---------------------------------------------------------------------

NocRequester::State& NocRequester::state(int noc, int initiator) {
  return states_[index(noc)][index(initiator)];
}

Request NocRequester::request(const Command& command, const NocAddress& remote,
                              const WriteOptions& options) {
  Request request;
  request.kind = command.kind;
  request.noc = core_.noc_of(options.noc);
  request.core = core_.config().core;
  request.initiator = command.initiator;
  request.remote = remote;
  request.local_offset = command.local.offset;
  request.size_bytes = command.local.size_bytes;
  request.vc = options.vc;
  request.is_static_vc = options.is_static_vc;
  request.is_posted = options.is_posted;
  request.transaction_id = state(request.noc, command.initiator).transaction_id;
  return request;
}

void NocRequester::check_receivers(const noc::MulticastRectangle& to,
                                   const Receivers& receivers) const {
  const machine::Chip& chip = core_.network().chip();
  const auto workers_of = [&](const noc::MulticastRectangle& rectangle) {
    return multicast_destinations(chip, core_.config().core, rectangle, receivers.includes_source);
  };
  const int workers = workers_of(to);
  if (receivers.workers == workers) return;
  const noc::MulticastRectangle sorted = to.within_edges();
  const bool means_sorted = sorted != to && workers_of(sorted) == receivers.workers;
  core_.refuse(
      "has {} destinations, but {} has {} worker{}{}{}", receivers.workers, describe(to, chip),
      workers, workers == 1 ? "" : "s", receivers.includes_source ? "" : " other than this core",
      means_sorted ? fmt::format("; {} has {}", describe(sorted, chip), receivers.workers) : "");
}

Request NocRequester::multicast_request(const Command& command, const NocMulticastAddress& to,
                                        const Receivers& receivers,
                                        const MulticastOptions& options) {
  check_receivers(to.on(core_.noc_of(options.noc)), receivers);
  Request multicast =
      request(command, {to.first, to.offset}, {.vc = options.vc, .noc = options.noc});
  multicast.is_multicast = true;
  multicast.last_tile = to.last;
  multicast.is_linked = options.is_linked;
  multicast.includes_source = receivers.includes_source;
  return multicast;
}

Request NocRequester::request_with_state(Initiator initiator, int noc, const Local& local,
                                         std::uint64_t remote_offset) {
  const State& left = state(core_.noc_of(noc), initiator);
  if (!left.is_set) {
    core_.refuse(
        "no state is set on NoC {}: call set_state first, without a call without state after it",
        core_.noc_of(noc));
  }
  Request request = left.request;
  request.local_offset = local.offset;
  // A call with state replaces the lower 32 bits of an address. A host address also has higher
  // bits.
  const std::uint64_t above = left.request.remote.offset & ~std::uint64_t{0xffffffff};
  request.remote.offset = remote_offset <= 0xffffffff ? above | remote_offset : remote_offset;
  request.transaction_id = left.transaction_id;
  return request;
}

void NocRequester::check_one_packet(std::uint64_t size_bytes) const {
  const machine::RouterParameters& router = core_.network().chip().router;
  const auto size_bytes_max =
      static_cast<std::uint64_t>(router.packet_data_flits_max * router.flit_bytes);
  if (size_bytes > size_bytes_max) {
    core_.refuse("{} bytes do not fit into one packet; use at most {}", size_bytes, size_bytes_max);
  }
}

// --- issuing ------------------------------------------------------------------------------------

void NocRequester::wait_for_initiator(int noc, Initiator initiator) {
  core_.suspend_until({[](const NiuCounters& counters, int number) {
                         return counters.packets_to_start[index(number)] == 0;
                       },
                       initiator},
                      noc);
}

// Software passes a request packet by packet, and continues after the last one.
void NocRequester::wait_for_last_packet(int noc, int initiator) {
  core_.suspend_until({[](const NiuCounters& counters, int number) {
                         return counters.packets_to_start[index(number)] <= 1;
                       },
                       initiator},
                      noc);
}

void NocRequester::issue_with_state(const Request& request, int cycles) {
  const auto initiator = static_cast<Initiator>(request.initiator);
  wait_for_initiator(request.noc, initiator);
  if (request.kind == RequestKind::read) {
    work_at_niu(request.noc, cycles);
  } else {
    core_.work(cycles);
  }
  wait_for_initiator(request.noc, initiator);  // the core's other kernel may have used it
  has_used_noc_[index(request.noc)] = true;
  core_.observer().issuing(request);
  if (core_.request_watch_) core_.request_watch_(request);
  core_.named([&] { core_.network().issue(request); });
  wait_for_last_packet(request.noc, request.initiator);
}

void NocRequester::work_at_niu(int noc, int cycles) {
  const NiuCounters& counters = this->counters(noc);
  const int held_up_cycles = costs().read_held_up;
  std::uint32_t before = counters.read_responses_sent;
  core_.work(cycles);
  while (counters.read_responses_sent != before) {
    const std::uint32_t more = counters.read_responses_sent - before;
    before += more;
    core_.work(held_up_cycles * static_cast<noc::Cycle>(more));
  }
}

void NocRequester::issue(const Request& request, int cycles) {
  state(request.noc, request.initiator).is_set = false;
  issue_with_state(request, cycles);
}

void NocRequester::set_state(const Request& request) {
  wait_for_initiator(request.noc, static_cast<Initiator>(request.initiator));
  State& left = state(request.noc, request.initiator);
  left.request = request;
  left.is_set = true;
  core_.work(costs().set_state);
}

void NocRequester::multicast_word(std::uint64_t from, const NocMulticastAddress& to,
                                  const Receivers& receivers, const MulticastOptions& options) {
  issue(multicast_request({RequestKind::write, kWriteWord, {from, noc::kWordBytes}}, to, receivers,
                          options),
        costs().multicast);
}

void NocRequester::write_value(std::uint32_t value, const NocAddress& to,
                               const WriteOptions& options) {
  Request write = request({RequestKind::inline_write, kAtomic, {0, noc::kWordBytes}}, to, options);
  write.value = value;
  issue(write, costs().inline_write);
}

void NocRequester::increment(const NocAddress& word, std::uint32_t increment,
                             const WriteOptions& options) {
  Request atomic =
      request({RequestKind::atomic_increment, kAtomic, {0, noc::kWordBytes}}, word, options);
  atomic.value = increment;
  issue(atomic, costs().atomic);
}

void NocRequester::multicast_increment(const NocMulticastAddress& word, std::uint32_t increment,
                                       int workers, const MulticastOptions& options) {
  Request atomic = multicast_request({RequestKind::atomic_increment, kAtomic, {0, noc::kWordBytes}},
                                     word, {workers, false}, options);
  atomic.value = increment;
  issue(atomic, costs().multicast);
}

// --- with state ---------------------------------------------------------------------------------

void NocRequester::read_with_state(std::uint64_t from_offset, std::uint64_t to_offset,
                                   std::optional<std::uint64_t> size_bytes, int noc) {
  Request read = request_with_state(kRead, noc, {to_offset}, from_offset);
  if (size_bytes) read.size_bytes = *size_bytes;
  issue_with_state(read, costs().read_with_state);
}

void NocRequester::write_with_state(std::uint64_t from_offset, std::uint64_t to_offset,
                                    std::optional<std::uint64_t> size_bytes, int noc) {
  Request write = request_with_state(kWrite, noc, {from_offset}, to_offset);
  if (size_bytes) write.size_bytes = *size_bytes;
  issue_with_state(write, costs().write_with_state);
}

void NocRequester::write_value_with_state(std::uint32_t value, int noc) {
  const std::uint64_t offset = state(core_.noc_of(noc), kAtomic).request.remote.offset;
  Request write = request_with_state(kAtomic, noc, {}, offset);
  write.value = value;
  issue_with_state(write, costs().write_with_state);
}

// --- answers ------------------------------------------------------------------------------------

std::string NocRequester::describe_unanswered() const {
  for (int noc = 0; noc < 2; ++noc) {
    if (!has_used_noc_[index(noc)]) continue;
    const std::string request = core_.network().describe_unanswered(noc, core_.config().core);
    if (!request.empty()) return request;
  }
  return "";
}

void NocRequester::check_transaction_id(int transaction_id) const {
  const int ids = core_.network().chip().niu.transaction_ids;
  if (transaction_id < 0 || transaction_id >= ids) {
    core_.refuse("there is no transaction id {}; it must be 0 to {}", transaction_id, ids - 1);
  }
}

void NocRequester::set_transaction_id(Initiator initiator, int transaction_id, int noc) {
  check_transaction_id(transaction_id);
  state(core_.noc_of(noc), initiator).transaction_id = transaction_id;
}

// The hardware's counters have 8 bits and decrease with every answer, from any sender.
void NocRequester::check_outstanding(int transaction_id, int noc) const {
  check_transaction_id(transaction_id);
  const NiuCounters& counters = this->counters(core_.noc_of(noc));
  const int outstanding_max = core_.network().chip().niu.outstanding_per_id_max;
  if ((counters.multicast_ids >> transaction_id & 1) != 0) {
    core_.refuse(
        "transaction id {} was used by a multicast, which every receiver answers; its count is "
        "meaningless before reset_noc_trid_barrier_counter",
        transaction_id);
  }
  if (counters.outstanding[index(transaction_id)] > outstanding_max) {
    core_.refuse("transaction id {} has {} outstanding packets; its counter can count {}",
                 transaction_id, counters.outstanding[index(transaction_id)], outstanding_max);
  }
}

void NocRequester::wait_for_answers(int transaction_id, int noc) {
  check_outstanding(transaction_id, noc);
  core_.poll_counters(
      {[](const NiuCounters& counters, int id) { return counters.outstanding[index(id)] == 0; },
       transaction_id},
      core_.noc_of(noc));
}

void NocRequester::wait_until_sent(int transaction_id, int noc) {
  check_transaction_id(transaction_id);
  core_.poll_counters(
      {[](const NiuCounters& counters, int id) { return counters.outgoing[index(id)] == 0; },
       transaction_id},
      core_.noc_of(noc));
}

bool NocRequester::is_answered(int transaction_id, int noc) {
  check_outstanding(transaction_id, noc);
  core_.work(kPollCycles);
  return counters(core_.noc_of(noc)).outstanding[index(transaction_id)] == 0;
}

bool NocRequester::is_sent(int transaction_id, int noc) {
  check_transaction_id(transaction_id);
  core_.work(kPollCycles);
  return counters(core_.noc_of(noc)).outgoing[index(transaction_id)] == 0;
}

}  // namespace towpath::tenstorrent
