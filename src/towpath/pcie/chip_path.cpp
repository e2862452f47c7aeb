// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/chip_path.hpp"

#include <algorithm>

#include "towpath/pcie/noc_way.hpp"

namespace towpath::pcie {

namespace {

// Number of boundaries of `unit` within a range that starts `phase` after one.
std::uint64_t cuts(std::uint64_t unit, std::uint64_t phase, std::uint64_t size_bytes) {
  return (phase % unit + size_bytes - 1) / unit;
}

std::uint64_t to_boundary(std::uint64_t address, std::uint64_t unit) {
  return unit - address % unit;
}

}  // namespace

std::uint64_t Loads::count(const Piece& piece) const {
  std::uint64_t count = cuts(unit, phase, piece.size_bytes) + 1;
  if (are_cut_at_lines) count += cuts(kLineBytes, piece.address, piece.size_bytes);
  return count;
}

std::uint64_t Loads::size_at(const Piece& piece, std::uint64_t at) const {
  std::uint64_t size_bytes = std::min(piece.size_bytes - at, to_boundary(phase + at, unit));
  if (are_cut_at_lines) {
    size_bytes = std::min(size_bytes, to_boundary(piece.address + at, kLineBytes));
  }
  return size_bytes;
}

std::uint64_t Stores::size_at(const Piece& piece, std::uint64_t at) const {
  return std::min(piece.size_bytes - at, to_boundary(piece.address + at, unit));
}

Time Stores::time_of(std::uint64_t size_bytes) const {
  return combines ? transfer_time(Bytes(size_bytes), rate) : uncached_time;
}

std::string_view Stores::part_name() const {
  return combines ? "filling write-combining buffers" : "uncached stores";
}

void spend_round_trips(const LinkEnds& ends, Account& account, const Piece& piece,
                       const Loads& loads) {
  const NocWay way = noc_way(ends.chip, piece.tile);
  const auto overlapping = static_cast<std::uint64_t>(loads.overlapping);
  const auto times =
      static_cast<std::int64_t>((loads.count(piece) + overlapping - 1) / overlapping);
  account.spend("root complex and link", ends.host.link.read_time * times);
  account.spend("PCIe tile", ends.chip.pcie.tile_time * times);
  account.spend("NoC hops", way.hops * times);
  account.spend("NoC interfaces", way.read_endpoint * times);
  account.spend("DRAM", way.memory * times);
}

}  // namespace towpath::pcie
