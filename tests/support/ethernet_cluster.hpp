// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "towpath/machine/chip_cluster.hpp"
#include "towpath/tenstorrent/cluster/cluster.hpp"
#include "towpath/tenstorrent/kernels/handshake.hpp"

// Chips joined by Ethernet, for tests of kernels on them. Each chip has four Ethernet cores in its
// first row, (0, 0) to (3, 0), and four workers below.

namespace towpath::tenstorrent {

using tenstorrent::kernels::handshake;

// Two chips, channel i of one joined to channel i of the other.
std::shared_ptr<const machine::ChipCluster> two_chips(int links = 1, int queues_for_kernels = 1);
// Channel 1 of each chip joined to channel 0 of the next.
std::shared_ptr<const machine::ChipCluster> ring_of_chips(int chips);

// Two kernels at the ends of the link of channel 0 of two chips.
struct Pair {
  explicit Pair(const RunOptions& options = {}, int links = 1, int queues_for_kernels = 1)
      : cluster(two_chips(links, queues_for_kernels), options) {}
  // The next programs of both chips.
  void create(const EthernetKernel& sender, const EthernetKernel& receiver);
  // Reads the L1 of the kernel's core.
  std::vector<std::byte> read(int chip, std::uint64_t offset, std::uint64_t size_bytes);
  std::uint32_t word(int chip, std::uint64_t offset);
  Cluster cluster;
};

// Offset of buffers, on both ends.
inline constexpr std::uint64_t kBuffer = 0x20000;

struct Failure {
  std::string hazard;  // its name, "deadlock", or that of another error; "none"
  int chip = -1;
  std::string kernel;
  std::string sentence;
  std::vector<KernelName> cycle;
};
Failure run_to_failure(Cluster& cluster);
Failure run_to_failure(const std::function<void()>& run);

}  // namespace towpath::tenstorrent
