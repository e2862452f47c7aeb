// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/kernels/socket.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

namespace towpath::tenstorrent::kernels {

Socket socket_between(Cluster& cluster, int sender_chip, int receiver_chip, int number) {
  int links = 0;
  Device& device = cluster.device(sender_chip);
  for (const LogicalCore core : device.get_active_ethernet_cores(true)) {
    const auto [chip, other] = device.get_connected_ethernet_core(core);
    if (chip != receiver_chip) continue;
    if (links++ == number) return {sender_chip, core, receiver_chip, other};
  }
  throw std::invalid_argument(
      fmt::format("there is no link {} from chip {} to chip {}; kernels have {} links between them",
                  number + 1, sender_chip, receiver_chip, links));
}

std::vector<Socket> ring_sockets(Cluster& cluster, const std::vector<int>& chips,
                                 const std::vector<int>& links) {
  if (!links.empty() && links.size() != chips.size()) {
    throw std::invalid_argument(fmt::format(
        "links has {} numbers; it must have one for each of {} hops", links.size(), chips.size()));
  }
  std::vector<Socket> sockets;
  std::map<std::pair<int, int>, int> visits;
  for (std::size_t i = 0; i < chips.size(); ++i) {
    const int next = chips[(i + 1) % chips.size()];
    int& visited = visits[std::minmax(chips[i], next)];
    const int number = links.empty() ? visited++ : links[i];
    sockets.push_back(socket_between(cluster, chips[i], next, number));
  }
  return sockets;
}

std::vector<int> t3000_ring(int hops) {
  switch (hops) {
    case 2: return {0, 1};
    case 4: return {0, 1, 2, 3};
    case 8: return {0, 4, 5, 1, 2, 6, 7, 3};
    case 12: return {0, 4, 5, 1, 2, 3, 0, 1, 2, 6, 7, 3};
    default: break;
  }
  throw std::invalid_argument(
      fmt::format("there is no ring of {} hops; choose 2, 4, 8 or 12", hops));
}

}  // namespace towpath::tenstorrent::kernels
