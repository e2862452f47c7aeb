// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "towpath/machine/chip_cluster.hpp"
#include "towpath/tenstorrent/cluster/cluster.hpp"

// Clusters in which the host reaches some chips over PCIe and the others through them. Each chip
// has Ethernet cores (0, 0) to (3, 0), four workers below, and DRAM at (0, 2).

namespace towpath::tenstorrent {

inline constexpr machine::Coordinate kHostWorker{1, 1};
inline constexpr machine::Coordinate kHostDram{0, 2};
inline constexpr machine::Coordinate kHostEthernet{3, 0};

// Without links.
machine::ChipCluster chips_with_host(int count, const std::set<int>& on_pcie);
// Like an n300: chip 0 is on PCIe, the link of channels 0 is free, that of channels 1, if there is
// one, is the dispatcher's.
std::shared_ptr<const machine::ChipCluster> board(bool has_reserved_link = true);
// Like a t3000: four boards, and links between their left chips, and between their right ones.
std::shared_ptr<const machine::ChipCluster> four_boards();
// Like a Galaxy with only chip 0, at a corner, on PCIe: right, left, down, up are channels 0 to 3.
std::shared_ptr<const machine::ChipCluster> mesh(int columns, int rows);

std::vector<std::byte> memory_of(Cluster& cluster, int chip, machine::Coordinate tile,
                                 std::uint64_t offset, std::size_t size_bytes);

}  // namespace towpath::tenstorrent
