// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "towpath/noc/router/network_state.hpp"
#include "towpath/noc/router/output_units.hpp"

namespace towpath::noc {

// The packets of the first cycle in the wait-for graph of the routers' VC buffers, each waiting for
// the next and the last for the first. Empty if there is none.
std::vector<std::string> deadlock_cycle(const NetworkState& state, const BufferPool& pool);

}  // namespace towpath::noc
