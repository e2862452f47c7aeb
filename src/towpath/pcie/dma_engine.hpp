// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/machine/chip.hpp"
#include "towpath/machine/host.hpp"
#include "towpath/pcie/noc_way.hpp"
#include "towpath/pcie/posted_writes.hpp"
#include "towpath/pcie/window_table.hpp"

namespace towpath::pcie {

enum class Direction : std::uint8_t { to_device, from_device };

// How long bytes are under way between the host's memory and a tile when no core touches them.
struct Stream {
  Time latency;  // until the first byte is there
  Rate rate;     // of those behind it

  Time time_of(std::uint64_t size_bytes) const {
    return latency + transfer_time(Bytes(size_bytes), rate);
  }
};

// Moved by the chip's DMA engine: it reads the host's memory in requests, or the tile's in bursts,
// so many at a time, and writes what comes. `page_bytes` is the host's page, 0 where no IOMMU
// translates.
Stream dma_stream(const machine::Host& host, const machine::Chip& chip, const NocWay& way,
                  Direction direction, Ordering ordering, std::uint64_t page_bytes, Limits limits);

// Moved by a core of the chip: it writes to, or reads from, the PCIe tile over the NoC.
Stream device_stream(const machine::Host& host, const machine::Chip& chip, const NocWay& way,
                     Direction direction, Limits limits);

// What pinning a buffer and mapping it for the device takes, and taking that back.
Time map_time(const machine::Host& host, std::uint64_t size_bytes);
Time unmap_time(const machine::Host& host, std::uint64_t size_bytes);

// Throws std::invalid_argument with one sentence on a transfer that the engine cannot carry out:
// in a direction that it does not have, too long, or not aligned.
void check_dma(const machine::Chip& chip, Direction direction, std::uint64_t address,
               std::uint64_t size_bytes);

}  // namespace towpath::pcie
