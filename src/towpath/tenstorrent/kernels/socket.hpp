// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "towpath/tenstorrent/cluster/cluster.hpp"

namespace towpath::tenstorrent::kernels {

// A link and its direction of use.
struct Socket {
  int sender_chip = 0;
  LogicalCore sender;
  int receiver_chip = 0;
  LogicalCore receiver;
};

// The n-th link (from 0) from one chip to another, without the dispatcher's links. Throws
// std::invalid_argument if there are too few.
Socket socket_between(Cluster& cluster, int sender_chip, int receiver_chip, int number = 0);

// A different link from each chip to the next, and from the last to the first (tt-metal, Basic
// Ethernet Multichip, "Identifying Ethernet Links"). There the return path is a separate edge,
// which could reuse the link and put both kernels of a two-chip ring on the same cores.
// `links` selects one of the parallel links of each hop, from 0. Empty: the first unused one.
// Throws std::invalid_argument if there is another number of links than of hops.
std::vector<Socket> ring_sockets(Cluster& cluster, const std::vector<int>& chips,
                                 const std::vector<int>& links = {});

// The walkthrough's rings of 2, 4, 8 and 12 hops through a T3000. Throws std::invalid_argument for
// other numbers.
std::vector<int> t3000_ring(int hops);

}  // namespace towpath::tenstorrent::kernels
