// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/live/call.hpp"
#include "towpath/live/phase.hpp"

// One rank's run of one collective by puts, phase after phase. SharedCollectives is faster if ranks
// map each other's memory, and serves all but an exchange.
//
// A small all-reduce, or one of two ranks, sends everything to all ranks. Otherwise each rank
// combines one part and sends it to all, block after block.

namespace towpath::live {

class ChannelCollective {
 public:
  ChannelCollective(Channels& channels, const Request& request, std::uint64_t number);

  ChannelCollective(const ChannelCollective&) = delete;
  ChannelCollective& operator=(const ChannelCollective&) = delete;
  bool advance();
  bool is_done() const { return is_done_; }
  bool awaits(int peer) const { return transfer_.awaits(peer); }

 private:
  bool is_root() const { return request_.peer == channels_.rank(); }
  void begin_next();
  // Each fills the phase and returns false if none is left.
  bool prepare();
  bool prepare_exchange();
  void keep_inputs_in_place();
  bool prepare_all_gather();
  bool prepare_barrier();
  bool prepare_broadcast();
  bool prepare_reduce_scatter();
  bool prepare_one_shot();
  bool prepare_two_shot();
  void prepare_parts_combined(std::uint64_t block, std::uint64_t size);
  void prepare_parts_spread(std::uint64_t block, std::uint64_t size);
  bool is_one_shot() const;
  bool gets_result() const { return request_.kind == Kind::all_reduce || is_root(); }
  Span part_of(const Span& block, int rank) const;

  Channels& channels_;
  const Request& request_;
  std::uint32_t mark_;  // the same on all ranks for this call
  PhaseTransfer transfer_;
  // A result with memory only on the root, inputs that are replaced in place, or a barrier's data.
  std::vector<std::byte> parts_;
  std::uint64_t next_phase_ = 0;
  bool is_done_ = false;
};

}  // namespace towpath::live
