// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/ucx/message_heap.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "towpath/transport/reduction.hpp"
#include "towpath/transport/shm/moves.hpp"

namespace towpath::transport::ucx {

MessageHeap::MessageHeap(const LiveOptions& options, std::unique_ptr<Wire> wire, const Job& job)
    : rank_(options.rank),
      layout_(options.ranks, options.heap_bytes, options.signals),
      memory_(options, layout_, job),
      peers_(static_cast<std::size_t>(options.ranks)),
      wire_(std::move(wire)) {
  std::vector<std::vector<std::byte>> addresses;
  for (const Member& member : job.members) addresses.push_back(member.address);
  wire_->connect(rank_, addresses, job.key,
                 {.arrived = [this](Incoming& message) { take(message); },
                  .lost = [this](int peer) { lose(peer); }});
}

void MessageHeap::release_signals(Signal first) {
  const std::uint32_t count = layout_.release_signals(first);
  for (Signal signal = first; signal < first + count; ++signal) {
    own_word(layout_.previous_word_of(signal)).store(0, std::memory_order_relaxed);
  }
}

// --- sending -----------------------------------------------------------------------------------

namespace {

// The bytes of a Move's put, after its local store. `staging` holds a result without a destination.
const std::byte* result_of(const Move& move, std::vector<std::byte>& staging) {
  if (!move.has_source || move.size_bytes == 0) return nullptr;
  if (!move.has_addend) {
    if (move.has_destination) std::memmove(move.destination, move.source, move.size_bytes);
    return move.source;
  }
  std::byte* result = move.destination;
  if (!move.has_destination) {
    staging.resize(move.size_bytes);
    result = staging.data();
  }
  reduce(result, move.source, move.addend, move.size_bytes, move.reduction);
  return result;
}

}  // namespace

// To this rank itself, or to another rank of this host.
void MessageHeap::put_here(Move& move) {
  shm::carry(move, move.peer == kNoPeer ? nullptr : memory_.heap(move.peer));
  if (move.has_signal) shm::raise(move, memory_.word(move.peer, layout_.word_of(move.signal)));
  if (move.done != nullptr) move.done(move);
}

void MessageHeap::start(Move& move) {
  if (move.peer == kNoPeer || memory_.reaches(move.peer)) return put_here(move);
  std::vector<std::byte> staging;
  const std::byte* const result = result_of(move, staging);
  const std::uint64_t size_bytes = result == nullptr ? 0 : move.size_bytes;
  Peer& to = peer(move.peer);
  const Header header{.kind = MessageKind::put,
                      .number = to.started++,
                      .after = to.fenced,
                      .offset = size_bytes > 0 ? move.remote : 0,
                      .word = move.has_signal ? layout_.word_of(move.signal) : 0,
                      .value = move.signal_value,
                      .has_signal = move.has_signal,
                      .adds = move.signal_operation == SignalOperation::add};
  // Moving a vector does not move its bytes.
  const std::span bytes(result, size_bytes);
  wire_->send(move.peer, header, bytes, [&move, kept = std::move(staging)] {
    if (move.done != nullptr) move.done(move);
  });
}

void MessageHeap::fence() {
  std::atomic_thread_fence(std::memory_order_release);
  for (Peer& peer : peers_) peer.fenced = peer.started;
}

bool MessageHeap::is_quiet() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  bool is_quiet = true;
  for (int rank = 0; rank < ranks(); ++rank) {
    Peer& to = peer(rank);
    const bool has_left = to.contact.standing.presence == Presence::left;
    if (rank == rank_ || to.visible == to.started || has_left) continue;
    is_quiet = false;
    if (to.asked == to.started) continue;
    to.asked = to.started;
    wire_->send(rank, {.kind = MessageKind::query, .number = to.asked}, {}, {});
  }
  return is_quiet;
}

std::uint64_t MessageHeap::start_get(int from, Offset remote, std::uint64_t size_bytes) {
  const std::uint64_t number = next_get_++;
  gets_[number].bytes.resize(size_bytes);
  wire_->send(from,
              {.kind = MessageKind::get, .number = number, .offset = remote, .value = size_bytes},
              {}, {});
  return number;
}

std::vector<std::byte> MessageHeap::take_bytes(std::uint64_t get) {
  std::vector<std::byte> bytes = std::move(gets_.at(get).bytes);
  gets_.erase(get);
  return bytes;
}

void MessageHeap::forget(std::uint64_t get) {
  if (gets_.at(get).is_over) {
    gets_.erase(get);
  } else {
    gets_.at(get).is_forgotten = true;
  }
}

