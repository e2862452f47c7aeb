// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "towpath/sim/timer.hpp"
#include "towpath/tenstorrent/ccl/fabric_worker.hpp"
#include "towpath/tenstorrent/ccl/multicast_worker.hpp"
#include "towpath/tenstorrent/ccl/page_ring.hpp"
#include "towpath/tenstorrent/cluster/cluster.hpp"
#include "towpath/tenstorrent/fabric/fabric.hpp"
#include "towpath/transport/transport.hpp"

// Transports of chips joined by Ethernet, one rank on each: every byte is read from DRAM, carried
// over the NoC, through the routers of the fabric and over the links, and written to the DRAM of
// the far chip.
//
//   FabricCluster cluster(t3000, {});
//   cluster.simulation(0).spawn("rank 0", [&] { cluster.transport(0).barrier(1_s); });
//   ...
//   cluster.run();
//
// A Move is cut into parts, which are dealt out to the workers that serve the links towards its
// peer. A worker's parts arrive in order. Parts that follow each other are told of by an increment
// of a word at the far chip: one word for each source and plane. With the last part of a Move, its
// bytes and its signal become visible.

namespace towpath::tenstorrent::ccl {

using transport::DirectMove;
using transport::Move;
using transport::Raise;
using transport::Signal;
using transport::Transport;

struct FabricClusterOptions {
  std::optional<fabric::Shape> shape;  // none: default_shape
  // Place in the shape of each rank; empty: rank r at place r, for all places.
  std::vector<int> places;
  bool carries_data = true;
  std::uint64_t heap_bytes = 4ull << 30;  // per rank; only what is touched takes memory
  std::uint32_t signals = 1u << 16;       // most that a rank can have
  std::uint64_t payload_bytes_max = 0;    // of a packet; 0: what the chip's spec says
  // Faults may be set only on links that the fabric uses.
  // With threads each chip is a partition: what the source of a delivery is told of its end, it is
  // told later by what a frame takes at least, with and without threads.
  RunOptions run{.finds_hazards = false};
  // Longest simulated time of a call of run() where links have faults.
  Time deadline = Time::from_seconds(1);
};

class FabricCluster {
 public:
  FabricCluster(std::shared_ptr<const machine::ChipCluster> description,
                const FabricClusterOptions& options);
  FabricCluster(const FabricCluster&) = delete;
  FabricCluster& operator=(const FabricCluster&) = delete;
  ~FabricCluster();

  sim::SimulationGroup& simulations() { return cluster_.simulations(); }
  // Where its rank's chip is simulated.
  sim::Simulation& simulation(int rank = 0);
  const fabric::Topology& topology() const { return fabric_.topology(); }
  Cluster& cluster() { return cluster_; }
  int ranks() const { return static_cast<int>(options_.places.size()); }
  Transport& transport(int rank);
  // How Moves are told of, and of how many packets at a time, or of all if they are fewer.
  void set_telling(Telling telling, std::uint64_t packets) {
    telling_ = telling;
    packets_per_increment_ = packets;
  }
  // Whether scratch is in the L1 of the cores that add up, and not in DRAM.
  void keep_scratch_near(bool keeps) { is_scratch_near_ = keeps; }
  // A call of the rank begins now: its chip's workers begin once their program is launched.
  void launch_program(int rank);
  // Whether a rank can greet all others: none where the fabric is a mesh, or chips between them are
  // left out.
  bool can_greet_all(int rank) const;
  // Raises a signal by 1 at all other ranks, by a packet each way along the line or ring that
  // routers copy: to each by the shorter way, or, all round, to each both ways round the ring.
  void greet_all(int rank, Signal signal, bool all_round_ring);
  // From now on what ranks store goes to all of them at once, as do signals (DirectMoves of their
  // group, raise_all), by workers that send along the line or ring; Moves to peers are refused.
  // Before the first run().
  void send_to_all();
  // Runs until no event is left. Throws TransportError::Kind::timeout, with the state of the links,
  // when the deadline passes first.
  void run(Time limit = Time::max());
  // Closes the connections of a rank's workers; each closes once its router has released its
  // packets.
  void close_connections(int rank);
  // Time at which the last connection was closed, after run(). Throws
  // DeadlockError when one can never be, naming the links that are down.
  Time closed_at() const;

