// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/fabric_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "towpath/base/deadlock_error.hpp"
#include "towpath/base/index.hpp"
#include "towpath/tenstorrent/ccl/broadcasts.hpp"
#include "towpath/tenstorrent/ccl/endpoint.hpp"
#include "towpath/tenstorrent/ccl/link_faults.hpp"
#include "towpath/tenstorrent/ccl/rendezvous.hpp"
#include "towpath/tenstorrent/ccl/unicasts.hpp"

namespace towpath::tenstorrent::ccl {

using collective::Notification;

namespace {

// Packets per notification. Source: tt-metal, HEURISTIC_MAX_CHUNKS_PER_SYNC of its all-gather, and
// RING_UNIT_STEP_MAX_CHUNKS_PER_SYNC of its reduce-scatter by steps round a ring: four chunks of
// eight tiles. Other programs notify once.
constexpr std::uint64_t kPacketsPerNotification = 160;
constexpr std::uint64_t kPacketsPerNotificationInRing = 16;
constexpr auto kAllPackets = std::numeric_limits<std::uint64_t>::max();

}  // namespace

FabricCluster::FabricCluster(std::shared_ptr<const machine::ChipCluster> description,
                             const FabricClusterOptions& options)
    : link_faults_(options.run.link_faults),
      time_max_(options.deadline),
      chips_(std::move(description), {.shape = options.shape,
                                      .places = options.places,
                                      .carries_data = options.carries_data,
                                      .payload_bytes_max = options.payload_bytes_max,
                                      .run = options.run}) {
  unicasts_ = std::make_unique<Unicasts>(chips_);
  broadcasts_ = std::make_unique<Broadcasts>(chips_, *unicasts_);
  for (const auto& place : chips_.places()) {
    place->arrivals.on_arrival = [this](DeliveryPart& part) { unicasts_->arrived(part); };
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    endpoints_.push_back(std::make_unique<Endpoint>(
        *this, rank, Endpoint::Options{options.carries_data, options.heap_bytes, options.signals}));
  }
}

FabricCluster::~FabricCluster() = default;

transport::Transport& FabricCluster::transport(int rank) { return endpoint(rank); }

Endpoint& FabricCluster::endpoint(int rank) { return *endpoints_.at(index(rank)); }

void FabricCluster::set_plan(const collective::Plan& plan, std::function<void(int rank)> on_begin) {
  const collective::Schedule& schedule = *plan.schedule;
  if (plan.window_bytes > 0) {
    if (has_fifo_steps(schedule)) {
      throw std::invalid_argument(
          fmt::format("schedule '{}' sends to single ranks and to all at once; on chips it does "
                      "one of the two",
                      schedule.name));
    }
    broadcasts_->enable();
  }
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    endpoint(rank).workload().set_plan(plan, rank);
  }
  rendezvous_ = std::make_unique<Rendezvous>(*this, schedule, std::move(on_begin));
  set_notification(schedule);
}

void FabricCluster::set_notification(const collective::Schedule& schedule) {
  Notification notification = schedule.notification;
  if (notification == Notification::attached && !chips_.fill_ring()) {
    notification = Notification::trailing;
  }
  std::uint64_t packets = kAllPackets;
  if (notification == Notification::trailing) packets = kPacketsPerNotification;
  if (notification == Notification::attached && passes_on(schedule)) {
    packets = kPacketsPerNotificationInRing;
  }
  unicasts_->set_notification(notification, packets);
}

void FabricCluster::enter(int rank) {
  chips_.of(rank).workers.launch();
  rendezvous_->enter(rank);
}

void FabricCluster::close_connections(int rank) { chips_.of(rank).workers.close(); }

Time FabricCluster::closed_at() const {
  Time last;
  bool are_all_closed = true;
  for (const auto& place : chips_.places()) {
    last = std::max(last, place->workers.closed_at());
    are_all_closed &= place->workers.are_closed();
  }
  if (!are_all_closed) {
    const std::string outages = describe_outages(chips_.cluster());
    throw DeadlockError(fmt::format("{}{}connections of workers to their routers never close",
                                    outages, outages.empty() ? "" : "; "));
  }
  return last;
}

void FabricCluster::run(Time limit) {
  Cluster& cluster = chips_.cluster();
  if (!std::exchange(has_started_, true)) cluster.start();
  if (has_faults(link_faults_)) {
    deadline_.arm_in_background(
        cluster.simulation(), cluster.simulation().from_now(time_max_),
        [](void* context) { static_cast<FabricCluster*>(context)->throw_deadline_exceeded(); },
        this);
  }
  simulations().run(limit);
  deadline_.cancel();
}

void FabricCluster::throw_deadline_exceeded() const {
  throw transport::TransportError(
      transport::TransportError::Kind::timeout, transport::kNoPeer,
      fmt::format("the run has not ended after {} us of simulated time; {}", time_max_.us(),
                  describe_drops(chips_.cluster())));
}

}  // namespace towpath::tenstorrent::ccl
