// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/pages.hpp"

#include <algorithm>

#include "towpath/noc/router/torus.hpp"

namespace towpath::tenstorrent::ccl {

namespace {

constexpr std::uint64_t kPageAlignment = 64;

}  // namespace

Pages::Pages(const machine::Chip& chip, std::uint64_t payload_bytes_max)
    : chip_(chip),
      page_bytes_((payload_bytes_max + kPageAlignment - 1) / kPageAlignment * kPageAlignment),
      rows_(static_cast<std::uint64_t>(chip.dram.channel_bytes) / page_bytes_) {}

std::uint64_t Pages::offset(std::uint64_t page) const {
  const std::uint64_t bank = page % banks();
  const std::uint64_t channel = bank / chip_.dram_groups.size();
  return channel * static_cast<std::uint64_t>(chip_.dram.channel_bytes) +
         page / banks() * page_bytes_;
}

noc::Address Pages::to_read(std::uint64_t page, machine::Coordinate reader, int noc) const {
  const auto hops = [&](machine::Coordinate tile) { return noc::hops(chip_, tile, reader, noc); };
  return {std::ranges::min(tiles(page), {}, hops), offset(page)};
}

noc::Address Pages::to_write(std::uint64_t page, machine::Coordinate writer, int noc) const {
  const auto hops = [&](machine::Coordinate tile) { return noc::hops(chip_, writer, tile, noc); };
  return {std::ranges::min(tiles(page), {}, hops), offset(page)};
}

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
