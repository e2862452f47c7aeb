// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/base/protocol.hpp"
#include "towpath/base/units.hpp"
#include "towpath/transport/reduction.hpp"

// The contract: one rank's one-sided view of the others. The terms are OpenSHMEM's.
//
// Ranks share a *symmetric heap*: every rank allocates the same sizes in the same order, so that
// one Offset is valid on all of them. In addition there are *signals*, 64-bit words that a peer may
// raise and their owner waits for.
//
// Guaranteed ordering:
//   1. put_signal: the payload is visible to a rank that observes the signal.
//   2. fence: at each peer, operations started before it are visible before operations started
//   after.
//   3. quiet: on return, all operations of this rank are visible at every peer.
//   4. barrier: quiet on every rank. No rank leaves before every rank has entered.
//   5. A DirectMove is visible when its `visible` is called. Fences do not order it.
// Two puts without a fence between them may become visible in any order.
//
// Operations progress by themselves or in progress(). Only the calls under "blocking" block, and
// they have a deadline. A dead or silent peer ends a wait with a TransportError that names it.
//
// Wrong:  put(peer, data, ...);  put_signal(peer, flag, nothing, ...);
//         the flag may overtake the data. Right: one put_signal, or a fence between the two.
//
// A Transport belongs to one thread (in a simulation: to one process at a time). To add one,
// implement this class in a separate folder and register it in tests/conformance/transports.cpp.

namespace towpath::transport {

// A position in the symmetric heap, the same number on every rank.
using Offset = std::uint64_t;

// A signal's number, the same on every rank. Signals start at zero.
using Signal = std::uint32_t;

inline constexpr int kNoPeer = -1;
inline constexpr std::uint16_t kNoTurn = 0xffff;

enum class SignalOperation : std::uint8_t { set, add };
enum class Comparison : std::uint8_t { equal, not_equal, greater_equal };

bool holds(Comparison comparison, std::uint64_t left, std::uint64_t right);

// A put's payload. The data are null in a time-only run.
struct Payload {
  const void* data = nullptr;
  std::uint64_t size_bytes = 0;
};

// An update of a signal at a peer.
struct SignalUpdate {
  Signal signal = 0;
  std::uint64_t value = 1;
  SignalOperation operation = SignalOperation::set;
};

// One operation of the data path: read one or two local operands of size_bytes, combine them if
// there are two, store the result locally, put it to a peer, or both, then raise a signal there.
// put, put_signal, copy and reduce are special cases.
//
// The caller owns the Move and keeps it and its operands unchanged until done is called. This may
// be before start() returns, and always is for a Move without operands: a lone signal is a posted
// store. In a time-only run the pointers are null, and the has_ flags alone determine the reads and
// writes.
struct Move {
  const std::byte* source = nullptr;
  const std::byte* addend = nullptr;  // combined with source by `reduction`
  std::byte* destination = nullptr;   // local store
  bool has_source = false;
  bool has_addend = false;
  bool has_destination = false;
  std::uint64_t size_bytes = 0;
  Reduction reduction;

  int peer = kNoPeer;       // target of the put, unless kNoPeer; a rank may put to itself
  Offset remote = 0;        // destination of the payload; ignored if size_bytes is 0
  bool has_signal = false;  // raise `signal` at the peer, after the payload
  Signal signal = 0;
  std::uint64_t signal_value = 0;
  SignalOperation signal_operation = SignalOperation::set;
  Protocol protocol = Protocol::simple;
  // Tie-break among this rank's puts that reach a simulated link at the same instant; lowest first.
  // Without it, in starting order.
  std::uint16_t turn = kNoTurn;

