// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/memory_monitor.hpp"

#include <iterator>
#include <utility>

namespace towpath::gpu {

void MonitoredRanges::add(std::uintptr_t begin, std::uint64_t size_bytes,
                          const MonitoredTransfer& transfer) {
  const std::uintptr_t end = begin + size_bytes;
  auto first = ranges_.upper_bound(begin);
  if (first != ranges_.begin() && std::prev(first)->second.end > begin) --first;
  while (first != ranges_.end() && first->first < end) {
    const std::uintptr_t old_begin = first->first;
    MonitoredTransfer old = std::move(first->second);
    first = ranges_.erase(first);
    if (old.end > end) {
      MonitoredTransfer rest = old;
      first = ranges_.emplace(end, std::move(rest)).first;
    }
    if (old_begin < begin) {
      old.end = begin;
      ranges_.emplace(old_begin, std::move(old));
    }
    if (first != ranges_.end() && first->first == end) break;
  }
  ranges_[begin] = transfer;
  ranges_[begin].end = end;
}

void MonitoredRanges::remove(std::uintptr_t begin, std::uint64_t size_bytes, std::uint64_t number) {
  for (auto each = ranges_.lower_bound(begin);
       each != ranges_.end() && each->first < begin + size_bytes;) {
    each = each->second.identity.number == number ? ranges_.erase(each) : std::next(each);
  }
}

const MonitoredTransfer* MonitoredRanges::find(std::uintptr_t address) const {
  auto found = ranges_.upper_bound(address);
  if (found == ranges_.begin()) return nullptr;
  --found;
  return address < found->second.end ? &found->second : nullptr;
}

abi::Range MonitoredRanges::around(std::uintptr_t address) const {
  const auto next = ranges_.upper_bound(address);
  std::uintptr_t begin = 0;
  std::uintptr_t end = next == ranges_.end() ? UINTPTR_MAX : next->first;
  if (next != ranges_.begin()) {
    const auto previous = std::prev(next);
    if (address < previous->second.end) {
      begin = previous->first;
      end = previous->second.end;
    } else {
      begin = previous->second.end;
    }
  }
  return {begin, end - begin};
}

}  // namespace towpath::gpu
