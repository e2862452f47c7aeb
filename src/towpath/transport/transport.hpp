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
// one Offset names the same place on each of them. Beside it live *signals*, 64-bit words that a
// peer may raise and their owner waits for.
//
// Ordering, and nothing more than this:
//   1. put_signal: its payload is visible to a rank that sees its signal.
//   2. fence: what was started to a peer before it is visible there before what is started after.
//   3. quiet: what this rank started is visible at every peer when it returns.
//   4. barrier: quiet on every rank, then no rank leaves before every rank has entered.
//   5. A DirectMove is visible when its `visible` is called; fences do not order it.
// Two puts without a fence between them may become visible in any order.
//
// What is started goes on by itself or in progress(). Only the calls under "blocking" block, and
// they have a deadline. A peer that died or stays silent ends a wait with a TransportError that
// names it.
//
// Wrong:  put(peer, data, ...);  put_signal(peer, flag, nothing, ...);
//         the flag may overtake the data. Right: one put_signal, or a fence between the two.
//
// A Transport belongs to one thread (in a simulation: to one process at a time). To add one,
// implement this class in its own folder and register it in tests/conformance/transports.cpp.

namespace towpath::transport {

// A place in the symmetric heap, the same number on every rank.
using Offset = std::uint64_t;

// A signal's number, the same on every rank. Signals start at zero.
using Signal = std::uint32_t;

inline constexpr int kNoPeer = -1;
inline constexpr std::uint16_t kNoTurn = 0xffff;

enum class SignalOperation : std::uint8_t { set, add };
enum class Comparison : std::uint8_t { equal, not_equal, greater_equal };

bool holds(Comparison comparison, std::uint64_t left, std::uint64_t right);

// What a put carries. The data are null where a run keeps time but no bytes.
struct Payload {
  const void* data = nullptr;
  std::uint64_t size_bytes = 0;
};

// A signal at a peer, and what is done to its value.
struct SignalUpdate {
  Signal signal = 0;
  std::uint64_t value = 1;
  SignalOperation operation = SignalOperation::set;
};

// One piece of work for the data path: read one or two local operands of size_bytes, combine them
// when there are two, store the result locally, put it to a peer, or both, then raise a signal
// there. put, put_signal, copy and reduce are special cases.
//
// The caller owns the Move and keeps it, and its operands, unchanged until done is called, which
// may be before start() returns, and is for a Move without operands: a flag alone is a posted
// store. In a time-only run the pointers are null and the has_ flags alone say what is read and
// written.
struct Move {
  const std::byte* source = nullptr;
  const std::byte* addend = nullptr;  // combined with source by `reduction`
  std::byte* destination = nullptr;   // local store
  bool has_source = false;
  bool has_addend = false;
  bool has_destination = false;
  std::uint64_t size_bytes = 0;
  Reduction reduction;

  int peer = kNoPeer;       // put there, unless kNoPeer; a rank may put to itself
  Offset remote = 0;        // where the payload goes; ignored when size_bytes is 0
  bool has_signal = false;  // raise `signal` at the peer, after the payload
  Signal signal = 0;
  std::uint64_t signal_value = 0;
  SignalOperation signal_operation = SignalOperation::set;
  Protocol protocol = Protocol::simple;
  // Which of its rank's puts a simulated link takes first where several reach it at the same
  // moment: that of the lowest number. Without it, the one that was started first.
  std::uint16_t turn = kNoTurn;

  // Called once, when the operands may be overwritten and the local store is visible. May be null.
  void (*done)(Move& move) = nullptr;
  void* context = nullptr;
};

// What a move lacks although its flags name it, in words, or null.
const char* missing_part(const Move& move);

// Where an operand of a DirectMove is: at an offset in the heap of one rank, or at the same offset
// in those of a group of ranks, which their switch combines when it is loaded from and copies to
// when it is stored to.
struct Location {
  int rank = kNoPeer;
  std::span<const int> group;  // instead of the rank, unless empty
  Offset offset = 0;
};

// A signal that is raised, or added to, at a rank.
struct Raise {
  int rank = kNoPeer;
  Signal signal = 0;
  std::uint64_t value = 1;
};

// Loads from and stores to any memory: combines the sources, in their order, and stores the result
// to each destination. The caller owns it and keeps it until both callbacks were called.
struct DirectMove {
  std::vector<Location> sources;
  std::vector<Location> destinations;
  std::uint64_t size_bytes = 0;
  Reduction reduction;
  Protocol protocol = Protocol::simple;
  bool is_port = false;  // an adapter moves the bytes, and the thread block goes on at once
  // Which of several that begin at one moment goes first, behind all else that happens then: that
  // of the lowest rank, and in it of the lowest turn. Without it, the one that was started first.
  std::uint16_t turn = kNoTurn;
  // Added to, each at its rank, once what was stored there is visible.
  std::vector<Raise> raises;

  // Called once: the sources are loaded and the thread block may go on. May be null.
  void (*done)(DirectMove& move) = nullptr;
  // Called once, after `done`: all that was stored is visible, and this rank knows. May be null.
  void (*visible)(DirectMove& move) = nullptr;
  void* context = nullptr;
};

// What a rank's DirectMoves reach.
struct DirectNeeds {
  std::vector<std::vector<int>> groups;
  std::vector<int> peers;  // not through a port
  bool combines = false;   // several sources, or what a group has
};

// Waiting for a signal of this rank. The caller owns it and keeps it until `ready` is called or
// the wait is cancelled.
struct SignalWait {
  Signal signal = 0;
  Comparison comparison = Comparison::greater_equal;
  std::uint64_t value = 0;
  int peer = kNoPeer;  // who is expected to raise it; for the error's sentence

