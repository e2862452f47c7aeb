// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/phase.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace towpath::live {

namespace {

std::uint64_t chunk_after(std::uint64_t done, std::uint64_t size_bytes) {
  return std::min(Channels::kSlotBytes, size_bytes - done);
}

}  // namespace

void Phase::clear(int ranks) {
  sends.assign(index(ranks), {});
  receives.assign(index(ranks), {});
  combines = false;
  is_result_sent = false;
  begins_together = false;
  own = nullptr;
  result = {};
}

PhaseTransfer::PhaseTransfer(Channels& channels, const Combination& combination)
    : channels_(channels),
      combination_(combination),
      sent_(index(channels.ranks())),
      received_(index(channels.ranks())) {}

void PhaseTransfer::begin() {
  std::fill(sent_.begin(), sent_.end(), 0);
  std::fill(received_.begin(), received_.end(), 0);
  is_own_due_ = !phase_.combines && phase_.result.size_bytes > 0;
  unfinished_ = phase_.result.size_bytes > 0 ? 1 : 0;
  for (int rank = 0; rank < channels_.ranks(); ++rank) {
    if (rank == channels_.rank()) continue;
    if (send_of(rank).size_bytes > 0) ++unfinished_;
    if (!phase_.combines && phase_.receives[index(rank)].size_bytes > 0) ++unfinished_;
  }
}

// Each rank begins with the next one, so that they do not all write to the same rank.
bool PhaseTransfer::advance() {
  const int ranks = channels_.ranks();
  bool any = false;
  for (int step = 1; step < ranks; ++step) any |= send_to((channels_.rank() + step) % ranks);
  if (phase_.combines) return combine_arrived() || any;
  if (phase_.begins_together) {
    if (!have_all_begun()) return any;
    phase_.begins_together = false;
  }
  any |= copy_own();
  for (int step = 1; step < ranks; ++step) {
    any |= receive_from((channels_.rank() + ranks - step) % ranks);
  }
  return any;
}

std::uint32_t PhaseTransfer::stamp_of(std::uint64_t size) const {
  const std::uint64_t mixed = (phase_.mark + 0x9e3779b97f4a7c15 * (size + 1)) * 0xff51afd7ed558ccd;
  return static_cast<std::uint32_t>(mixed >> (64 - Channels::kStampBits));
}

bool PhaseTransfer::send_to(int peer) {
  const Span& from = send_of(peer);
  std::uint64_t& sent = sent_[index(peer)];
  bool any = false;
  while (sent < from.size_bytes && channels_.can_send(peer)) {
    const std::uint64_t size = chunk_after(sent, from.size_bytes);
    channels_.send(peer, {}, {from.data + sent, size}, stamp_of(from.size_bytes));
    sent += size;
    any = true;
    if (sent == from.size_bytes) --unfinished_;
  }
  return any;
}

bool PhaseTransfer::has_arrived(int peer, std::uint64_t size) const {
  const Arrival arrival = channels_.arrival(peer);
  if (arrival.data == nullptr) return false;
  if (arrival.stamp != stamp_of(size)) throw Mismatch{peer};
  return true;
}

// Checks all ranks, because each may make another call.
bool PhaseTransfer::have_all_begun() const {
  bool have_all = true;
  for (int rank = 0; rank < channels_.ranks(); ++rank) {
    const std::uint64_t size =
        phase_.combines ? phase_.result.size_bytes : phase_.receives[index(rank)].size_bytes;
    if (rank != channels_.rank() && size > 0) have_all &= has_arrived(rank, size);
  }
  return have_all;
}

bool PhaseTransfer::copy_own() {
  if (!is_own_due_) return false;
  is_own_due_ = false;
  --unfinished_;
  std::memmove(phase_.result.data, phase_.own, phase_.result.size_bytes);
  return true;
}

bool PhaseTransfer::receive_from(int peer) {
  const Span& to = phase_.receives[index(peer)];
  std::uint64_t& received = received_[index(peer)];
  bool any = false;
  while (received < to.size_bytes && has_arrived(peer, to.size_bytes)) {
    const std::uint64_t size = chunk_after(received, to.size_bytes);
    std::memcpy(to.data + received, channels_.arrival(peer).data, size);
    channels_.consume(peer);
    received += size;
    any = true;
    if (received == to.size_bytes) --unfinished_;
  }
  return any;
}

std::uint64_t PhaseTransfer::sent_least() const {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int rank = 0; rank < channels_.ranks(); ++rank) {
    if (rank != channels_.rank()) least = std::min(least, sent_[index(rank)]);
  }
  return least;
}

bool PhaseTransfer::combine_arrived() {
  const std::uint64_t total = phase_.result.size_bytes;
  std::uint64_t& combined = received_[index(channels_.rank())];
  bool any = false;
  while (combined < total) {
    const std::uint64_t size = chunk_after(combined, total);
    if (phase_.is_result_sent && (sent_least() < combined + size || !channels_.all_sent())) break;
    if (!have_all_begun()) return any;
    combine_chunk(size);
    combined += size;
    any = true;
    if (combined == total) --unfinished_;
  }
  return any;
}

// In the order of the ranks, so that every rank gets the same bits. An intermediate result is kept
// in the slot of a peer, which is this rank's memory until it is consumed.
void PhaseTransfer::combine_chunk(std::uint64_t size) {
  const int self = channels_.rank();
  const std::uint64_t done = received_[index(self)];
  std::byte* const result = phase_.result.data + done;
  const auto slot_of = [&](int rank) {
    return rank == self ? nullptr : channels_.arrival(rank).data;
  };
  std::byte* kept = slot_of(0);
  const std::byte* left = self == 0 ? phase_.own + done : kept;
  for (int rank = 1; rank < channels_.ranks(); ++rank) {
    std::byte* const slot = slot_of(rank);
    const std::byte* const right = rank == self ? phase_.own + done : slot;
    if (kept == nullptr) kept = slot;
    std::byte* const to = rank + 1 == channels_.ranks() ? result : kept;
    combination_.combine(combination_.context, to, left, right, size);
    left = to;
  }
  if (channels_.ranks() == 1) std::memmove(result, phase_.own + done, size);
  if (combination_.finish != nullptr) combination_.finish(combination_.context, result, size);
  for (int rank = 0; rank < channels_.ranks(); ++rank) {
    if (rank != self) channels_.consume(rank);
  }
}

bool PhaseTransfer::awaits(int peer) const {
  if (peer == channels_.rank()) return false;
  const std::size_t to = index(peer);
  if (sent_[to] < phase_.sends[to].size_bytes) return true;
  if (phase_.combines) {
    return received_[index(channels_.rank())] < phase_.result.size_bytes &&
           channels_.arrival(peer).data == nullptr;
  }
  return received_[to] < phase_.receives[to].size_bytes;
}

}  // namespace towpath::live
