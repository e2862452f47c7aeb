// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "towpath/transport/transport.hpp"

// What every live transport offers: ranks that are processes, join a group by a name, and tell each
// other how they end. live/connect.hpp makes one by its name.
//
// Destroying the transport says that this rank has left in good order. A rank that gives up calls
// abandon() first, and its peers repeat the reason. A process that ends without either is dead.

namespace towpath::transport {

// Why a group cannot go on: a rank, and what it did, as a sentence about it continues: "died",
// "failed (KeyError: 'x')".
struct Loss {
  int culprit = kNoPeer;
  std::string what;
};

// What a launcher tells a rank about the others. One thread posts, another waits in the transport.
class News {
 public:
  // The first news counts; what comes later is ignored.
  void post(Loss loss);
  std::optional<Loss> read() const;

 private:
  std::atomic<bool> is_posted_{false};
  mutable std::mutex mutex_;
  Loss loss_;
};

// How to join a group.
struct LiveOptions {
  // Up to 64 bytes; every rank of a group gives the same, and no other group at the same time. Over
  // "ucx" it may be "HOST:PORT", where rank 0 listens, for ranks on several hosts.
  std::string rendezvous;
  // A secret of the job: only who knows it may join at a HOST:PORT. Ranks of one host need none.
  std::string token = {};
  // A socket that listens at the rendezvous already, of rank 0 over "ucx", which connect() takes
  // over; -1: connect() opens one.
  int listener = -1;
  int rank = 0;
  int ranks = 1;
  std::uint64_t heap_bytes = 0;  // of each rank's symmetric heap; 0: what the transport takes
  std::uint32_t signals = 1 << 16;
  Time timeout = Time::from_seconds(60);  // until all ranks are there
  // News ends a wait with a TransportError that names the culprit. May be null.
  std::shared_ptr<const News> news = nullptr;
  // Called about every millisecond while this rank waits; what it throws ends the wait. May be
  // empty.
  std::function<void()> on_look = {};
};

// Throws std::invalid_argument, one sentence, where the group's name or the ranks make no sense.
void check_membership(const LiveOptions& options);

// Ends the wait of a group that comes together where the caller or the launcher wants it: throws
// what on_look throws, or a TransportError for the news.
void look_around(const LiveOptions& options);

// What live ranks have beyond the contract.
class LiveTransport : public Transport {
 public:
  // What the destructor does: this rank has left in good order, unless its last wait ended with an
  // error about a peer, of which the others are told. Nothing may be called afterwards.
  virtual void leave() = 0;
  // Tells all others that this rank gives up: their waits end with a TransportError that names the
  // culprit and what it did. `what` is about this rank; when `culprit` is the peer that the last
  // TransportError of this transport named, the others are told of that peer instead.
  virtual void abandon(const std::string& what, int culprit = kNoPeer) = 0;
  // Blocking: copies from a peer's heap.
  virtual void get(int peer, Offset remote, void* target, std::uint64_t size_bytes,
                   Time timeout) = 0;
  // An 8-byte word of a peer's heap, which that rank may be storing to (atomically) at this time.
  virtual std::uint64_t load(int peer, Offset remote) = 0;
  // Grows while this rank makes progress. May be called from another thread.
  virtual std::uint64_t activity() const = 0;
  // Of each rank's symmetric heap.
  virtual std::uint64_t heap_bytes() const { return 0; }
  // Says that this rank made progress, where it did so by loads and stores of its own.
  virtual void note_activity() {}
  // Whether more ranks than processors share this host, so that waiting by looking keeps a peer
  // from working.
  virtual bool is_crowded() const { return false; }
  // Whether what peers send or ask is taken only while this rank waits or calls progress().
  virtual bool needs_progress() const { return false; }
  // Between two looks at a peer's memory: gives the processor away where a peer may need it.
  virtual void relax() {}
  // Wakes the ranks that sleep: this one stored in its own memory what they may wait for.
  virtual void wake_peers() {}
  // Copies from memory of a peer's process that is not on its heap; false where that is impossible.
  virtual bool read_private(int peer, const std::byte* there, std::byte* here,
                            std::uint64_t size_bytes) {
    static_cast<void>(peer), static_cast<void>(there), static_cast<void>(here);
    return size_bytes == 0;
  }
};

}  // namespace towpath::transport
