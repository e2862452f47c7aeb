// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "towpath/tenstorrent/host/host_cluster.hpp"

namespace towpath::tenstorrent {

// PCI layout of a chip architecture.
struct PciLayout;

// A chip of a HostCluster for a driver that writes the chip's registers itself: its configuration
// space, and base address regions (BARs) with windows and their registers.
//
//   PciEndpoint endpoint(cluster, 0);
//   endpoint.write(endpoint.bar(0) + 0x1FC00000, window_register);  // points window 0
//   endpoint.write(endpoint.bar(0) + 0x40, data);                   // writes through it
//
// Accesses take the time of the chip's host link. They throw std::invalid_argument for unmapped
// addresses, and for window settings that the link does not model.
class PciEndpoint {
 public:
  // Throws std::invalid_argument for a chip without a register layout.
  PciEndpoint(HostCluster& cluster, int chip);

  // Bus address of a BAR (0, 2 or 4).
  static std::uint64_t bar(int number);
  // Word of the configuration space: identifiers and BAR addresses, otherwise 0.
  std::uint32_t configuration(std::uint32_t offset) const;
  void write(std::uint64_t bus_address, std::span<const std::byte> data);
  void read(std::uint64_t bus_address, std::span<std::byte> to);

 private:
  // A window's place in a BAR.
  struct Place {
    int bar = 0;
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
    bool is_reserved = false;  // reserved by the kernel driver
  };
  struct Access {
    int bar = 0;
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
  };

  Access access_of(std::uint64_t bus_address, std::uint64_t size_bytes) const;
  // The window of an access, as described by its register, and the offset in it.
  struct Target {
    pcie::Window window;
    std::uint64_t offset = 0;
  };
  Target target_of(const Access& access) const;
  pcie::Window window(std::size_t number) const;
  // The addressed part of the windows' registers or of the host's address translation; empty
  // otherwise.
  std::span<std::byte> registers_at(const Access& access);

  HostCluster& cluster_;
  int chip_;
  const PciLayout& layout_;
  std::vector<Place> windows_;
  std::vector<std::byte> window_registers_;
  // Translation of the chip's accesses to host memory. These chips run no programs, so it has no
  // effect, but it can be read back.
  std::vector<std::byte> translation_registers_;
};

}  // namespace towpath::tenstorrent
