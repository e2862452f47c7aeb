// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/fabric/fabric_connection.hpp"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>

#include "towpath/base/index.hpp"
#include "towpath/tenstorrent/fabric/fabric_watch.hpp"

namespace towpath::tenstorrent::fabric {

// The notification of a router by a worker that has a packet for it, without the three writes.
// tt-metal, golden latencies of the fabric: a responder's three writes take 114 to 122 ns on
// Wormhole and 104 ns on Blackhole, with two timestamps. Assumed: those take 16 cycles.
static constexpr ByArchitecture<int> kAnnounceCycles{.wormhole = 36, .blackhole = 54};

Connection::Connection(DataMovementCore& core, const RouterPort& port, std::uint64_t words,
                       const ConnectionOptions& options)
    : core_(core),
      port_(port),
      noc_(core.config().noc_index),
      is_posted_(options.is_posted),
      credit_(words),
      closed_(words + Layout::kCellBytes),
      snapshot_(words + 2 * Layout::kCellBytes),
      sources_(words + 4 * Layout::kCellBytes) {}

void Connection::open() {
  const Layout& layout = port_.layout;
  if (port_.watch != nullptr) port_.watch->opening(core_, port_);
  is_open_ = true;
  core_.noc_async_read({port_.tile, layout.channel_at(kWorkerChannel)}, snapshot_,
                       Layout::kChannelBytes, {.noc = noc_});
  core_.noc_async_read_barrier(noc_);
  produced_ = core_.load_word(snapshot_);
  // The previous client has waited for the release of all its packets.
  core_.store_word(credit_, produced_);
  core_.store_word(closed_, 0);
  const machine::Coordinate tile = core_.config().core;
  const auto post = [&](std::uint64_t offset, std::uint32_t value) {
    core_.noc_inline_dw_write({port_.tile, offset}, value, {.is_posted = true, .noc = noc_});
  };
  post(layout.client_tile_at(kWorkerChannel),
       static_cast<std::uint32_t>(tile.x) | static_cast<std::uint32_t>(tile.y) << 8);
  post(layout.client_word_at(kWorkerChannel), static_cast<std::uint32_t>(credit_));
  post(layout.state_at(kWorkerChannel), static_cast<std::uint32_t>(ChannelState::open));
}

void Connection::close() {
  is_open_ = false;
  core_.noc_semaphore_wait(credit_, produced_);
  core_.noc_inline_dw_write({port_.tile, port_.layout.state_at(kWorkerChannel)},
                            static_cast<std::uint32_t>(ChannelState::closing),
                            {.is_posted = true, .noc = noc_});
  core_.noc_semaphore_wait(closed_, 1);
  if (port_.watch != nullptr) port_.watch->closed(core_, port_);
}

Header scattered(Header header, const SegmentList& list) {
  std::size_t bytes = 0;
  for (std::size_t segment = 0; segment < kSegmentsMax; ++segment) {
    if (bytes % Layout::kCellBytes != 0 && list.bytes[segment] != 0) {
      throw std::invalid_argument(
          fmt::format("segment {} of a scatter write starts {} bytes after the first one; it must "
                      "be a multiple of {}",
                      segment, bytes, Layout::kCellBytes));
    }
    bytes += list.bytes[segment];
  }
  if (bytes == 0)
    throw std::invalid_argument("a scatter write has no bytes; it must have at least 1");
  if (!scatters(header.operation)) header.operation = Operation::scatter_write;
  const std::size_t list_at = round_up(bytes, Layout::kCellBytes);
  constexpr std::size_t kBytesMax = std::numeric_limits<std::uint16_t>::max();
  if (list_at + sizeof(SegmentList) > kBytesMax) {
    throw std::invalid_argument(fmt::format("a scatter write has {} bytes; it must have at most {}",
                                            bytes, kBytesMax - sizeof(SegmentList)));
  }
  header.payload_bytes = static_cast<std::uint16_t>(list_at + sizeof(SegmentList));
  return header;
}

void Connection::wait_for_free_slot() {
  if (has_free_slot()) return;
  core_.noc_semaphore_wait_min(credit_, produced_ - slots() + 1);
}

void Connection::check_slot() {
  const char* const what = !is_open_                                         ? "that is not open"
                           : produced_ - core_.load_word(credit_) == slots() ? "without a free slot"
                                                                             : nullptr;
  if (what == nullptr) return;
  throw std::invalid_argument(
      fmt::format("{} sends a packet over a connection {}; call open() first, and wait for a free "
                  "slot before each packet",
                  core_.where(), what));
}

void Connection::write_payload(std::uint64_t from, std::uint64_t size_bytes, std::uint64_t offset) {
  check_slot();
  const Layout& layout = port_.layout;
  if (offset + size_bytes > layout.payload_bytes_max) {
    throw std::invalid_argument(
        fmt::format("{} sends a packet of {} bytes; its fabric's packets have at most {}",
                    core_.where(), offset + size_bytes, layout.payload_bytes_max));
  }
  payload_end_ = from + size_bytes;
  const std::uint64_t slot = layout.channel_slot(kWorkerChannel, produced_);
  core_.noc_async_write_one_packet(from, {port_.tile, slot + layout.header_bytes + offset},
                                   size_bytes, how());
}

void Connection::write_header(const Header& header, std::uint64_t header_at) {
  core_.store(header_at, bytes_of(header));
  core_.noc_async_write_one_packet(
      header_at, {port_.tile, port_.layout.channel_slot(kWorkerChannel, produced_)}, sizeof(Header),
      how());
}

// The list is the end of the payload.
SegmentList Connection::segments_of(const Header& header) const {
  SegmentList list;
  if (scatters(header.operation)) {
    core_.network().load(core_.config().core, payload_end_ - sizeof(list), bytes_of(list));
  }
  return list;
}

// By the same initiator as the packet, which it must not overtake.
void Connection::announce(const Header& header) {
  if (port_.watch != nullptr) port_.watch->sending(core_, port_, header, segments_of(header));
  const std::uint64_t source = sources_ + ++produced_ % Layout::kCells * Layout::kCellBytes;
  core_.store_word(source, produced_);
  core_.work(kAnnounceCycles.of(core_.network().chip()));
  core_.noc_async_write_one_packet(source, {port_.tile, port_.layout.produced_at(kWorkerChannel)},
                                   noc::kWordBytes, how());
}

void Connection::send_header(const Header& header, std::uint64_t header_at) {
  check_slot();
  write_header(header, header_at);
  announce(header);
}

void Connection::send(const Header& header, std::uint64_t header_at, std::uint64_t payload_at) {
  wait_for_free_slot();
  write_header(header, header_at);
  if (header.payload_bytes > 0) write_payload(payload_at, header.payload_bytes);
  announce(header);
}

}  // namespace towpath::tenstorrent::fabric