 private:
  class Endpoint;
  struct Delivery;
  struct DeliveryPart;
  struct Stream;
  struct Run;
  struct Place;
  struct Broadcast;
  struct Stretch;
  struct Targets;
  struct Greeting;
  static constexpr int kWays = 2;  // along a line or round a ring

  void share_pages(Place& place);
  void create_workers(int place);
  void watch_arrivals(int place);
  Stream& stream(int from, int to, int plane);
  noc::Address arrival_word(int from, int to, int plane) const;
  void send(Delivery& delivery);
  DeliveryPart& add_part(Delivery& delivery, std::uint64_t offset, std::uint64_t size_bytes);
  void extend(Run& run, DeliveryPart& part) const;
  struct Route {
    std::vector<fabric::Direction> hops;
    fabric::Header header;
  };
  Route route_of(int from, int to) const;
  std::uint64_t pages_of(const DeliveryPart& part) const;
  std::uint64_t take_pages(PageRing& ring, std::uint64_t count, int place) const;
  void write_pages(int at, std::uint64_t first, std::span<const std::byte> payload,
                   std::uint64_t packet_bytes);
  void stage(DeliveryPart& part);
  void unstage(const DeliveryPart& part);
  template <typename Action>
  void for_each_connected_worker(Action action) const;
  std::size_t least_loaded(const std::vector<std::unique_ptr<FabricWorker>>& workers) const;
  std::size_t next_in_turn(const std::vector<std::unique_ptr<FabricWorker>>& workers) const;
  // Of multicasts (fabric_broadcast.cpp).
  void create_multicast_worker(int place, int plane);
  void check_unicasts() const;
  std::string multicast_refusal(int from, std::span<const int> ranks) const;
  std::optional<std::array<Targets, 2>> targets(int from, std::span<const int> ranks) const;
  MulticastWay way_of(int from, int plane, int way, const Targets& targets, bool has_bytes) const;
  Broadcast& new_broadcast(Endpoint& from, DirectMove* move);
  void broadcast(Endpoint& from, std::span<const int> ranks, std::span<const Raise> raises,
                 DirectMove* move);
  void add_stretch(Broadcast& broadcast, int plane, std::uint64_t first, std::uint64_t end,
                   const std::array<Targets, 2>& targets);
  void take_pages_for(Stretch& stretch, int plane);
  std::array<Targets, 2> all_round(int from, std::span<const int> ranks) const;
  void add_greeting(Broadcast& broadcast, const MulticastWay& way, int number);
  void expect(Stretch& stretch, Delivery& share, int plane, int way);
  void stretch_left(Broadcast& broadcast);
  void share_delivered(Broadcast& broadcast);
  void finish(Broadcast& broadcast);
  std::size_t multicast_stream(int from, int plane, int way) const;
  void arrived(DeliveryPart& part);
  void part_returned(DeliveryPart& part);
  void tell(const Endpoint& from, const Endpoint& to, sim::Action action, void* context);
  DeliveryPart& new_part(Place& place);
  [[noreturn]] void throw_deadline_exceeded() const;

  FabricClusterOptions options_;
  std::shared_ptr<const machine::ChipCluster> description_;
  std::vector<std::unique_ptr<Place>> places_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  // Kernels use the members above until the simulation ends with the cluster.
  Cluster cluster_;
  fabric::Fabric fabric_;
  sim::Timer deadline_;
  bool has_started_ = false;
  bool sends_to_all_ = false;
  Telling telling_ = Telling::behind;
  std::uint64_t packets_per_increment_ = 1;
  bool is_scratch_near_ = false;
};

}  // namespace towpath::tenstorrent::ccl
