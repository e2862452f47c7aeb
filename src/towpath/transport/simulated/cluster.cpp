// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/simulated/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "towpath/transport/simulated/endpoint.hpp"

namespace towpath::transport::simulated {
namespace {

Time cost_of_payload(const machine::ProtocolCost& cost, std::uint64_t size_bytes) {
  return transfer_time(Bytes(size_bytes), cost.block_rate);
}

}  // namespace

// One Move to a peer, from start() until it is visible there. Pooled.
struct Cluster::Delivery : cluster::Message {
  Endpoint* from = nullptr;
  Peer* peer = nullptr;
  Move* move = nullptr;  // until done
  std::vector<std::byte> payload;
  std::uint64_t size_bytes = 0;
  Offset remote = 0;
  bool has_signal = false;
  std::uint64_t signal_word = 0;
  std::uint64_t signal_value = 0;
  SignalOperation signal_operation = SignalOperation::set;
  std::uint64_t epoch = 0;
};

// What one rank knows about another.
struct Cluster::Peer {
  int rank = kNoPeer;
  Endpoint* endpoint = nullptr;
  const cluster::Route* route = nullptr;
  // Deliveries under way by fence epoch: of the oldest one, and of those behind it, oldest first.
  struct Epoch {
    std::uint64_t number = 0;
    std::uint64_t under_way = 0;
  };
  Epoch oldest;
  std::vector<Epoch> later;
  std::vector<Delivery*> held;  // arrived before their turn

  Epoch& youngest() { return later.empty() ? oldest : later.back(); }
};

class Cluster::Endpoint final : public simulated::Endpoint {
 public:
  Endpoint(Cluster& cluster, int rank)
      : simulated::Endpoint(
            cluster.simulation_, rank, cluster.ranks(),
            {cluster.options_.carries_data, cluster.options_.heap_bytes, cluster.options_.signals}),
        cluster_(cluster) {}

  bool is_addressable(int peer_rank) const override {
    return !const_cast<Endpoint&>(*this).peer(peer_rank).route->leaves_host;
  }
  void start(Move& move) override;
  void fence() override { ++epoch_; }
  bool is_quiet() const override { return under_way_ == 0; }

 private:
  const machine::ProtocolCost& cost(Protocol protocol) const {
    return cluster_.network_.machine().gpu().protocol[static_cast<std::size_t>(protocol)];
  }
  void start_local(Move& move);
  void start_put(Move& move);
  void start_signal(Move& move);
  Delivery& new_delivery(const Move& move);
  Time jitter();
  Peer& peer(int rank);
  static void send(void* delivery);
  static void left(cluster::Message& message);
  static void arrived(cluster::Message& message);
  void deliver_in_order(Delivery& delivery);
  void deliver(Delivery& delivery);

