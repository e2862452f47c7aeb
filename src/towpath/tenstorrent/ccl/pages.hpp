// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/niu/request.hpp"

// Buffers for packets in a chip's DRAM.

namespace towpath::tenstorrent::ccl {

// Pages of a packet's payload, distributed over a chip's DRAM channels in turn.
class Pages {
 public:
  Pages(const machine::Chip& chip, std::uint64_t payload_bytes_max);
  // Address of a page at the tile of its group that is nearest, over a NoC, to the tile that reads
  // or writes it.
  noc::Address to_read(std::uint64_t page, machine::Coordinate reader, int noc) const;
  noc::Address to_write(std::uint64_t page, machine::Coordinate writer, int noc) const;
  noc::Address address(std::uint64_t page) const { return {tiles(page).front(), offset(page)}; }
  // Pages of all channels together.
  std::uint64_t pages() const { return rows_ * banks(); }

 private:
  // Channels of the chip.
  std::uint64_t banks() const {
    return chip_.dram_groups.size() * static_cast<std::uint64_t>(chip_.dram.channels_per_group);
  }
  const std::vector<machine::Coordinate>& tiles(std::uint64_t page) const {
    return chip_.dram_groups[page % chip_.dram_groups.size()];
  }
  std::uint64_t offset(std::uint64_t page) const;  // of its channel's group

  const machine::Chip& chip_;
  std::uint64_t page_bytes_;
  std::uint64_t rows_;  // pages of a channel
};

// Consecutive runs of pages, taken in turn and reused after their release, in any order.
class PageRing {
 public:
  PageRing() = default;
  PageRing(std::uint64_t first, std::uint64_t pages) : first_(first), pages_(pages) {}

  std::uint64_t pages() const { return pages_; }
  // Takes a run of pages and returns its number, for the calls below. None if it would overlap
  // unreleased pages.
  std::optional<std::uint64_t> take(std::uint64_t count);
  std::uint64_t first_page(std::uint64_t number) const { return first_ + number % pages_; }
  void release(std::uint64_t number) { taken_.erase(taken_.find(number)); }

 private:
  std::uint64_t first_ = 0;
  std::uint64_t pages_ = 0;
  // Pages are counted without wrapping. Pages skipped at the end of the ring also count.
  std::uint64_t next_ = 0;
  std::multiset<std::uint64_t> taken_;  // runs of no pages may be taken several times
};

}  // namespace towpath::tenstorrent::ccl
