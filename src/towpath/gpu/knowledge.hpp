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
#include "towpath/transport/transport.hpp"

// What a thread block can know of the others, so that memory that is touched too early is named.
//
// A block learns by waiting for a signal: what its sender had done and learned by then, and that
// the payload is there. It learns by quiet() that what its PE started is complete; by fence(), that
// it comes before what it signals to the same peer later. Where a thread polls memory, reads a
// peer's or changes a word atomically, it is taken to learn all that happened before, since the
// value may tell it anything. So nobody is accused who could know.

namespace towpath::gpu {

class History;
struct SignalWord;

// What the owner of a history had done and learned when it had so many entries.
struct Moment {
  const History* of = nullptr;
  std::size_t length = 0;
};

// A put, as those who touch its bytes must know it.
struct TransferIdentity {
  int pe = 0;                // that started it
  std::uint64_t number = 0;  // among its operations
  int peer = 0;              // to which
  Time began{};
  Moment starter{};  // the block, when it started it
};

enum class Known : std::uint8_t {
  no,
  only_fenced,  // a fence came after it, which says nothing here
  yes,
};

class History {
 public:
  enum class Kind : std::uint8_t { moment, signals, everything, quiet, fence };
  struct Entry {
    Kind kind;
    Time time;
    Moment moment{};                   // learned
    const SignalWord* word = nullptr;  // signals that had come to it:
    std::size_t first_signal = 0;      // those before, an earlier entry has
    std::size_t signals = 0;           // how many in all
    std::uint64_t number = 0;          // of the operations that a quiet or fence covers
  };

  explicit History(int pe) : pe_(pe) {}

  int pe() const { return pe_; }
  const std::vector<Entry>& entries() const { return entries_; }
  Moment now() const { return {this, entries_.size()}; }

  void learn(Time time, Moment moment) { entries_.push_back({Kind::moment, time, moment}); }
  void learn(Time time, const SignalWord& word);
  void learn_everything(Time time) { entries_.push_back({Kind::everything, time}); }
  void complete(Time time, std::uint64_t number, bool is_quiet);

  // Whether the owner can know that the put is complete.
  Known knows(const TransferIdentity& transfer) const;
  // Whether it can know of a moment of another, which was at `time`.
  bool knows(Moment moment, Time time) const;
  // Whether it can know that `pe` knew, at some time before, that the put is complete.
  bool knows_that(int pe, const TransferIdentity& transfer) const;

 private:
  int pe_;
  std::vector<Entry> entries_;
};

// A signal on its way to a word.
struct Signal {
  Moment sender;
  TransferIdentity payload;  // of the put that carries it; a signal alone has a number too
  int lane = 0;              // the sending block
  std::uint64_t value = 0;
  bool is_set = false;
  std::string what{};  // the call, its place, who made it
  Time landed{};
  Moment seen{};  // by the first wait that saw it
  Time seen_at{};
};

// A word of a heap that signals change.
struct SignalWord {
  std::vector<Signal*> landed;
  std::size_t seen = 0;  // of those, by waits
  const Signal* last_set = nullptr;
  std::uint64_t value = 0;  // after the last that landed
  bool is_plain = false;    // changed or looked at by other means too
  bool is_awaited = false;  // by a kernel
  std::string reused_by{};  // the call that sent a signal again before the last one was seen
  std::string reused_of{};  // that last one
};

// The words of a PE's heap, by their places.
class SignalWords {
 public:
  SignalWord& at(transport::Offset place);
  SignalWord* find(transport::Offset place);
  // Bytes that are stored to, or looked at, by other means.
  void note_plain(transport::Offset first, std::uint64_t size_bytes);
  // The memory is free.
  void forget(transport::Offset first, std::uint64_t size_bytes);
  Signal& new_signal() { return signals_.emplace_back(); }

 private:
  std::map<transport::Offset, SignalWord*> words_;
  std::deque<SignalWord> storage_;  // histories keep pointers
  std::deque<Signal> signals_;
};

}  // namespace towpath::gpu
