// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/link_rate.hpp"

#include <algorithm>
#include <array>

namespace towpath::pcie {

namespace {

// Bytes per second of a lane.
constexpr std::array<std::int64_t, 6> kLaneRates = {
    250'000'000,               // 2.5 GT/s, 8b/10b
    500'000'000,               // 5 GT/s, 8b/10b
    8'000'000'000 / 130 * 16,  // 8 GT/s, 128b/130b
    16'000'000'000 / 130 * 16,
    32'000'000'000 / 130 * 16,
    64'000'000'000 / 256 * 242 / 8,  // 242 of the 256 bytes of a flit
};

}  // namespace

Link negotiated(const machine::HostLinkParameters& host, const machine::PcieParameters& chip) {
  return {std::min(host.generation, chip.generation), std::min(host.lanes, chip.lanes)};
}

Rate raw_rate(Link link) {
  const std::int64_t lane = kLaneRates[static_cast<std::size_t>(link.generation - 1)];
  return Rate::from_bytes_per_second(lane * link.lanes);
}

Rate payload_rate(Link link, int payload_bytes, int overhead_bytes) {
  const Int128 scaled = static_cast<Int128>(raw_rate(link).bytes_per_second()) * payload_bytes;
  return Rate::from_bytes_per_second(
      static_cast<std::int64_t>(scaled / (payload_bytes + overhead_bytes)));
}

}  // namespace towpath::pcie
