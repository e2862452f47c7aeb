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

// The ranks of one host that map each other's memory: the memory and the state of each.

namespace towpath::transport::shm {

class Peers {
 public:
  // `self`: this rank's number among the members.
  Peers(int self, std::vector<Member> members, const MemoryLayout& layout);

  int count() const { return static_cast<int>(peers_.size()); }
  const Memory& memory(int rank) const { return at(rank).memory; }
  Control& control(int rank) const { return at(rank).memory.control(); }
  pid_t pid(int rank) const { return at(rank).pid; }
  // Whether there are more ranks than cores for them.
  bool are_crowded() const;

  // Checks which processes have ended, with one system call.
  void look();
  // As of the last look.
  Standing standing(int rank) const;
  bool is_here(int rank) const { return presence(rank) == Presence::here; }
  // Whether this process is the rank. A forked child has a copy of this object, but is not.
  bool is_self() const;
  // The peer whose last look at its own peers is oldest, and older than a limit; a stopped one
  // before all others. kNoPeer if there is none.
  int find_silent(std::int64_t now_ns, std::int64_t limit_ns) const;

  // Publishes why this rank gives up, for slower ranks that find it gone. The first reason counts.
  void publish(const RankFailure& failure) const;
  // How this rank ends; the first one counts.
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

// A rank's memory before it joins: nobody is blamed yet.
os::FileDescriptor new_memory(const MemoryLayout& layout);

}  // namespace towpath::transport::shm
