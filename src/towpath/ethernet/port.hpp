// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "towpath/machine/ethernet_figures.hpp"
#include "towpath/sim/simulation.hpp"

// The Ethernet subsystem of one tile: transmit queues that take commands from the core, frames on
// the wire, and at the far end bytes that appear in L1 in the order of their arrival.
//
// A command is taken when its queue is free, and the queue is then busy while the command's bytes
// are fetched. Commands of one queue go out in order, frame by frame; the queues take turns at the
// wire, frame by frame. A frame's bytes are read from L1 when it goes onto the wire, and again when
// it is sent again: the source belongs to the command until the far end's hardware has
// acknowledged its last frame. A frame is written at the far end as a whole.

namespace towpath::ethernet {

// Commands that a port has taken, counted from 1.
using CommandNumber = std::uint64_t;

// The L1 of the port's tile.
class TileMemory {
 public:
  virtual ~TileMemory() = default;
  virtual std::uint64_t size_bytes() const = 0;
  virtual void read(std::uint64_t offset, std::span<std::byte> to) const = 0;
  // From a frame: whoever waits for these bytes is woken.
  virtual void write(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  // A 32-bit register of the tile, from a frame.
  virtual void write_register(std::uint64_t address, std::uint32_t value) = 0;
  // The bytes are the source of a command, until released.
  virtual void hold_source(CommandNumber command, std::uint64_t offset,
                           std::uint64_t size_bytes) = 0;
  virtual void release_source(CommandNumber command) = 0;
};

struct Command {
  enum class Kind : std::uint8_t { write, register_write };
  Kind kind = Kind::write;
  std::uint64_t source = 0;       // offset in the own L1; of a write
  std::uint64_t destination = 0;  // offset in the L1 at the far end, or the register's address
  std::uint64_t size_bytes = 0;   // of a write
  std::uint32_t value = 0;        // of a register write
};

}  // namespace towpath::ethernet
