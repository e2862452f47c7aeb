// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/causality/history.hpp"

#include <algorithm>
#include <utility>

namespace towpath::causality {

namespace {

// A backward walk through the history of an agent and of all agents in its past. It stops at
// entries older than `since`, which precede all relevant events.
class Walk {
 public:
  // The part of a history to read, and the peer of the last signal on the path to it.
  struct Step {
    Moment moment;
    int peer;
  };

  explicit Walk(Time since) : since_(since) {}

  // Calls visit(step, entry) for each entry, latest first, until one returns true.
  template <typename Visit>
  bool any(Moment from, const Visit& visit) {
    steps_.push_back({from, kNoPeer});
    while (!steps_.empty()) {
      const Step step = steps_.back();
      steps_.pop_back();
      std::size_t& seen = lengths_[{step.moment.of, step.peer}];
      const std::size_t begin = std::exchange(seen, std::max(seen, step.moment.length));
      const auto& entries = step.moment.of->entries();
      for (std::size_t i = step.moment.length; i-- > begin;) {
        if (entries[i].time < since_) break;
        if (visit(step, entries[i])) return true;
        follow(step, entries[i]);
      }
    }
    return false;
  }

 private:
  void follow(const Step& step, const History::Entry& entry) {
    if (entry.kind == History::Kind::moment) steps_.push_back({entry.moment, step.peer});
    if (entry.kind != History::Kind::signals) return;
    for (std::size_t i = entry.signals; i-- > entry.first_signal;) {
      const Signal& signal = *entry.word->landed[i];
      if (signal.landed < since_) break;
      steps_.push_back({signal.sender, signal.payload.peer});
    }
  }

  Time since_;
  std::vector<Step> steps_;
  std::map<std::pair<const History*, int>, std::size_t> lengths_;
};

bool carries(const History::Entry& entry, const Transfer& transfer) {
  if (entry.kind != History::Kind::signals) return false;
  for (std::size_t i = entry.signals; i-- > entry.first_signal;) {
    const Signal& signal = *entry.word->landed[i];
    if (signal.landed < transfer.began) return false;
    if (signal.payload.process == transfer.process && signal.payload.number == transfer.number)
      return true;
  }
  return false;
}

bool knows_of(Moment knower, Moment moment, Time time, bool with_looks = true) {
  if (moment.of == knower.of) return true;
  return Walk(time).any(knower, [&](const Walk::Step& step, const History::Entry& entry) {
    if (entry.kind == History::Kind::everything) {
      const bool counts = with_looks || !entry.is_look || step.moment.of != knower.of;
      return counts && time < entry.time;
    }
    const bool is_there = step.moment.of == moment.of && step.moment.length >= moment.length;
    return is_there || (entry.kind == History::Kind::moment && entry.moment.of == moment.of &&
                        entry.moment.length >= moment.length);
  });
}

// A quiet or fence covers earlier operations of its process that are in the issuing agent's past.
bool covers(const History& of, const History::Entry& entry, const Transfer& transfer) {
  if (of.process() != transfer.process || entry.number < transfer.number) return false;
  const auto index = static_cast<std::size_t>(&entry - of.entries().data());
  return knows_of({&of, index}, transfer.starter, transfer.began);
}

Known knows_at(Moment moment, const Transfer& transfer) {
  bool is_fenced = false;
  const bool is_known =
      Walk(transfer.began).any(moment, [&](const Walk::Step& step, const History::Entry& entry) {
        if (entry.kind == History::Kind::everything) return transfer.began < entry.time;
        if (carries(entry, transfer)) return true;
        const bool is_fence = entry.kind == History::Kind::fence;
        if (!is_fence && entry.kind != History::Kind::quiet) return false;
        if (!covers(*step.moment.of, entry, transfer)) return false;
        is_fenced = is_fenced || is_fence;
        return !is_fence || step.peer == transfer.peer;
      });
  if (is_known) return Known::yes;
  return is_fenced ? Known::only_fenced : Known::no;
}

}  // namespace

void History::learn(Time time, const SignalWord& word) {
  // Entries back to which one of the same word is searched. Without one, all signals are new.
  constexpr std::size_t kEntriesBackMax = 64;
  std::size_t known = 0;
  const std::size_t end = entries_.size();
  for (std::size_t back = 1; back <= std::min(end, kEntriesBackMax); ++back) {
    const Entry& earlier = entries_[end - back];
    if (earlier.word != &word) continue;
    known = earlier.signals;
    break;
  }
  entries_.push_back({.kind = Kind::signals,
                      .time = time,
                      .word = &word,
                      .first_signal = known,
                      .signals = word.landed.size()});
}

void History::complete(Time time, std::uint64_t number, bool is_quiet) {
  entries_.push_back(
      {.kind = is_quiet ? Kind::quiet : Kind::fence, .time = time, .number = number});
}

Known History::knows(const Transfer& transfer) const { return knows_at(now(), transfer); }

bool History::knows(Moment moment, Time time) const { return knows_of(now(), moment, time); }

bool History::knows_without_looks(Moment moment, Time time) const {
  return knows_of(now(), moment, time, false);
}

bool History::knows_that(int process, const Transfer& transfer) const {
  return Walk(transfer.began).any(now(), [&](const Walk::Step& step, const Entry& entry) {
    if (entry.kind == Kind::everything) return transfer.began < entry.time;
    const bool is_latest = &entry == &step.moment.of->entries()[step.moment.length - 1];
    return is_latest && step.moment.of->process() == process &&
           knows_at(step.moment, transfer) == Known::yes;
  });
}

SignalWord& SignalWords::at(Offset place) {
  SignalWord*& word = words_[place];
  if (word == nullptr) word = &storage_.emplace_back();
  return *word;
}

SignalWord* SignalWords::find(Offset place) {
  const auto found = words_.find(place);
  return found == words_.end() ? nullptr : found->second;
}

void SignalWords::note_plain(Offset first, std::uint64_t size_bytes) {
  for (auto each = words_.lower_bound(first < 7 ? 0 : first - 7);
       each != words_.end() && each->first < first + size_bytes; ++each) {
    each->second->is_plain = true;
  }
}

void SignalWords::forget(Offset first, std::uint64_t size_bytes) {
  words_.erase(words_.lower_bound(first), words_.lower_bound(first + size_bytes));
}

}  // namespace towpath::causality
