// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "conformance/transports.hpp"
#include "towpath/base/units.hpp"

// Ranks as processes of one simulation, on a small cluster. With jitter every arrival is late by a
// random time, so that nothing is in order that the contract does not put in order.

namespace towpath::conformance {

std::vector<std::string> run_simulated_cluster(int ranks, const Body& body, Time jitter_max);

}  // namespace towpath::conformance
