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

// The live transport between processes of one Linux host: every rank maps every rank's memory, a
// put is a copy, a signal one atomic store. There is no daemon and no name in a file system, so
// nothing is left behind when a process is killed.
//
//   auto transport = shm::connect({.rendezvous = "job-17", .rank = rank, .ranks = 4});
//
// Destroying the transport says that this rank has left in good order. A rank that gives up calls
// abandon() first, and its peers repeat the reason. A process that ends without either is dead.
//
// Wrong: connect, then fork. The child is not a rank; connect in each process.

namespace towpath::transport::shm {

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

// The heap of a rank where nothing else is asked for: 64 GiB, of which only touched pages take
// memory, or what RLIMIT_AS and RLIMIT_FSIZE leave for `ranks` heaps in one address space.
std::uint64_t default_heap_bytes(int ranks);

struct Options {
  // Up to 64 bytes; every rank of a group gives the same, and no other group at the same time.
  std::string rendezvous;
  int rank = 0;
  int ranks = 1;
  std::uint64_t heap_bytes = 0;  // 0: default_heap_bytes(ranks)
  std::uint32_t signals = 1 << 16;
  Time timeout = Time::from_seconds(60);  // until all ranks are there
  // News ends a wait with a TransportError that names the culprit. May be null.
  std::shared_ptr<const News> news = nullptr;
  // Called about every millisecond while this rank waits; what it throws ends the wait. May be
  // empty.
  std::function<void()> on_look = {};
};

// What the ranks of one host have beyond the contract.
class ShmTransport : public Transport {
 public:
  // What the destructor does: this rank has left in good order, unless its last wait ended with an
  // error about a peer, of which the others are told. Nothing may be called afterwards.
  virtual void leave() = 0;
  // Tells all others that this rank gives up: their waits end with a TransportError that names the
  // culprit and what it did. `what` is about this rank; when `culprit` is the peer that the last
  // TransportError of this transport named, the others are told of that peer instead.
  virtual void abandon(const std::string& what, int culprit = kNoPeer) = 0;
  // A peer's copy of the heap, within reach of this rank's loads.
  virtual const std::byte* peer_data(int peer, Offset offset) const = 0;
  // Grows while this rank makes progress. May be called from another thread.
  virtual std::uint64_t activity() const = 0;
};

// Blocks until all ranks are there. Throws std::invalid_argument for options that are wrong in
// themselves, TransportError when the group does not come together (timeout: a rank is missing;
// disagreement: ranks gave different options, or two the same rank; peer_died), each in one
// sentence, the same on every rank that came; std::system_error when the system refuses.
std::unique_ptr<ShmTransport> connect(const Options& options);

}  // namespace towpath::transport::shm
