// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/channels.hpp"

#include <cstring>

#include "towpath/base/invariant.hpp"

namespace towpath::live {

using transport::Move;
using transport::Signal;
using transport::SignalOperation;

Channels::Channels(transport::Transport& transport)
    : transport_(transport),
      rank_(transport.rank()),
      memory_(transport.allocate(heap_bytes(transport.ranks()))),
      arrivals_(transport.allocate_signals(static_cast<std::uint32_t>(transport.ranks()) * kSlots)),
      credits_(transport.allocate_signals(static_cast<std::uint32_t>(transport.ranks()))),
      ends_(index(transport.ranks())) {
  for (End& end : ends_) end.slots = std::make_unique<Slot[]>(kSlots);
}

void Channels::start(Move& move) {
  ++in_flight_;
  move.context = this;
  move.done = [](Move& finished) { --static_cast<Channels*>(finished.context)->in_flight_; };
  transport_.start(move);
}

bool Channels::can_send(int peer) {
  End& to = end(peer);
  if (to.sent < to.free_until) return true;
  to.free_until = transport_.signal_fetch(credits_ + static_cast<Signal>(peer)) + kSlots;
  return to.sent < to.free_until;
}

void Channels::send(int peer, Span head, Span body, std::uint32_t stamp) {
  End& to = end(peer);
  TOWPATH_CHECK(to.sent < to.free_until && head.size_bytes + body.size_bytes <= kSlotBytes,
                "a chunk for rank {} has a free slot and fits into it", peer);
  const std::uint64_t place = this->place(rank_, to.sent);
  Slot& slot = to.slots[to.sent % kSlots];
  const transport::Offset remote = memory_ + place * kSlotBytes;
  if (head.size_bytes > 0) {
    std::memcpy(slot.head_bytes, head.data, head.size_bytes);
    slot.head = {};
    slot.head.source = slot.head_bytes;
    slot.head.has_source = true;
    slot.head.size_bytes = head.size_bytes;
    slot.head.peer = peer;
    slot.head.remote = remote;
    start(slot.head);
    transport_.fence();
  }
  Move& move = slot.body = {};
  move.source = body.data;
  move.has_source = body.size_bytes > 0;
  move.size_bytes = body.size_bytes;
  move.peer = peer;
  move.remote = remote + head.size_bytes;
  move.has_signal = true;
  move.signal = static_cast<Signal>(arrivals_ + place);
  move.signal_value = (to.sent / kSlots + 1) << kStampBits | stamp;
  move.signal_operation = SignalOperation::set;
  ++to.sent;
  start(move);
}

Arrival Channels::arrival(int peer) const {
  const End& from = end(peer);
  const std::uint64_t place = this->place(peer, from.consumed);
  const std::uint64_t value = transport_.signal_fetch(static_cast<Signal>(arrivals_ + place));
  if (value >> kStampBits != from.consumed / kSlots + 1) return {};
  return {transport_.data(memory_ + place * kSlotBytes),
          static_cast<std::uint32_t>(value & ((1U << kStampBits) - 1))};
}

// Credits are given for two slots at a time: half the traffic, and never a sender that waits for a
// slot that is free.
void Channels::consume(int peer) {
  End& from = end(peer);
  ++from.consumed;
  if (from.consumed - from.credited < kSlots / 2) return;
  from.credited = from.consumed;
  Move& credit = from.credit = {};
  credit.peer = peer;
  credit.has_signal = true;
  credit.signal = credits_ + static_cast<Signal>(rank_);
  credit.signal_value = from.consumed;
  credit.signal_operation = SignalOperation::set;
  start(credit);
}

}  // namespace towpath::live
