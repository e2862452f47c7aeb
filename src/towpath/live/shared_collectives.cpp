// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/shared_collectives.hpp"

#include <algorithm>
#include <utility>

namespace towpath::live {

namespace {

constexpr std::uint32_t kProbeStamp = 1;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 32;
}

// Adds a call to the hash of all calls. The hash is the same on ranks that make the same calls.
std::uint64_t continued(std::uint64_t hash, const Request& request, int rank) {
  hash = mixed(hash, static_cast<std::uint64_t>(request.kind) + 1);
  hash = mixed(hash, request.element);
  hash = mixed(hash, static_cast<std::uint64_t>(request.peer));
  const bool is_out =
      request.kind == Kind::all_gather || (request.kind == Kind::broadcast && request.peer != rank);
  for (const Span& span : is_out ? request.outputs : request.inputs) {
    hash = mixed(hash, span.size_bytes);
  }
  return hash;
}

}  // namespace

void SharedCollectives::begin(const Request& request) {
  request_ = &request;
  history_ = continued(history_, request, call_.rank.rank());
  begin_next();
}

void SharedCollectives::begin_next() {
  SharedRank& rank = call_.rank;
  is_probing_ = rank.ranks() > 1 && (!call_.costs || bytes_until_probe_ == 0);
  const auto stamp = static_cast<std::uint32_t>(history_ >> (64 - SharedSlots::kStampBits));
  rank.set_stamp(is_probing_ ? kProbeStamp : stamp);
  if (is_probing_) {
    begin_probe();
    return;
  }
  bytes_until_probe_ -= std::min(bytes_until_probe_, bytes_of(*request_));
  if (is_small_reduction(call_, *request_) && run_small_reduction_at_once(call_, *request_)) {
    request_ = nullptr;
    transport_.wake_peers();
  } else {
    task_ = task_of(*request_);
  }
}

void SharedCollectives::begin_probe() {
  if (!std::exchange(has_lapped_, true)) {
    task_ = run_first_lap(call_);
  } else if (!call_.paths.has_tried_reads()) {
    task_ = run_read_probe(call_);
  } else {
    task_ = run_probe(call_);
    bytes_until_probe_ = kBytesPerProbe;
  }
}

bool SharedCollectives::advance() {
  const bool any = advance_task();
  if (any) transport_.wake_peers();
  return any;
}

bool SharedCollectives::advance_task() {
  bool any = false;
  while (request_ != nullptr) {
    if (!call_.rank.can_continue()) return any;
    any = true;
    task_.resume();
    if (!task_.is_done()) continue;
    task_.clear();
    call_.rank.forget_condition();
    if (call_.following) {
      task_ = run_following_blocks(call_, *request_);
    } else if (is_probing_) {
      begin_next();
    } else {
      request_ = nullptr;
    }
  }
  return any;
}

void SharedCollectives::check_peers() {
  if (request_ != nullptr) call_.rank.check_peers();
}

void SharedCollectives::cancel() {
  task_.clear();
  call_.rank.forget_condition();
  call_.following.reset();
  request_ = nullptr;
}

std::uint64_t SharedCollectives::bytes_of(const Request& request) const {
  switch (request.kind) {
    case Kind::barrier: return 0;
    case Kind::all_gather:
    case Kind::all_to_all:
    case Kind::reduce_scatter: return largest_part_bytes(request) * index(call_.rank.ranks());
    case Kind::broadcast:
      return (call_.is_root(request) ? request.inputs : request.outputs)[0].size_bytes;
    default: return request.inputs[0].size_bytes;
  }
}

Task SharedCollectives::task_of(const Request& request) {
  const std::uint64_t size = bytes_of(request);
  const std::uint64_t slot = call_.rank.slot_bytes();
  call_.paths.begin(size);
  switch (request.kind) {
    case Kind::barrier: return run_barrier(call_);
    case Kind::broadcast:
      return size <= slot ? run_broadcast(call_, request) : run_large_broadcast(call_, request);
    case Kind::all_gather:
    case Kind::all_to_all:
    case Kind::reduce_scatter: {
      const bool is_one = request.kind == Kind::all_gather;
      const std::uint64_t published = is_one ? largest_part_bytes(request) : size;
      return published <= slot ? run_parts(call_, request) : run_large_parts(call_, request);
    }
    default: break;
  }
  return size <= slot ? run_small_reduction(call_, request) : run_large_reduction(call_, request);
}

}  // namespace towpath::live
