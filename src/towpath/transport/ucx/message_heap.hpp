// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "towpath/transport/live_transport.hpp"
#include "towpath/transport/symmetric_heap.hpp"
#include "towpath/transport/ucx/bootstrap.hpp"
#include "towpath/transport/ucx/host_memory.hpp"
#include "towpath/transport/ucx/wire.hpp"
#include "towpath/transport/waiting_transport.hpp"

// The heap and the signals of one rank, and operations between ranks: stores within this host,
// messages to all other ranks. Never blocks: arrivals are stored in progress().

namespace towpath::transport::ucx {

// Consecutive numbers from 0, each noted once, in any order.
class Progress {
 public:
  void note(std::uint64_t number) {
    if (number != below_) {
      ahead_.insert(number);
      return;
    }
    ++below_;
    while (!ahead_.empty() && *ahead_.begin() == below_) {
      ahead_.erase(ahead_.begin());
      ++below_;
    }
  }
  // All smaller numbers have been noted.
  std::uint64_t below() const { return below_; }

 private:
  std::uint64_t below_ = 0;
  std::set<std::uint64_t> ahead_;
};

// One rank's state as received by another.
struct Contact {
  Standing standing;
  bool is_ready = false;  // it has reported its presence
  std::uint64_t messages = 0;
};

class MessageHeap {
 public:
  // Enables messages between these ranks over the wire.
  MessageHeap(const LiveOptions& options, std::unique_ptr<Wire> wire, const Job& job);

  SymmetricHeap& layout() { return layout_; }
  const SymmetricHeap& layout() const { return layout_; }
  HostMemory& memory() { return memory_; }
  const HostMemory& memory() const { return memory_; }
  std::byte* bytes() const { return memory_.heap(rank_); }
  std::uint64_t signal(Signal signal) const {
    return own_word(layout_.word_of(signal)).load(std::memory_order_acquire);
  }
  void release_signals(Signal first);

  // --- sending ----------------------------------------------------------------------------------
  // The Move must be valid.
  void start(Move& move);
  // Orders earlier operations before later ones.
  void fence();
  // True if all operations are visible. Queries peers that have not reported it yet.
  bool is_quiet();
  // Starts a get and returns its number, valid until it is taken or forgotten.
  std::uint64_t start_get(int from, Offset remote, std::uint64_t size_bytes);
  bool is_over(std::uint64_t get) const { return gets_.at(get).is_over; }
  std::vector<std::byte> take_bytes(std::uint64_t get);
  void forget(std::uint64_t get);
  // Notifies all others that this rank is ready, has left, or has failed, with the culprit.
  void notify_all(MessageKind kind, const std::optional<RankFailure>& failure = {});
  bool is_flushed() const { return wire_->is_flushed(); }
  std::size_t tcp_interfaces() const { return wire_->tcp_interfaces(); }
  // Rejects further connections.
  void admit_nobody() { wire_->admit(std::vector<os::Ipv4Address>{}); }

  // --- receiving --------------------------------------------------------------------------------
  // Returns whether there was any event.
  bool progress() { return wire_->progress(); }
  const Contact& contact(int rank) const { return peer(rank).contact; }

 private:
  struct Peer {
    Contact contact;

    // Puts to it.
    std::uint64_t started = 0;
    std::uint64_t fenced = 0;  // number of puts that must be visible before later ones
    std::uint64_t visible = 0;
    std::uint64_t asked = 0;  // number of puts in the last query

    // Puts from it.
    Progress stored;
    std::uint64_t answer_at = 0;   // number of puts in its query; 0: no query
    std::list<Incoming> deferred;  // behind a fence
    bool is_storing = false;       // while storing deferred messages
  };
  struct Get {
    std::vector<std::byte> bytes;
    bool is_over = false;
    bool is_forgotten = false;  // but its bytes may be in flight
  };

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& peer(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }
  int ranks() const { return static_cast<int>(peers_.size()); }
  bool holds(std::uint64_t offset, std::uint64_t size_bytes) const {
    return offset <= layout_.size_bytes() && size_bytes <= layout_.size_bytes() - offset;
  }
  std::atomic_ref<std::uint64_t> own_word(std::uint64_t word) const {
    return memory_.word(rank_, word);
  }
  void put_here(Move& move);

  void take(Incoming& message);
  void take_put(Incoming& message);
  void store(Incoming& message);
  void stored(const Header& header);
  void answer(int rank);
  void answer_get(const Header& header);
  void take_reply(Incoming& message);
  void take_failure(Incoming& message);
  void lose(int rank);

  int rank_;
  SymmetricHeap layout_;
  HostMemory memory_;
  std::vector<Peer> peers_;
  std::map<std::uint64_t, Get> gets_;
  std::uint64_t next_get_ = 0;
  std::unique_ptr<Wire> wire_;
};

}  // namespace towpath::transport::ucx
