// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "towpath/noc/niu/request.hpp"
#include "towpath/pcie/dma_engine.hpp"
#include "towpath/pcie/posted_writes.hpp"
#include "towpath/pcie/transfer.hpp"
#include "towpath/pcie/window_table.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::pcie {

inline constexpr std::uint64_t kLineBytes = PostedWrites::kLineBytes;

// Memories of the tiles of the link's chip. The link has checked the arguments.
class ChipMemory {
 public:
  virtual ~ChipMemory() = default;
  virtual void read(machine::Coordinate tile, std::uint64_t address, std::span<std::byte> to) = 0;
  virtual void write(machine::Coordinate tile, std::uint64_t address,
                     std::span<const std::byte> bytes) = 0;
};

// Both ends of a link, and their simulation.
struct LinkEnds {
  sim::Simulation& simulation;
  const machine::Host& host;
  const machine::Chip& chip;
  bool carries_data = true;  // otherwise only time passes, and buffers are not touched

  // Half of a round trip, from the core to the chip's NoC.
  Time one_way() const {
    return Time::from_ps(host.link.read_time.ps() / 2 + chip.pcie.tile_time.ps() / 2);
  }
};

// Part of a transfer that goes through one window.
struct Piece {
  machine::Coordinate tile;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  Ordering ordering = Ordering::standard;
  Mapping mapping = Mapping::write_combining;
};

// The loads into which the processor divides a piece: at multiples of `unit`, where the piece
// starts `phase` after one, and possibly at the window's lines.
struct Loads {
  std::uint64_t unit = 1;
  std::uint64_t phase = 0;
  bool are_cut_at_lines = false;
  int overlapping = 1;

  std::uint64_t count(const Piece& piece) const;
  // Bytes of the load that begins at offset `at` of the piece.
  std::uint64_t size_at(const Piece& piece, std::uint64_t at) const;
};

// The stores into which the processor divides a piece: lines if the window combines writes,
// otherwise the stores themselves.
struct Stores {
  Stores(const machine::HostCoreParameters& core, const Piece& piece)
      : combines(piece.mapping == Mapping::write_combining),
        unit(combines ? kLineBytes : static_cast<std::uint64_t>(core.uncached_store_bytes)),
        uncached_time(core.uncached_store_time),
        rate(core.store_rate) {}

  bool combines;
  std::uint64_t unit;
  Time uncached_time;
  Rate rate;

  std::uint64_t size_at(const Piece& piece, std::uint64_t at) const;
  Time time_of(std::uint64_t size_bytes) const;
  std::string_view part_name() const;
};

// Part of a transfer that the DMA engine handles at once.
struct DmaPart {
  noc::Address address;
  std::uint64_t size_bytes;
  Ordering ordering;
};

// The path of a link and the chip's NoC between the host and the memory of a tile. Spans of bytes
// are empty if only time is simulated. IdleNocPath computes the time of a NoC without traffic, in a
// few events for a transfer of any size. SharedNocPath makes each line, load and burst a request on
// the chip's network, which kernels use at the same time.
class ChipPath {
 public:
  virtual ~ChipPath() = default;
  // Stores and loads of the processor, through a window.
  virtual void write(Account& account, const Piece& piece, std::span<const std::byte> data) = 0;
  virtual void read(Account& account, const Piece& piece, std::span<std::byte> to,
                    const Loads& loads) = 0;
  // Transfers by the DMA engine.
  virtual void write_by_dma(Account& account, const DmaPart& part,
                            std::span<const std::byte> data) = 0;
  virtual void read_by_dma(Account& account, const DmaPart& part, std::span<std::byte> to) = 0;
  // Waits until all writes are acknowledged or, if posted, in memory.
  virtual void wait_for_writes() = 0;
};

// Accounts for loads that each wait for the answer of the previous load, on an idle NoC.
void spend_round_trips(const LinkEnds& ends, Account& account, const Piece& piece,
                       const Loads& loads);

inline constexpr std::string_view kStall = "waiting for posted writes to leave";
inline constexpr std::string_view kEarlierWrites = "waiting for earlier writes";
inline constexpr std::string_view kLatency = "latency of the first bytes";
inline constexpr std::string_view kStream = "bytes on their way";

}  // namespace towpath::pcie
