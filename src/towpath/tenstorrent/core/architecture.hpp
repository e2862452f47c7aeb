// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/machine/chip.hpp"

namespace towpath::tenstorrent {

// Costs of a program compiled for the cores of a chip: a table for each architecture.
template <typename Costs>
struct ByArchitecture {
  Costs wormhole;
  Costs blackhole;

  // A chip of another architecture, or without one, has Wormhole's cores.
  constexpr const Costs& of(const machine::Chip& chip) const {
    return chip.architecture == "blackhole" ? blackhole : wormhole;
  }
};

}  // namespace towpath::tenstorrent
