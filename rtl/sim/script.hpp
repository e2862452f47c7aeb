// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <vector>

// Random programs of sends, receives and pauses, which the RTL and the model play with the same
// costs of software, to compare them cycle by cycle. Messages go to neighbours on the ring.

namespace script {

constexpr int kNodes = 4;
// Cycles of software: before the first store, before the first poll, and per poll and load.
constexpr int kSendCycles = 13;
constexpr int kReceiveCycles = 12;
constexpr int kLoadCycles = 5;

struct Step {
  enum class Kind { send, receive, flush, pause } kind = Kind::pause;
  int to = 0;          // of a send
  int size_bytes = 0;  // of a send
  int cycles = 0;      // of a pause
};

struct Event {
  int node = 0;
  int step = 0;
  std::int64_t cycle = 0;  // in which the step is over
  bool operator==(const Event&) const = default;
};

// Steps of each node. In a round each node sends up to two messages, receives all that is sent to
// it, and waits for notices, so that no mailbox and no window is ever full.
inline std::vector<std::vector<Step>> make(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int bound) {
    return static_cast<int>(random() % static_cast<std::uint64_t>(bound));
  };
  std::vector<std::vector<Step>> steps(kNodes);
  const int rounds = 2 + below(6);
  for (int round = 0; round < rounds; ++round) {
    const int step_up = below(2) == 0 ? 1 : kNodes - 1;
    const int messages = 1 + below(2);
    for (std::vector<Step>& own : steps) own.push_back({Step::Kind::pause, 0, 0, below(60)});
    for (int node = 0; node < kNodes; ++node) {
      std::vector<Step>& own = steps[static_cast<std::size_t>(node)];
      for (int i = 0; i < messages; ++i) {
        own.push_back({Step::Kind::send, (node + step_up) % kNodes, 16 * (1 + below(4)), 0});
        if (below(2) == 0) own.push_back({Step::Kind::pause, 0, 0, below(40)});
      }
      for (int i = 0; i < messages; ++i) own.push_back({Step::Kind::receive, 0, 0, 0});
      own.push_back({Step::Kind::flush, 0, 0, 0});
    }
  }
  return steps;
}

}  // namespace script
