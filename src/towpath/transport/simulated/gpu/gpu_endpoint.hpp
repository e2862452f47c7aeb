// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "towpath/transport/simulated/endpoint.hpp"
#include "towpath/transport/simulated/fence_order.hpp"
#include "towpath/transport/simulated/gpu/gpu_memory.hpp"
#include "towpath/transport/simulated/gpu/gpu_ranks.hpp"
#include "towpath/transport/simulated/gpu/step_cost.hpp"

// One rank of GpuRanks; its own sources alone include this.

namespace towpath::transport::simulated {

// Pooled by whoever made it.
struct GpuRanks::Delivery : gpu_links::Message, simulated::Delivery {
  Endpoint* from = nullptr;
  Peer* peer = nullptr;
  // Makes it visible at the peer, in the order that fences ask for.
  void (*deliver)(Delivery& delivery) = nullptr;
};

// What one rank knows about another.
struct GpuRanks::Peer {
  int rank = kNoPeer;
  Endpoint* endpoint = nullptr;
  const gpu_links::Route* route = nullptr;
  FenceOrder<Delivery> order;
};

class GpuRanks::Endpoint final : public simulated::Endpoint {
 public:
  Endpoint(GpuRanks& ranks, int rank)
      : simulated::Endpoint(
            ranks.simulation(rank), rank, ranks.ranks(),
            {ranks.options_.carries_data, ranks.options_.heap_bytes, ranks.options_.signals}),
        ranks_(ranks) {
    const auto& kernel = ranks.cost_of(rank).kernel;
    if (kernel && carries_data()) memory_ = std::make_unique<Memory>(*this, *kernel);
  }

  bool is_addressable(int peer_rank) const override {
    return !const_cast<Endpoint&>(*this).peer(peer_rank).route->leaves_host;
  }
  void start(Move& move) override;
  void start_direct(DirectMove& move) override {
    TOWPATH_CHECK(!ranks_.parts_.are_several(), "rank {} moves directly between parts", rank());
    ranks_.direct_moves_->start(*this, move, jitter());
  }
  std::string direct_refusal(const DirectNeeds& needs) const override {
    return ranks_.direct_moves_->refusal(rank(), needs);
  }
  RemoteMemory* remote_memory() override { return memory_.get(); }
  void fence() override { ++epoch_; }
  bool is_quiet() const override {
    TOWPATH_CHECK(!ranks_.parts_.are_several(), "rank {} asks for what other parts know", rank());
    return under_way_ == 0 && !ranks_.direct_moves_->has_under_way(rank());
  }
  std::string pending() const override {
    return simulated::Endpoint::pending() + (memory_ ? memory_->pending() : std::string());
  }
  void changed(Offset first, std::uint64_t size_bytes) override {
    if (memory_) memory_->changed(first, size_bytes);
  }

 private:
  friend class Memory;
  StepCost cost(Protocol protocol) const { return {ranks_.cost_of(rank()), protocol}; }
  // Of the rank that a Move goes to.
  StepCost cost_at(const Move& move) const { return {ranks_.cost_of(move.peer), move.protocol}; }
  static Work work_of(const Move& move) {
    return simulated::work_of(move.peer != kNoPeer, move.has_destination, move.has_addend);
  }
  void start_local(Move& move);
  void start_put(Move& move);
  void start_signal(Move& move);
  Delivery& new_delivery(Move& move);
  Time jitter();
  Peer& peer(int rank);
  static void left(gpu_links::Message& message);
  static void arrived(gpu_links::Message& message);
  static void deliver(Delivery& delivery);

  GpuRanks& ranks_;
  std::unique_ptr<Memory> memory_;  // null where no kernel runs, or where no bytes are kept
  std::unordered_map<int, Peer> peers_;
  std::array<Peer*, 16> recent_peers_{};  // by rank modulo their number; a look saves a search
  std::uint64_t epoch_ = 0;
  std::uint64_t under_way_ = 0;
  std::deque<Delivery> deliveries_;  // storage
  std::vector<Delivery*> free_deliveries_;
};

}  // namespace towpath::transport::simulated
