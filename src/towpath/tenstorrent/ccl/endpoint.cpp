// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/endpoint.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/tenstorrent/ccl/broadcasts.hpp"
#include "towpath/tenstorrent/ccl/simulated_chips.hpp"
#include "towpath/tenstorrent/ccl/unicasts.hpp"

namespace towpath::tenstorrent::ccl {

using transport::DirectMove;
using transport::DirectNeeds;
using transport::kNoPeer;
using transport::Move;
using transport::Raise;

Endpoint::Endpoint(SimulatedChips& ranks, int rank, const Options& options)
    : transport::simulated::Endpoint(ranks.simulation(rank), rank, ranks.ranks(), options),
      ranks_(ranks),
      place_(ranks.chips().place_of(rank)),
      orders_(index(ranks.ranks())) {}

// --- to one rank ---------------------------------------------------------------------------------

Delivery& Endpoint::take_delivery() {
  Delivery& delivery = deliveries_.take();
  delivery.from = this;
  delivery.to = nullptr;
  delivery.broadcast = nullptr;
  return delivery;
}

Delivery& Endpoint::new_delivery(Move& move) {
  Delivery& delivery = take_delivery();
  delivery.work = workload_.work_of(move);
  delivery.epoch = epoch_;
  fill(delivery, move);
  if (move.peer == kNoPeer) return delivery;
  check_peer(move.peer);
  delivery.to = &ranks_.endpoint(move.peer);
  orders_[index(move.peer)].add(delivery);
  ++in_flight_;
  return delivery;
}

void Endpoint::start(Move& move) {
  if (move.peer != kNoPeer) ranks_.broadcasts().check_unicasts();
  Delivery& delivery = new_delivery(move);
  load(delivery);
  if (move.peer == kNoPeer && workload_.is_in_place(move)) {
    recycle(delivery);
    return finish(move);
  }
  // A flag without data is a posted store: its sender continues immediately.
  const bool is_flag = !move.has_source;
  if (is_flag) delivery.move = nullptr;
  ranks_.unicasts().send(delivery);
  if (is_flag) finish(move);
}

void Endpoint::part_left(Delivery& delivery) {
  if (--delivery.to_leave > 0) return;
  Move* move = std::exchange(delivery.move, nullptr);
  if (delivery.to == nullptr) recycle(delivery);
  if (move != nullptr) finish(*move);
}

void Endpoint::part_arrived(Delivery& delivery) {
  if (--delivery.to_arrive > 0) return;
  if (delivery.broadcast != nullptr) return deliver(delivery);
  delivery.from->orders_[index(rank())].arrived(delivery,
                                                [this](Delivery& visible) { deliver(visible); });
}

// At its destination.
void Endpoint::deliver(Delivery& delivery) {
  land(delivery);
  if (delivery.from == this) return delivered(delivery);
  ranks_.chips().notify(
      place(), delivery.from->place(),
      [](void* context) {
        Delivery& done = *static_cast<Delivery*>(context);
        done.from->delivered(done);
      },
      &delivery);
}

void Endpoint::delivered(Delivery& delivery) {
  --in_flight_;
  Broadcast* const broadcast = delivery.broadcast;
  recycle(delivery);
  if (broadcast != nullptr) ranks_.broadcasts().share_delivered(*broadcast);
  notify_blocked();
}

void Endpoint::recycle(Delivery& delivery) {
  delivery.payload.clear();
  deliveries_.release(delivery);
}

// --- to all ranks --------------------------------------------------------------------------------

void Endpoint::start_direct(DirectMove& move) {
  const transport::Location& to = move.destinations.front();
  std::vector<int> others(to.group.begin(), to.group.end());
  std::erase(others, rank());
  ranks_.broadcasts().send(*this, others, move.raises, &move);
}

void Endpoint::raise_all(std::span<const Raise> raises) {
  Broadcasts& broadcasts = ranks_.broadcasts();
  if (!broadcasts.is_enabled()) return Transport::raise_all(raises);
  std::vector<int> ranks;
  for (const Raise& raise : raises) ranks.push_back(raise.rank);
  if (broadcasts.reaches(place(), ranks)) return broadcasts.send(*this, ranks, raises, nullptr);
  for (const Raise& raise : raises) {
    broadcasts.send(*this, {&raise.rank, 1}, {&raise, 1}, nullptr);
  }
}

std::string Endpoint::direct_refusal(const DirectNeeds& needs) const {
  if (!needs.peers.empty()) {
    return "chips do not load from or store to the memory of one other; all at once they do store "
           "to";
  }
  if (needs.combines) return "chips do not add up what they load from others";
  for (const std::vector<int>& group : needs.groups) {
    const std::string refusal = ranks_.broadcasts().refusal(place(), group);
    if (!refusal.empty()) return refusal;
  }
  return {};
}

Delivery& Endpoint::new_share(Broadcast& broadcast, int peer, const Raise* raise) {
  check_peer(peer);
  Delivery& delivery = take_delivery();
  const DirectMove* const move = broadcast.move;
  delivery.move = nullptr;
  delivery.to = &ranks_.endpoint(peer);
  delivery.broadcast = &broadcast;
  delivery.to_arrive = 0;
  delivery.size_bytes = move == nullptr ? 0 : move->size_bytes;
  delivery.remote = move == nullptr ? 0 : move->destinations.front().offset;
  if (delivery.size_bytes > 0) heap().check_range(delivery.remote, delivery.size_bytes);
  if (carries_data()) delivery.payload.resize(delivery.size_bytes);
  delivery.has_signal = raise != nullptr;
  if (raise != nullptr) {
    heap().check_signal(raise->signal);
    delivery.signal_word = heap().word_of(raise->signal);
    delivery.signal_value = raise->value;
    delivery.signal_operation = transport::SignalOperation::add;
  }
  ++in_flight_;
  return delivery;
}

void Endpoint::load_for(Broadcast& broadcast) {
  const DirectMove& move = *broadcast.move;
  const transport::Offset offset = move.sources.front().offset;
  heap().check_range(offset, move.size_bytes);
  if (!carries_data()) return;
  broadcast.payload.assign(data(offset), data(offset) + move.size_bytes);
}

// Its workers have stored the rank's own share.
void Endpoint::left(Broadcast& broadcast) {
  DirectMove& move = *broadcast.move;
  if (!broadcast.payload.empty()) {
    std::memcpy(data(move.destinations.front().offset), broadcast.payload.data(),
                broadcast.payload.size());
  }
  broadcast.payload.clear();
  if (move.done != nullptr) move.done(move);
}

}  // namespace towpath::tenstorrent::ccl
