// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Two chips with one link. A kernel on an Ethernet core sends blocks of data to the chip next door,
// where another writes them on to a worker: handshake, a channel with its sync word, teardown. Then
// the same with three mistakes in it, and what is said about them.

#include <fmt/format.h>

#include <cstddef>
#include <exception>
#include <vector>

#include "small_chips.hpp"
#include "towpath/tenstorrent/cluster/cluster.hpp"
#include "towpath/tenstorrent/kernels/handshake.hpp"
#include "towpath/tenstorrent/kernels/merged_channel.hpp"

using towpath::Time;
using towpath::machine::Coordinate;
using towpath::machine::TileKind;
using towpath::tenstorrent::Cluster;
using towpath::tenstorrent::EthernetCore;
using towpath::tenstorrent::LogicalCore;
using towpath::tenstorrent::NocAddress;
using towpath::tenstorrent::Program;
using towpath::tenstorrent::kernels::MergedChannel;

namespace {

constexpr int kBlocks = 8;
constexpr std::uint64_t kBlockBytes = 4096;
constexpr Coordinate kWorker{1, 1};

enum class Mistake { none, no_handshake, no_wait, no_teardown };

std::vector<std::byte> block_of(int number) {
  return std::vector<std::byte>(kBlockBytes, static_cast<std::byte>(number + 1));
}

// Two channels, so that one block is on its way while the next is stored.
using Channels = std::vector<MergedChannel>;
const MergedChannel& channel_of(const Channels& channels, int block) {
  return channels[static_cast<std::size_t>(block) % channels.size()];
}

void send_blocks(EthernetCore& core, const Channels& channels, Mistake mistake) {
  for (const MergedChannel& channel : channels) clear(core, channel);
  if (mistake != Mistake::no_handshake) towpath::tenstorrent::kernels::handshake(core, true);
  for (int block = 0; block < kBlocks; ++block) {
    const MergedChannel& channel = channel_of(channels, block);
    if (mistake != Mistake::no_wait) wait_until_free(core, channel);
    core.store(channel.offset, block_of(block));
    send(core, channel);
  }
  if (mistake == Mistake::no_teardown) return;
  for (const MergedChannel& channel : channels) wait_until_free(core, channel);
}

void receive_blocks(EthernetCore& core, const Channels& channels, std::uint64_t destination,
                    Mistake mistake) {
  for (const MergedChannel& channel : channels) clear(core, channel);
  if (mistake != Mistake::no_handshake) towpath::tenstorrent::kernels::handshake(core, false);
  for (int block = 0; block < kBlocks; ++block) {
    const MergedChannel& channel = channel_of(channels, block);
    wait_for_payload(core, channel);
    core.noc_async_write(channel.offset, NocAddress{kWorker, destination + block * kBlockBytes},
                         kBlockBytes);
    core.noc_async_writes_flushed();
    ack_done(core, channel);
  }
  core.noc_async_write_barrier();
}

bool is_complete(Cluster& cluster, std::uint64_t destination) {
  for (int block = 0; block < kBlocks; ++block) {
    std::vector<std::byte> bytes(kBlockBytes);
    cluster.device(1).memory(kWorker).read(destination + block * kBlockBytes, bytes);
    if (bytes != block_of(block)) return false;
  }
  return true;
}

void run(Mistake mistake) {
  Cluster cluster(towpath::examples::two_chips(1), {.program_skew_cycles = 1000});
  const LogicalCore sender = cluster.device(0).get_active_ethernet_cores(true).front();
  const auto [chip, receiver] = cluster.device(0).get_connected_ethernet_core(sender);
  Program& here = cluster.create_program(0);
  Program& there = cluster.create_program(chip);
  const auto allocate = [](Program& program) {
    return program.allocate(2 * (kBlockBytes + MergedChannel::kSyncBytes), TileKind::ethernet);
  };
  const Channels channels =
      towpath::tenstorrent::kernels::merged_channels(allocate(here), kBlockBytes, 2);
  allocate(there);  // the same place
  const std::uint64_t destination = there.allocate(kBlocks * kBlockBytes);
  here.create_kernel(sender, {.name = "send"},
                     [&](EthernetCore& core) { send_blocks(core, channels, mistake); });
  there.create_kernel(receiver, {.name = "receive"}, [&](EthernetCore& core) {
    receive_blocks(core, channels, destination, mistake);
  });
  const Time end = cluster.run();
  fmt::print("{} blocks of {} bytes to a worker of the next chip: {:.0f} ns\n", kBlocks,
             kBlockBytes, end.ns());
  fmt::print("the worker has every block: {}\n", is_complete(cluster, destination) ? "yes" : "no");
}

void run_with(const char* title, Mistake mistake) {
  fmt::print("\n{}:\n", title);
  try {
    run(mistake);
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
  }
}

}  // namespace

int main() {
  run(Mistake::none);
  run_with("No handshake", Mistake::no_handshake);
  run_with("The sender stores the next block before the channel is free", Mistake::no_wait);
  run_with("The sender ends before the last answers are there", Mistake::no_teardown);
}
