// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/machine/chip_cluster.hpp"
#include "towpath/tenstorrent/core/data_movement_core.hpp"
#include "towpath/tenstorrent/fabric/fabric_layout.hpp"

namespace towpath::tenstorrent::fabric {

class FabricWatch;

// Address of a router for a worker of its chip.
struct RouterPort {
  machine::Coordinate tile;
  Layout layout;
  machine::EthernetEnd end{};
  Direction direction = 0;
  int place = 0;
  FabricWatch* watch = nullptr;  // if hazards are monitored
};

// A worker's path to its router, over its kernel's NoC.
struct ConnectionOptions {
  bool is_posted = true;
};

// A worker's side of a router's worker channel.
//
//   Connection connection(core, port, words);      // words: kWordsBytes of its L1
//   connection.open();
//   connection.send(header, header_at, payload_at);
//   connection.close();
//
// Wrong: two workers with the same channel open. Each would count all slots as free for itself.
class Connection {
 public:
  static constexpr std::uint64_t kWordsBytes = 64 + Layout::kCells * Layout::kCellBytes;

  Connection(DataMovementCore& core, const RouterPort& port, std::uint64_t words,
             const ConnectionOptions& options = {});

  void open();
  // Waits until the router has released all packets and has confirmed the close.
  void close();
  bool has_free_slot() { return produced_ - core_.load_word(credit_) < slots(); }
  // The word that changes when a slot becomes free.
  std::uint64_t credit_at() const { return credit_; }
  void wait_for_free_slot();
  // Waits for a free slot, and writes the payload and the header there. The header is first stored
  // at header_at. Its bytes and the payload's must stay until they have left the core
  // (wait_until_sent).
  void send(const Header& header, std::uint64_t header_at, std::uint64_t payload_at);
  // The same in parts: a piece of the payload at its offset, then the header, which sends the
  // packet. Throws std::invalid_argument if the connection is not open or has no free slot.
  void write_payload(std::uint64_t from, std::uint64_t size_bytes, std::uint64_t offset = 0);
  void send_header(const Header& header, std::uint64_t header_at);
  void wait_until_sent() { core_.noc_async_posted_writes_flushed(noc_); }

 private:
  std::uint32_t slots() const { return static_cast<std::uint32_t>(port_.layout.channel_slots); }
  WriteOptions how() const { return {.is_posted = is_posted_, .noc = noc_}; }
  void check_slot();
  void write_header(const Header& header, std::uint64_t header_at);
  void announce(const Header& header);
  SegmentList segments_of(const Header& header) const;

  DataMovementCore& core_;
  RouterPort port_;
  int noc_;
  bool is_posted_;
  bool is_open_ = false;
  std::uint64_t credit_;           // number of packets released; written by the router
  std::uint64_t closed_;           // written by the router
  std::uint64_t snapshot_;         // of the channel's words, read on opening
  std::uint64_t sources_;          // of words written to produced_at()
  std::uint64_t payload_end_ = 0;  // of the last piece of payload, in the worker's L1
  std::uint32_t produced_ = 0;
};

// The header of a packet that writes segments to separate addresses. Its payload is the segments,
// the first for header.payload_to, followed by the list at list_offset(). Throws
// std::invalid_argument if it is empty, or if a segment other than the last is not a multiple of 16
// bytes.
Header scattered(Header header, const SegmentList& list);
// Offset of the list in the payload of a scatter write.
inline std::uint64_t list_offset(const Header& header) {
  return header.payload_bytes - sizeof(SegmentList);
}

// Offset in L1 for the words of a worker with a single connection.
inline constexpr std::uint64_t kWorkerWords = 0x1000;
inline constexpr std::uint64_t kWorkerHeaders = 0x2000;
inline constexpr std::uint64_t kWorkerPayloads = 0x4000;
static_assert(kWorkerWords + Connection::kWordsBytes <= kWorkerHeaders);

}  // namespace towpath::tenstorrent::fabric
