// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/tenstorrent/core/data_movement_core.hpp"
#include "towpath/tenstorrent/kernels/socket.hpp"

// The microbenchmarks of Ethernet links.

namespace towpath::tenstorrent::kernels {

// Reads the clock like tt-metal's profiler, which then stores the time in an L1 buffer.
Time timestamp(tenstorrent::DataMovementCore& core);

// Round trip over one link (tt-metal, Basic Ethernet Multichip, "Single Ethernet Link Round-Trip
// Latency"): a payload with its sync word out, its sync word back.
struct LinkPing {
  std::uint64_t payload_bytes = 16;
  int samples = 100;
};

// Times from both cores' profilers. Each is between two timestamps, which also take time.
struct LinkPingTimes {
  Time send_and_receive;  // sender, total
  Time send;              // sender: issue of the command
  Time wait;              // sender: from the send to the arrival of the sync word
  Time wait_and_answer;   // receiver, total
};

std::vector<LinkPingTimes> run_link_ping(Cluster& cluster, const Socket& socket,
                                         const LinkPing& ping);

// The ring ping of the walkthrough (tt-metal, Basic Ethernet Multichip): a master sends a packet
// over the NoC to an Ethernet core of its chip. That core sends it over its link to the next chip,
// whose receiver passes it to the next sender, and back around to the master.
struct RingPing {
  std::vector<int> chips;
  std::uint64_t packet_bytes = 16;
  int channels = 1;  // packets in flight, 1 to 8
  // Packet and sync word in one command; otherwise two, and the receiver acknowledges immediately.
  bool is_merged = true;
  int samples = 100;
  std::vector<int> links = {};  // one of the parallel links of each hop; empty: the first unused
};

// Round-trip times from the master's profiler. The first trip is excluded, because it waits for all
// programs to start.
std::vector<Time> run_ring_ping(Cluster& cluster, const RingPing& ping);

// Bandwidth of one link in one direction or both, as in tt-metal's test of all links of a machine
// (tests/tt_metal/microbenchmarks/ethernet/test_all_ethernet_links_*.py): messages pass through a
// ring of slots, each followed by its sync word.

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

// Both ends of a link send and receive over several channels each, in one loop (tt-metal, Basic
// Ethernet Multichip, "Bidirectional Bandwidth").
struct DuplexBandwidth {
  std::uint64_t packet_bytes = 4096;
  // Packet and sync word in one command; otherwise two, with the sync words of erisc_info.
  bool is_merged = true;
  int channels = 4;  // per direction, 1 to 30, or at most 4 if not merged
  int packets = 64;  // over each channel
};

// GB/s, sum of both directions.
double run_duplex_bandwidth(Cluster& cluster, const Socket& socket, const DuplexBandwidth& test);

}  // namespace towpath::tenstorrent::kernels
