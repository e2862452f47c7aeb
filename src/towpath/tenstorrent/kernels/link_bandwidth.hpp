// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/tenstorrent/kernels/socket.hpp"

// Bandwidth of one link in one direction or both, as in tt-metal's test of all links of a machine
// (tests/tt_metal/microbenchmarks/ethernet/test_all_ethernet_links_*.py): messages pass through a
// ring of slots, each followed by its sync word.

namespace towpath::tenstorrent::kernels {

// The receiver's action on a message before it frees the slot.
enum class LinkBandwidthKind : std::uint8_t {
  erisc,                      // none
  erisc_write_worker,         // forwards it to a worker, with a transaction id per slot
  erisc_write_worker_no_trid  // forwards it and waits until it has left
};

struct LinkBandwidth {
  LinkBandwidthKind kind = LinkBandwidthKind::erisc;
  std::uint64_t message_bytes = 1024;  // without its sync word
  int slots = 16;                      // one of them is always unused
  int messages = 4096;
  // The answer is the whole message, so that both directions are symmetric.
  bool returns_payload = false;
  // Both ends send and receive in one loop, with separate slots for their messages.
  bool is_both_ways = false;
};

// The sender's time for all messages and answers, including one profiler timestamp. If
// bidirectional, the time of the slower end.
Time run_link_bandwidth(Cluster& cluster, const Socket& socket, const LinkBandwidth& test);

}  // namespace towpath::tenstorrent::kernels
