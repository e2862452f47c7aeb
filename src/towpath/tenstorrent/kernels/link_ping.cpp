// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <stdexcept>

#include "towpath/tenstorrent/kernels/handshake.hpp"
#include "towpath/tenstorrent/kernels/link_benchmarks.hpp"
#include "towpath/tenstorrent/kernels/merged_channel.hpp"

namespace towpath::tenstorrent::kernels {

// After the clock was read. Fitted to the parts of ubench5 (tt-metal, Basic Ethernet Multichip):
// sending and receiving in full takes 290 ns more than only waiting, the time of four timestamps
// and a send.
static constexpr noc::Cycle kTimestampCycles = 67;

Time timestamp(DataMovementCore& core) {
  const Time now = core.network().simulation().now();
  core.work(kTimestampCycles);
  return now;
}

namespace {

using machine::TileKind;

// The sender's work between samples. An assumption: no source gives its duration. Tripling it
// changes the times by at most 1.5 %.
constexpr noc::Cycle kLoopCycles = 10;

void ping(EthernetCore& core, const MergedChannel& channel, std::vector<LinkPingTimes>& times) {
  clear(core, channel);
  handshake(core, true);
  send(core, channel);  // the first is not measured
  wait_until_free(core, channel);
  for (LinkPingTimes& sample : times) {
    core.work(kLoopCycles);
    const Time begin = timestamp(core);
    const Time before = timestamp(core);
    send(core, channel);
    sample.send = timestamp(core) - before;
    const Time sent = timestamp(core);
    wait_until_free(core, channel);
    sample.wait = timestamp(core) - sent;
    sample.send_and_receive = timestamp(core) - begin;
  }
}

void answer(EthernetCore& core, const MergedChannel& channel, std::vector<LinkPingTimes>& times) {
  clear(core, channel);
  handshake(core, false);
  wait_for_payload(core, channel);
  ack_done(core, channel);
  for (LinkPingTimes& sample : times) {
    const Time begin = timestamp(core);
    wait_for_payload(core, channel);
    timestamp(core);
    ack_done(core, channel);
    timestamp(core);
    sample.wait_and_answer = timestamp(core) - begin;
  }
}

}  // namespace

std::vector<LinkPingTimes> run_link_ping(Cluster& cluster, const Socket& socket,
                                         const LinkPing& config) {
  if (config.samples < 1) {
    throw std::invalid_argument(
        fmt::format("there are {} pings; there must be at least 1", config.samples));
  }
  std::vector<LinkPingTimes> times(static_cast<std::size_t>(config.samples));
  Program& sender = cluster.create_program(socket.sender_chip);
  Program& receiver = cluster.create_program(socket.receiver_chip);
  const std::uint64_t size_bytes = config.payload_bytes + MergedChannel::kSyncBytes;
  const MergedChannel channel =
      merged_channels(sender.allocate(size_bytes, TileKind::ethernet), config.payload_bytes, 1)
          .front();
  receiver.allocate(size_bytes, TileKind::ethernet);  // the same offset
  sender.create_kernel(socket.sender, {.name = "sender"},
                       [&](EthernetCore& core) { ping(core, channel, times); });
  receiver.create_kernel(socket.receiver, {.name = "receiver"},
                         [&](EthernetCore& core) { answer(core, channel, times); });
  cluster.run();
  return times;
}

}  // namespace towpath::tenstorrent::kernels
