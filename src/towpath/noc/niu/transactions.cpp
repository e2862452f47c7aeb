// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/transactions.hpp"

#include <algorithm>

namespace towpath::noc {

int PacketSizes::packets_of(const Request& request) const {
  if (!moves_data(request.kind)) return 1;
  return static_cast<int>((request.size_bytes + max_bytes_ - 1) / max_bytes_);
}

void Transaction::report_completion() const {
  if ((request.is_posted ? to_receive : answers_left) > 0) return;
  outside->request_completed(outside_number, request.kind == RequestKind::read
                                                 ? std::span<const std::byte>(data)
                                                 : std::span<const std::byte>());
}

std::uint32_t Transactions::add(const Request& request, int receivers, Cycle now) {
  std::uint32_t number;
  if (free_.empty()) {
    number = static_cast<std::uint32_t>(transactions_.size());
    transactions_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  ++unfinished_;
  Transaction& transaction = transactions_[number];
  transaction.request = request;
  transaction.issued = now;
  transaction.packets = sizes_.packets_of(request);
  transaction.to_leave = transaction.packets;
  transaction.to_receive = transaction.packets * receivers;
  transaction.answers_left = request.is_posted ? 0 : transaction.to_receive;
  transaction.uses_left = transaction.to_receive + transaction.answers_left;
  transaction.data.clear();
  transaction.outside = nullptr;
  transaction.record = -1;
  if (records_requests_) {
    transaction.record = static_cast<std::int32_t>(records_.size());
    records_.push_back({request, now, -1, -1, -1, -1});
  }
  return number;
}

void Transactions::release(std::uint32_t number) {
  if (--transactions_[number].uses_left > 0) return;
  free_.push_back(number);
  --unfinished_;
}

const Transaction* Transactions::oldest_open(int noc, machine::Coordinate core) const {
  const Transaction* first = nullptr;
  for (const Transaction& transaction : transactions_) {
    if (!transaction.is_open() || transaction.request.noc != noc ||
        transaction.request.core != core) {
      continue;
    }
    if (first == nullptr || transaction.issued < first->issued) first = &transaction;
  }
  return first;
}

}  // namespace towpath::noc
