// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "towpath/transport/transport.hpp"

// The symmetric heap as OpenSHMEM and NVSHMEM show it to a program: bytes and words at offsets that
// a rank puts to, gets from, changes atomically and waits for. It accompanies the Moves of a
// schedule, shares their heap, and obeys the same ordering:
//   1. A signal word is changed after the payload of its put is visible.
//   2. Transport::fence orders what was started to one peer; Transport::is_quiet covers all of it.
//      A fence of a lane (AccessKind::fence) is done when what the lane started is visible.
//   3. Atomic operations on one word of one rank happen one after the other.
//
// Wrong:  put the data, then set a flag with a second put: the flag may overtake the data.

namespace towpath::transport {

enum class AccessKind : std::uint8_t { put, get, atomic, fence, thread_fence };

enum class AtomicOperation : std::uint8_t {
  fetch,
  set,
  add,
  bit_and,
  bit_or,
  bit_xor,
  swap,
  compare_swap,
};

// Who issues an access. It prices the access where a machine is simulated and has no effect live.
struct Issuer {
  int threads = 1;  // that copy together: 1, a warp of 32, or a block; of a fence, all that call it
  int lane = 0;     // the issuing thread block, by which an adapter's queue pair is chosen
  int multiprocessor = 0;  // where it runs: fences of its warps are one after the other
  Rate rate_max{};  // what the issuer's multiprocessor leaves it; zero where it leaves everything
};

// One access to the heap of a rank, the own one included. The caller owns it, and its operands, and
// keeps both unchanged until `done` and, where it is set, `visible` were called, which may be
// before start() returns.
//
// A put of no bytes with a signal is a signal alone. A fence has no operands: `done` is called when
// what its lane started before is visible at its peers. A thread_fence orders stores that the
// issuer's threads made themselves, by address, and only takes time.
struct Access {
  AccessKind kind = AccessKind::put;
  int peer = kNoPeer;
  Offset remote = 0;
  // A put's source or a get's destination; null where a put or get shall take time but move no
  // bytes, which is possible where a machine is simulated.
  std::byte* local = nullptr;
  std::uint64_t size_bytes = 0;  // of an atomic: 4 or 8
  Issuer issuer;

  // After a put: the word of 8 bytes at `signal_at` of the peer.
  bool has_signal = false;
  Offset signal_at = 0;
  std::uint64_t signal_value = 0;
  SignalOperation signal_operation = SignalOperation::set;

  AtomicOperation operation = AtomicOperation::fetch;
  std::uint64_t operand = 0;
  std::uint64_t expected = 0;  // of compare_swap
  std::uint64_t result = 0;    // the word before; valid in `done` where the operation fetches
  bool fetches = false;        // `done` waits for the result

  // Called once: a put's source may be overwritten; a get's bytes, or an atomic's result, are
  // there. May be null.
  void (*done)(Access& access) = nullptr;
  // Called once, not before `done`: what was stored is visible at the peer. May be null.
  void (*visible)(Access& access) = nullptr;
  // Called once where a machine is simulated, at the moment at which a put's bytes and its signal,
  // or what an atomic operation changed, are there, before those who wait for them are told. May be
  // null.
  void (*landed)(Access& access) = nullptr;
  void* context = nullptr;

  // The transport's own.
  void* context_of_transport = nullptr;
};

// Waiting until bytes of the own heap say what they should. The caller owns it and keeps it until
// `ready` is called or the wait is cancelled.
struct MemoryWait {
  Offset first = 0;
  std::uint64_t size_bytes = 0;
  bool (*holds)(const MemoryWait& wait) = nullptr;  // looks at the heap
  void (*ready)(MemoryWait& wait) = nullptr;
  std::string (*describe)(const MemoryWait& wait) =
      nullptr;  // for the error's sentence; may be null
  void* context = nullptr;

  bool is_waiting = false;  // the transport's own
};

// The word after an atomic operation on it; both are of the operation's size.
std::uint64_t changed_word(const Access& access, std::uint64_t before);

// The word after a put's signal.
inline std::uint64_t signalled_word(const Access& access, std::uint64_t before) {
  const bool adds = access.signal_operation == SignalOperation::add;
  return adds ? before + access.signal_value : access.signal_value;
}

// Throws as RemoteMemory::start does for what every transport checks: ranks, ranges, words.
class SymmetricHeap;
void check_access(const Access& access, const SymmetricHeap& heap, int ranks);

// The waits of one rank, oldest first. Hundreds of blocks wait, each for a word of its own, and
// every change of memory looks for who waits for it: the places stand side by side.
class MemoryWaits {
 public:
  void add(MemoryWait& wait);
  void remove(MemoryWait& wait);
  bool is_empty() const { return places_.empty(); }
  // One sentence each line; empty when there is none.
  std::string pending(int rank) const;

  // Calls found(wait) for each wait of these bytes that holds, after it was removed. `found` may
  // add and remove waits.
  template <typename Found>
  bool look(Offset first, std::uint64_t size_bytes, const Found& found) {
    bool any = false;
    next_ = 0;
    while (next_ < places_.size()) {
      const Place& place = places_[next_++];
      if (place.first >= first + size_bytes || first >= place.end) continue;
      MemoryWait& wait = *place.wait;
      if (!wait.holds(wait)) continue;
      any = true;
      remove(wait);
      found(wait);
    }
    return any;
  }

 private:
  struct Place {
    Offset first;
    Offset end;
    MemoryWait* wait;
  };
  std::vector<Place> places_;
  std::size_t next_ = 0;  // to be looked at; survives what `found` does to the list
};

// One rank's remote memory; Transport::remote_memory gives it. It belongs to the transport's
// thread.
class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;

  // Throws std::out_of_range for a rank or a place that does not exist, std::invalid_argument for
  // an atomic whose word is neither 4 nor 8 bytes, and for a word that is not aligned to its size.
  virtual void start(Access& access) = 0;

  // Calls wait.ready once it holds: before wait() returns, from progress(), or from an event of
  // the simulation. It is looked at whenever bytes of its range may have changed: by a peer, by an
  // access of this rank, or because this rank said so with stored().
  virtual void wait(MemoryWait& wait) = 0;
  virtual void cancel(MemoryWait& wait) = 0;
  // This rank has stored to its own heap without an access.
  virtual void stored(Offset first, std::uint64_t size_bytes) = 0;

  // A peer's copy of a place of the heap, where this rank's loads and stores reach it; else null
  // (OpenSHMEM's shmem_ptr).
  virtual std::byte* reach(int peer, Offset offset) = 0;
};

}  // namespace towpath::transport
