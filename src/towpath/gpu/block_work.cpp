// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/block_work.hpp"

#include <algorithm>

#include "towpath/gpu/pe.hpp"

namespace towpath::gpu {

namespace {

void add(Accesses& total, std::uint64_t count, std::uint64_t bytes) {
  total.count += count;
  total.bytes += bytes;
  total.most_of_thread = std::max(total.most_of_thread, count);
}

void add_counters(Work& work, const abi::Counters& counters) {
  add(work.loads, counters.loads, counters.load_bytes);
  add(work.stores, counters.stores, counters.store_bytes);
  add(work.peer_loads, counters.peer_loads, counters.peer_load_bytes);
  add(work.peer_stores, counters.peer_stores, counters.peer_store_bytes);
  work.shared_accesses = std::max(work.shared_accesses, counters.shared_accesses);
}

bool is_zero(const abi::Counters& counters) {
  return (counters.loads | counters.stores | counters.peer_loads | counters.peer_stores |
          counters.shared_accesses) == 0;
}

std::uint64_t bytes_of(const abi::Counters& counters) {
  return counters.load_bytes + counters.store_bytes + counters.peer_load_bytes +
         counters.peer_store_bytes;
}

}  // namespace

BlockWork::BlockWork(Pe& pe, int multiprocessor, int threads, BlockTimeline* timeline)
    : pe_(pe),
      multiprocessor_(multiprocessor),
      timeline_(timeline),
      begin_(pe.simulation().now()),
      work_{.threads = threads} {}

void BlockWork::fold_counters() {
  abi::Counters& counters = pe_.current().counters;
  if (is_zero(counters)) return;
  if (pe_.is_timed()) {
    if (pe_.simulation().now() > begin_) close_segment();
    add_counters(work_, counters);
    has_stored_ = has_stored_ || counters.stores > 0;
    has_stored_to_peer_ = has_stored_to_peer_ || counters.peer_stores > 0;
  }
  if (timeline_ != nullptr) {
    timeline_->work(bytes_of(counters));
    static_cast<void>(busy_until());
  }
  counters = {};
}

void BlockWork::close_segment() {
  floor_ = busy_until();
  begin_ = pe_.simulation().now();
  work_ = {.threads = work_.threads};
}

Time BlockWork::busy_until() const {
  if (!pe_.is_timed()) return Time();
  const Time when = std::max(
      floor_, begin_ + duration(work_, pe_.device().residency(multiprocessor_), pe_.cost()));
  if (timeline_ != nullptr) timeline_->works_until(when);
  return when;
}

Time BlockWork::thread_time() const {
  const Time now = pe_.simulation().now();
  const abi::Counters& counters = pe_.current().counters;
  if (!pe_.is_timed() || is_zero(counters)) return now;
  Work work{.threads = 1};
  add_counters(work, counters);
  return now + duration(work, {}, pe_.cost());
}

Time BlockWork::acknowledgement() const {
  if (has_stored_to_peer_) return pe_.cost().peer_latency;
  return has_stored_ ? pe_.cost().memory_latency : Time();
}

}  // namespace towpath::gpu
