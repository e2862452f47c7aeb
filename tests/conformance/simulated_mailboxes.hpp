// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "conformance/transports.hpp"

// Ranks as processes of one simulation, on the nodes of a ring with mailboxes.

namespace towpath::conformance {

std::vector<std::string> run_simulated_mailboxes(int ranks, const Body& body);

}  // namespace towpath::conformance
