// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ethernet_cluster.hpp"
#include "sentence.hpp"
#include "towpath/machine/load.hpp"

// Programs that the host launches through the base firmware, and those of the dispatcher, which has
// a link of its own.

namespace towpath::tenstorrent {
namespace {

constexpr std::uint64_t kPacketBytes = 4096;

std::shared_ptr<const machine::ChipCluster> n300() { return machine::load_chip_cluster("n300"); }

// 100 Gbit/s a link: over all that kernels have between the two chips, in one direction.
double rate_gb_per_s(const RunOptions& options) {
  Cluster cluster(n300(), options);
  constexpr int kPackets = 500;
  Program& sending = cluster.create_program(0);
  Program& receiving = cluster.create_program(1);
  std::vector<std::pair<noc::Cycle, noc::Cycle>> times;
  int links = 0;
  // The host reaches the remote chip through the first one, whose kernel is therefore the last.
  const auto cores = cluster.device(0).get_active_ethernet_cores(true);
  for (auto at = cores.rbegin(); at != cores.rend(); ++at) {
    const LogicalCore core = *at;
    const auto [chip, peer] = cluster.device(0).get_connected_ethernet_core(core);
    if (chip != 1) continue;
    ++links;
    sending.create_kernel(core, {.name = "sender"}, [&times](EthernetCore& on) {
      handshake(on, true);
      const noc::Cycle begin = on.network().cycle();
      for (int packet = 0; packet < kPackets; ++packet) {
        const int channel = 1 + packet % 7;
        on.eth_wait_for_receiver_channel_done(channel);
        on.eth_send_bytes_over_channel(kBuffer, kBuffer + 0x1000 * channel, kPacketBytes, channel,
                                       kPacketBytes, kPacketBytes / 16);
      }
      for (int channel = 1; channel < 8; ++channel) {
        on.eth_wait_for_receiver_channel_done(channel);
      }
      times.emplace_back(begin, on.network().cycle());
    });
    receiving.create_kernel(peer, {.name = "receiver"}, [](EthernetCore& on) {
      handshake(on, false);
      for (int packet = 0; packet < kPackets; ++packet) {
        const int channel = 1 + packet % 7;
        on.eth_wait_for_bytes_on_channel(kPacketBytes, channel);
        on.eth_receiver_channel_done(channel);
      }
    });
  }
  cluster.run();
  noc::Cycle begin = times.front().first, end = 0;
  for (const auto& [first, last] : times) {
    begin = std::min(begin, first);
    end = std::max(end, last);
  }
  return static_cast<double>(links * kPackets * kPacketBytes) / static_cast<double>(end - begin);
}

// Start of a kernel on each of so many workers of both chips, in cycles of 1 ns.
std::vector<std::vector<noc::Cycle>> starts(const RunOptions& options, int workers,
                                            int programs = 1) {
  Cluster cluster(n300(), options);
  std::vector<std::vector<noc::Cycle>> found(2);
  for (int program = 0; program < programs; ++program) {
    for (int chip = 0; chip < 2; ++chip) {
      Program& on = cluster.create_program(chip);
      for (int worker = 0; worker < workers; ++worker) {
        const auto tile = cluster.device(chip).chip().workers[static_cast<std::size_t>(worker)];
        on.create_kernel({.core = tile, .name = "worker"}, [&found, chip](DataMovementCore& core) {
          found[static_cast<std::size_t>(chip)].push_back(core.network().cycle());
          core.work(1000);
        });
      }
    }
  }
  cluster.run();
  return found;
}

// The guide: 200 Gbit/s each way between the chips of an n300, of which kernels have 100 beside the
// dispatcher's link.
TEST(Dispatch, KernelsHaveAllLinksOfAnN300UnderSlowDispatchAndHalfOfThemBesideTheTunnel) {
  const double fast = rate_gb_per_s({}), slow = rate_gb_per_s({.slow_dispatch = true});
  EXPECT_GT(fast, 0.9 * 12.5);
  EXPECT_LE(fast, 12.5);
  EXPECT_GT(slow, 0.9 * 25);
  EXPECT_LE(slow, 25.0);
}

TEST(Dispatch, TheHostReachesTheRemoteChipThroughItsEthernetCores) {
  const auto slow = starts({.slow_dispatch = true}, 4);
  // The local chip's path takes no time; a kilobyte takes microseconds on the other one.
  EXPECT_EQ(slow[0], std::vector<noc::Cycle>(4, 0));
  ASSERT_EQ(slow[1].size(), 4u);
  EXPECT_GT(slow[1].front(), 1000);
  for (std::size_t worker = 1; worker < 4; ++worker)
    EXPECT_GT(slow[1][worker], slow[1][worker - 1]);
  const auto small = starts({.slow_dispatch = true, .launch_bytes = 1024}, 4);
  EXPECT_GT(slow[1].back(), 2 * small[1].back());
  EXPECT_EQ(starts({}, 4)[1], std::vector<noc::Cycle>(4, 0));
}

TEST(Dispatch, TheNextProgramIsLaunchedWhenTheHostHasSeenTheEndOfTheOneBefore) {
  const auto found = starts({.slow_dispatch = true}, 2, 2);
  ASSERT_EQ(found[0].size(), 4u);
  ASSERT_EQ(found[1].size(), 4u);
  EXPECT_GE(found[0][2], found[0][1] + 1000);
  EXPECT_GE(found[1][2], found[1][1] + 1000);
}

// A core without a turn for the base firmware keeps the host from the chip behind it.
TEST(Dispatch, AKernelThatKeepsTheFirmwareFromTheLaunchIsNamed) {
  Cluster cluster(n300(), {.slow_dispatch = true});
  for (const LogicalCore core : cluster.device(0).get_active_ethernet_cores(true)) {
    cluster.create_program(0).create_kernel(
        core, {.name = "stubborn"}, [](EthernetCore& on) { on.noc_semaphore_wait(kBuffer, 1); });
    break;
  }
  cluster.create_program(1).create_kernel(
      {.core = cluster.device(1).chip().workers.front(), .name = "late"}, [](DataMovementCore&) {});
  const Failure failure = run_to_failure(cluster);
  EXPECT_EQ(failure.hazard, "deadlock") << failure.sentence;
  EXPECT_NE(failure.sentence.find("kernel 'late' on core (1, 1) of chip 1 has not been launched"),
            std::string::npos)
      << failure.sentence;
  EXPECT_NE(failure.sentence.find("host 'dispatcher' in "), std::string::npos) << failure.sentence;
  EXPECT_NE(failure.sentence.find("'stubborn'"), std::string::npos) << failure.sentence;
}

// The host waits for a program that never ends.
TEST(Dispatch, AProgramThatKeepsTheNextOneFromItsLaunchIsNamed) {
  Cluster cluster(n300(), {.slow_dispatch = true});
  const auto worker = cluster.device(1).chip().workers.front();
  cluster.create_program(1).create_kernel(
      {.core = worker, .name = "forever"},
      [](DataMovementCore& core) { core.noc_semaphore_wait(kBuffer, 1); });
  cluster.create_program(1).create_kernel({.core = worker, .name = "next"},
                                          [](DataMovementCore&) {});
  const Failure failure = run_to_failure(cluster);
  EXPECT_EQ(failure.hazard, "deadlock") << failure.sentence;
  EXPECT_NE(
      failure.sentence.find("host 'dispatcher' in the wait for the end of program 0 of chip 1"),
      std::string::npos)
      << failure.sentence;
}

TEST(Dispatch, WhatCannotBeIsRefused) {
  EXPECT_EQ(sentence_of([] { Cluster(n300(), {.slow_dispatch = true, .launch_bytes = 10'000}); }),
            "slow dispatch writes 10000 bytes to a core; it must write 4 to 8192, a multiple of 4");
  EXPECT_EQ(sentence_of([] { Cluster(n300(), {.carries_data = false, .slow_dispatch = true}); }),
            "slow dispatch on cluster 'n300', which simulates only time; use a cluster that "
            "carries data");
}

}  // namespace
}  // namespace towpath::tenstorrent
