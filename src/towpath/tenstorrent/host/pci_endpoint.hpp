// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "towpath/tenstorrent/host/host_cluster.hpp"

namespace towpath::tenstorrent {

// How a chip shows itself on the PCI bus; it differs between architectures.
struct PciLayout;

// A chip of a HostCluster as a driver sees it that writes the chip's registers itself: its
// configuration space, and base address regions (BARs) with windows and the registers behind them.
//
//   PciEndpoint endpoint(cluster, 0);
//   endpoint.write(endpoint.bar(0) + 0x1FC00000, window_register);  // points window 0
//   endpoint.write(endpoint.bar(0) + 0x40, data);                   // writes through it
//
// Accesses take the time of the chip's host link. They throw std::invalid_argument where nothing
// is, and for what a window may ask for and no link of ours does.
class PciEndpoint {
 public:
  // Throws std::invalid_argument for a chip whose registers are not known.
  PciEndpoint(HostCluster& cluster, int chip);

  // Where a BAR (0, 2 or 4) begins on the bus.
  static std::uint64_t bar(int number);
  // Word of the configuration space: identifiers, and where BARs begin; else 0.
  std::uint32_t configuration(std::uint32_t offset) const;
  void write(std::uint64_t bus_address, std::span<const std::byte> data);
  void read(std::uint64_t bus_address, std::span<std::byte> to);

 private:
  // A window's place in a BAR.
  struct Place {
    int bar = 0;
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
    bool is_reserved = false;  // by the kernel's driver
  };
  struct Access {
    int bar = 0;
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
  };

  Access access_of(std::uint64_t bus_address, std::uint64_t size_bytes) const;
  // The window that contains an access, as its register describes it, and where in it.
  struct Target {
    pcie::Window window;
    std::uint64_t offset = 0;
  };
  Target target_of(const Access& access) const;
  pcie::Window window(std::size_t number) const;
  // The part of the windows' registers, or of the host's address translation, that an access names;
  // empty if it names none.
  std::span<std::byte> registers_at(const Access& access);

  HostCluster& cluster_;
  int chip_;
  const PciLayout& layout_;
  std::vector<Place> windows_;
  std::vector<std::byte> window_registers_;
  // Where the chip's accesses to host memory go. Programs do not run on these chips, so nothing
  // goes there; what was written can be read.
  std::vector<std::byte> translation_registers_;
};

}  // namespace towpath::tenstorrent
