// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>

#include "towpath/base/units.hpp"

// The use of a link by a segment of a message: the common rule of runs event by event (Network) and
// runs with fewer events (Flows).

namespace towpath::gpu_links {

// The granularity of contention, chosen for speed (benchmarks/collective/README.md): of a message,
// and of its end.
inline constexpr Bytes kSegment{64 * 1024};
inline constexpr Bytes kSegmentMin{8 * 1024};
// Sizes that `next_segment` may return below kSegment: halves down to kSegmentMin, and a rest.
inline constexpr std::size_t kSmallSegmentsMax =
    std::bit_width(static_cast<std::size_t>(kSegment.count() / kSegmentMin.count())) + 1;

// The next segment of a message. With a small `least` the last segments get smaller, so that
// messages that begin together end together, as if their packets alternated on the link.
inline Bytes next_segment(Bytes remaining, Bytes least) {
  const Bytes half(remaining.count() / 2);
  return std::min(remaining, std::clamp(half, least, kSegment));
}

// A link under one protocol.
struct LinkUse {
  Rate rate;
  Time overhead;  // of a message
  Time latency;

  // For a segment. The first segment of a message has the overhead.
  Time occupied_by(Bytes size, bool is_first) const {
    return transfer_time(size, rate) + (is_first ? overhead : Time());
  }
  auto operator<=>(const LinkUse&) const = default;
};

// The head of a segment reaches a link, which is free from `free_at` on. Returns the time at which
// the head continues.
inline Time occupy(Time head, Time occupied, Time& free_at) {
  const Time start = std::max(head, free_at);
  free_at = start + occupied;
  return start;
}

// The time at which its tail leaves the sending end of the link: not before it has arrived there.
inline Time tail_left(Time free_at, Time tail_in) { return std::max(free_at, tail_in); }

}  // namespace towpath::gpu_links
