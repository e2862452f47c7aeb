// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "towpath/base/units.hpp"

// The order in which agents have observed each other, found by walking backward. The number of
// agents is not limited. Queries are rare, so nothing is merged before a query.
//
// A wait for a signal gives an agent everything that the sender had done and observed by then, and
// the arrival of the payload. After a quiet the transfers of its process are complete. A fence
// orders them before later signals to the same peer. An agent that polls memory, reads memory of a
// peer or changes a word atomically may observe any earlier event, so all of them count as
// observed. An agent is therefore never reported by mistake.

namespace towpath::causality {

class History;
struct SignalWord;

using Offset = std::uint64_t;
inline constexpr int kNoPeer = -1;

// A position in a history: everything in its owner's past.
struct Moment {
  const History* of = nullptr;
  std::size_t length = 0;
};

struct Transfer {
  int process = 0;           // of the initiating agent
  std::uint64_t number = 0;  // among the operations of that process
  int peer = 0;              // its destination
  Time began{};
  Moment starter{};  // of the agent, at the start
};

enum class Known : std::uint8_t {
  no,
  only_fenced,  // a fence follows it, which has no effect for this agent
  yes,
};

class History {
 public:
  enum class Kind : std::uint8_t { moment, signals, everything, quiet, fence };
  struct Entry {
    Kind kind;
    Time time;
    Moment moment{};                   // added to the history
    const SignalWord* word = nullptr;  // the word with the observed signals, from the first to
                                       // Position before the end:
    std::size_t first_signal = 0;
    std::size_t signals = 0;
    std::uint64_t number = 0;  // last operation covered by a quiet or fence
    bool is_look = false;      // at memory that others may have changed: no call ordered it
  };

  explicit History(int process) : process_(process) {}

  int process() const { return process_; }
  const std::vector<Entry>& entries() const { return entries_; }
  Moment now() const { return {this, entries_.size()}; }

  void learn(Time time, Moment moment) { entries_.push_back({Kind::moment, time, moment}); }
  void learn(Time time, const SignalWord& word);
  void learn_everything(Time time) { entries_.push_back({Kind::everything, time}); }
  void look(Time time) {
    entries_.push_back({.kind = Kind::everything, .time = time, .is_look = true});
  }
  void complete(Time time, std::uint64_t number, bool is_quiet);

  // True if the completion of a transfer is in the owner's past.
  Known knows(const Transfer& transfer) const;
  // True if a moment of another agent, at `time`, is in the owner's past.
  bool knows(Moment moment, Time time) const;
  // The same if the owner had not looked at memory itself.
  bool knows_without_looks(Moment moment, Time time) const;
  // True if it is in the owner's past that an agent of `process` had the transfer's completion in
  // its past.
  bool knows_that(int process, const Transfer& transfer) const;

 private:
  int process_;
  std::vector<Entry> entries_;
};

struct Signal {
  Moment sender;
  Transfer payload;  // its put, or the number of a signal alone
  int lane = 0;      // the sending agent
  std::uint64_t value = 0;
  bool is_set = false;
  std::string what{};  // its call, position and sender
  Time landed{};
  Moment seen{};  // by the first wait that observed it
  Time seen_at{};
};

// A word of memory with signals.
struct SignalWord {
  std::vector<Signal*> landed;
  std::size_t seen = 0;  // number of signals observed by waits
  const Signal* last_set = nullptr;
  std::uint64_t value = 0;  // after the last signal
  bool is_plain = false;    // also accessed without signals or waits
  bool is_awaited = false;
  // The call that resent a signal before the previous one was observed, and the previous call.
  std::string reused_by{};
  std::string reused_of{};
};

// The words of one memory, by offset.
class SignalWords {
 public:
  SignalWord& at(Offset place);
  SignalWord* find(Offset place);
  // These bytes are accessed without signals or waits.
  void note_plain(Offset first, std::uint64_t size_bytes);
  // The memory is freed.
  void forget(Offset first, std::uint64_t size_bytes);
  Signal& new_signal() { return signals_.emplace_back(); }

 private:
  std::map<Offset, SignalWord*> words_;
  std::deque<SignalWord> storage_;  // histories keep pointers to the words
  std::deque<Signal> signals_;
};

}  // namespace towpath::causality
