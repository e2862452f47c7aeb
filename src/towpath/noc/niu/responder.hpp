// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "towpath/noc/niu/network_ticks.hpp"
#include "towpath/noc/niu/niu_table.hpp"
#include "towpath/noc/niu/transactions.hpp"

namespace towpath::noc {

// Lanes of a NIU beyond the initiators' lanes. Multicasts leave in order of issue, from all
// initiators, because the last one of a linked path releases the path. Answers overtake blocked
// requests.
inline constexpr int kMulticastLane = kInitiatorsMax;
inline constexpr int kAcknowledgementLane = kMulticastLane + 1;
inline constexpr int kResponseLane = kAcknowledgementLane + 1;

// A request that a NIU has received, with its VC.
struct Received {
  Tag tag;
  int node;
  int vc;
  Cycle now;
};

// The channels of a chip's DRAM, with the time at which each has finished its current work.
class DramChannels {
 public:
  explicit DramChannels(const machine::Chip& chip);

  PaceTime interval() const { return interval_; }
  // The channel of an address within its group.
  std::size_t channel_of(std::uint64_t offset) const { return offset / channel_bytes_; }
  PaceTime& free_at(machine::Coordinate tile, std::uint64_t offset) {
    return free_at_[group_of_tile_[static_cast<std::size_t>(chip_.number_of(tile))] * channels_ +
                    channel_of(offset)];
  }

 private:
  const machine::Chip& chip_;
  std::size_t channels_;
  std::uint64_t channel_bytes_;
  PaceTime interval_ = 0;
  std::vector<std::size_t> group_of_tile_;
  std::vector<PaceTime> free_at_;
};

// The mean wait of a flit for another stream of the same L1: the two meet at a bank in one of this
// number of cycles, and each of them waits half of the times.
inline PaceTime bank_conflict(const machine::Chip& chip, PaceTime interval) {
  return interval / (2 * chip.niu.l1_flits_per_cycle);
}

// The answers of the NIUs of a chip to requests: acknowledgements, and responses with data, at the
// rates of L1 and DRAM.
class Responder {
 public:
  Responder(const machine::Chip& chip, const NetworkTicks::Networks& networks,
            Transactions& transactions, NiuTable& nius);

  void acknowledge(const Received& received, Cycle ready);
  // Answers a read with the data behind a tile, now or once flits of earlier responses have left.
  void read(const Received& received);
  // The number of response flits that wait in a NIU has fallen to response_flits_max().
  void resume(int noc, int node, Cycle now);
  // The packet of a response, without the time at which it may leave.
  Packet response_packet(const Received& received) const;
  // Limit of the response flits that wait in a NIU: one per cycle of its path from memory.
  int response_flits_max() const { return chip_.niu.read_response_cycles; }
  // A flit of a write has reached a DRAM tile: the first cycle in which the next one may be taken.
  Cycle dram_flit_received(const Packet& packet, Cycle now);

 private:
  struct WaitingRead {
    Tag tag;
    int vc;
  };
  struct Responses {
    PaceTime stream_end = 0;  // of their reading of L1
    std::deque<WaitingRead> waiting;
  };
  Responses& responses_of(int noc, machine::Coordinate tile) {
    return responses_[static_cast<std::size_t>(noc)]
                     [static_cast<std::size_t>(chip_.number_of(tile))];
  }
  Network& network_of(const Tag& tag) const;
  void respond_from_l1(const Received& received);
  void respond_from_dram(const Received& received);

  const machine::Chip& chip_;
  const NetworkTicks::Networks& networks_;
  Transactions& transactions_;
  PaceTime response_interval_;
  DramChannels dram_;
  NiuTable& nius_;
  std::array<std::vector<Responses>, 2> responses_;  // by tile
};

}  // namespace towpath::noc
