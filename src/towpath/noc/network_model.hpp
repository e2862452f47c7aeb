// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "towpath/noc/niu/network.hpp"

namespace towpath::noc {

// How the networks of a chip are simulated.
enum class NetworkModel : std::uint8_t { flits, packets };
std::unique_ptr<Network> make_network(NetworkModel model, const machine::Chip& chip, int noc,
                                      Endpoint& endpoint, std::uint64_t seed);

}  // namespace towpath::noc
