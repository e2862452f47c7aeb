// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "chip_bench.hpp"
#include "ethernet_cluster.hpp"
#include "host_cluster.hpp"
#include "pcie_bench.hpp"
#include "sentence.hpp"
#include "towpath/machine/load.hpp"

// Programs that a described host launches through the dispatcher of each chip, and what it writes
// through it; to remote chips through the tunnel on the dispatcher's links.

namespace towpath::tenstorrent {
namespace {
using namespace literals;

using machine::Coordinate;
using noc::pattern;
using Bytes = std::vector<std::byte>;
using Clusters = std::shared_ptr<const machine::ChipCluster>;

RunOptions with_host() { return {.host = machine::build_host(pcie::link_host())}; }
RunOptions on_xeon() { return {.host = machine::load_host("n300-xeon-host")}; }
Clusters n300() { return machine::load_chip_cluster("n300"); }

// Three chips in a row, of which the first is on PCIe, and both links are the dispatcher's.
Clusters row_of_three() {
  machine::ChipCluster cluster = chips_with_host(3, {0});
  cluster.links.push_back({{{{0, 0}, {1, 1}}}, true});
  cluster.links.push_back({{{{1, 0}, {2, 1}}}, true});
  return machine::build_chip_cluster(std::move(cluster));
}

struct Launch {
  std::vector<Time> starts;
  Time end;
};
// A kernel of 100 cycles on each of so many workers of a chip, in programs one after the other.
Launch launch(const Clusters& description, int chip, const RunOptions& options, int workers = 1,
              int programs = 1) {
  Cluster cluster(description, options);
  Launch found;
  for (int program = 0; program < programs; ++program) {
    Program& on = cluster.create_program(chip);
    for (int worker = 0; worker < workers; ++worker) {
      on.create_kernel(
          {.core = cluster.device(chip).chip().workers[static_cast<std::size_t>(worker)],
           .name = "k",
           .runtime_args = {1, 2, 3}},
          [&](DataMovementCore& core) {
            found.starts.push_back(core.network().simulation().now());
            core.work(100);
          });
    }
  }
  found.end = cluster.run();
  return found;
}

const ethernet::PortCounters& counters(Cluster& cluster, machine::EthernetEnd end) {
  return cluster.device(end.chip).ethernet_tile({0, end.channel}).port().counters();
}

TEST(FastDispatch, TakesNoTimeWithoutADescribedHost) {
  const Launch found = launch(n300(), 1, {});
  EXPECT_EQ(found.starts.front(), Time());
  EXPECT_EQ(found.end, 100_ns);
}

// The host copies 4.5 KB (270 ns), its store is at the prefetcher half a round trip later (270),
// the prefetcher's read of the host takes a round trip of 0.9 us, and each of seven commands goes
// over the NoC twice.
TEST(FastDispatch, ALaunchOnTheHostsChipTakesSomeMicroseconds) {
  const Launch found = launch(n300(), 0, on_xeon());
  EXPECT_GT(found.starts.front(), 2_us);
  EXPECT_LT(found.starts.front(), 5_us);
  // The end of the kernel is an event in the host's memory later.
  EXPECT_GT(found.end, found.starts.front() + 100_ns + 300_ns);
}

// Behind the tunnel: 4.5 KB over the link take 380 ns, the port 400 at least, and there are two
// more cores on the way; the event comes back the same way.
TEST(FastDispatch, ALaunchOnTheRemoteChipCrossesTheTunnel) {
  const Launch near = launch(n300(), 0, on_xeon()), far = launch(n300(), 1, on_xeon());
  EXPECT_GT(far.starts.front(), near.starts.front() + 1_us);
  EXPECT_LT(far.starts.front(), near.starts.front() + 4_us);
  EXPECT_GT(far.end - far.starts.front(), near.end - near.starts.front());
}

// Code goes to all workers at once: 63 more take 16 bytes of arguments and a target each.
TEST(FastDispatch, ManyWorkersStartTogether) {
  const Launch one = launch(n300(), 1, on_xeon()), all = launch(n300(), 1, on_xeon(), 64);
  ASSERT_EQ(all.starts.size(), 64u);
  const auto [first, last] = std::ranges::minmax(all.starts);
  EXPECT_LT(last - first, 200_ns);
  EXPECT_LT(all.starts.front(), one.starts.front() + 10_us);
  RunOptions slow = on_xeon();
  slow.slow_dispatch = true;
  EXPECT_GT(std::ranges::max(launch(n300(), 1, slow, 64).starts), last * 5);
}

TEST(FastDispatch, TheNextProgramIsLaunchedWhenTheOneBeforeHasEnded) {
  for (const int chip : {0, 1}) {
    const Launch found = launch(n300(), chip, on_xeon(), 2, 3);
    ASSERT_EQ(found.starts.size(), 6u);
    for (const std::size_t next : {2u, 4u}) {
      EXPECT_GE(found.starts[next], found.starts[next - 1] + 100_ns);
    }
    // Its commands wait in the dispatcher's ring: less time passes than before the first one.
    EXPECT_LT(found.starts[4] - found.starts[2], found.starts[0]);
  }
}

TEST(FastDispatch, IsTheSameInEveryRun) {
  const Launch once = launch(n300(), 1, on_xeon(), 8, 2),
               again = launch(n300(), 1, on_xeon(), 8, 2);
  EXPECT_EQ(once.starts, again.starts);
  EXPECT_EQ(once.end, again.end);
}

TEST(FastDispatch, LaunchesOnEveryChipOfFourBoards) {
  Cluster cluster(four_boards(), with_host());
  int ran = 0;
  for (int chip = 0; chip < 8; ++chip) {
    cluster.create_program(chip).create_kernel({.core = kHostWorker, .name = "k"},
                                               [&](DataMovementCore&) { ++ran; });
  }
  cluster.run();
  EXPECT_EQ(ran, 8);
  for (int chip = 0; chip < 4; ++chip) {
    EXPECT_GT(counters(cluster, {chip, 0}).payload_bytes_sent, 4096u);
    EXPECT_EQ(counters(cluster, {4 + chip, 0}).payload_bytes_sent, kEventBytes);
    EXPECT_EQ(counters(cluster, {4 + chip, 1}).payload_bytes_sent, 0u);
  }
}

TEST(FastDispatch, LaunchesKernelsOnEthernetCores) {
  Cluster cluster(n300(), on_xeon());
  std::vector<int> ran;
  for (const int chip : {0, 1}) {
    const LogicalCore core = cluster.device(chip).get_active_ethernet_cores(true).front();
    cluster.create_program(chip).create_kernel(
        core, {.name = "k"}, [&ran, chip](EthernetCore&) { ran.push_back(chip); });
  }
  cluster.run();
  EXPECT_EQ(ran, (std::vector{0, 1}));
}

// --- what the host writes ------------------------------------------------------------------------

TEST(FastDispatch, WritesArriveWholeOverEveryDistance) {
  constexpr Coordinate kFirst{0, 1};  // on chip 0 the dispatcher takes the other workers
  Cluster cluster(row_of_three(), with_host());
  const Bytes data = pattern(300'001, 7), other = pattern(70'000, 8);
  cluster.run_host("tool", [&](HostAccess& host) {
    for (const int chip : {0, 1, 2}) {
      host.enqueue_write(chip, {kFirst, 0x20000}, data);
      host.enqueue_write(chip, {kHostDram, 0x400}, other);
      host.enqueue_write(chip, {kFirst, 0x20010}, pattern(16, 9));  // over the first one
    }
    for (const int chip : {0, 1, 2}) host.finish(chip);
  });
  cluster.run();
  Bytes expected = data;
  std::ranges::copy(pattern(16, 9), expected.begin() + 16);
  for (const int chip : {0, 1, 2}) {
    EXPECT_EQ(memory_of(cluster, chip, kFirst, 0x20000, data.size()), expected) << chip;
    EXPECT_EQ(memory_of(cluster, chip, kHostDram, 0x400, other.size()), other) << chip;
  }
  // What goes to both chips behind it goes through the first link.
  EXPECT_GT(counters(cluster, {0, 0}).payload_bytes_sent, 2 * (data.size() + other.size()));
  EXPECT_LT(counters(cluster, {1, 0}).payload_bytes_sent, 2 * (data.size() + other.size()));
}

// No more than the link carries, and much faster than a kilobyte at a time.
TEST(FastDispatch, AMebibyteGoesThroughTheTunnelFasterThanThroughTheBaseFirmware) {
  const Bytes data = pattern(1 << 20, 1);
  const auto time = [&](const auto& write) {
    Cluster cluster(n300(), on_xeon());
    cluster.run_host("tool", write);
    return cluster.run();
  };
  const Time tunnel = time([&](HostAccess& host) {
    host.enqueue_write(1, {{1, 1}, 0x20000}, data);
    host.finish(1);
  });
  const Time firmware = time([&](HostAccess& host) { host.write(1, {{1, 1}, 0x20000}, data); });
  EXPECT_GT(tunnel, 84_us);  // 12.5 GB/s
  EXPECT_LT(tunnel, 150_us);
  EXPECT_GT(firmware, tunnel * 3);
}

TEST(FastDispatch, AWriteFollowsTheProgramsBeforeIt) {
  Cluster cluster(board(), with_host());
  std::uint32_t seen = 1;
  cluster.create_program(1).create_kernel({.core = kHostWorker, .name = "k"},
                                          [&](DataMovementCore& core) {
                                            core.work(20'000);
                                            seen = core.load_word(0x20000);
                                          });
  cluster.run_host("tool", [&](HostAccess& host) {
    host.sleep(5_us);  // behind the launch
    const std::uint32_t two = 2;
    host.enqueue_write(1, {kHostWorker, 0x20000}, std::as_bytes(std::span(&two, 1)));
    host.finish(1);
  });
  cluster.run();
  EXPECT_EQ(seen, 0u);
  EXPECT_EQ(memory_of(cluster, 1, kHostWorker, 0x20000, 1).front(), std::byte{2});
}

// More commands than the queue has entries, from two processes.
TEST(FastDispatch, ProcessesTakeTurnsAtAFullQueue) {
  Cluster cluster(board(), with_host());
  for (const int process : {0, 1}) {
    cluster.run_host("tool", [process](HostAccess& host) {
      for (unsigned i = 0; i < 150; ++i) {
        const std::uint64_t place = 0x20000 + 64 * (2 * i + static_cast<unsigned>(process));
        host.enqueue_write(1, {kHostWorker, place}, pattern(64, i));
      }
      host.finish(1);
    });
  }
  cluster.run();
  for (unsigned i = 0; i < 300; ++i) {
    EXPECT_EQ(memory_of(cluster, 1, kHostWorker, 0x20000 + 64 * i, 64), pattern(64, i / 2)) << i;
  }
}

// --- what is wrong -------------------------------------------------------------------------------

TEST(FastDispatch, ALinkThatIsDeadIsNamed) {
  RunOptions options = with_host();
  options.link_faults.resize(2);
  options.link_faults[1] = {.drop_at = 1_us, .dead_time = Time::max()};
  Cluster cluster(board(), options);
  cluster.create_program(1).create_kernel({.core = kHostWorker, .name = "late"},
                                          [](DataMovementCore&) {});
  const Failure failure = run_to_failure(cluster);
  EXPECT_EQ(failure.hazard, "deadlock") << failure.sentence;
  for (const char* part :
       {"kernel 'late' on core (1, 1) of chip 1 has not been launched",
        "host 'dispatcher' in the wait until the dispatcher of chip 1 is done", "(1, 0)"}) {
    EXPECT_NE(failure.sentence.find(part), std::string::npos) << failure.sentence;
  }
}

TEST(FastDispatch, WhatCannotBeIsRefused) {
  const auto sentence = [](const Clusters& description, RunOptions options, int chip) {
    return sentence_of([&] { launch(description, chip, options); });
  };
  EXPECT_EQ(sentence(board(false), with_host(), 1),
            "fast dispatch to chip 1: of the 1 links on the path, the dispatcher has 0; reserve "
            "more links of cluster 'test' for it, or use slow_dispatch, which needs none");
  RunOptions odd = with_host();
  odd.launch_bytes = 1000;
  EXPECT_EQ(
      sentence(board(), odd, 0),
      "fast dispatch writes 1000 bytes to a core; it must write 128 to 8192, a multiple of 16");
  RunOptions small = with_host();
  small.launch_bytes = 128;
  EXPECT_EQ(sentence(board(), small, 0),
            "a program of chip 0 has 16 bytes of runtime arguments for a core; of 128 "
            "launch_bytes, 0 are left for them");
  EXPECT_NE(sentence_of([] {
              Cluster cluster(board(), {});
              cluster.run_host("tool", [](HostAccess& host) { host.finish(0); });
              cluster.run();
            }),
            "");
}

TEST(FastDispatch, RefusesToWriteToItsOwnCores) {
  Cluster cluster(board(), with_host());
  cluster.run_host("tool", [&](HostAccess& host) {
    host.finish(0);
    host.enqueue_write(0, {{2, 0}, 0x20000}, pattern(64, 1));
  });
  EXPECT_EQ(sentence_of([&] { cluster.run(); }),
            "host 'tool': enqueued write of 64 bytes to offset 131072 of (2, 0) of chip 0: the "
            "core belongs to the dispatcher");
}

// A kernel still may not take the tunnel's link.
TEST(FastDispatch, KeepsItsLink) {
  Cluster cluster(board(), with_host());
  EXPECT_NE(sentence_of([&] {
              cluster.create_program(1).create_kernel({0, 1}, {.name = "k"}, [](EthernetCore&) {});
            }).find("belongs to the dispatcher"),
            std::string::npos);
}

}  // namespace
}  // namespace towpath::tenstorrent
