// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "towpath/base/pool.hpp"
#include "towpath/gpu_links/network.hpp"
#include "towpath/sim/simulation.hpp"
#include "towpath/transport/simulated/endpoint.hpp"
#include "towpath/transport/simulated/gpu/step_cost.hpp"
#include "towpath/transport/transport.hpp"

// DirectMoves of simulated GPUs: loads and stores of a thread block, also through switches that
// combine and copy.
//
// The requests of a load take the route in one direction, with a header for each line, and the
// bytes return. A store takes the
// route, and its acknowledgment returns. A load that a switch combines uses the link of every
// member up once and the reader's link down once. A store that it copies uses the writer's link up
// once and every member's link down once. A thread block moves its range in pieces (PieceWindow).
// Its rate is that of its protocol, over all operands together. Memory is read when all loads have
// arrived, and written when all stores to a place have arrived.

namespace towpath::transport::simulated {

class DirectMoves {
 public:
  // rank -> GPU of the network's machine.
  DirectMoves(sim::Simulation& simulation, gpu_links::Network& network, std::vector<int> places);
  ~DirectMoves();
  DirectMoves(const DirectMoves&) = delete;
  DirectMoves& operator=(const DirectMoves&) = delete;

  // Adds the endpoint of the next rank, starting with rank 0.
  void add(Endpoint& endpoint) { endpoints_.push_back(&endpoint); }

  void set_kernel(const Kernel& kernel) { kernel_ = kernel; }
  // Starts a move after `delay`.
  void start(Endpoint& from, DirectMove& move, Time delay);
  bool has_under_way(int rank) const { return under_way_[static_cast<std::size_t>(rank)] > 0; }
  std::string refusal(int rank, const DirectNeeds& needs);

  // The path to the members of a group through their switch. One member represents the route.
  struct GroupRoutes {
    const gpu_links::Route* to_member = nullptr;
    const gpu_links::Route* from_member = nullptr;
    std::vector<int> up;    // of the other members, and of the rank itself
    std::vector<int> down;  // the same
  };
  // Valid for the lifetime of this object.
  const GroupRoutes& routes_of(int rank, std::span<const int> group);

 private:
  struct Path;
  struct Flight;
  struct LinkMessage;
  struct Requests;
  struct PendingRaise;

  // Time of the request of a piece to a peer: ahead of time, while the previous one is in flight,
  // or now.
  enum class Request : std::uint8_t { ahead, now };

  const gpu_links::Route& route(int from, int to);
  const machine::GpuCost& gpu(int rank) const;
  StepCost cost(const Flight& flight) const;
  void add_path(Flight& flight, std::vector<Path>& paths, const Location& location, bool is_load);

  // In this order.
  void begin(Flight& flight);
  void move_locally(Flight& flight);
  void issue_piece(Flight& flight, Request request);
  void load_piece(Flight& flight, Path& path, Bytes size, Request request);
  void send_requests(const gpu_links::Route& route, Bytes size);
  void store_piece(Flight& flight, Bytes size);
  LinkMessage& message_on(Flight& flight, Path& path, Bytes size, bool is_load);
  void left(LinkMessage& message);
  void arrived(LinkMessage& message);
  void note_load(Flight& flight);
  void note_store(Flight& flight, Path& path);
  void load_memory(Flight& flight);
  void store_memory(Flight& flight, int rank);
  void finish_if_sent(Flight& flight);
  void finish_loads(Flight& flight);
  static bool is_stored_locally(const Flight& flight, int own);
  void land(Flight& flight, Path& path);
  void raise(Flight& flight, int rank);
  void await_acknowledgement(Flight& flight);
  void make_visible(Flight& flight);

  sim::Simulation& simulation_;
  gpu_links::Network& network_;
  std::vector<int> places_;
  Kernel kernel_;
  std::vector<Endpoint*> endpoints_;
  std::vector<std::size_t> under_way_;  // per rank
  std::map<std::pair<int, std::vector<int>>, GroupRoutes> groups_;
  Pool<Flight> flights_;
  Pool<LinkMessage> messages_;
  Pool<Requests> requests_;
  Pool<PendingRaise> raises_;
};

}  // namespace towpath::transport::simulated
