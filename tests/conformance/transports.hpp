// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "towpath/transport/transport.hpp"

// The transports that the conformance suite runs over. To add one, add it to transports.cpp.

namespace towpath::conformance {

using Body = std::function<void(transport::Transport&)>;

struct TransportUnderTest {
  std::string name;
  bool has_processes;  // ranks are processes, which may die
  // Runs body on every rank; how each ended, by rank: empty, or one sentence.
  std::function<std::vector<std::string>(int ranks, const Body& body)> run;
};

std::vector<TransportUnderTest> transports();

inline void PrintTo(const TransportUnderTest& transport, std::ostream* out) {
  *out << transport.name;
}

}  // namespace towpath::conformance
