// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/base/units.hpp"
#include "towpath/machine/chip_parameters.hpp"
#include "towpath/machine/host.hpp"

namespace towpath::pcie {

// Link as negotiated by its ends: the lower generation, the smaller number of lanes.
struct Link {
  int generation = 1;
  int lanes = 1;
};
Link negotiated(const machine::HostLinkParameters& host, const machine::PcieParameters& chip);

// Rate of all lanes after the line code: 8b/10b for generations 1 and 2, 128b/130b for 3 to 5,
// flits from 6 on.
Rate raw_rate(Link link);

// Packet overhead in bytes. A memory write has a header of 16 bytes with a 64-bit address, a
// completion one of 12. Both have 4 bytes of framing and 4 of checksum.
inline constexpr int kWriteOverheadBytes = 24;
inline constexpr int kCompletionOverheadBytes = 20;

// Payload rate with packets of one size.
Rate payload_rate(Link link, int payload_bytes, int overhead_bytes);

}  // namespace towpath::pcie
