// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/shared_rank.hpp"

#include <fmt/format.h>

#include "towpath/transport/remote_memory.hpp"

namespace towpath::live {

using transport::TransportError;

namespace {

// Polls a word before the caller regains control: about a microsecond.
constexpr int kLooks = 50;
// A rank whose process has ended is detected at the next check, 1 ms later.
constexpr Time kCauseWithin = Time::from_seconds(0.5);

std::vector<std::byte*> reached(transport::LiveTransport& transport, transport::Offset offset) {
  std::vector<std::byte*> places;
  for (int rank = 0; rank < transport.ranks(); ++rank) {
    places.push_back(transport.remote_memory()->reach(rank, offset));
  }
  return places;
}

std::vector<std::byte*> new_regions(transport::LiveTransport& transport) {
  const int ranks = transport.ranks();
  const transport::Offset offset = transport.allocate(SharedRank::heap_bytes(ranks));
  std::memset(transport.data(offset), 0, SharedSlots::bytes(ranks));
  return reached(transport, offset);
}

}  // namespace

bool SharedRank::is_possible(transport::LiveTransport& transport) {
  if (transport.remote_memory() == nullptr) return false;
  for (int rank = 0; rank < transport.ranks(); ++rank) {
    if (transport.remote_memory()->reach(rank, 0) == nullptr) return false;
  }
  return true;
}

SharedRank::SharedRank(transport::LiveTransport& transport)
    : SharedRank(transport, new_regions(transport)) {}

SharedRank::SharedRank(transport::LiveTransport& transport, const std::vector<std::byte*>& regions)
    : transport_(transport),
      heaps_(reached(transport, 0)),
      slots_(transport.rank(), regions),
      stages_(transport.ranks()),
      is_crowded_(transport.is_crowded()),
      looks_(is_crowded_ ? 1 : kLooks) {
  for (std::byte* region : regions) rings_.push_back(region + slots_bytes(ranks()));
}

bool SharedRank::holds(Condition& condition) {
  switch (condition.kind) {
    case Condition::Kind::slot_free: return slots_.is_free(condition.step);
    case Condition::Kind::stage_free:
      return slots_.is_free(condition.step) && slots_.have_ended(condition.staged);
    case Condition::Kind::ended: return slots_.have_ended(condition.step);
    case Condition::Kind::arrived: break;
  }
  if (condition.peer != transport::kNoPeer) {
    return slots_.has_arrived(condition.peer, condition.step, stamp_);
  }
  for (; condition.next < ranks(); ++condition.next) {
    if (condition.next == rank()) continue;
    if (!slots_.has_arrived(condition.next, condition.step, stamp_)) return false;
  }
  return true;
}

void SharedRank::check_peers() {
  const bool is_arrival = awaited_.kind == Condition::Kind::arrived;
  if (!is_arrival && awaited_.kind != Condition::Kind::ended) return;
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank()) continue;
    const bool is_asked = awaited_.peer == transport::kNoPeer || awaited_.peer == peer;
    // In this order: a rank publishes a step before it ends it.
    const bool has_ended = is_arrival && is_asked && slots_.has_ended(peer, awaited_.step);
    const bool has_arrived = slots_.has_arrived(peer, awaited_.step, stamp_);
    if (has_ended && !has_arrived) throw Mismatch{peer};
  }
}

bool SharedRank::awaits(int peer) {
  if (peer == rank()) return false;
  switch (awaited_.kind) {
    case Condition::Kind::slot_free:
      return awaited_.step > SharedSlots::kSlots &&
             !slots_.has_ended(peer, awaited_.step - SharedSlots::kSlots);
    case Condition::Kind::stage_free: return !slots_.has_ended(peer, awaited_.staged);
    case Condition::Kind::ended: return !slots_.has_ended(peer, awaited_.step);
    case Condition::Kind::arrived: break;
  }
  const bool is_asked = awaited_.peer == transport::kNoPeer || awaited_.peer == peer;
  return is_asked && !slots_.has_published(peer, awaited_.step);
}

bool SharedRank::are_all(Descriptor::Location location, std::uint64_t step) const {
  for (int rank = 0; rank < ranks(); ++rank) {
    if (published(rank, step).location != location) return false;
  }
  return true;
}

bool SharedRank::is_any(Descriptor::Location location, std::uint64_t step) const {
  for (int rank = 0; rank < ranks(); ++rank) {
    if (published(rank, step).location == location) return true;
  }
  return false;
}

std::optional<std::uint64_t> SharedRank::heap_offset(const Span& span) const {
  const std::byte* const heap = heaps_[index(rank())];
  if (span.data < heap || span.data + span.size_bytes > heap + transport_.heap_bytes()) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(span.data - heap);
}

bool SharedRank::try_read(int peer, std::uint64_t address, const Span& to) {
  const auto* const there = reinterpret_cast<const std::byte*>(address);
  return transport_.read_private(peer, there, to.data, to.size_bytes);
}

void SharedRank::read(int peer, std::uint64_t address, const Span& to) {
  if (try_read(peer, address, to)) return;
  // Its process has ended, perhaps because of another rank. The transport finds the cause.
  try {
    transport_.block_until([] { return false; }, kCauseWithin, peer,
                           [&] { return fmt::format("the memory of rank {}", peer); });
  } catch (const TransportError& error) {
    if (error.kind() != TransportError::Kind::timeout) throw;
  }
  throw TransportError(TransportError::Kind::peer_died, peer,
                       fmt::format("rank {} could not read the memory of rank {}", rank(), peer));
}

}  // namespace towpath::live
