// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

namespace towpath::causality {

// A value for each byte of a memory, stored as ranges that do not overlap.
template <typename Value>
class RangeMap {
 public:
  struct Bounds {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  void assign(std::uint64_t begin, std::uint64_t end, Value value) {
    erase(begin, end);
    ranges_.emplace(begin, Range{end, std::move(value)});
  }

  void erase(std::uint64_t begin, std::uint64_t end) {
    auto at = first_overlap(begin);
    while (at != ranges_.end() && at->first < end) {
      const std::uint64_t first = at->first;
      Range range = std::move(at->second);
      at = ranges_.erase(at);
      if (range.end > end) ranges_.emplace(end, Range{range.end, range.value});
      if (first < begin) ranges_.emplace(first, Range{begin, std::move(range.value)});
    }
  }

  // Erases whole ranges that start within the range if matches(value).
  template <typename Matches>
  void erase_if(std::uint64_t begin, std::uint64_t end, const Matches& matches) {
    for (auto at = ranges_.lower_bound(begin); at != ranges_.end() && at->first < end;) {
      at = matches(at->second.value) ? ranges_.erase(at) : std::next(at);
    }
  }

  // Calls action(begin, end, value) for each piece inside the range, in order. It must not change
  // the map.
  template <typename Action>
  void each(std::uint64_t begin, std::uint64_t end, Action action) const {
    for (auto at = first_overlap(begin); at != ranges_.end() && at->first < end; ++at) {
      action(std::max(at->first, begin), std::min(at->second.end, end), at->second.value);
    }
  }

  // The value of the first piece within the range with matches(value); null if there is none.
  template <typename Matches>
  const Value* find_if(std::uint64_t begin, std::uint64_t end, const Matches& matches) const {
    for (auto at = first_overlap(begin); at != ranges_.end() && at->first < end; ++at) {
      if (matches(at->second.value)) return &at->second.value;
    }
    return nullptr;
  }

  bool has_any(std::uint64_t begin, std::uint64_t end) const {
    return find_if(begin, end, [](const Value&) { return true; }) != nullptr;
  }

  // The value of a byte; null if there is none.
  const Value* find(std::uint64_t at) const {
    return find_if(at, at + 1, [](const Value&) { return true; });
  }

  // The bytes around one in the same range, or in the same gap.
  Bounds around(std::uint64_t at) const {
    const auto next = ranges_.upper_bound(at);
    Bounds bounds{0, std::numeric_limits<std::uint64_t>::max()};
    if (next != ranges_.end()) bounds.end = next->first;
    if (next == ranges_.begin()) return bounds;
    const auto& [begin, range] = *std::prev(next);
    return at < range.end ? Bounds{begin, range.end} : Bounds{range.end, bounds.end};
  }

 private:
  struct Range {
    std::uint64_t end;
    Value value;
  };

  template <typename Ranges>
  static auto first_overlap_in(Ranges& ranges, std::uint64_t begin) {
    auto at = ranges.upper_bound(begin);
    if (at != ranges.begin() && std::prev(at)->second.end > begin) --at;
    return at;
  }
  auto first_overlap(std::uint64_t begin) { return first_overlap_in(ranges_, begin); }
  auto first_overlap(std::uint64_t begin) const { return first_overlap_in(ranges_, begin); }

  std::map<std::uint64_t, Range> ranges_;
};

}  // namespace towpath::causality
