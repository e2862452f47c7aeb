// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/transport/transport.hpp"

// Meetings of the PEs of a live run for calls that all of them make, and the detection of a run in
// which no PE can continue. Each PE has a page in its symmetric heap, which all other PEs load.
//
// A run is stuck if every PE waits, and each has checked all its waits without success after all of
// them were waiting. No PE is then left that could store a word.

namespace towpath::gpu {

class Meeting {
 public:
  // Collective, like an allocation.
  explicit Meeting(transport::Transport& transport);

  // A call that all PEs make. Its first text must be equal on all of them.
  struct Statement {
    std::string what;   // "to allocate 64 symmetric bytes"
    std::string where;  // "nvshmem_malloc at FILE:LINE"
  };
  void enter(const Statement& statement);
  // True if all PEs have entered. Throws KernelError if one of them makes a different call.
  bool is_complete() const;
  void leave() { is_inside_ = false; }
  bool is_inside() const { return is_inside_; }

  // This PE has made progress.
  void note_progress();
  // This PE has checked all its waits without success.
  void note_pass();
  // Throws KernelError if no PE can continue: immediately if this PE is responsible, otherwise a
  // little later. `waits` describes the waits of this PE.
  void check(Time now, const std::function<std::string()>& waits);

 private:
  enum class State : std::uint64_t { running, waiting, meeting };
  struct Slot {
    std::uint64_t number;
    std::array<char, 128> what;
    std::array<char, 248> where;
  };
  struct Page {
    std::uint64_t state;
    std::uint64_t changes;  // to running
    std::uint64_t passes;
    std::uint64_t number;  // of its last meeting
    std::array<Slot, 2> slots;
    std::array<char, 256> waits;  // described once the run is stuck
  };
  struct Seen {
    std::uint64_t changes, passes;
  };
  const Page& page(int rank) const { return *pages_[static_cast<std::size_t>(rank)]; }
  bool has_entered(int rank) const;
  // True if all PEs wait, and their counters.
  bool look(std::vector<Seen>& seen) const;
  bool is_stuck(Time now);
  [[noreturn]] void refuse() const;
  std::string names_of(const std::vector<int>& ranks) const;
  std::string waits_of(const std::vector<int>& ranks) const;

  transport::Transport& transport_;
  std::vector<Page*> pages_;  // by rank
  Page& own_;
  bool is_inside_ = false;
  bool is_known_ = false;  // own_.state is up to date
  std::vector<Seen> first_;
  Time first_at_{};
  Time stuck_at_{};
  bool is_stuck_ = false;
};

}  // namespace towpath::gpu
