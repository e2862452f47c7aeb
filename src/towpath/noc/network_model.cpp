// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/network_model.hpp"

#include "towpath/noc/flit_network.hpp"
#include "towpath/noc/packet_network.hpp"

namespace towpath::noc {

std::unique_ptr<Network> make_network(NetworkModel model, const machine::Chip& chip, int noc,
                                      Endpoint& endpoint, std::uint64_t seed) {
  if (model == NetworkModel::packets) return std::make_unique<PacketNetwork>(chip, noc, endpoint);
  return std::make_unique<FlitNetwork>(chip, noc, endpoint, seed);
}

}  // namespace towpath::noc
