// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/shm/peers.hpp"

#include <unistd.h>

#include <utility>

#include "towpath/os/process.hpp"

namespace towpath::transport::shm {

Peers::Peers(int self, std::vector<Member> members, const MemoryLayout& layout) : self_(self) {
  for (Member& member : members) {
    peers_.push_back({Memory(member.memory, layout), std::move(member.process), member.pid});
    processes_.push_back({peers_.back().process.number(), POLLIN, 0});
  }
}

bool Peers::are_crowded() const {
  std::vector<pid_t> processes;
  for (const Peer& peer : peers_) processes.push_back(peer.pid);
  return count() > os::count_cores(processes);
}

void Peers::look() { ::poll(processes_.data(), processes_.size(), 0); }

// The end of a process after its rank has left is not a failure.
Standing Peers::standing(int rank) const {
  const bool has_ended = processes_[static_cast<std::size_t>(rank)].revents != 0;
  const Presence said = presence(rank);
  return {has_ended && said == Presence::here ? Presence::dead : said, blame_by(rank)};
}

std::optional<RankFailure> Peers::blame_by(int rank) const {
  const int culprit = control(rank).culprit.load(std::memory_order_acquire);
  if (culprit == kNoPeer) return std::nullopt;
  return RankFailure{culprit, control(rank).reason.data()};
}

bool Peers::is_self() const { return ::getpid() == pid(self_); }

int Peers::find_silent(std::int64_t now_ns, std::int64_t limit_ns) const {
  int silent = kNoPeer;
  for (int rank = 0; rank < count(); ++rank) {
    if (rank == self_ || !is_here(rank)) continue;
    const std::int64_t age_ns = now_ns - control(rank).looked_at_ns.load(std::memory_order_relaxed);
    if (age_ns <= limit_ns) continue;
    if (os::is_stopped(pid(rank))) return rank;
    limit_ns = age_ns;
    silent = rank;
  }
  return silent;
}

void Peers::publish(const RankFailure& failure) const {
  Control& own = control(self_);
  if (own.culprit.load(std::memory_order_relaxed) != kNoPeer) return;
  const std::size_t size = failure.what.copy(own.reason.data(), own.reason.size() - 1);
  own.reason[size] = '\0';
  own.culprit.store(failure.culprit, std::memory_order_release);
}

void Peers::withdraw(Presence presence) const {
  if (is_here(self_)) control(self_).presence.store(presence, std::memory_order_release);
}

os::FileDescriptor new_memory(const MemoryLayout& layout) {
  os::FileDescriptor file = os::create_shared_memory("towpath", layout.size_bytes());
  Memory(file, layout).control().culprit.store(kNoPeer);
  return file;
}

}  // namespace towpath::transport::shm
