// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "towpath/noc/niu/request.hpp"

// Packet of the fabric: a header, followed by up to a slot's worth of payload. A packet is source
// routed: its header tells each router on its route what to do with it.

namespace towpath::tenstorrent::fabric {

// Action at the destination chip, as a set of what is done.
enum class Operation : std::uint8_t {
  write = 1,      // the payload is written to an address
  increment = 2,  // a word is incremented
  // Both; the increment follows the payload on the same path over the NoC.
  write_increment = write | increment,
  // The word is incremented when all that this router has written is acknowledged: payloads and
  // word may be in different tiles.
  flush_increment = increment | 4,
  write_flush_increment = write | flush_increment,
  // Each segment of the payload is written to its own address, from the SegmentList behind them.
  scatter_write = write | 8,
  scatter_write_increment = scatter_write | increment,
  scatter_write_flush_increment = scatter_write | flush_increment,
  inline_write = 16,  // a word is set to the value of `increment`
  // As flush_increment, but the router goes on meanwhile; later increments stay behind it.
  deferred_increment = increment | 32,
  write_deferred_increment = write | deferred_increment,
  // The payload is written page by page, as a scatter write of the pages of an array.
  paged_write = write | 64,
};
constexpr bool does(Operation operation, Operation part) {
  const auto bits = static_cast<std::uint8_t>(part);
  return (static_cast<std::uint8_t>(operation) & bits) == bits;
}
constexpr bool writes(Operation operation) { return does(operation, Operation::write); }
constexpr bool increments(Operation operation) { return does(operation, Operation::increment); }
constexpr bool flushes(Operation operation) { return does(operation, Operation::flush_increment); }
constexpr bool defers(Operation operation) {
  return does(operation, Operation::deferred_increment);
}
constexpr bool is_paged(Operation operation) { return does(operation, Operation::paged_write); }
constexpr Operation paged(Operation operation) {
  return static_cast<Operation>(static_cast<std::uint8_t>(operation) |
                                static_cast<std::uint8_t>(Operation::paged_write));
}
// Of an array of tiles of bfloat16, which tt-metal's tables have.
inline constexpr std::uint64_t kPageBytes = 2048;
constexpr bool scatters(Operation operation) { return does(operation, Operation::scatter_write); }

// Along the first or the second dimension, to higher or to lower places.
using Direction = std::uint8_t;
inline constexpr int kDirections = 4;
constexpr Direction direction_of(int dimension, bool is_downwards) {
  return static_cast<Direction>(2 * dimension + (is_downwards ? 1 : 0));
}
constexpr int dimension_of(Direction direction) { return direction / 2; }
constexpr Direction opposite(Direction direction) { return direction ^ 1; }

inline constexpr std::uint8_t kDeliver = 0xf;
inline constexpr int kHopsMax = 38;

// The chips that a multicast reaches: so many in its direction, after those it skips, and from each
// of them on into the second dimension, up and down. Every one is sent a copy by the one before it.
struct Stretch {
  std::uint8_t skipped = 0;
  std::uint8_t count = 0;
};
struct MulticastRange {
  Direction direction = 0;
  bool delivers = true;  // to the chips of `along`; otherwise to those of `up` and `down` only
  Stretch along;
  Stretch up;
  Stretch down;
};

// Where the segments of a scatter write go. The payload holds them one behind the other, and then,
// from the next word of Ethernet on, this list; the first goes to payload_to. Source: tt-metal, at
// most four.
inline constexpr int kSegmentsMax = 4;
struct SegmentList {
  std::array<std::uint64_t, kSegmentsMax - 1> to{};  // packed addresses, of the second one on
  std::array<std::uint16_t, kSegmentsMax> bytes{};   // zero: no such segment
};
static_assert(sizeof(SegmentList) == 32);

struct Header {
  std::uint64_t payload_to = 0;  // packed address
  std::uint64_t word_at = 0;
  std::uint32_t increment = 0;
  std::uint16_t payload_bytes = 0;
  Operation operation = Operation::write;
  std::uint8_t hop = 0;  // number of routers that have received it
  // Number of the packet on its link; repeated behind the payload, whose arrival it announces.
  std::uint32_t sequence = 0;
  bool is_multicast = false;
  std::array<std::uint8_t, kHopsMax / 2> commands{};  // four bits each; or a MulticastRange

  MulticastRange range() const {
    MulticastRange range;
    std::memcpy(&range, commands.data(), sizeof(range));
    return range;
  }
  void set_range(const MulticastRange& range) {
    is_multicast = true;
    std::memcpy(commands.data(), &range, sizeof(range));
  }

  // Action of the router that receives the packet after `number` others: the direction to continue
  // in, or kDeliver.
  std::uint8_t command(int number) const {
    const std::uint8_t both = commands[static_cast<std::size_t>(number) / 2];
    return number % 2 == 0 ? both & 0xf : both >> 4;
  }
  void set_command(int number, std::uint8_t command) {
    std::uint8_t& both = commands[static_cast<std::size_t>(number) / 2];
    both = static_cast<std::uint8_t>(number % 2 == 0 ? (both & 0xf0) | command
                                                     : (both & 0x0f) | command << 4);
  }
};
static_assert(sizeof(Header) == 48);

// A copy of a packet for the next router in a direction.
struct Copy {
  Direction direction = 0;
  Header header;
  bool is_branch = false;  // beside the copy that goes straight on
};
// What becomes of a packet at the router that receives it: it is delivered, handed on, or, of a
// multicast, both.
struct Fate {
  bool is_delivered = false;
  std::vector<Copy> copies;
};
Fate fate_of(const Header& header);

inline std::uint64_t pack(const noc::Address& address) {
  return static_cast<std::uint64_t>(address.tile.x) << 56 |
         static_cast<std::uint64_t>(address.tile.y) << 48 | address.offset;
}
inline noc::Address unpack(std::uint64_t bits) {
  return {{static_cast<int>(bits >> 56), static_cast<int>(bits >> 48 & 0xff)},
          bits & 0xffff'ffff'ffff};
}

template <typename T>
std::span<const std::byte> bytes_of(const T& object) {
  return std::as_bytes(std::span(&object, 1));
}
template <typename T>
std::span<std::byte> bytes_of(T& object) {
  return std::as_writable_bytes(std::span(&object, 1));
}

}  // namespace towpath::tenstorrent::fabric
