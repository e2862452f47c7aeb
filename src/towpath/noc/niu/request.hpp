// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/niu/multicast_rectangle.hpp"

namespace towpath::noc {

enum class RequestKind : std::uint8_t { read, write, inline_write, atomic_increment };
std::string_view name_of(RequestKind kind);
// True if it moves data; the other kinds carry a word in their header.
inline bool moves_data(RequestKind kind) {
  return kind == RequestKind::read || kind == RequestKind::write;
}

// A memory address on the chip: a tile, and an offset in its memory. The memory of a DRAM tile is
// that of its group, one channel after the other.
struct Address {
  machine::Coordinate tile;
  std::uint64_t offset = 0;
};

// A core's request to its NIU. The NIU splits sizes beyond one packet.
struct Request {
  RequestKind kind = RequestKind::write;
  int noc = 0;
  machine::Coordinate core;        // core that owns the NIU
  int initiator = 0;               // 0 .. initiators - 1 of the NIU
  std::uint64_t local_offset = 0;  // in the core's memory: a write's source, a read's target
  Address remote;
  std::uint64_t size_bytes = 0;  // ignored for inline writes and atomics, which have 4
  int vc = 1;                    // 0 to 3 unicast, 4 and 5 multicast: class and buddy bit
  bool is_static_vc = true;
  bool is_posted = false;  // not acknowledged
  int transaction_id = 0;
  std::uint32_t value = 0;  // inline write: the word; atomic: the increment

  // Sends a write or atomic to all workers of the rectangle from remote.tile to last_tile.
  bool is_multicast = false;
  machine::Coordinate last_tile;
  bool includes_source = false;
  bool is_linked = false;  // the path stays reserved for the next multicast, to the same workers

  MulticastRectangle rectangle() const { return {remote.tile, last_tile, noc}; }
};

// "write of 64 bytes to (2, 1)"
std::string describe(const Request& request);

}  // namespace towpath::noc
