// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "conformance/transports.hpp"

namespace towpath::conformance {

// Each link of a failing ring loses frames, and is down for a while every 100 us.
enum class FabricForm { line, ring, torus, failing_ring };

// Ranks on small Wormholes in a line, in a ring, or on the first places of a torus, with two links
// between neighbours.
std::vector<std::string> run_simulated_fabric(int ranks, const Body& body, FabricForm form);

}  // namespace towpath::conformance
