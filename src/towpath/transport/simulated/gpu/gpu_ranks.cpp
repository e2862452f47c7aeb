// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/simulated/gpu/gpu_ranks.hpp"

#include <fmt/format.h>

#include <utility>

#include "towpath/base/invariant.hpp"
#include "towpath/transport/simulated/gpu/gpu_endpoint.hpp"

namespace towpath::transport::simulated {
// --- the data path ----------------------------------------------------------------------------

void GpuEndpoint::start(Move& move) {
  if (move.peer == kNoPeer) {
    start_local(move);
  } else if (move.has_source) {
    start_put(move);
  } else {
    start_signal(move);
  }
}

void GpuEndpoint::start_local(Move& move) {
  if (carries_data() && move.size_bytes > 0) {
    combine(move, move.destination);
  }
  const Time duration = cost(move.protocol).local(Bytes(move.size_bytes), work_of(move)) + jitter();
  if (duration == Time()) return finish(move);
  // A Move has no transport, so the event carries a delivery without a peer.
  GpuDelivery& local = new_delivery(move);
  simulation().after(
      duration,
      [](void* context) {
        GpuDelivery& finished = *static_cast<GpuDelivery*>(context);
        GpuEndpoint& from = *finished.from;
        Move& done = *finished.move;
        from.deliveries_.release(finished);
        from.finish(done);
      },
      &local);
}

void GpuEndpoint::start_put(Move& move) {
  GpuDelivery& delivery = new_delivery(move);
  load(delivery);
  const StepCost price = cost(move.protocol);
  const gpu_links::Route& route = *delivery.peer->route;
  delivery.size = price.on_wire_of(Bytes(move.size_bytes));
  delivery.segment_min = gpu_links::kSegmentMin;
  delivery.pace = price.pace(Bytes(move.size_bytes), work_of(move));
  delivery.delay +=
      move.has_signal ? price.after_put(route, cost_at(move)) : price.by_adapter(route);
  ranks_.network_.send_at(simulation().from_now(price.before_put(route.leaves_host)), delivery);
}

// A flag without data is a posted store: its sender continues immediately.
void GpuEndpoint::start_signal(Move& move) {
  GpuDelivery& delivery = new_delivery(move);
  delivery.size = Bytes(0);
  delivery.pace = cost(move.protocol).rate(Work::combine);
  delivery.delay += cost_at(move).after_flag();
  delivery.move = nullptr;
  ranks_.network_.send(delivery);
  finish(move);
}

GpuDelivery& GpuEndpoint::new_delivery(Move& move) {
  GpuDelivery& delivery = deliveries_.take();
  delivery.from = this;
  delivery.deliver = deliver;
  fill(delivery, move);
  if (move.peer == kNoPeer) return delivery;

  delivery.peer = &peer(move.peer);
  delivery.epoch = epoch_;
  delivery.route = delivery.peer->route;
  delivery.protocol = move.protocol;
  delivery.turn = move.turn == transport::kNoTurn
                      ? gpu_links::kNoTurn
                      : static_cast<std::uint64_t>(rank()) << 16 | move.turn;
  delivery.delay = jitter();
  delivery.left = left;
  delivery.arrived = arrived;
  if (!move.has_source) delivery.left = nullptr;
  delivery.peer->order.add(delivery);
  ++under_way_;
  return delivery;
}

Time GpuEndpoint::jitter() {
  const std::int64_t most = ranks_.options_.jitter_max.ps();
  if (most == 0) return Time();
  return Time::from_ps(
      static_cast<std::int64_t>(ranks_.random_.below(static_cast<std::uint64_t>(most) + 1)));
}

GpuPeer& GpuEndpoint::peer(int rank) {
  GpuPeer*& recent = recent_peers_[static_cast<std::size_t>(rank) % recent_peers_.size()];
  if (recent != nullptr && recent->rank == rank) return *recent;
  check_peer(rank);
  GpuPeer& found = peers_[rank];
  recent = &found;
  if (found.endpoint == nullptr) {
    found.rank = rank;
    const auto& endpoints = ranks_.endpoints_;
    found.endpoint = endpoints[static_cast<std::size_t>(rank) % endpoints.size()].get();
    const auto& places = ranks_.options_.places;
    found.route = &ranks_.network_.route(places[static_cast<std::size_t>(this->rank())],
                                         places[static_cast<std::size_t>(rank)]);
  }
  return found;
}

void GpuEndpoint::left(gpu_links::Message& message) {
  GpuDelivery& delivery = static_cast<GpuDelivery&>(message);
  Move& move = *std::exchange(delivery.move, nullptr);
  delivery.from->finish(move);
}

void GpuEndpoint::arrived(gpu_links::Message& message) {
  GpuDelivery& delivery = static_cast<GpuDelivery&>(message);
  delivery.peer->order.arrived(delivery, [](GpuDelivery& visible) { visible.deliver(visible); });
}

void GpuEndpoint::deliver(GpuDelivery& delivery) {
  GpuEndpoint& from = *delivery.from;
  GpuEndpoint& to = *delivery.peer->endpoint;
  to.land(delivery);
  if (!delivery.payload.empty()) to.changed(delivery.remote, delivery.payload.size());
  delivery.payload.clear();
  const auto return_it = [](void* context) {
    GpuDelivery& over = *static_cast<GpuDelivery*>(context);
    --over.from->under_way_;
    over.from->deliveries_.release(over);
  };
  GpuRanks& ranks = to.ranks_;
  ranks.crossings_[ranks.part_of(to.rank())].give_back(from.simulation(), return_it, &delivery);
  if (!ranks.parts_.are_several()) from.notify_blocked();
}

// --- the ranks ---------------------------------------------------------------------------------

GpuRanks::GpuRanks(const gpu_links::Parts& parts, std::shared_ptr<const machine::Machine> machine,
                   const GpuRanksOptions& options)
    : parts_(parts),
      network_(parts, machine),
      options_(options),
      random_(parts.simulations.front()->random("transport jitter")) {
  const bool is_shared = options.period > 0 || options.jitter_max != Time();
  TOWPATH_CHECK(!parts.are_several() || !is_shared, "ranks in {} parts share a fold or jitter",
                parts.simulations.size());
  for (sim::Simulation* const simulation : parts_.simulations) crossings_.emplace_back(*simulation);
  options_.places = placement(options.places, machine->ranks(), [&](int gpu) {
    return fmt::format("GPU {} of machine '{}'", gpu, machine->name());
  });
  direct_moves_ =
      std::make_unique<DirectMoves>(*parts_.simulations.front(), network_, options_.places);
  if (options_.period > 0) network_.fold(std::move(options_.folded_links));
}

GpuRanks::~GpuRanks() = default;

Transport& GpuRanks::transport(int rank) {
  if (endpoints_.empty()) add_endpoints();
  return *endpoints_.at(static_cast<std::size_t>(rank));
}

void GpuRanks::add_endpoints() {
  for (int rank = 0; rank < simulated_ranks(); ++rank) {
    endpoints_.push_back(std::make_unique<GpuEndpoint>(*this, rank));
    direct_moves_->add(*endpoints_.back());
  }
}

}  // namespace towpath::transport::simulated
