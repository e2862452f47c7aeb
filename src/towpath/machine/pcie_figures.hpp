// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/base/units.hpp"

namespace towpath::machine {

// Windows of one size that the chip maps into the host's address space.
struct WindowSize {
  std::uint64_t size_bytes = 0;
  int count = 0;
  int reserved = 0;  // of them, taken by the driver
  bool operator==(const WindowSize&) const = default;
};

// The chip's side of the host link. The figures come from a spec, each with its source
// (python/towpath/specs/chip_spec.py); the host's are in host.hpp.
struct PcieFigures {
  // --- the link, as the chip can do it
  int generation = 4;
  int lanes = 16;
  // --- windows, smallest first
  std::vector<WindowSize> windows;
  std::uint64_t dynamic_window_bytes = 0;  // the size that the driver takes for single transfers
  // --- the PCIe tile between link and NoC
  Time tile_time;                         // of a request through it and its answer back, together
  std::uint64_t posted_buffer_bytes = 0;  // writes that have arrived and wait for the NoC
  int writes_outstanding = 1;             // acknowledged NoC writes of the host under way
  Time strict_time;           // by which a write of strict ordering is acknowledged later
  int axi_burst_bytes = 128;  // longer NoC writes are split
  // --- the DMA engine
  bool dma_to_device = false;
  bool dma_from_device = false;
  int dma_reads_outstanding = 1;  // NoC reads of one payload each
  int dma_alignment_bytes = 4;    // of addresses and sizes
  std::uint64_t dma_transfer_bytes_max = 0;
  std::uint64_t dma_window_bytes = 0;  // through which it reaches the chip

  bool operator==(const PcieFigures&) const = default;
};

}  // namespace towpath::machine
