// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "towpath/base/pool.hpp"
#include "towpath/transport/simulated/endpoint.hpp"
#include "towpath/transport/simulated/fence_order.hpp"
#include "towpath/transport/simulated/gpu/gpu_memory.hpp"
#include "towpath/transport/simulated/gpu/gpu_ranks.hpp"
#include "towpath/transport/simulated/gpu/step_cost.hpp"

// One rank of GpuRanks, only for the sources of this folder.

namespace towpath::transport::simulated {

class GpuEndpoint;
struct GpuPeer;

// Pooled by its creator.
struct GpuDelivery : gpu_links::Message, simulated::Delivery {
  GpuEndpoint* from = nullptr;
  GpuPeer* peer = nullptr;
  // Makes the message visible at the peer, in the order that fences require.
  void (*deliver)(GpuDelivery& delivery) = nullptr;
};

// A peer of a rank.
struct GpuPeer {
  int rank = kNoPeer;
  GpuEndpoint* endpoint = nullptr;
  const gpu_links::Route* route = nullptr;
  FenceOrder<GpuDelivery> order;
};

class GpuEndpoint final : public simulated::Endpoint {
 public:
  GpuEndpoint(GpuRanks& ranks, int rank)
      : simulated::Endpoint(
            ranks.simulation(rank), rank, ranks.ranks(),
            {ranks.options_.carries_data, ranks.options_.heap_bytes, ranks.options_.signals}),
        ranks_(ranks) {
    const auto& kernel = ranks.cost_of(rank).kernel;
    if (kernel && carries_data()) memory_ = std::make_unique<GpuMemory>(*this, *kernel);
  }

  bool is_addressable(int peer_rank) const override {
    return !const_cast<GpuEndpoint&>(*this).peer(peer_rank).route->leaves_host;
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
  friend class GpuMemory;
  StepCost cost(Protocol protocol) const { return ranks_.step_cost(rank(), protocol); }
  // At the rank that a Move goes to.
  StepCost cost_at(const Move& move) const { return ranks_.step_cost(move.peer, move.protocol); }
  Work work_of(const Move& move) const {
    const bool is_copy = move.peer == kNoPeer && move.has_destination && !move.has_addend;
    if (is_copy && ranks_.kernel_.has_switch_stages) return Work::stage;
    return simulated::work_of(move.peer != kNoPeer, move.has_destination, move.has_addend);
  }
  void start_local(Move& move);
  void start_put(Move& move);
  void start_signal(Move& move);
  GpuDelivery& new_delivery(Move& move);
  Time jitter();
  GpuPeer& peer(int rank);
  static void left(gpu_links::Message& message);
  static void arrived(gpu_links::Message& message);
  static void deliver(GpuDelivery& delivery);

  GpuRanks& ranks_;
  std::unique_ptr<GpuMemory> memory_;  // null without kernels or without data
  std::unordered_map<int, GpuPeer> peers_;
  std::array<GpuPeer*, 16> recent_peers_{};  // by rank modulo their number, saves a search
  std::uint64_t epoch_ = 0;
  std::uint64_t under_way_ = 0;
  Pool<GpuDelivery> deliveries_;
};

}  // namespace towpath::transport::simulated