  // Called once, when the operands may be overwritten and the local store is visible. May be null.
  void (*done)(Move& move) = nullptr;
  void* context = nullptr;
};

// The part of a move that is missing although its flags require it, as text, or null.
const char* missing_part(const Move& move);

// Location of a DirectMove's operand: an offset in the heap of one rank, or the same offset in a
// group of ranks. Their switch combines loads and multicasts stores.
struct Location {
  int rank = kNoPeer;
  std::span<const int> group;  // replaces the rank unless empty
  Offset offset = 0;
};

// A signal increment at a rank.
struct Raise {
  int rank = kNoPeer;
  Signal signal = 0;
  std::uint64_t value = 1;
};

// Loads from and stores to any memory: combines the sources in order and stores the result to each
// destination. The caller owns it and keeps it until both callbacks have been called.
struct DirectMove {
  std::vector<Location> sources;
  std::vector<Location> destinations;
  std::uint64_t size_bytes = 0;
  Reduction reduction;
  Protocol protocol = Protocol::simple;
  bool is_port = false;    // an adapter moves the bytes asynchronously
  bool is_polled = false;  // its sources are packets: the poll that saw them was the load
  // Tie-break among moves that start at the same instant, after all other events: lowest rank, then
  // lowest turn. Without it, in starting order.
  std::uint16_t turn = kNoTurn;
  // Raised at their ranks once the stores there are visible.
  std::vector<Raise> raises;

  // Called once, when the sources are loaded and the thread block may continue. May be null.
  void (*done)(DirectMove& move) = nullptr;
  // Called once, after `done`, when all stores are visible and acknowledged to this rank. May be
  // null.
  void (*visible)(DirectMove& move) = nullptr;
  void* context = nullptr;
};

// The ranks and groups in a rank's DirectMoves.
struct DirectNeeds {
  std::vector<std::vector<int>> groups;
  std::vector<int> peers;  // other than through a port
  bool combines = false;   // several sources, or a group's data
};

// A wait for a signal of this rank. The caller owns it and keeps it until `ready` is called or the
// wait is cancelled.
struct SignalWait {
  Signal signal = 0;
  Comparison comparison = Comparison::greater_equal;
  std::uint64_t value = 0;
  int peer = kNoPeer;  // the expected raiser, for error messages

  void (*ready)(SignalWait& wait) = nullptr;
  // A description of the awaited object: "slot 3 from rank 2 on channel 1, step 5". May be null.
  std::string (*describe)(const SignalWait& wait) = nullptr;
  void* context = nullptr;

  // For the transport: its list of waits.
  SignalWait* next = nullptr;
  SignalWait* previous = nullptr;
  bool is_waiting = false;
};

// A wait that cannot end: one sentence for the user, fields for programs.
class TransportError : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t {
    peer_died,     // fatal: the process is gone; every later call throws the same
    timeout,       // the deadline passed; the peer is slow, stopped, or in another program
    disagreement,  // ranks requested different operations; none was started
  };
  TransportError(Kind kind, int peer, const std::string& sentence)
      : std::runtime_error(sentence), kind_(kind), peer_(peer) {}
  Kind kind() const { return kind_; }
  int peer() const { return peer_; }  // the culprit, or kNoPeer

 private:
  Kind kind_;
  int peer_;
};

class RemoteMemory;  // remote_memory.hpp

// For transports whose costs depend on the step of a plan to which a Move belongs.
class MoveOrigins {
 public:
  virtual ~MoveOrigins() = default;
  // The next Move that is started belongs to this step of this thread block.
  virtual void set_origin(std::uint32_t block, std::uint32_t step) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual Time now() const = 0;  // simulated time, or a steady clock

  // False in a time-only run: data() is null, and only signals are real.
  virtual bool carries_data() const = 0;

  // True if this rank's loads and stores reach the peer's memory (OpenSHMEM's shmem_ptr). Otherwise
  // adapters carry every put. Symmetric.
  virtual bool is_addressable(int peer) const = 0;

  // --- symmetric memory --------------------------------------------------------------------------
  // Every rank makes the same calls in the same order. None of them blocks. Offsets are aligned to
  // 256 bytes, contents are undefined. Release only memory that no peer uses (after a barrier).
  // Throws std::bad_alloc if the heap is full.
  virtual Offset allocate(std::uint64_t size_bytes) = 0;
  virtual void release(Offset offset) = 0;
  // Consecutive signals, all zero.
  virtual Signal allocate_signals(std::uint32_t count) = 0;
  virtual void release_signals(Signal first) = 0;
  // This rank's copy of the heap; null if carries_data() is false.
  virtual std::byte* data(Offset offset) = 0;

