// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/noc/chip_network.hpp"
#include "towpath/pcie/host_link.hpp"

namespace towpath::run {

// The memories of a chip on which kernels run, as its host link sees them: a kernel that waits for
// a word is woken when the host's write lands. The network must outlive the link's writes.
class NetworkMemory final : public pcie::ChipMemory {
 public:
  explicit NetworkMemory(noc::ChipNetwork& network) : network_(network) {}
  void read(machine::Coordinate tile, std::uint64_t address, std::span<std::byte> to) override {
    network_.load(tile, address, to);
  }
  void write(machine::Coordinate tile, std::uint64_t address,
             std::span<const std::byte> bytes) override {
    network_.store(tile, address, bytes);
  }

 private:
  noc::ChipNetwork& network_;
};

}  // namespace towpath::run
