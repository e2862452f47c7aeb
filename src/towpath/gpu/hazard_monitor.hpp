// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>

#include "towpath/causality/history.hpp"
#include "towpath/causality/range_map.hpp"

// Finds mistakes of kernels in the use of one PE's memory, from the order of events that each block
// has observed (causality/history.hpp): bytes of a put that are read too early, sources of puts
// that change too early, and signals that overtake each other. A mistake is found in every run,
// even if it has no effect in it.

namespace towpath::gpu {

class Block;
class LoadedObject;
struct WaitRecord;

using causality::History;
using causality::Known;
using causality::Moment;
using causality::Signal;
using causality::SignalWord;
using causality::SignalWords;

// A transfer whose bytes are monitored.
struct MonitoredTransfer {
  causality::Transfer identity{};
  std::string what{};  // its call, position and block
};
using MonitoredRanges = causality::RangeMap<MonitoredTransfer>;

class HazardMonitor {
 public:
  HazardMonitor(int rank, const LoadedObject& object) : object_(object), past_(rank) {}

  MonitoredRanges incoming;  // puts of peers to this PE
  MonitoredRanges sources;   // of puts by this PE
  SignalWords signal_words;  // of its heap

  // The history of a new block, which lives as long as the monitor.
  History& new_history() { return histories_.emplace_back(past_.process()); }
  // The history of the PE. A block that ends adds its history, and a block that begins starts with
  // it.
  History& past() { return past_; }

  // The checks throw KernelError. A thread reads or changes a byte of a transfer.
  void check_read(const MonitoredTransfer& transfer, const Block& block, const void* where) const;
  void check_change(const MonitoredTransfer& transfer, const Block& block, const void* where) const;
  // A put reads its source.
  void check_sent(std::uintptr_t begin, std::uint64_t size_bytes, const Block& block,
                  const std::string& what) const;
  // A block sends a signal to a word of a peer.
  static void check_signal(SignalWord& word, const Signal& signal, const Block& block);
  // A block starts to wait for words. A word that was signalled again too early is an error only if
  // a thread waits for it.
  void note_wait(const WaitRecord& wait);
  // A wait of the block has ended and has observed the signals.
  void learn_from(const WaitRecord& wait, History& history);

  void add_wait(const WaitRecord& wait) { waits_.insert(&wait); }
  void remove_wait(const WaitRecord& wait) { waits_.erase(&wait); }
  // Checks equality waits for words beyond the value.
  void check_overshot() const;

 private:
  std::string thread_of(const Block& block, const void* where) const;

  const LoadedObject& object_;
  std::deque<History> histories_;
  History past_;
  std::set<const WaitRecord*> waits_;
};

}  // namespace towpath::gpu
