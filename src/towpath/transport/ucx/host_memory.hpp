// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "towpath/transport/live_transport.hpp"
#include "towpath/transport/shm/peers.hpp"
#include "towpath/transport/symmetric_heap.hpp"
#include "towpath/transport/ucx/bootstrap.hpp"

// The memory of this rank, and of the ranks of its host, which map each other's memory as in shm.

namespace towpath::transport::ucx {

// Identifies the host among ranks of one job: a running system, a network namespace, a user.
// Processes with equal values can share memory. Empty if $TOWPATH_UCX_SHARED_MEMORY is 0: ranks of
// a host then also exchange messages.
std::string host_place();

class HostMemory {
 public:
  // Blocks until the ranks of this host have joined. Throws the same errors as connect.
  HostMemory(const LiveOptions& options, const SymmetricHeap& layout, const Job& job);

  // True if that rank's memory is mapped. The local one always is.
  bool reaches(int rank) const { return local(rank) >= 0; }
  std::byte* heap(int rank) const { return peers_->memory(local(rank)).heap(); }
  std::atomic_ref<std::uint64_t> word(int rank, std::uint64_t index) const {
    return peers_->memory(local(rank)).word(index);
  }

  // The state of a mapped rank as of the last look(), and the published state of this one.
  void look() { peers_->look(); }
  Standing standing(int rank) const { return peers_->standing(local(rank)); }
  void publish(const RankFailure& failure) const { peers_->publish(failure); }
  void withdraw(Presence presence) const { peers_->withdraw(presence); }

 private:
  int local(int rank) const { return locals_[static_cast<std::size_t>(rank)]; }

  std::vector<int> locals_;  // by rank: its number among the ranks of this host, or -1
  std::optional<shm::Peers> peers_;
};

}  // namespace towpath::transport::ucx
