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

// The interface of all live transports. Ranks are processes that join a group by a name.
// live/connect.hpp makes a transport by its name.
//
// The destructor notifies the peers that this rank has left normally. A rank that gives up calls
// abandon() first, and its peers report its reason. A process that ends without either counts as
// dead.

namespace towpath::transport {

// The reason why a group cannot continue: a rank, and the end of a sentence about it: "died",
// "failed (KeyError: 'x')".
struct RankFailure {
  int culprit = kNoPeer;
  std::string what;
};

// A failure notice from the launcher. One thread posts, another waits in the transport.
class FailureNotice {
 public:
  // The first one counts. Later ones are ignored.
  void post(RankFailure failure);
  std::optional<RankFailure> read() const;

 private:
  std::atomic<bool> is_posted_{false};
  mutable std::mutex mutex_;
  RankFailure failure_;
};

// Options for joining a group.
struct LiveOptions {
  // Up to 64 bytes, equal on every rank of a group and unique among concurrent groups. For "ucx" it
  // may be "HOST:PORT" of rank 0, for ranks on several hosts.
  std::string rendezvous;
  // The job's secret, which a rank must prove to join at a HOST:PORT. Not needed on one host.
  std::string token = {};
  // A listening socket at the rendezvous for rank 0 of "ucx". connect() takes ownership. -1:
  // connect() opens one.
  int listener = -1;
  int rank = 0;
  int ranks = 1;
  std::uint64_t heap_bytes = 0;  // of each rank's symmetric heap; 0: the transport's default
  std::uint32_t signals = 1 << 16;
  Time timeout = Time::from_seconds(60);  // for all ranks to join
  // Ends a wait with a TransportError that names the culprit. May be null.
  std::shared_ptr<const FailureNotice> notice = nullptr;
  // Called about every millisecond while this rank waits. An exception ends the wait. May be empty.
  std::function<void()> on_look = {};
};

// The limit of a wait. Infinity means no limit. Throws std::invalid_argument for a negative number
// or NaN.
Time timeout_from(double seconds);

// Throws std::invalid_argument with one sentence for an invalid group name or rank.
void check_membership(const LiveOptions& options);

// Called while a group joins. Throws the exception of on_look, or a TransportError for a failure
// notice.
void look_around(const LiveOptions& options);

// The functions of live ranks beyond the contract.
class LiveTransport : public Transport {
 public:
  // Leaves normally, like the destructor, unless the last wait ended with an error about a peer,
  // which the other ranks then receive. No other call may follow.
  virtual void leave() = 0;
  // Notifies all others that this rank gives up: their waits end with a TransportError that names
  // the culprit and the reason. `what` is about this rank. If `culprit` is the peer of the last
  // TransportError, the others receive the failure of that peer instead.
  virtual void abandon(const std::string& what, int culprit = kNoPeer) = 0;
  // Blocking: copies from a peer's heap.
  virtual void get(int peer, Offset remote, void* target, std::uint64_t size_bytes,
                   Time timeout) = 0;
  // An 8-byte word of a peer's heap. That rank may be storing to it atomically.
  virtual std::uint64_t load(int peer, Offset remote) = 0;
  // Increases while this rank makes progress. May be called from another thread.
  virtual std::uint64_t activity() const = 0;
  // Of each rank's symmetric heap.
  virtual std::uint64_t heap_bytes() const { return 0; }
  // Reports progress that this rank made by plain loads and stores.
  virtual void note_activity() {}
  // True if more ranks than processors share this host, so that polling keeps a peer from working.
  virtual bool is_crowded() const { return false; }
  // True if messages of peers are received only while this rank waits or calls progress().
  virtual bool needs_progress() const { return false; }
  // Between two polls of a peer's memory: yields the core if a peer may need it.
  virtual void relax() {}
  // Wakes sleeping ranks that may wait for a store of this rank to its memory.
  virtual void wake_peers() {}
  // Copies from a peer's process memory outside its heap. Returns false if that is impossible.
  virtual bool read_private(int peer, const std::byte* there, std::byte* here,
                            std::uint64_t size_bytes) {
    static_cast<void>(peer), static_cast<void>(there), static_cast<void>(here);
    return size_bytes == 0;
  }
};

}  // namespace towpath::transport
