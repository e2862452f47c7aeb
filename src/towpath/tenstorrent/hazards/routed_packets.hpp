// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "towpath/tenstorrent/core/core_observer.hpp"
#include "towpath/tenstorrent/hazards/buffers.hpp"
#include "towpath/tenstorrent/hazards/words.hpp"

namespace towpath::tenstorrent {

// Packets that fabric routers deliver for a kernel. Routers themselves are not checked. A
// connection to a router serves one kernel at a time, and its packets to one tile arrive in order.
//
// Hazards: two_workers_on_one_channel, missing_teardown, source_overwritten, sync_before_payload.
class RoutedPackets {
 public:
  RoutedPackets(ChipRecords& records, const SentBytes& bytes, Words& words, Buffers& buffers)
      : records_(records), bytes_(bytes), words_(words), buffers_(buffers) {}

  void open(KernelWatch& kernel, int connection);
  void close(KernelWatch& kernel, int connection) {
    connections_[connection].closed = kernel.learner().step();
  }
  // Returns the number of the packet.
  std::size_t send(KernelWatch& kernel, int connection, std::vector<Delivery> deliveries);
  // A packet has been delivered on a chip.
  void delivered(std::size_t packet, int chip);
  // A kernel uses bytes of a core.
  void use(KernelWatch& kernel, int chip, const L1Bytes& bytes);
  // Called at the kernel's end: its connections must be closed.
  void check_end(const KernelWatch& kernel) const;

 private:
  struct Connection {
    const KernelWatch* user = nullptr;
    std::optional<Stamp> closed;  // by it
    // The packets to each tile of each chip.
    struct Tile {
      Stream stream = 0;
      std::uint64_t position = 0;
    };
    std::map<std::pair<int, machine::Coordinate>, Tile> tiles;
  };
  struct Sent {
    KernelWatch* sender = nullptr;
    struct Part {
      Delivery delivery;
      std::vector<Arrived> arrivals;  // of its bytes
      Stamp word;                     // the knowledge that its word carries
    };
    std::vector<Part> parts;
  };
  Arrived expect(KernelWatch& kernel, Connection& connection, int chip, const L1Bytes& bytes);
  void check_unused(const KernelWatch& kernel, int chip, const L1Bytes& bytes) const;
  void check_buffers(const KernelWatch& kernel, const Sent::Part& part, const Stamp& stamp);
  static Stamp word_stamp(const Stamp& stamp, const Connection& connection,
                          const Delivery& delivery);

  ChipRecords& records_;
  const SentBytes& bytes_;
  Words& words_;
  Buffers& buffers_;
  std::map<int, Connection> connections_;
  std::map<std::size_t, Sent> packets_;  // under way
  std::size_t next_packet_ = 0;
};

}  // namespace towpath::tenstorrent
