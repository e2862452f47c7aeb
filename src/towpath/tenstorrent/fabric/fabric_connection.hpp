// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/tenstorrent/device/data_movement_core.hpp"
#include "towpath/tenstorrent/fabric/fabric_layout.hpp"

namespace towpath::tenstorrent::fabric {

// Address of a router for a worker of its chip.
struct RouterPort {
  machine::Coordinate tile;
  Layout layout;
};

// A worker's side of a router's worker channel.
//
//   Connection connection(core, port, words);      // words: kWordsBytes of its L1
//   connection.open();
//   connection.send(header, header_at, payload_at);
//   connection.close();
//
// Wrong: two workers with the same channel open. Each counts the slots as its own.
class Connection {
 public:
  static constexpr std::uint64_t kWordsBytes = 64 + Layout::kCells * Layout::kCellBytes;

  Connection(DataMovementCore& core, const RouterPort& port, std::uint64_t words);

  void open();
  // Waits until the router has released all packets and has confirmed the close.
  void close();
  bool has_free_slot();
  void wait_for_free_slot();
  // Waits for a free slot, and writes the payload and the header there. The payload's bytes and
  // those at header_at, where the header is stored first, must stay until they have left the core
  // (wait_until_sent).
  void send(const Header& header, std::uint64_t header_at, std::uint64_t payload_at);
  void wait_until_sent() { core_.noc_async_posted_writes_flushed(noc_); }

 private:
  std::uint32_t slots() const { return static_cast<std::uint32_t>(port_.layout.channel_slots); }

  DataMovementCore& core_;
  RouterPort port_;
  int noc_;
  std::uint64_t credit_;    // number of packets released; written by the router
  std::uint64_t closed_;    // written by the router
  std::uint64_t snapshot_;  // of the channel's words, read on opening
  std::uint64_t sources_;   // of words written to produced_at()
  std::uint32_t produced_ = 0;
};

// The header of a packet that writes segments to addresses of their own; `list`, whose first
// segment goes to header.payload_to, and behind it the segments are its payload. Throws
// std::invalid_argument when there is nothing to write, or when a segment that others follow is not
// a multiple of 16 bytes.
Header scattered(Header header, const SegmentList& list);

// Offset in L1 for the words of a worker that has one connection.
inline constexpr std::uint64_t kWorkerWords = 0x1000;
inline constexpr std::uint64_t kWorkerHeaders = 0x2000;
inline constexpr std::uint64_t kWorkerPayloads = 0x4000;
static_assert(kWorkerWords + Connection::kWordsBytes <= kWorkerHeaders);

}  // namespace towpath::tenstorrent::fabric
