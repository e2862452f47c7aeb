// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <stdexcept>

#include "towpath/sim/random.hpp"
#include "towpath/tenstorrent/kernels/handshake.hpp"
#include "towpath/tenstorrent/kernels/link_benchmarks.hpp"
#include "towpath/tenstorrent/kernels/merged_channel.hpp"

namespace towpath::tenstorrent::kernels {

namespace {

using machine::TileKind;

constexpr int kRingChannelsMax = 8;
// Pause of the master between two trips. It varies so that arrivals hit the cores' polls at random
// phases, as on chips without a common clock phase.
constexpr noc::Cycle kPauseCycles = 10'000;
constexpr noc::Cycle kPauseSpreadCycles = 255;
// Costs of a packet without the calls, fitted to tt-metal, Basic Ethernet Multichip.
constexpr noc::Cycle kSenderCycles = 76;    // ubench3, 16 B: the slope from one to eight channels
constexpr noc::Cycle kReceiverCycles = 28;  // ubench3, 16 B: the round trip of one channel
// Between a packet and its sync word as a separate command: ubench4, 512 B and more.
constexpr noc::Cycle kSyncCycles = 25;

// The same offsets in every Ethernet core's L1.
struct Layout {
  std::vector<MergedChannel> channels;
  std::uint64_t semaphores = 0;
  std::uint64_t acknowledgement = 0;  // of the acknowledgement word

