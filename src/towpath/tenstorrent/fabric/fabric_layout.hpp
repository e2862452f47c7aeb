// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/base/index.hpp"
#include "towpath/tenstorrent/core/ethernet_memory_map.hpp"
#include "towpath/tenstorrent/fabric/fabric_packet.hpp"

// Memory layout of a router, from `base` in the L1 of its Ethernet core. It is the same on all
// cores of a fabric, so that each core can address all others. Each writer has separate cells, each
// one word of Ethernet.

namespace towpath::tenstorrent::fabric {

// Channels of a router, filled by workers and by other routers of the chip. Channel 0 is for a
// worker, 1 for straight traffic, 2 and 3 for traffic that turns in from the first dimension, from
// below and from above.
inline constexpr int kWorkerChannel = 0;
inline constexpr int kStraightChannel = 1;
constexpr int turn_channel(Direction came) { return 2 + came % 2; }

// The NoCs of routers, independent of the target (tt-metal, erisc_datamover_builder.hpp): for a
// receiver's writes to memory or the next router, and for a sender's writes to its clients.
inline constexpr int kReceiverNoc = 1;
inline constexpr int kSenderNoc = 0;

// The defaults are for a line. Source: tt-metal, fabric: 2 sender channels of 8 slots, 1 receiver
// of 16, headers of 48 bytes for one dimension, payloads of 4352.
struct Layout {
  std::uint64_t base = 0;
  int channels = 2;
  int channel_slots = 8;
  int receiver_slots = 16;
  std::uint64_t header_bytes = 48;
  std::uint64_t payload_bytes_max = 4352;

  // True if packets turn from one dimension into the other.
  bool has_turns() const { return channels > turn_channel(0); }

  static constexpr std::uint64_t kCellBytes = ethernet_memory_map::kWordBytes;
  // Cells per writer, used cyclically. An assumption without a source.
  static constexpr std::uint64_t kCells = 32;
  static constexpr std::uint64_t kChannelBytes = 32;
  // Two per slot with copies in flight. An assumption without a source.
  static constexpr std::uint64_t kBranchHeaders = 2 * 16;
  static constexpr std::uint64_t kBranchHeaderBytes = 48;

  // --- from the far end of the link: numbers of packets that have arrived there, and of packets
  // whose slots are free there
  std::uint64_t answer_at() const { return base; }
  // --- sources of messages to the far end
  std::uint64_t answer_source(std::uint32_t number) const { return cell(1, number); }
  // --- source of writes to the next router: the number of packets passed to it
  std::uint64_t produced_source(std::uint32_t number) const { return cell(1 + kCells, number); }
  // --- headers of multicast copies into the second dimension
  std::uint64_t branch_header(std::uint32_t number) const {
    return base + (1 + 2 * kCells) * kCellBytes + number % kBranchHeaders * kBranchHeaderBytes;
  }
  // --- per channel: words between its client and its router
  std::uint64_t channel_at(int channel) const {
    return branch_header(0) + kBranchHeaders * kBranchHeaderBytes + index(channel) * kChannelBytes;
  }
  std::uint64_t produced_at(int channel) const { return channel_at(channel); }
  std::uint64_t state_at(int channel) const { return channel_at(channel) + 4; }
  std::uint64_t client_tile_at(int channel) const { return channel_at(channel) + 8; }
  std::uint64_t client_word_at(int channel) const { return channel_at(channel) + 12; }
  std::uint64_t released_at(int channel) const { return channel_at(channel) + 16; }
  // --- per direction: number of packets that the router there has released
  std::uint64_t credit_at(Direction direction) const {
    return channel_at(channels) + direction * kCellBytes;
  }
  // --- slots: header, payload, and the sequence number again
  std::uint64_t slot_bytes() const { return header_bytes + payload_bytes_max + kCellBytes; }
  std::uint64_t trailer_in_slot(const Header& header) const {
    return header_bytes + round_up(std::uint64_t{header.payload_bytes}, kCellBytes);
  }
  std::uint64_t channel_slot(int channel, std::uint32_t number) const {
    return slots() +
           (index(channel) * index(channel_slots) + number % index(channel_slots)) * slot_bytes();
  }
  std::uint64_t receiver_slot(std::uint32_t number) const {
    return slots() +
           (index(channels) * index(channel_slots) + number % index(receiver_slots)) * slot_bytes();
  }
  std::uint64_t size_bytes() const {
    return slots() - base +
           (index(channels) * index(channel_slots) + index(receiver_slots)) * slot_bytes();
  }

 private:
  static constexpr std::uint64_t index(int number) { return static_cast<std::uint64_t>(number); }
  std::uint64_t cell(std::uint64_t first, std::uint32_t number) const {
    return base + (first + number % kCells) * kCellBytes;
  }
  std::uint64_t slots() const { return credit_at(kDirections); }
};

// Written to state_at() by a client.
enum class ChannelState : std::uint32_t { free, open, closing };

}  // namespace towpath::tenstorrent::fabric
