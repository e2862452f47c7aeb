// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "towpath/sim/simulation.hpp"
#include "towpath/transport/symmetric_heap.hpp"
#include "towpath/transport/transport.hpp"

// What the ranks of all simulated transports have: memory that takes space where it is touched,
// signals and who waits for them, and blocking in simulated time. How a Move gets to its peer is
// what is left to them.

namespace towpath::transport::simulated {

// Address space that takes memory only where it is touched.
class SparseMemory {
 public:
  explicit SparseMemory(std::uint64_t size_bytes);
  ~SparseMemory();
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;
  std::byte* start() const { return start_; }

 private:
  std::uint64_t size_bytes_;
  std::byte* start_ = nullptr;
};

struct RankOptions {
  int rank = 0;
  int ranks = 1;
  bool carries_data = true;
  std::uint64_t heap_bytes = 64ull << 30;
  std::uint32_t signals = 1u << 16;
};

class SimulatedRank : public Transport {
 public:
  SimulatedRank(sim::Simulation& simulation, const RankOptions& options);

  int rank() const final { return rank_; }
  int ranks() const final { return ranks_; }
  Time now() const final { return simulation_.now(); }
  bool carries_data() const final { return carries_data_; }

  Offset allocate(std::uint64_t size_bytes) final { return allocator_.allocate(size_bytes); }
  void release(Offset offset) final { allocator_.release(offset); }
  Signal allocate_signals(std::uint32_t count) final { return allocator_.allocate_signals(count); }
  void release_signals(Signal first) final;
  std::byte* data(Offset offset) final {
    return carries_data_ ? memory_.start() + offset : nullptr;
  }

  std::uint64_t signal_fetch(Signal signal) const final {
    const std::uint64_t at = allocator_.word_of(signal);
    return at < words_.size() ? words_[at].value : 0;
  }
  void wait(SignalWait& wait) final;
  void cancel(SignalWait& wait) final;

  // Time passes in the simulation, not here.
  bool progress() final { return false; }
  std::string pending() const final;
  void block_until(const std::function<bool()>& holds, Time timeout, int peer,
                   const std::function<std::string()>& what) final;

 protected:
  sim::Simulation& simulation() const { return simulation_; }
  const SymmetricHeap& heap() const { return allocator_; }
  std::byte* memory() const { return memory_.start(); }

  // Of this rank, by a delivery: `at` is a word of heap().
  void raise(std::uint64_t at, std::uint64_t value, SignalOperation operation);
  void finish(Move& move);
  // Something became visible that a blocking call may wait for.
  void notify_blocked();

 private:
  struct SignalWord {
    std::uint64_t value = 0;
    SignalWait* waits = nullptr;
  };
  // The process that is inside block_until.
  struct Blocked {
    sim::Process* process = nullptr;
    const std::function<bool()>* holds = nullptr;
  };
  SignalWord& word(std::uint64_t at) {
    if (at >= words_.size()) words_.resize(at + 1);
    return words_[at];
  }
  void unlink(SignalWait& wait);
  static void wake_blocked(void* rank);

  sim::Simulation& simulation_;
  int rank_;
  int ranks_;
  bool carries_data_;
  SymmetricHeap allocator_;
  SparseMemory memory_;
  std::vector<SignalWord> words_;  // grows to what is used
  Blocked blocked_;
  Time last_activity_;  // when something last became ready
};

}  // namespace towpath::transport::simulated