void MessageHeap::notify_all(MessageKind kind, const std::optional<RankFailure>& failure) {
  // Lives until the last message has left.
  const auto text = std::make_shared<const std::string>(failure ? failure->what : "");
  Header header{.kind = kind};
  header.culprit = failure ? failure->culprit : kNoPeer;
  for (int to = 0; to < ranks(); ++to) {
    if (to != rank_) wire_->send(to, header, std::as_bytes(std::span(*text)), [text] {});
  }
}

// --- receiving ---------------------------------------------------------------------------------
void MessageHeap::take(Incoming& message) {
  const Header& header = message.header();
  Peer& from = peer(header.source);
  ++from.contact.messages;
  switch (header.kind) {
    case MessageKind::here: from.contact.is_ready = true; break;
    case MessageKind::ask: wire_->send(header.source, {.kind = MessageKind::here}, {}, {}); break;
    case MessageKind::put: take_put(message); break;
    case MessageKind::query:
      from.answer_at = header.number;
      answer(header.source);
      break;
    case MessageKind::acknowledge: from.visible = std::max(from.visible, header.number); break;
    case MessageKind::get: answer_get(header); break;
    case MessageKind::reply: take_reply(message); break;
    case MessageKind::left:
      if (from.contact.standing.presence == Presence::here)
        from.contact.standing.presence = Presence::left;
      if (header.culprit != kNoPeer) take_failure(message);
      break;
    case MessageKind::failed:
      from.contact.standing.presence = Presence::failed;
      take_failure(message);
      break;
  }
}

void MessageHeap::take_put(Incoming& message) {
  const Header& header = message.header();
  if (!holds(header.offset, header.size_bytes) ||
      (header.has_signal && header.word >= layout_.signal_words()))
    return;
  Peer& from = peer(header.source);
  if (header.after > from.stored.below()) {
    from.deferred.push_back(wire_->keep(message));
  } else {
    store(message);
  }
}

void MessageHeap::store(Incoming& message) {
  const Header header = message.header();
  wire_->receive(message, bytes() + header.offset, [this, header] { stored(header); });
}

void MessageHeap::stored(const Header& header) {
  if (header.has_signal && header.adds) {
    own_word(header.word).fetch_add(header.value, std::memory_order_release);
  } else if (header.has_signal) {
    own_word(header.word).store(header.value, std::memory_order_release);
  }
  Peer& from = peer(header.source);
  from.stored.note(header.number);
  // A message that is stored immediately re-enters this function. The running loop continues with
  // the next one.
  if (!std::exchange(from.is_storing, true)) {
    while (!from.deferred.empty() && from.deferred.front().header().after <= from.stored.below()) {
      Incoming next = std::move(from.deferred.front());
      from.deferred.pop_front();
      store(next);
    }
    from.is_storing = false;
  }
  answer(header.source);
}

void MessageHeap::answer(int rank) {
  Peer& to = peer(rank);
  if (to.answer_at == 0 || to.stored.below() < to.answer_at) return;
  wire_->send(rank, {.kind = MessageKind::acknowledge, .number = to.stored.below()}, {}, {});
  to.answer_at = 0;
}

void MessageHeap::answer_get(const Header& header) {
  if (!holds(header.offset, header.value)) return;
  wire_->send(header.source, {.kind = MessageKind::reply, .number = header.number},
              {bytes() + header.offset, header.value}, {});
}

void MessageHeap::take_reply(Incoming& message) {
  const std::uint64_t number = message.header().number;
  const auto found = gets_.find(number);
  if (found == gets_.end() || found->second.bytes.size() != message.header().size_bytes) return;
  wire_->receive(message, found->second.bytes.data(), [this, number] {
    Get& get = gets_.at(number);
    get.is_over = true;
    if (get.is_forgotten) gets_.erase(number);
  });
}

void MessageHeap::take_failure(Incoming& message) {
  const Header& header = message.header();
  if (!message.is_here() || header.culprit < 0 || header.culprit >= ranks()) return;
  const auto text = message.bytes();
  peer(header.source).contact.standing.blame =
      RankFailure{header.culprit, {reinterpret_cast<const char*>(text.data()), text.size()}};
}

void MessageHeap::lose(int rank) {
  if (peer(rank).contact.standing.presence == Presence::here)
    peer(rank).contact.standing.presence = Presence::dead;
}

}  // namespace towpath::transport::ucx
