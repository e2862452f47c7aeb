// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/tenstorrent/kernels/socket.hpp"

// Bandwidth over one link, in one direction or in both at once, as tt-metal tests all links of a
// machine (tests/tt_metal/microbenchmarks/ethernet/test_all_ethernet_links_*.py): messages pass
// through a ring of slots, each with its sync word right behind it.

namespace towpath::tenstorrent::kernels {

// What the receiver does with a message before it says that the slot is free again.
enum class LinkBandwidthKind : std::uint8_t {
  erisc,                      // nothing
  erisc_write_worker,         // writes it on to a worker, with a transaction id per slot
  erisc_write_worker_no_trid  // writes it on and waits until it has left
};

struct LinkBandwidth {
  LinkBandwidthKind kind = LinkBandwidthKind::erisc;
  std::uint64_t message_bytes = 1024;  // without its sync word
  int slots = 16;                      // all but one of them are ever in use
  int messages = 4096;
  // if true, the answer is the whole message, so that both directions are alike
  bool returns_payload = false;
  // Both ends send and receive, each its own messages in slots of its own, in one loop.
  bool is_both_ways = false;
};

// The sender's time for all messages and their answers, with one timestamp of its profiler; in both
// directions that of the later end.
Time run_link_bandwidth(Cluster& cluster, const Socket& socket, const LinkBandwidth& test);

}  // namespace towpath::tenstorrent::kernels
