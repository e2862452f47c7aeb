// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "towpath/machine/chip.hpp"

namespace towpath::noc {

enum class RequestKind : std::uint8_t { read, write, inline_write, atomic_increment };
std::string_view name_of(RequestKind kind);
// Others carry a word in their header.
inline bool moves_data(RequestKind kind) {
  return kind == RequestKind::read || kind == RequestKind::write;
}

// A memory address on the chip: a tile and a byte of its memory. Of a DRAM tile, the memory is that
// of its group, one channel behind the other.
struct Address {
  machine::Coordinate tile;
  std::uint64_t offset = 0;
};

// What a core asks its NIU for. Sizes beyond one packet are split by the NIU.
struct Request {
  RequestKind kind = RequestKind::write;
  int noc = 0;
  machine::Coordinate core;        // whose NIU this is
  int initiator = 0;               // 0 .. NiuParameters::initiators - 1
  std::uint64_t local_offset = 0;  // in the core's own memory: a write's source, a read's target
  Address remote;
  std::uint64_t size_bytes = 0;  // 4 of an inline write or an atomic
  int vc = 1;                    // 0 to 3 unicast, 4 and 5 multicast: class and buddy bit
  bool is_static_vc = true;
  bool is_posted = false;  // nobody acknowledges
  int transaction_id = 0;
  std::uint32_t value = 0;  // of an inline write; by which an atomic increments

  // A write or atomic to all workers of the rectangle from remote.tile to last_tile, which goes to
  // the right and downwards in NoC 0's coordinates whichever NoC is used.
  bool is_multicast = false;
  machine::Coordinate last_tile;
  bool includes_source = false;
  bool is_linked = false;  // the path stays reserved for the next multicast, to the same workers
};

// "write of 64 bytes to (2, 1)"
std::string describe(const Request& request);

}  // namespace towpath::noc
