// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/router/output_units.hpp"

namespace towpath::noc {

// Responses may take some slots that others may not.
BufferPool::BufferPool(const machine::RouterParameters& parameters)
    : without_(index(parameters.pool_flits) + 1, ~std::uint64_t{0}),
      per_vc_max_(parameters.pool_flits_per_vc_max) {
  std::uint64_t response_vcs = 0;
  for (int number = 0; number < kPorts * kVcsMax; ++number) {
    const int packet_class = (number % kVcsMax >> 1) % parameters.classes;
    if (packet_class == static_cast<int>(PacketClass::response)) set_bit(response_vcs, number);
  }
  const int limit = parameters.pool_flits - parameters.pool_flits_reserved;
  for (int used = 0; used < limit; ++used) without_[index(used)] = 0;
  for (int used = limit; used < limit + parameters.pool_flits_for_responses; ++used) {
    without_[index(used)] = ~response_vcs;
  }
}

}  // namespace towpath::noc
