// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "towpath/collective/verify/verify.hpp"
#include "towpath/collective/verify/verify_walk.hpp"

// The verifier's own: its checks, each adding what it finds. Later ones rest on earlier ones.

namespace towpath::collective {

inline constexpr std::size_t kFindingsShown = 16;  // of each kind

// Adds findings to a verdict, each once, and not too many of a kind.
class FindingList {
 public:
  explicit FindingList(Verdict& verdict) : verdict_(verdict) {}

  // `place` is appended to the sentence and does not make it another finding: " (in place)".
  void add(Finding finding, const std::string& place = "");
  // Counts findings that are not worth a sentence any more.
  void omit(FindingKind kind, std::size_t count);
  bool is_full(FindingKind kind) const {
    return shown_[static_cast<std::size_t>(kind)] == kFindingsShown;
  }
  // How many were added or omitted, repetitions included.
  std::size_t total(FindingKind kind) const { return total_[static_cast<std::size_t>(kind)]; }

 private:
  Verdict& verdict_;
  std::set<std::pair<FindingKind, std::string>> seen_;
  std::array<std::size_t, kFindingKinds> total_{};
  std::array<std::size_t, kFindingKinds> shown_{};
};

// One way to run: where the data lie.
struct Placement {
  bool in_place = false;
  const char* words() const { return in_place ? " (in place)" : " (out of place)"; }
};

// Transfers on the two ends of every connection. Returns whether they agree.
bool check_matching(const Network& network, const Chunking& chunking, FindingList& findings);

// Out of place, steps that store to the input.
void check_input_is_kept(const Network& network, FindingList& findings);

// Accesses that nothing orders; or, in verdict.not_checked, that it was too much to check.
void check_races(const Network& network, const Chunking& chunking, Placement placement,
                 FindingList& findings, Verdict& verdict);

// Output chunks that are not the sums asked for, in a network without races.
void check_data(const Network& network, const Chunking& chunking, Placement placement,
                FindingList& findings);

}  // namespace towpath::collective
