// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "towpath/tenstorrent/device/cluster.hpp"

namespace towpath::tenstorrent::kernels {

// A link and the direction in which it is used.
struct Socket {
  int sender_chip = 0;
  LogicalCore sender;
  int receiver_chip = 0;
  LogicalCore receiver;
};

// The n-th link, from 0, from one chip to another, without those that the dispatcher has taken.
// Throws std::invalid_argument when there are too few.
Socket socket_between(Cluster& cluster, int sender_chip, int receiver_chip, int number = 0);

// Links from each chip to the next, and from the last to the first, each a different one (tt-metal,
// Basic Ethernet Multichip, "Identifying Ethernet Links"; there a way back counts as another edge,
// which would put both kernels of a ring of two chips on the same cores).
std::vector<Socket> ring_sockets(Cluster& cluster, const std::vector<int>& chips);

// The walkthrough's rings of 2, 4, 8 and 12 hops through a T3000. Throws std::invalid_argument for
// any other number.
std::vector<int> t3000_ring(int hops);

}  // namespace towpath::tenstorrent::kernels
