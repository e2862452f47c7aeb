// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/page_ring.hpp"

namespace towpath::tenstorrent::ccl {

std::optional<std::uint64_t> PageRing::take(std::uint64_t count) {
  if (count > pages_) return std::nullopt;
  const std::uint64_t left = pages_ - next_ % pages_;
  const std::uint64_t number = count > left ? next_ + left : next_;
  const std::uint64_t oldest = taken_.empty() ? number : *taken_.begin();
  if (number + count - oldest > pages_) return std::nullopt;
  next_ = number + count;
  taken_.insert(number);
  return number;
}

}  // namespace towpath::tenstorrent::ccl
