// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/machine/chip.hpp"

namespace towpath::pcie {

// The way from the PCIe tile over the NoC to the memory of a tile, with nobody else on it. As the
// answer goes on round the torus, it depends on which axes differ and on nothing else.
struct NocWay {
  Time hops;      // of request and answer together
  Time endpoint;  // between routers and interfaces, and what these take for a write
  Time read_endpoint;
  Time memory;  // of a read: DRAM
  Rate rate;    // that the interface, and a DRAM channel, can take

  // From a write's issue to its acknowledgement; its bytes are in memory half-way.
  Time write() const { return hops + endpoint; }
  Time one_way() const { return Time::from_ps(write().ps() / 2); }
  // From a read's issue to its data.
  Time read() const { return hops + read_endpoint + memory; }
};

// Throws std::invalid_argument with one sentence when the tile has no memory: beyond the grid,
// harvested (with the mask, and what is left), or of a kind without.
NocWay noc_way(const machine::Chip& chip, machine::Coordinate tile);

// Bytes of memory behind a tile. Throws as noc_way().
std::uint64_t memory_bytes(const machine::Chip& chip, machine::Coordinate tile);

}  // namespace towpath::pcie
