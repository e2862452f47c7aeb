// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "towpath/machine/chip_cluster.hpp"
#include "towpath/noc/chip_network.hpp"
#include "towpath/tenstorrent/hazards/ledger.hpp"

namespace towpath::tenstorrent {

// The chips of a cluster, with a ledger for each memory of a core.
class ChipRecords {
 public:
  explicit ChipRecords(const machine::ChipCluster& cluster);

  // Adds the next chip, in order.
  void add(noc::ChipNetwork& network);

  const machine::ChipCluster& cluster() const { return cluster_; }
  const machine::Chip& chip(int chip) const;
  noc::ChipNetwork& network(int chip) const;
  Time now() const { return network(0).simulation().now(); }
  Ledger& ledger(int chip, machine::Coordinate tile);
  const Ledger* find_ledger(int chip, machine::Coordinate tile) const;
  // True if the memory currently contains these bytes.
  bool holds(int chip, machine::Coordinate tile, std::uint64_t offset,
             std::span<const std::byte> bytes) const;

  // True if the tile has an L1. False outside the chip: the network rejects the access.
  bool has_l1(int chip, machine::Coordinate tile) const;
  // The number of the tile's memory on the chip. Tiles of a DRAM group share one.
  int memory_of(int chip, machine::Coordinate tile) const;
  machine::Coordinate core_of(machine::EthernetEnd end) const { return cluster_.core_of(end); }
  // The channel of an Ethernet core, or -1.
  int channel_of(int chip, machine::Coordinate core) const;
  Place place_of(int chip, machine::Coordinate core, int noc_index) const;
  int queues(int chip) const { return this->chip(chip).ethernet.tx_queues; }
  // The stream of a transmit queue, and a new stream for other senders.
  Stream stream_of(machine::EthernetEnd end, int queue) const;
  std::size_t queue_streams() const { return queue_streams_; }
  Stream new_stream() { return next_stream_++; }

 private:
  struct Record {
    noc::ChipNetwork* network = nullptr;
    std::vector<std::unique_ptr<Ledger>> ledgers;  // by tile
  };

  const machine::ChipCluster& cluster_;
  std::vector<Record> chips_;
  std::vector<Stream> first_stream_;  // by chip
  std::vector<Place> first_place_;    // by chip
  std::size_t queue_streams_ = 0;
  Stream next_stream_ = 0;
};

// "core (1, 1) of chip 0"
std::string name_of(machine::Coordinate core, int chip);

}  // namespace towpath::tenstorrent
