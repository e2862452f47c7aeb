// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "towpath/noc/chip_network.hpp"
#include "towpath/pcie/host_link.hpp"

namespace towpath::pcie {

// The memories of a chip's network, for a HostLink.
class NetworkMemory final : public ChipMemory {
 public:
  explicit NetworkMemory(noc::ChipNetwork& network) : network_(network) {}

  void read(machine::Coordinate tile, std::uint64_t address, std::span<std::byte> to) override {
    network_.memory(tile).read(address, to);
  }
  void write(machine::Coordinate tile, std::uint64_t address,
             std::span<const std::byte> bytes) override {
    network_.memory(tile).write(address, bytes);
  }

 private:
  noc::ChipNetwork& network_;
};

}  // namespace towpath::pcie
