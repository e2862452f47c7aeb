// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <set>
#include <string>
#include <utility>

#include "towpath/collective/verify/verify.hpp"
#include "towpath/collective/verify/verify_walk.hpp"

// Internal to the verifier: its checks. Each adds its findings. Later ones depend on earlier ones.

namespace towpath::collective {

inline constexpr std::size_t kFindingsShown = 16;  // of each kind

// Adds findings to a verdict, without duplicates, up to a limit per kind.
class FindingList {
 public:
  explicit FindingList(Verdict& verdict) : verdict_(verdict) {}

  // `place` is appended to the sentence without making it a different finding: " (in place)".
  void add(Finding finding, const std::string& place = "");
  // Counts further findings without a sentence.
  void omit(FindingKind kind, std::size_t count);
  // Adds a remark unless there is one already.
  void remark(std::string sentence) {
    if (verdict_.remarks.empty()) verdict_.remarks.push_back(std::move(sentence));
  }
  bool is_full(FindingKind kind) const {
    return shown_[static_cast<std::size_t>(kind)] == kFindingsShown;
  }
  // Number of added or omitted findings, including duplicates.
  std::size_t total(FindingKind kind) const { return total_[static_cast<std::size_t>(kind)]; }

 private:
  Verdict& verdict_;
  std::set<std::pair<FindingKind, std::string>> seen_;
  std::array<std::size_t, kFindingKinds> total_{};
  std::array<std::size_t, kFindingKinds> shown_{};
};

// One way to run: the location of the data.
struct Placement {
  bool in_place = false;
  const char* words() const { return in_place ? " (in place)" : " (out of place)"; }
};

// Compares transfers at the two ends of every connection. Returns whether they agree.
bool check_matching(const Network& network, const Chunking& chunking, FindingList& findings);

// Finds steps that store to the input, out of place.
void check_input_is_kept(const Network& network, FindingList& findings);

// Finds unordered accesses, or adds to verdict.not_checked that the check is too expensive.
void check_races(const Network& network, const Chunking& chunking, Placement placement,
                 FindingList& findings, Verdict& verdict);

// Finds output chunks with wrong sums, in a network without races.
void check_data(const Network& network, const Chunking& chunking, Placement placement,
                FindingList& findings);

}  // namespace towpath::collective
