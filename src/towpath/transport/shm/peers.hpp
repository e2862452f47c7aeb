// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <optional>
#include <vector>

#include "towpath/os/file_descriptor.hpp"
#include "towpath/transport/shm/memory.hpp"
#include "towpath/transport/shm/rendezvous.hpp"
#include "towpath/transport/waiting_transport.hpp"

// The ranks of one host that map each other's memory, with their memory and state.

namespace towpath::transport::shm {

class Peers {
 public:
  // `self`: this rank's number among the members.
  Peers(int self, std::vector<Member> members, const MemoryLayout& layout);

  int count() const { return static_cast<int>(peers_.size()); }
  const Memory& memory(int rank) const { return at(rank).memory; }
  Control& control(int rank) const { return at(rank).memory.control(); }
  pid_t pid(int rank) const { return at(rank).pid; }
  // True if there are more ranks than cores for them.
  bool are_crowded() const;

  // Checks which processes have ended, with one system call.
  void look();
  // As of the last look().
  Standing standing(int rank) const;
  bool is_here(int rank) const { return presence(rank) == Presence::here; }
  // True if this process is the rank. A forked child has a copy of this object, but is not the
  // rank.
  bool is_self() const;
  // The peer with the oldest check of its peers, if older than a limit; stopped peers first.
  // kNoPeer if there is none.
  int find_silent(std::int64_t now_ns, std::int64_t limit_ns) const;

  // Publishes the reason of this rank's failure, for slower ranks that find it gone. Only the first
  // reason counts.
  void publish(const RankFailure& failure) const;
  // Publishes the end of this rank. Only the first call counts.
  void withdraw(Presence presence) const;

 private:
  struct Peer {
    Memory memory;
    os::FileDescriptor process;
    pid_t pid;
  };

  const Peer& at(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }
  Presence presence(int rank) const {
    return control(rank).presence.load(std::memory_order_acquire);
  }
  std::optional<RankFailure> blame_by(int rank) const;

  int self_;
  std::vector<Peer> peers_;
  std::vector<pollfd> processes_;  // by rank
};

// A rank's memory before it joins, without a culprit.
os::FileDescriptor new_memory(const MemoryLayout& layout);

}  // namespace towpath::transport::shm