  void (*ready)(SignalWait& wait) = nullptr;
  // What is waited for, in words: "slot 3 from rank 2 on channel 1, step 5". May be null.
  std::string (*describe)(const SignalWait& wait) = nullptr;
  void* context = nullptr;

  // The transport's own: its list of waits.
  SignalWait* next = nullptr;
  SignalWait* previous = nullptr;
  bool is_waiting = false;
};

// A wait that will not end: one sentence for a person, fields for a program.
class TransportError : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t {
    peer_died,     // fatal: the process is gone; every later call throws the same
    timeout,       // the deadline passed; the peer is slow, stopped, or in another program
    disagreement,  // ranks asked for different things; nothing was started
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

// For transports whose costs depend on the step of a plan that a Move belongs to.
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

  // False when the run keeps time but no bytes: data() is null and signals alone are real.
  virtual bool carries_data() const = 0;

  // Whether the peer's memory is within reach of this rank's loads and stores (OpenSHMEM's
  // shmem_ptr); otherwise adapters carry every put. The same seen from either side.
  virtual bool is_addressable(int peer) const = 0;

  // --- symmetric memory --------------------------------------------------------------------------
  // Every rank makes the same calls in the same order; none of them blocks. Offsets are aligned
  // to 256 bytes, contents are undefined. Release what no peer uses any more (after a barrier).
  // Throws std::bad_alloc when the heap is full.
  virtual Offset allocate(std::uint64_t size_bytes) = 0;
  virtual void release(Offset offset) = 0;
  // Consecutive signals, all zero.
  virtual Signal allocate_signals(std::uint32_t count) = 0;
  virtual void release_signals(Signal first) = 0;
  // This rank's copy of the heap; null when carries_data() is false.
  virtual std::byte* data(Offset offset) = 0;

  // --- data path ---------------------------------------------------------------------------------
  virtual void start(Move& move) = 0;
  // Only where direct_refusal() is empty.
  virtual void start_direct(DirectMove& move);
  // Adds to signals, each at its rank.
  virtual void raise_all(std::span<const Raise> raises);
  // Why such DirectMoves are not possible here, in one sentence; empty where they are.
  virtual std::string direct_refusal(const DirectNeeds& needs) const;
  // Gets, atomic operations and words of the heap, for programs; null where a transport has none.
  virtual RemoteMemory* remote_memory() { return nullptr; }
  // Null unless the transport looks up the origin of each Move.
  virtual MoveOrigins* move_origins() { return nullptr; }
  virtual void fence() = 0;
  // Whether all that this rank started is visible at its peers.
  virtual bool is_quiet() const = 0;

  // --- signals -----------------------------------------------------------------------------------
  // The value of a signal of this rank; what it announced is visible afterwards (acquire).
  virtual std::uint64_t signal_fetch(Signal signal) const = 0;
  // Calls wait.ready once the comparison holds: before wait() returns, from progress(), or from an
  // event of the simulation.
  virtual void wait(SignalWait& wait) = 0;
  virtual void cancel(SignalWait& wait) = 0;

  // --- time passes -------------------------------------------------------------------------------
  // Lets what is started go on and calls what became ready; returns whether anything did. Live,
  // it looks after the peers now and then and throws TransportError for a dead one.
  virtual bool progress() = 0;
  // What is still waited for, one sentence each line; empty when nothing is.
  virtual std::string pending() const = 0;

  // --- blocking ----------------------------------------------------------------------------------
  // In a simulation these may only be called from one of its processes. `timeout` is how long
  // nothing at all may become ready; a long operation that goes on is not cut short.
  //
  // Blocks until holds() is true; `what` and `peer` say what is awaited, and from whom, in the
  // sentence of the TransportError that ends the wait otherwise.
  virtual void block_until(const std::function<bool()>& holds, Time timeout, int peer,
                           const std::function<std::string()>& what) = 0;

  // The rest is written once, in transport.cpp, in terms of the above.
  void put(int peer, Offset remote, Payload payload, Time timeout);
  // A payload of no bytes raises the signal alone; `remote` is then ignored.
  void put_signal(int peer, Offset remote, Payload payload, const SignalUpdate& update,
                  Time timeout);
  void signal_wait_until(Signal signal, Comparison comparison, std::uint64_t value, Time timeout,
                         int peer = kNoPeer);
  void quiet(Time timeout);
  void barrier(Time timeout);

  // Every rank says in one short sentence what it is about to do. Returns when all said the same;
  // otherwise every rank throws TransportError::Kind::disagreement naming itself, the first rank
  // that differs, and both sentences, once all others have read theirs or that cannot be known
  // within the timeout. Needs carries_data().
  void agree(std::string_view statement, Time timeout);

  // The first signals and bytes of every heap belong to the contract itself.
  static constexpr int kBarrierSignals = 32;  // one per round of a dissemination barrier
  static constexpr std::uint32_t kReservedSignals =
      kBarrierSignals + 3;  // and agree()'s: statements, by parity, and who has read all
  static constexpr std::uint64_t kStatementBytes = 512;
  static std::uint64_t reserved_bytes(int ranks) {
    return 2 * kStatementBytes * static_cast<std::uint64_t>(ranks);
  }

 private:
  // Of agree(): where a rank's statement is on every heap, where in it that it has read all others'
  // is noted, and the signal that wakes who waits for that.
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
