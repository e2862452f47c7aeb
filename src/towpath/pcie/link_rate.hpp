// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/base/units.hpp"
#include "towpath/machine/host.hpp"
#include "towpath/machine/chip_parameters.hpp"

namespace towpath::pcie {

// What two ends negotiate: the lower generation, the fewer lanes.
struct Link {
  int generation = 1;
  int lanes = 1;
};
Link negotiated(const machine::HostLinkParameters& host, const machine::PcieParameters& chip);

// Of all lanes after the line code: 128b/130b of generations 3 to 5, 8b/10b before, flits since.
Rate raw_rate(Link link);

// Bytes of a packet besides its payload. A memory write has a header of 16 bytes with a 64-bit
// address, a completion one of 12; both have 4 bytes of framing and 4 of check sum.
inline constexpr int kWriteOverheadBytes = 24;
inline constexpr int kCompletionOverheadBytes = 20;

// Of payload alone, in packets of one size.
Rate payload_rate(Link link, int payload_bytes, int overhead_bytes);

}  // namespace towpath::pcie
