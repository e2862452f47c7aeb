// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/live/call.hpp"
#include "towpath/live/exchange.hpp"

// One rank's run of one collective: its phases, one after the other. SharedCollectives is faster
// where ranks map each other's memory, and serves all but an exchange.
//
// An all-reduce sends everything to everybody where that is little or there are two ranks;
// otherwise each rank combines one part and sends it to all, block after block.

namespace towpath::live {

class CollectiveCall {
 public:
  CollectiveCall(Channels& channels, CallPointer call);
  CollectiveCall(const CollectiveCall&) = delete;
  CollectiveCall& operator=(const CollectiveCall&) = delete;

  const CallPointer& call() const { return call_; }
  bool advance();
  bool is_done() const { return is_done_; }
  bool awaits(int peer) const { return exchange_.awaits(peer); }

 private:
  const Request& request() const { return call_->request; }
  bool is_root() const { return request().peer == channels_.rank(); }
  void begin_next();
  // Each fills the phase and returns false when there is none left.
  bool prepare();
  bool prepare_exchange();
  bool prepare_all_gather();
  bool prepare_barrier();
  bool prepare_broadcast();
  bool prepare_reduce_scatter();
  bool prepare_one_shot();
  bool prepare_two_shot();
  void prepare_parts_combined(std::uint64_t block, std::uint64_t size);
  void prepare_parts_spread(std::uint64_t block, std::uint64_t size);
  bool is_one_shot() const;
  bool gets_result() const { return request().kind == Kind::all_reduce || is_root(); }
  Span part_of(const Span& block, int rank) const;

  Channels& channels_;
  CallPointer call_;
  Exchange exchange_;
  std::vector<std::byte> parts_;  // of a result that only the root has room for; of a barrier
  std::uint64_t next_phase_ = 0;
  bool is_done_ = false;
};

}  // namespace towpath::live
