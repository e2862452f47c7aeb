// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>

namespace towpath::tenstorrent::ccl {

// Pages that are taken in turn, a consecutive run at a time, and reused once they are released, in
// any order.
class PageRing {
 public:
  PageRing() = default;
  PageRing(std::uint64_t first, std::uint64_t pages) : first_(first), pages_(pages) {}

  std::uint64_t pages() const { return pages_; }
  // Takes a run of pages and returns its number, for the calls below; none when it would overlap
  // unreleased pages.
  std::optional<std::uint64_t> take(std::uint64_t count);
  std::uint64_t first_page(std::uint64_t number) const { return first_ + number % pages_; }
  void release(std::uint64_t number) { taken_.erase(taken_.find(number)); }

 private:
  std::uint64_t first_ = 0;
  std::uint64_t pages_ = 0;
  // Pages are counted without wrapping; pages skipped at the end of the ring count too.
  std::uint64_t next_ = 0;
  std::multiset<std::uint64_t> taken_;  // runs of no pages may be taken several times
};

}  // namespace towpath::tenstorrent::ccl
