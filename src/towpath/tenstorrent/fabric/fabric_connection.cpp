// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/fabric/fabric_connection.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "towpath/noc/torus.hpp"

namespace towpath::tenstorrent::fabric {

Connection::Connection(DataMovementCore& core, const RouterPort& port, std::uint64_t words)
    : core_(core),
      port_(port),
      noc_(noc::nearer_noc(core.network().chip(), core.config().core, port.tile)),
      credit_(words),
      closed_(words + Layout::kCellBytes),
      snapshot_(words + 2 * Layout::kCellBytes),
      sources_(words + 4 * Layout::kCellBytes) {}

void Connection::open() {
  const Layout& layout = port_.layout;
  core_.noc_async_read({port_.tile, layout.channel_at(kWorkerChannel)}, snapshot_,
                       Layout::kChannelBytes, {.noc = noc_});
  core_.noc_async_read_barrier(noc_);
  produced_ = core_.load_word(snapshot_);
  // The previous client has waited for all its packets to be released.
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
  core_.noc_semaphore_wait(credit_, produced_);
  core_.noc_inline_dw_write({port_.tile, port_.layout.state_at(kWorkerChannel)},
                            static_cast<std::uint32_t>(ChannelState::closing),
                            {.is_posted = true, .noc = noc_});
  core_.noc_semaphore_wait(closed_, 1);
}

Header scattered(Header header, const SegmentList& list) {
  std::size_t bytes = 0;
  for (std::size_t segment = 0; segment < kSegmentsMax; ++segment) {
    if (bytes % Layout::kCellBytes != 0 && list.bytes[segment] != 0) {
      throw std::invalid_argument(
          fmt::format("segment {} of a scatter write begins {} bytes behind the first one; it must "
                      "be a multiple of {}",
                      segment, bytes, Layout::kCellBytes));
    }
    bytes += list.bytes[segment];
  }
  if (bytes == 0) throw std::invalid_argument("a scatter write has no bytes; it has at least 1");
  header.operation = Operation::scatter_write;
  header.payload_bytes = static_cast<std::uint16_t>(sizeof(SegmentList) + bytes);
  return header;
}

bool Connection::has_free_slot() { return produced_ - core_.load_word(credit_) < slots(); }

void Connection::wait_for_free_slot() {
  if (has_free_slot()) return;
  core_.noc_semaphore_wait_min(credit_, produced_ - slots() + 1);
}

void Connection::send(const Header& header, std::uint64_t header_at, std::uint64_t payload_at) {
  wait_for_free_slot();
  const WriteOptions posted{.is_posted = true, .noc = noc_};
  const Layout& layout = port_.layout;
  const std::uint64_t slot = layout.channel_slot(kWorkerChannel, produced_);
  core_.store(header_at, bytes_of(header));
  core_.noc_async_write_one_packet(header_at, {port_.tile, slot}, sizeof(Header), posted);
  if (header.payload_bytes > 0) {
    core_.noc_async_write_one_packet(payload_at, {port_.tile, slot + layout.header_bytes},
                                     header.payload_bytes, posted);
  }
  // By the same initiator as the packet, which it must not overtake.
  const std::uint64_t source = sources_ + ++produced_ % Layout::kCells * Layout::kCellBytes;
  core_.store_word(source, produced_);
  core_.noc_async_write_one_packet(source, {port_.tile, layout.produced_at(kWorkerChannel)},
                                   noc::kWordBytes, posted);
}

}  // namespace towpath::tenstorrent::fabric