  std::uint64_t semaphore(std::size_t channel) const { return semaphores + 16 * channel; }
};

struct Hop {
  const RingPing* ping;
  Layout layout;
};

Layout allocate(Program& program, const RingPing& ping) {
  Layout layout;
  const auto channels = static_cast<std::uint64_t>(ping.channels);
  layout.semaphores = program.allocate(16 * (channels + 1), TileKind::ethernet);
  layout.acknowledgement = layout.semaphore(channels);
  const std::uint64_t channel_bytes = ping.packet_bytes + MergedChannel::kSyncBytes;
  layout.channels = merged_channels(program.allocate(channels * channel_bytes, TileKind::ethernet),
                                    ping.packet_bytes, ping.channels);
  return layout;
}

// --- the channels, merged or not -----------------------------------------------------------------

void wait_for_packet(EthernetCore& core, const Hop& hop, int channel) {
  if (hop.ping->is_merged) {
    wait_for_payload(core, hop.layout.channels[static_cast<std::size_t>(channel)]);
  } else {
    core.noc_semaphore_wait_min(EthernetCore::bytes_sent_at(channel), 1);
  }
}

void ack_done(EthernetCore& core, const Hop& hop, int channel) {
  if (hop.ping->is_merged) {
    ack_done(core, hop.layout.channels[static_cast<std::size_t>(channel)]);
  } else {
    core.eth_receiver_channel_done(channel);
  }
}

void send(EthernetCore& core, const Hop& hop, int channel) {
  const MergedChannel& buffer = hop.layout.channels[static_cast<std::size_t>(channel)];
  if (hop.ping->is_merged) {
    send(core, buffer);
  } else {  // as eth_send_bytes_over_channel(), including the time between the two commands
    core.eth_send_bytes_over_channel_payload_only(buffer.offset, buffer.offset, buffer.size_bytes,
                                                  channel, buffer.size_bytes,
                                                  buffer.size_bytes / 16);
    core.work(kSyncCycles);
    core.eth_send_payload_complete_signal_over_channel(
        channel, static_cast<std::uint32_t>(buffer.size_bytes));
  }
}

void wait_until_done(EthernetCore& core, const Hop& hop, int channel) {
  if (hop.ping->is_merged) {
    wait_until_free(core, hop.layout.channels[static_cast<std::size_t>(channel)]);
  } else {
    core.noc_semaphore_wait(EthernetCore::bytes_sent_at(channel), 0);
  }
}

// --- kernels -------------------------------------------------------------------------------------

void prepare(EthernetCore& core, const Hop& hop, bool is_master) {
  for (const MergedChannel& channel : hop.layout.channels) clear(core, channel);
  core.store_word(hop.layout.acknowledgement, 1);
  core.store_word(hop.layout.acknowledgement + 4, 1);
  handshake(core, is_master);
}

void hand_over(EthernetCore& core, const Hop& hop, machine::Coordinate sender, int channel) {
  const MergedChannel& buffer = hop.layout.channels[static_cast<std::size_t>(channel)];
  core.work(kReceiverCycles);
  core.noc_async_write(buffer.offset, NocAddress{sender, buffer.offset}, buffer.size_bytes);
  core.noc_semaphore_inc(
      NocAddress{sender, hop.layout.semaphore(static_cast<std::size_t>(channel))}, 1);
}

void forward_to_sender(EthernetCore& core, const Hop& hop, machine::Coordinate sender) {
  for (int i = 0; i < hop.ping->channels; ++i) {
    wait_for_packet(core, hop, i);
    hand_over(core, hop, sender, i);
    if (!hop.ping->is_merged) core.eth_receiver_channel_ack(i, hop.layout.acknowledgement);
  }
  core.noc_async_writes_flushed();
  for (int i = 0; i < hop.ping->channels; ++i) ack_done(core, hop, i);
}

void send_round(EthernetCore& core, const Hop& hop, machine::Coordinate sender) {
  for (int i = 0; i < hop.ping->channels; ++i) hand_over(core, hop, sender, i);
  core.noc_async_writes_flushed();
  for (int i = 0; i < hop.ping->channels; ++i) {
    wait_for_packet(core, hop, i);
    ack_done(core, hop, i);
  }
}

void receive(EthernetCore& core, const Hop& hop, machine::Coordinate sender) {
  prepare(core, hop, false);
  for (int trip = 0; trip <= hop.ping->samples; ++trip) forward_to_sender(core, hop, sender);
  core.noc_async_full_barrier();
}

void receive_as_master(EthernetCore& core, const Hop& hop, machine::Coordinate sender,
                       std::vector<Time>& times) {
  prepare(core, hop, false);
  sim::Random pause = core.network().simulation().random("pauses of a ring ping");
  send_round(core, hop, sender);
  for (int sample = 0; sample < hop.ping->samples; ++sample) {
    core.work(kPauseCycles + pause.between(0, kPauseSpreadCycles));
    const Time begin = timestamp(core);
    send_round(core, hop, sender);
    times.push_back(timestamp(core) - begin);
  }
  core.noc_async_full_barrier();
}

void send_on(EthernetCore& core, const Hop& hop) {
  prepare(core, hop, true);
  for (int trip = 0; trip <= hop.ping->samples; ++trip) {
    for (int i = 0; i < hop.ping->channels; ++i) {
      const std::uint64_t semaphore = hop.layout.semaphore(static_cast<std::size_t>(i));
      core.noc_semaphore_wait(semaphore, 1);
      core.noc_semaphore_set(semaphore, 0);
      core.work(kSenderCycles);
      send(core, hop, i);
    }
    for (int i = 0; i < hop.ping->channels; ++i) wait_until_done(core, hop, i);
  }
}

void check(const RingPing& ping) {
  if (ping.chips.size() < 2) {
    throw std::invalid_argument(
        fmt::format("the ring has {} chips; it must have at least 2", ping.chips.size()));
  }
  if (ping.channels < 1 || ping.channels > kRingChannelsMax) {
    throw std::invalid_argument(fmt::format("{} packets circulate together; it must be 1 to {}",
                                            ping.channels, kRingChannelsMax));
  }
  if (ping.samples < 1) {
    throw std::invalid_argument(
        fmt::format("there are {} round trips; there must be at least 1", ping.samples));
  }
}

}  // namespace

std::vector<Time> run_ring_ping(Cluster& cluster, const RingPing& ping) {
  check(ping);
  const std::vector<Socket> sockets = ring_sockets(cluster, ping.chips, ping.links);
  std::map<int, Program*> programs;  // one per chip, even if the ring visits it several times
  std::map<int, Hop> hops;
  for (const int chip : ping.chips) {
    if (programs.contains(chip)) continue;
    programs[chip] = &cluster.create_program(chip);
    hops[chip] = {&ping, allocate(*programs[chip], ping)};
  }
  std::vector<Time> times;
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    const Socket& next = sockets[i];
    const Socket& previous = sockets[(i + sockets.size() - 1) % sockets.size()];
    const int chip = next.sender_chip;
    Program& program = *programs.at(chip);
    const Hop& hop = hops.at(chip);
    const machine::Coordinate sender = cluster.device(chip).ethernet_core(next.sender);
    program.create_kernel(previous.receiver,
                          {.name = fmt::format("{} {}", i == 0 ? "master" : "receiver", i)},
                          [=, &hop, &times](EthernetCore& core) {
                            if (i == 0) {
                              receive_as_master(core, hop, sender, times);
                            } else {
                              receive(core, hop, sender);
                            }
                          });
    program.create_kernel(next.sender, {.name = fmt::format("sender {}", i)},
                          [&hop](EthernetCore& core) { send_on(core, hop); });
  }
  cluster.run();
  return times;
}

}  // namespace towpath::tenstorrent::kernels
