// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "towpath/sim/simulation.hpp"
#include "towpath/transport/symmetric_heap.hpp"
#include "towpath/transport/transport.hpp"

// The common part of the simulated transports: a rank's heap, its signals and their waits, and
// blocking in simulated time. Each transport has its own delivery of Moves.

namespace towpath::transport::simulated {

// Address space that uses memory only when it is accessed.
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

// The result of a Move: its source, reduced with the addend if it has one.
void combine(const Move& move, std::byte* result);

// The place of each rank, by default place r for rank r. Throws std::invalid_argument for a place
// that does not exist or is in use. `describe` names a place in the error: "GPU 3 of machine 'm'".
std::vector<int> placement(std::vector<int> places, int count,
                           const std::function<std::string(int place)>& describe);

// One Move to a peer, from start() until it is visible there.
struct Delivery {
  Move* move = nullptr;  // until done
  std::vector<std::byte> payload;
  std::uint64_t size_bytes = 0;
  Offset remote = 0;
  bool has_signal = false;
  std::uint64_t signal_word = 0;
  std::uint64_t signal_value = 0;
  SignalOperation signal_operation = SignalOperation::set;
  std::uint64_t epoch = 0;   // counts fences
  std::uint64_t before = 0;  // those to its peer from before its fence
};

class DirectMoves;

class Endpoint : public Transport {
 public:
  struct Options {
    bool carries_data = true;
    std::uint64_t heap_bytes = 0;
    std::uint32_t signals = 0;
  };
  Endpoint(sim::Simulation& simulation, int rank, int ranks, const Options& options);

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  Time now() const override { return simulation_.now(); }
  bool carries_data() const override { return carries_data_; }

  Offset allocate(std::uint64_t size_bytes) override { return heap_.allocate(size_bytes); }
  void release(Offset offset) override { heap_.release(offset); }
  Signal allocate_signals(std::uint32_t count) override { return heap_.allocate_signals(count); }
  void release_signals(Signal first) override;
  std::byte* data(Offset offset) override {
    return carries_data_ ? memory_.start() + offset : nullptr;
  }

  std::uint64_t signal_fetch(Signal signal) const override;
  void wait(SignalWait& wait) override;
  void cancel(SignalWait& wait) override;

  // Time passes in the simulation, not here.
  bool progress() override { return false; }
  std::string pending() const override;
  void block_until(const std::function<bool()>& holds, Time timeout, int peer,
                   const std::function<std::string()>& what) override;
  // Bytes of this rank's heap have changed.
  virtual void changed(Offset first, std::uint64_t size_bytes) {
    static_cast<void>(first);
    static_cast<void>(size_bytes);
  }

 protected:
  SymmetricHeap& heap() { return heap_; }
  const SymmetricHeap& heap() const { return heap_; }
  sim::Simulation& simulation() const { return simulation_; }
  // Throws std::out_of_range if there is no such rank.
  void check_peer(int peer) const {
    if (peer < 0 || peer >= ranks_) refuse_peer(peer);
  }
  // From a Move to an existing peer.
  void fill(Delivery& delivery, Move& move) const {
    delivery.move = &move;
    delivery.size_bytes = move.size_bytes;
    delivery.remote = move.remote;
    delivery.has_signal = move.has_signal;
    delivery.signal_value = move.signal_value;
    delivery.signal_operation = move.signal_operation;
    if (move.peer == kNoPeer) return;
    if (move.has_signal) {
      heap_.check_signal(move.signal);
      delivery.signal_word = heap_.word_of(move.signal);
    }
    if (move.size_bytes > 0) heap_.check_range(move.remote, move.size_bytes);
  }
  // The payload, which is first stored here if the Move requires it.
  void load(Delivery& delivery) {
    if (carries_data_ && delivery.move->has_source && delivery.size_bytes > 0) load_bytes(delivery);
  }
  // It becomes visible here: its bytes, and then its signal.
  void land(const Delivery& delivery) {
    if (!delivery.payload.empty()) {
      std::memcpy(data(delivery.remote), delivery.payload.data(), delivery.payload.size());
    }
    if (delivery.has_signal) {
      raise(delivery.signal_word, delivery.signal_value, delivery.signal_operation);
    }
  }
  void raise(std::uint64_t at, std::uint64_t value, SignalOperation operation);
  void finish(Move& move);
  void notify_blocked();

 private:
  friend class DirectMoves;  // of GPUs
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
  [[noreturn]] void refuse_peer(int peer) const;
  static void load_bytes(Delivery& delivery);
  void unlink(SignalWait& wait);
  static void wake_blocked(void* endpoint);

  sim::Simulation& simulation_;
  int rank_;
  int ranks_;
  bool carries_data_;
  SymmetricHeap heap_;
  SparseMemory memory_;
  std::vector<SignalWord> words_;  // grows with use
  Blocked blocked_;
  Time last_activity_;  // when something last became ready
};

}  // namespace towpath::transport::simulated
