// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/sim/crossing.hpp"
#include "towpath/tenstorrent/ccl/fabric_cluster.hpp"
#include "towpath/tenstorrent/ccl/multicast_worker.hpp"
#include "towpath/transport/simulated/endpoint.hpp"
#include "towpath/transport/simulated/fence_order.hpp"

// What FabricCluster's own files share.

namespace towpath::tenstorrent::ccl {

namespace simulated = transport::simulated;
using simulated::FenceOrder;
using transport::DirectNeeds;
using transport::kNoPeer;
using transport::Location;
using transport::Offset;
using transport::SignalOperation;
using transport::TransportError;

// Offset of the words that count arrivals, in the L1 of the worker that keeps them. Chosen here; no
// source.
inline constexpr std::uint64_t kArrivals = 0x1000;

// Delivery to a peer, or within the rank's own chip. Pooled.
struct FabricCluster::Delivery : simulated::Delivery {
  Endpoint* from = nullptr;
  Endpoint* to = nullptr;
  bool has_source = false;
  bool has_addend = false;
  bool has_destination = false;
  bool continues_reduction = false;
  bool adds_in_pairs = false;
  bool adds_received = false;
  int reads = 0;                   // operands in DRAM
  bool stays_near = false;         // nothing is stored in DRAM
  int to_leave = 0;                // parts that have not left
  int to_arrive = 0;               // parts that have not arrived
  Broadcast* broadcast = nullptr;  // that it is one rank's share of
};

struct FabricCluster::DeliveryPart : Part {
  FabricCluster* cluster = nullptr;
  Delivery* delivery = nullptr;  // until it has arrived
  int from_place = 0;
  std::uint64_t offset = 0;  // in the payload
  std::uint64_t staged_pages =
      0;  // at the source until it has left, or until it has arrived if it is stored there
  std::uint64_t landing_pages = 0;  // at the destination, until it has arrived
  Stream* stream = nullptr;         // null if it stays on its chip
  std::uint64_t packet_bytes = 0;   // payload of its packets, but for the last
};

// The part of a broadcast that goes on one plane.
struct FabricCluster::Stretch : Multicast {
  Broadcast* broadcast = nullptr;
  std::uint64_t offset = 0;         // of its bytes
  std::uint64_t staged_pages = 0;   // at the source
  std::uint64_t landing_pages = 0;  // at all destinations
};

// The packet of a greeting that goes one way.
struct FabricCluster::Greeting : Part {
  Broadcast* broadcast = nullptr;
};

// What goes to several ranks at once. Pooled.
struct FabricCluster::Broadcast {
  FabricCluster* cluster = nullptr;
  Endpoint* from = nullptr;
  DirectMove* move = nullptr;      // until it is visible; null for signals alone
  std::vector<std::byte> payload;  // until it has left
  std::deque<Stretch> stretches;   // one per plane; of a greeting one
  std::deque<Greeting> greetings;  // one per way; else none
  std::vector<Delivery*> shares;   // of each rank that it goes to
  std::vector<DeliveryPart*> parts;
  int to_leave = 0;    // stretches, or greetings
  int to_deliver = 0;  // ranks
};

// Packets from one place to another on one plane, in order. The source chooses where they land; the
// destination knows which parts are on their way to it.
struct FabricCluster::Stream {
  PageRing landings;
  std::deque<DeliveryPart*> under_way;
  std::uint32_t arrived = 0;
};

// Parts of a delivery that one increment tells of, those of one stream.
struct FabricCluster::Run {
  DeliveryPart* last = nullptr;
  std::uint64_t packets = 0;
};

struct FabricCluster::Place {
  Place(Device& device, std::uint64_t payload_bytes_max)
      : simulation(device.network().simulation()),
        crossing(simulation),
        pages(device.chip(), payload_bytes_max) {}
  sim::Simulation& simulation;
  sim::Crossing crossing;  // what it tells other places
  Pages pages;
  std::deque<DeliveryPart> parts;  // storage of those that start here
  std::vector<DeliveryPart*> free_parts;
  PageRing staging;  // for sources
  // By direction, then by plane.
  std::vector<std::vector<std::unique_ptr<FabricWorker>>> workers{fabric::kDirections};
  std::vector<std::unique_ptr<FabricWorker>> local_workers;
  std::vector<std::unique_ptr<MulticastWorker>> multicast_workers;  // by plane; or none
  std::vector<PageRing> multicast_landings;  // by plane, at all places, for what starts here
  std::deque<Broadcast> broadcasts;          // storage
  std::vector<Broadcast*> free_broadcasts;
  machine::Coordinate arrivals;                 // the worker with the words
  std::vector<machine::Coordinate> free_cores;  // those without a worker
  // To this place, by source and plane; then, by source, plane and way, those of multicasts.
  std::vector<Stream> streams;
};

class FabricCluster::Endpoint final : public simulated::Endpoint {
 public:
  Endpoint(FabricCluster& cluster, int rank, int ranks, const FabricClusterOptions& options)
      : simulated::Endpoint(cluster.simulation(rank), rank, ranks,
                            {options.carries_data, options.heap_bytes, options.signals}),
        cluster_(cluster),
        orders_(index(ranks)) {}

  int place() const { return cluster_.options_.places[index(rank())]; }
  bool is_addressable(int) const override { return false; }
  void start(Move& move) override;
  void start_direct(DirectMove& move) override;
  void raise_all(std::span<const Raise> raises) override;
  std::string direct_refusal(const DirectNeeds& needs) const override;
  void fence() override { ++epoch_; }
  bool is_quiet() const override { return under_way_ == 0; }

  void part_left(Delivery& delivery);
  void part_arrived(Delivery& delivery);
  // Its share of a broadcast to a rank, whose signal of a number is raised if there is one.
  Delivery& new_share(Broadcast& broadcast, int peer, const Raise* raise);
  void load_for(Broadcast& broadcast);
  void left(Broadcast& broadcast);

 private:
  Delivery& take_delivery();
  Delivery& new_delivery(Move& move);
  bool continues_reduction(const Move& move);
  bool is_near(const Move& move, Move::Region region) const;
  int reads_of(const Move& move, bool continues_reduction) const;
  bool is_there(const Move& move) const;
  void deliver(Delivery& delivery);
  void delivered(Delivery& delivery);
  void release(Delivery& delivery);

  FabricCluster& cluster_;
  std::vector<FenceOrder<Delivery>> orders_;  // by peer
  // Moves, each of one thread block, whose last use was a reduction inside the chip.
  std::unordered_set<const Move*> reducing_;
  std::uint64_t epoch_ = 0;
  std::uint64_t under_way_ = 0;
  std::deque<Delivery> deliveries_;  // storage
  std::vector<Delivery*> free_deliveries_;
};

}  // namespace towpath::tenstorrent::ccl
