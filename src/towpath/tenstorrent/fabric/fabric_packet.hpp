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

// A packet of the fabric: a header, followed by a payload of up to one slot. Packets are
// source-routed: the header has a command for each router on the route.

namespace towpath::tenstorrent::fabric {

// Action at the destination chip, as a set of flags.
enum class Operation : std::uint8_t {
  write = 1,      // write the payload to an address
  increment = 2,  // increment a word
  // Both. The increment follows the payload on the same path over the NoC.
  write_increment = write | increment,
  // Increments the word after all writes of this router are acknowledged: payloads and word may be
  // in different tiles.
  flush_increment = increment | 4,
  write_flush_increment = write | flush_increment,
  // Each segment of the payload is written to a separate address, from the SegmentList after them.
  scatter_write = write | 8,
  scatter_write_increment = scatter_write | increment,
  scatter_write_flush_increment = scatter_write | flush_increment,
  inline_write = 16,  // set a word to the value of `increment`
  // Like flush_increment, but the router continues in the meantime. Later increments stay in order.
  deferred_increment = increment | 32,
  write_deferred_increment = write | deferred_increment,
  // The payload is written page by page, like a scatter write of the pages of an array.
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
// Page size of an array of bfloat16 tiles, as in tt-metal's tables.
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

// The chips of a multicast: a number of chips in its direction, after the skipped ones, and from
// each of them up and down the second dimension. Every chip gets a copy from the previous one.
struct Stretch {
  std::uint8_t skipped = 0;
  std::uint8_t count = 0;
};
struct MulticastRange {
  Direction direction = 0;
  bool delivers = true;  // to the chips of `along`; otherwise only to `up` and `down`
  Stretch along;
  Stretch up;
  Stretch down;
};

// Destinations of a scatter write's segments. The payload has the segments in order, then, from the
// next word of Ethernet, this list. The first segment goes to payload_to. Source: tt-metal, at most
// four.
inline constexpr int kSegmentsMax = 4;
struct SegmentList {
  std::array<std::uint64_t, kSegmentsMax - 1> to{};  // packed addresses, from the second segment
  std::array<std::uint16_t, kSegmentsMax> bytes{};   // zero: no segment
};
static_assert(sizeof(SegmentList) == 32);

struct Header {
  std::uint64_t payload_to = 0;  // packed address
  std::uint64_t word_at = 0;
  std::uint32_t increment = 0;
  std::uint16_t payload_bytes = 0;
  Operation operation = Operation::write;
  std::uint8_t hop = 0;  // number of routers passed
  // Number of the packet on its link, repeated after the payload to announce its arrival.
  std::uint32_t sequence = 0;
  bool is_multicast = false;
  std::array<std::uint8_t, kHopsMax / 2> commands{};  // four bits each, or a MulticastRange

  MulticastRange range() const {
    MulticastRange range;
    std::memcpy(&range, commands.data(), sizeof(range));
    return range;
  }
  void set_range(const MulticastRange& range) {
    is_multicast = true;
    std::memcpy(commands.data(), &range, sizeof(range));
  }

  // Action of the router that receives the packet after `number` others: the next direction, or
  // kDeliver.
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
  bool is_branch = false;  // in addition to the straight copy
};
// Handling of a packet at a receiving router: delivery, forwarding, or both for a multicast.
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
