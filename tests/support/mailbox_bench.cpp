// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "mailbox_bench.hpp"

namespace towpath::mailbox {

using namespace literals;

machine::MailboxCluster carvnet(int nodes) {
  machine::MailboxCluster cluster;
  cluster.name = "carvnet";
  cluster.nodes = nodes;
  cluster.cores_per_node = 16;
  cluster.core_clock = Frequency::from_mhz(100);
  cluster.interconnect_clock = Frequency::from_mhz(100);
  cluster.word_bytes = 8;
  cluster.software = {.store_cycles = 1,
                      .load_cycles = 5,
                      .descriptor_words = 1,
                      .send_cycles = 13,
                      .receive_cycles = 12,
                      .poll_cycles = 5,
                      .release_cycles = 2,
                      .cycle_counter_cycles = 2,
                      .responder_cycles = 6};
  cluster.packetizer = {.contexts = 16,
                        .formation_cycles = 2,
                        .payload_bytes_max = 64,
                        .packets_unacknowledged_max = 4};
  cluster.ring = {
      .line_rate = Rate::from_gb_per_s(1.25), .header_bytes = 16, .hop_latency = 200_ns};
  cluster.mailbox = {.depth_packets = 8, .enqueue_cycles = 4, .drops_when_full = false};
  return cluster;
}

std::vector<std::byte> bytes_of(std::size_t size, int seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(37 * i + 101 * static_cast<std::size_t>(seed));
  }
  return bytes;
}

}  // namespace towpath::mailbox
