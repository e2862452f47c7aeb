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

// Time at which each direction of a link is free: to the device for bytes that arrive at its NoC,
// and from the device for bytes that leave its NoC.
struct LinkFree {
  Time to_device;
  Time from_device;

  Time& of(Direction direction) {
    return direction == Direction::to_device ? to_device : from_device;
  }
};

// Latency and rate of transfers between host memory and a tile without a host core.
struct Stream {
  Time latency;  // until the first byte arrives
  Rate rate;     // of subsequent bytes

  Time time_of(std::uint64_t size_bytes) const {
    return latency + transfer_time(Bytes(size_bytes), rate);
  }
};

struct DmaOptions {
  Ordering ordering = Ordering::standard;
  Limits limits;
};

// Stream of the chip's DMA engine: it reads the host's memory in requests, or the tile's in bursts,
// a fixed number at a time, and writes the bytes that arrive.
Stream dma_stream(const machine::Host& host, const machine::Chip& chip, const NocWay& way,
                  Direction direction, const DmaOptions& options);

// Stream of a chip core that writes to, or reads from, the PCIe tile over the NoC.
Stream device_stream(const machine::Host& host, const machine::Chip& chip, const NocWay& way,
                     Direction direction, Limits limits);

// Rates of the link for a host's answers to reads of its memory, and for writes to it.
Rate answer_rate(const machine::Host& host, const machine::Chip& chip);
Rate write_rate(const machine::Host& host, const machine::Chip& chip);
// Cost of the first access to a page, spread over the requests of that page; 0 without an IOMMU.
Time translation_time(const machine::Host& host);

// Time to pin a buffer and map it for the device, and to undo this.
Time map_time(const machine::Host& host, std::uint64_t size_bytes);
Time unmap_time(const machine::Host& host, std::uint64_t size_bytes);

// Throws std::invalid_argument for a transfer that the engine cannot execute: unsupported
// direction, too long, or misaligned.
void check_dma(const machine::Chip& chip, Direction direction, std::uint64_t address,
               std::uint64_t size_bytes);

}  // namespace towpath::pcie
