// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/niu_table.hpp"

#include "towpath/base/index.hpp"

namespace towpath::noc {

void NiuCounters::count_issued(const Request& request, std::uint32_t packets,
                               std::uint32_t answers) {
  packets_to_start[index(request.initiator)] += packets;
  if (request.kind == RequestKind::read) {
    reads_issued += packets;
  } else if (request.kind == RequestKind::atomic_increment) {
    atomics_issued += packets;
    atomic_responses_awaited += answers;
  } else if (request.is_posted) {
    posted_writes_issued += packets;
  } else {
    writes_issued += packets;
    write_acks_awaited += answers;
  }
  const std::size_t id = index(request.transaction_id);
  if (!request.is_posted) {
    outstanding[id] += static_cast<std::int32_t>(packets);
    if (request.is_multicast) multicast_ids |= 1u << id;
  }
  if (request.kind == RequestKind::write) outgoing[id] += static_cast<std::int32_t>(packets);
}

void NiuCounters::count_sent(const Request& request) {
  if (request.kind == RequestKind::write) --outgoing[index(request.transaction_id)];
  if (request.kind == RequestKind::write || request.kind == RequestKind::inline_write) {
    ++(request.is_posted ? posted_writes_sent : writes_sent);
  }
}

void NiuCounters::count_answer(const Request& request) {
  --outstanding[index(request.transaction_id)];
  if (request.kind == RequestKind::read) {
    ++read_responses_received;
  } else if (request.kind == RequestKind::atomic_increment) {
    ++atomic_responses_received;
  } else {
    ++write_acks_received;
  }
}

void NiuCounters::clear_outstanding(std::uint32_t ids) {
  for (int id = 0; id < kTransactionIdsMax; ++id) {
    if ((ids >> id & 1) != 0) outstanding[index(id)] = 0;
  }
  multicast_ids &= ~ids;
}

}  // namespace towpath::noc
