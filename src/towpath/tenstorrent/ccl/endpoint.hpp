// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "towpath/base/pool.hpp"
#include "towpath/tenstorrent/ccl/delivery.hpp"
#include "towpath/tenstorrent/ccl/workload.hpp"
#include "towpath/transport/simulated/endpoint.hpp"
#include "towpath/transport/simulated/fence_order.hpp"

namespace towpath::tenstorrent::ccl {

class SimulatedChips;

// Transport of one rank.
class Endpoint final : public transport::simulated::Endpoint, public transport::MoveOrigins {
 public:
  Endpoint(SimulatedChips& ranks, int rank, const Options& options);

  int place() const { return place_; }
  Workload& workload() { return workload_; }

  bool is_addressable(int) const override { return false; }
  void start(transport::Move& move) override;
  void start_direct(transport::DirectMove& move) override;
  void raise_all(std::span<const transport::Raise> raises) override;
  std::string direct_refusal(const transport::DirectNeeds& needs) const override;
  transport::MoveOrigins* move_origins() override { return this; }
  void set_origin(std::uint32_t block, std::uint32_t step) override {
    workload_.set_step(block, step);
  }
  void fence() override { ++epoch_; }
  bool is_quiet() const override { return in_flight_ == 0; }

  void part_left(Delivery& delivery);
  void part_arrived(Delivery& delivery);
  // One rank's share of a broadcast, which raises a signal there unless it is null.
  Delivery& new_share(Broadcast& broadcast, int peer, const transport::Raise* raise);
  void load_for(Broadcast& broadcast);
  void left(Broadcast& broadcast);

 private:
  Delivery& take_delivery();
  Delivery& new_delivery(transport::Move& move);
  void deliver(Delivery& delivery);
  void delivered(Delivery& delivery);
  void recycle(Delivery& delivery);

  SimulatedChips& ranks_;
  int place_;
  Workload workload_;
  std::vector<transport::simulated::FenceOrder<Delivery>> orders_;  // by peer
  std::uint64_t epoch_ = 0;
  std::uint64_t in_flight_ = 0;
  Pool<Delivery> deliveries_;
};

}  // namespace towpath::tenstorrent::ccl
