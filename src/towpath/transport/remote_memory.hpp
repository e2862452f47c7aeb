// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "towpath/transport/transport.hpp"

// The symmetric heap for programs, as in OpenSHMEM and NVSHMEM: bytes and words at offsets that a
// rank puts to, gets from, updates atomically and waits for. It complements the Moves of a
// schedule, shares their heap, and has the same ordering:
//   1. A signal word changes after the payload of its put is visible.
//   2. Transport::fence orders accesses to one peer. Transport::is_quiet covers all accesses. A
//   fence
//      of a lane (AccessKind::fence) completes when all earlier accesses of the lane are visible.
//   3. Atomic operations on one word of one rank are serialized.
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

// The issuer of an access. Determines its cost on a simulated machine. No effect live.
struct Issuer {
  int threads = 1;  // threads that copy together: 1, a warp of 32, or a block; for a fence, all
                    // callers
  int lane = 0;     // the issuing thread block; selects an adapter's queue pair
  int multiprocessor = 0;  // its multiprocessor, which serializes its warps' fences
  Rate rate_max{};         // the remaining rate of the issuer's multiprocessor; zero: unlimited
};

// One access to the heap of a rank, possibly this one. The caller owns it and its operands, and
// keeps both unchanged until `done` and, if set, `visible` have been called, which may be before
// start() returns.
//
// A put of no bytes with a signal is only a signal. A fence has no operands: `done` is called when
// all earlier accesses of its lane are visible at its peers. A thread_fence orders direct stores of
// the issuer's threads, and only takes time.
struct Access {
  AccessKind kind = AccessKind::put;
  int peer = kNoPeer;
  Offset remote = 0;
  // A put's source or a get's destination. Null for an access that takes time but moves no bytes,
  // on a simulated machine only.
  std::byte* local = nullptr;
  std::uint64_t size_bytes = 0;  // atomic: 4 or 8
  Issuer issuer;

  // After a put: the 8-byte word at the peer's `signal_at`.
  bool has_signal = false;
  Offset signal_at = 0;
  std::uint64_t signal_value = 0;
  SignalOperation signal_operation = SignalOperation::set;

  AtomicOperation operation = AtomicOperation::fetch;
  std::uint64_t operand = 0;
  std::uint64_t expected = 0;  // compare_swap only
  std::uint64_t result = 0;    // the previous word, valid in `done` of fetching operations
  bool fetches = false;        // `done` waits for the result

  // Called once, when a put's source may be overwritten, or a get's bytes or an atomic's result
  // have arrived. May be null.
  void (*done)(Access& access) = nullptr;
  // Called once, not before `done`, when the stores are visible at the peer. May be null.
  void (*visible)(Access& access) = nullptr;
  // Simulated machines only. Called once when a put's bytes and signal, or an atomic's effect, have
  // arrived, before waiters are notified. May be null.
  void (*landed)(Access& access) = nullptr;
  void* context = nullptr;

  // For the transport.
  void* context_of_transport = nullptr;
};

// A wait for a condition on bytes of the local heap. The caller owns it and keeps it until `ready`
// is called or the wait is cancelled.
struct MemoryWait {
  Offset first = 0;
  std::uint64_t size_bytes = 0;
  bool (*holds)(const MemoryWait& wait) = nullptr;  // reads the heap
  void (*ready)(MemoryWait& wait) = nullptr;
  std::string (*describe)(const MemoryWait& wait) = nullptr;  // for error messages; may be null
  void* context = nullptr;

  bool is_waiting = false;  // for the transport
};

// The word after an atomic operation. Both have the operation's size.
std::uint64_t changed_word(const Access& access, std::uint64_t before);

// The word after a put's signal.
inline std::uint64_t signalled_word(const Access& access, std::uint64_t before) {
  const bool adds = access.signal_operation == SignalOperation::add;
  return adds ? before + access.signal_value : access.signal_value;
}

// Checks the ranks, ranges and words of an access, as all transports do. Throws like
// RemoteMemory::start.
class SymmetricHeap;
void check_access(const Access& access, const SymmetricHeap& heap, int ranks);

// The waits of one rank, oldest first. Hundreds of blocks wait, each for a different word, and
// every memory change searches the waits. Their ranges are therefore stored contiguously.
class MemoryWaits {
 public:
  void add(MemoryWait& wait);
  void remove(MemoryWait& wait);
  bool is_empty() const { return places_.empty(); }
  // One sentence per line; empty if there is none.
  std::string pending(int rank) const;

  // Calls found(wait) for each wait on these bytes that holds, after removing it. `found` may add
  // and remove waits.
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
  std::size_t next_ = 0;  // next to check; stays valid if `found` changes the list
};

// One rank's remote memory, from Transport::remote_memory. It belongs to the transport's thread.
class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;

  // Throws std::out_of_range for a rank or offset that does not exist, std::invalid_argument for an
  // atomic with a word of neither 4 nor 8 bytes, and for a misaligned word.
  virtual void start(Access& access) = 0;

  // Calls wait.ready when the condition holds: before wait() returns, from progress(), or from an
  // event of the simulation. Checked whenever bytes in its range may have changed: by a peer, by an
  // access of this rank, or by stored().
  virtual void wait(MemoryWait& wait) = 0;
  virtual void cancel(MemoryWait& wait) = 0;
  // This rank has stored to its heap without an access.
  virtual void stored(Offset first, std::uint64_t size_bytes) = 0;

  // The address of a peer's copy of a heap offset for loads and stores; null if not reachable
  // (OpenSHMEM's shmem_ptr).
  virtual std::byte* reach(int peer, Offset offset) = 0;
};

}  // namespace towpath::transport
