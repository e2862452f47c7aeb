// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/noc/router/packet.hpp"
#include "towpath/noc/router/torus.hpp"

namespace towpath::noc {

// The packets of a network from sending to reception. Each copy of a multicast is a packet.
class PacketTable {
 public:
  // The part that a router reads when a header reaches the front.
  struct Header {
    std::int16_t destination_x = 0;
    std::int16_t destination_y = 0;
    std::uint16_t flits = 0;
    bool keeps_buddy : 1 = true;
    bool keeps_path : 1 = false;
    bool is_multicast : 1 = false;
  };

  explicit PacketTable(const Torus& torus) : torus_(torus) {}

  PacketId add(const Packet& packet);
  void remove(PacketId id) { free_.push_back(id); }
  Packet& operator[](PacketId id) { return packets_[id]; }
  const Packet& operator[](PacketId id) const { return packets_[id]; }
  const Header& header(PacketId id) const { return headers_[id]; }
  // The next packet in its queue.
  PacketId& next(PacketId id) { return next_[id]; }

 private:
  struct alignas(64) StoredPacket : Packet {};  // in one cache line
  static_assert(sizeof(StoredPacket) == 64);

  Torus torus_;
  std::vector<StoredPacket> packets_;
  std::vector<Header> headers_;
  std::vector<PacketId> next_;
  std::vector<PacketId> free_;
};

inline PacketId PacketTable::add(const Packet& packet) {
  PacketId id;
  if (free_.empty()) {
    id = static_cast<PacketId>(packets_.size());
    packets_.emplace_back();
    headers_.emplace_back();
    next_.push_back(kNoPacket);
  } else {
    id = free_.back();
    free_.pop_back();
  }
  static_cast<Packet&>(packets_[id]) = packet;
  headers_[id] = {static_cast<std::int16_t>(torus_.x_of(packet.destination)),
                  static_cast<std::int16_t>(torus_.y_of(packet.destination)),
                  static_cast<std::uint16_t>(packet.flits),
                  packet.keeps_buddy,
                  packet.keeps_path,
                  packet.tree >= 0};
  return id;
}

}  // namespace towpath::noc