  // --- data path ---------------------------------------------------------------------------------
  virtual void start(Move& move) = 0;
  // Requires that direct_refusal() is empty.
  virtual void start_direct(DirectMove& move);
  // Adds to signals, each at its rank.
  virtual void raise_all(std::span<const Raise> raises);
  // The reason why such DirectMoves are not possible, in one sentence; empty if they are.
  virtual std::string direct_refusal(const DirectNeeds& needs) const;
  // Gets, atomic operations and words of the heap, for programs; null if not supported.
  virtual RemoteMemory* remote_memory() { return nullptr; }
  // Null unless the transport looks up the origin of each Move.
  virtual MoveOrigins* move_origins() { return nullptr; }
  virtual void fence() = 0;
  // True if all operations of this rank are visible at its peers.
  virtual bool is_quiet() const = 0;

  // --- signals -----------------------------------------------------------------------------------
  // The value of a signal of this rank. Acquires: announced data are visible afterwards.
  virtual std::uint64_t signal_fetch(Signal signal) const = 0;
  // Calls wait.ready once the comparison holds: before wait() returns, from progress(), or from an
  // event of the simulation.
  virtual void wait(SignalWait& wait) = 0;
  virtual void cancel(SignalWait& wait) = 0;

  // --- progress ----------------------------------------------------------------------------------
  // Advances operations and calls ready callbacks. Returns whether there were any. A live
  // transport also checks its peers periodically and throws TransportError for a dead one.
  virtual bool progress() = 0;
  // Pending waits, one sentence per line; empty if there are none.
  virtual std::string pending() const = 0;

  // --- blocking ----------------------------------------------------------------------------------
  // In a simulation these may only be called from one of its processes. `timeout` limits the time
  // without any progress. A long operation that makes progress is not interrupted.
  //
  // Blocks until holds() is true. `what` and `peer` describe the awaited event and its source in
  // the TransportError that otherwise ends the wait.
  virtual void block_until(const std::function<bool()>& holds, Time timeout, int peer,
                           const std::function<std::string()>& what) = 0;

  // The rest is implemented once, in transport.cpp, on top of the above.
  void put(int peer, Offset remote, Payload payload, Time timeout);
  // A payload of no bytes only raises the signal. `remote` is then ignored.
  void put_signal(int peer, Offset remote, Payload payload, const SignalUpdate& update,
                  Time timeout);
  void signal_wait_until(Signal signal, Comparison comparison, std::uint64_t value, Time timeout,
                         int peer = kNoPeer);
  void quiet(Time timeout);
  void barrier(Time timeout);

  // Every rank passes a short statement of its next operation. Returns if all are equal. Otherwise
  // every rank throws TransportError::Kind::disagreement with itself, the first different rank, and
  // both statements, once all others have read theirs or the timeout has passed. Needs
  // carries_data().
  void agree(std::string_view statement, Time timeout);

  // The first signals and bytes of every heap are reserved for the contract.
  static constexpr int kBarrierSignals = 32;  // one per round of a dissemination barrier
  static constexpr std::uint32_t kReservedSignals =
      kBarrierSignals + 3;  // and agree()'s: statements, by parity, and read counters
  static constexpr std::uint64_t kStatementBytes = 512;
  static std::uint64_t reserved_bytes(int ranks) {
    return 2 * kStatementBytes * static_cast<std::uint64_t>(ranks);
  }

 private:
  // For agree(): the location of a rank's statement on every heap, of its mark that all others' are
  // read, and the signal for that mark.
  static Offset statement_of(int rank, std::uint64_t number) {
    return kStatementBytes * (2 * static_cast<std::uint64_t>(rank) + number % 2);
  }
  static constexpr std::uint64_t kAllReadAt = kStatementBytes - sizeof(std::uint64_t);
  static constexpr Signal kAllReadSignal = kBarrierSignals + 2;

  void complete(Move& move, Time timeout, const char* operation);
  void tell_all_read(std::uint64_t number, Time timeout);
  std::uint64_t barriers_ = 0;
  std::uint64_t agreements_ = 0;
};

}  // namespace towpath::transport