  Cluster& cluster_;
  std::unordered_map<int, Peer> peers_;
  std::array<Peer*, 16> recent_peers_{};  // by rank modulo their number; a look saves a search
  std::uint64_t epoch_ = 0;
  std::uint64_t under_way_ = 0;
  std::deque<Delivery> deliveries_;  // storage
  std::vector<Delivery*> free_deliveries_;
};

// --- the data path ----------------------------------------------------------------------------

void Cluster::Endpoint::start(Move& move) {
  if (move.peer == kNoPeer) {
    start_local(move);
  } else if (move.has_source) {
    start_put(move);
  } else {
    start_signal(move);
  }
}

void Cluster::Endpoint::start_local(Move& move) {
  if (carries_data() && move.size_bytes > 0) {
    combine(move, move.destination);
  }
  const Time duration = cost_of_payload(cost(move.protocol), move.size_bytes) + jitter();
  if (duration == Time()) return finish(move);
  // A Move knows no transport, so the event carries a delivery that goes nowhere.
  Delivery& local = new_delivery(move);
  cluster_.simulation_.after(
      duration,
      [](void* context) {
        Delivery& finished = *static_cast<Delivery*>(context);
        Endpoint& from = *finished.from;
        Move& done = *finished.move;
        from.free_deliveries_.push_back(&finished);
        from.finish(done);
      },
      &local);
}

void Cluster::Endpoint::start_put(Move& move) {
  Delivery& delivery = new_delivery(move);
  if (carries_data() && move.size_bytes > 0) {
    delivery.payload.resize(move.size_bytes);
    std::byte* result = move.has_destination ? move.destination : delivery.payload.data();
    combine(move, result);
    if (move.has_destination) {
      std::memcpy(delivery.payload.data(), move.destination, move.size_bytes);
    }
  }
  const machine::ProtocolCost& price = cost(move.protocol);
  delivery.size = on_wire(Bytes(move.size_bytes), move.protocol);
  delivery.pace = on_wire(price.block_rate, move.protocol);
  if (move.has_signal) {
    // A fenced flag is a message of its own: it leaves when the payload is acknowledged, so three
    // trips pass instead of one.
    if (price.fences) delivery.delay += delivery.peer->route->latency * 2;
    delivery.delay += price.receive_overhead;
  }
  cluster_.simulation_.after(price.send_overhead, send, &delivery);
}

// A flag alone is a posted store: its sender goes on at once.
void Cluster::Endpoint::start_signal(Move& move) {
  Delivery& delivery = new_delivery(move);
  delivery.size = Bytes(0);
  delivery.pace = cost(move.protocol).block_rate;
  delivery.delay += cost(move.protocol).receive_overhead;
  delivery.move = nullptr;
  cluster_.network_.send(delivery);
  finish(move);
}

Cluster::Delivery& Cluster::Endpoint::new_delivery(const Move& move) {
  if (free_deliveries_.empty()) {
    free_deliveries_.push_back(&deliveries_.emplace_back());
  }
  Delivery& delivery = *free_deliveries_.back();
  free_deliveries_.pop_back();
  delivery.from = this;
  delivery.move = const_cast<Move*>(&move);
  delivery.size_bytes = move.size_bytes;
  delivery.has_signal = move.has_signal;
  if (move.peer == kNoPeer) return delivery;

  delivery.peer = &peer(move.peer);
  delivery.remote = move.remote;
  if (move.has_signal) {
    heap().check_signal(move.signal);
    delivery.signal_word = heap().word_of(move.signal);
  }
  delivery.signal_value = move.signal_value;
  delivery.signal_operation = move.signal_operation;
  delivery.epoch = epoch_;
  delivery.route = delivery.peer->route;
  delivery.protocol = move.protocol;
  delivery.delay = jitter();
  delivery.left = left;
  delivery.arrived = arrived;
  if (!move.has_source) delivery.left = nullptr;
  if (move.size_bytes > 0) heap().check_range(move.remote, move.size_bytes);

  Peer& to = *delivery.peer;
  if (to.youngest().number != epoch_) {
    // An epoch with nothing under way is the oldest one, and over.
    if (to.youngest().under_way == 0) {
      to.oldest = {epoch_, 0};
    } else {
      to.later.push_back({epoch_, 0});
    }
  }
  ++to.youngest().under_way;
  ++under_way_;
  return delivery;
}

Time Cluster::Endpoint::jitter() {
  const std::int64_t most = cluster_.options_.jitter_max.ps();
  if (most == 0) return Time();
  return Time::from_ps(
      static_cast<std::int64_t>(cluster_.random_.below(static_cast<std::uint64_t>(most) + 1)));
}

Cluster::Peer& Cluster::Endpoint::peer(int rank) {
  Peer*& recent = recent_peers_[static_cast<std::size_t>(rank) % recent_peers_.size()];
  if (recent != nullptr && recent->rank == rank) return *recent;
  if (rank < 0 || rank >= ranks()) {
    throw std::out_of_range(
        fmt::format("rank {} puts to rank {}; there are {}", this->rank(), rank, ranks()));
  }
  Peer& found = peers_[rank];
  recent = &found;
  if (found.endpoint == nullptr) {
    found.rank = rank;
    found.endpoint = cluster_.endpoints_[static_cast<std::size_t>(rank)].get();
    const auto& gpus = cluster_.options_.gpus;
    found.route = &cluster_.network_.route(gpus[static_cast<std::size_t>(this->rank())],
                                           gpus[static_cast<std::size_t>(rank)]);
  }
  return found;
}

void Cluster::Endpoint::send(void* context) {
  Delivery& delivery = *static_cast<Delivery*>(context);
  delivery.from->cluster_.network_.send(delivery);
}

void Cluster::Endpoint::left(cluster::Message& message) {
  Delivery& delivery = static_cast<Delivery&>(message);
  Move& move = *std::exchange(delivery.move, nullptr);
  delivery.from->finish(move);
}

void Cluster::Endpoint::arrived(cluster::Message& message) {
  Delivery& delivery = static_cast<Delivery&>(message);
  delivery.from->deliver_in_order(delivery);
}

// Holds back what a fence puts behind something that is still under way to the same peer.
void Cluster::Endpoint::deliver_in_order(Delivery& delivery) {
  Peer& to = *delivery.peer;
  if (delivery.epoch != to.oldest.number) {
    to.held.push_back(&delivery);
    return;
  }
  deliver(delivery);
  while (to.oldest.under_way == 0 && !to.later.empty()) {
    to.oldest = to.later.front();
    to.later.erase(to.later.begin());
    std::vector<Delivery*> ready;
    std::erase_if(to.held, [&](Delivery* held) {
      const bool is_next = held->epoch == to.oldest.number;
      if (is_next) ready.push_back(held);
      return is_next;
    });
    for (Delivery* next : ready) deliver(*next);
  }
}

void Cluster::Endpoint::deliver(Delivery& delivery) {
  Endpoint& to = *delivery.peer->endpoint;
  if (!delivery.payload.empty()) {
    std::memcpy(to.data(delivery.remote), delivery.payload.data(), delivery.payload.size());
    delivery.payload.clear();
  }
  --delivery.peer->oldest.under_way;
  --under_way_;
  const bool has_signal = delivery.has_signal;
  const std::uint64_t word = delivery.signal_word;
  const std::uint64_t value = delivery.signal_value;
  const SignalOperation operation = delivery.signal_operation;
  free_deliveries_.push_back(&delivery);
  if (has_signal) to.raise(word, value, operation);
  notify_blocked();
}

// --- the cluster --------------------------------------------------------------------------------

Cluster::Cluster(sim::Simulation& simulation, std::shared_ptr<const machine::Machine> machine,
                 const ClusterOptions& options)
    : simulation_(simulation),
      network_(simulation, machine),
      options_(options),
      random_(simulation.random("transport jitter")) {
  if (options_.gpus.empty()) {
    options_.gpus.resize(static_cast<std::size_t>(machine->ranks()));
    std::iota(options_.gpus.begin(), options_.gpus.end(), 0);
  }
  std::vector<bool> is_taken(static_cast<std::size_t>(machine->ranks()));
  for (const int gpu : options_.gpus) {
    if (gpu < 0 || gpu >= machine->ranks() || is_taken[static_cast<std::size_t>(gpu)]) {
      throw std::invalid_argument(
          fmt::format("a rank is placed on GPU {} of machine '{}'; allowed are {} different ones",
                      gpu, machine->name(), machine->ranks()));
    }
    is_taken[static_cast<std::size_t>(gpu)] = true;
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    endpoints_.push_back(std::make_unique<Endpoint>(*this, rank));
  }
}

Cluster::~Cluster() = default;

Transport& Cluster::transport(int rank) { return *endpoints_.at(static_cast<std::size_t>(rank)); }

}  // namespace towpath::transport::simulated
