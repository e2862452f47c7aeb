// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/machine/chip.hpp"

namespace towpath::pcie {

// Path from the PCIe tile over an idle NoC to a tile's memory. The answer continues around the
// torus, so the time depends only on the axes that differ.
struct NocWay {
  Time hops;      // of request and answer together
  Time endpoint;  // between routers and interfaces, and in the interfaces for a write
  Time read_endpoint;
  Time memory;  // DRAM's part of a read
  Rate rate;    // limit of the interface and of a DRAM channel

  // Time from a write's issue to its acknowledgement. Its bytes are in memory halfway.
  Time write() const { return hops + endpoint; }
  Time one_way() const { return Time::from_ps(write().ps() / 2); }
  // Time from a read's issue to its data.
  Time read() const { return hops + read_endpoint + memory; }
};

// Throws std::invalid_argument if the tile has no memory: beyond the grid, harvested (with the
// mask, and the remaining tiles), or of a kind without memory.
NocWay noc_way(const machine::Chip& chip, machine::Coordinate tile);

// Bytes of memory of a tile. Throws the same errors as noc_way().
std::uint64_t memory_bytes(const machine::Chip& chip, machine::Coordinate tile);

}  // namespace towpath::pcie
