// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "chip_bench.hpp"
#include "ethernet_cluster.hpp"
#include "host_cluster.hpp"
#include "towpath/sim/random.hpp"

// The base firmware, and kernels on the cores that it needs. It looks every 100 cycles of 1 ns; a
// kernel's poll takes 8.

namespace towpath::tenstorrent {
namespace {

using namespace literals;
using machine::Coordinate;
using noc::pattern;
using Bytes = std::vector<std::byte>;

constexpr Coordinate kWorker = kHostWorker;
constexpr Coordinate kDram = kHostDram;

// Cost, for the core that issues it, of an access to the word at offset 0x500 of a worker.
Time access_time(bool is_write) {
  Cluster cluster(board(false), {});
  noc::Cycle cycles = 0;
  cluster.create_program(1).create_kernel({0, 0}, {.name = "kernel"}, [&](EthernetCore& core) {
    if (is_write) core.noc_async_write(kBuffer + 0x100, {kWorker, 0x500}, 4);
    if (!is_write) core.noc_async_read({kWorker, 0x500}, kBuffer + 0x100, 4);
    if (is_write) core.noc_async_write_barrier();
    if (!is_write) core.noc_async_read_barrier();
    cycles = core.cycle();
  });
  cluster.run();
  return 1_ns * cycles;
}

// The time of a read of that word, at 1000 ns, over a link whose near end a kernel has.
Time read_time(const EthernetKernel& kernel, noc::Cycle start_cycle = 0) {
  Cluster cluster(board(false), {});
  Time time;
  const Bytes bytes = pattern(4, 1);
  cluster.device(1).memory(kWorker).write(0x500, bytes);
  if (kernel) {
    cluster.create_program(0).create_kernel({0, 0}, {.name = "kernel", .start_cycle = start_cycle},
                                            kernel);
  }
  cluster.run_host("tool", [&](HostAccess& host) {
    host.sleep(1_us);
    Bytes back(4);
    host.read(1, {kWorker, 0x500}, back);
    EXPECT_EQ(back, bytes);
    time = cluster.simulation().now() - 1_us;
  });
  cluster.run();
  return time;
}

// 32 bytes: twice on the wire, and the path.
constexpr Time kTrip = 413_ns + 120_ps;

// The command is there at 1000 ns. The firmware looks at 1100, sends 22 later, and the command
// arrives at 1535.12. The far end looks at 1600, reads, sends the data 22 later, and finds the
// queue busy for 56.125 ns more; it looks again 100 after that send, and sends the answer 22 later.
TEST(BaseFirmware, TakesALookAtEitherEndAndTwoTripsOverTheLink) {
  EXPECT_EQ(read_time({}), 600_ns + access_time(false) + 22_ns + 100_ns + 22_ns + kTrip);
}

// It looks 100 cycles after it has the core, at 50,180 and not at 1100. The far end then looks at
// 50,700 and not at 1600.
TEST(BaseFirmware, WaitsForAKernelThatDoesSomethingElse) {
  EXPECT_EQ(read_time([](EthernetCore& core) { core.work(500); }), read_time({}));
  EXPECT_EQ(read_time([](EthernetCore& core) { core.work(50'080); }), read_time({}) + 49'100_ns);
}

// The command is there, and the kernel before the firmware looks.
TEST(BaseFirmware, DoesNotLookWhenAKernelHasTakenItsCore) {
  EXPECT_EQ(read_time([](EthernetCore& core) { core.work(9000); }, 1080), read_time({}) + 9100_ns);
}

// The far end reads from 1600 on, and answers 22 cycles after that.
TEST(BaseFirmware, KeepsAKernelFromBeginningInTheMiddleOfALook) {
  Cluster cluster(board(false), {});
  Program& program = cluster.create_program(1);
  program.create_kernel({0, 0}, {.name = "kernel", .start_cycle = 1610}, [](EthernetCore&) {});
  cluster.run_host("tool", [](HostAccess& host) {
    host.sleep(1_us);
    Bytes back(4);
    host.read(1, {kWorker, 0x500}, back);
  });
  cluster.run();
  EXPECT_EQ(1_ns * program.result().kernels[0].begin, 1600_ns + access_time(false) + 22_ns);
}

// The kernel has looked at its word, and waits, before the host wants anything. The firmware has
// its turns from 8 to 108, 116 to 216, ..., 980 to 1080: it looks at once and sends the data 22
// later, so that its turn ends at 1102. In the next one, at 1110, it sends the command, which
// arrives at 1132 + 413.12.
TEST(BaseFirmware, HasItsTurnsWhileAKernelPolls) {
  Cluster cluster(board(false), {});
  cluster.create_program(0).create_kernel({0, 0}, {.name = "waiter"}, [](EthernetCore& core) {
    core.eth_noc_semaphore_wait(kBuffer, 1);
  });
  Time end;
  cluster.run_host("tool", [&](HostAccess& host) {
    const std::uint32_t one = 1;
    host.sleep(980_ns);
    host.write(1, {kWorker, 0x500}, Bytes(4));
    host.barrier();
    end = cluster.simulation().now();
    host.write(0, {{0, 0}, kBuffer}, std::as_bytes(std::span(&one, 1)));
  });
  cluster.run();
  EXPECT_EQ(end, 1600_ns + access_time(true) + 22_ns + kTrip);
}

// A kernel that polls a semaphore yields after every look: 8 cycles, and 100 for the firmware.
TEST(BaseFirmware, HasItsTurnWhileAKernelYields) {
  const Time time = read_time([](EthernetCore& core) {
    core.store_word(kBuffer, 0);
    core.eth_noc_semaphore_wait(kBuffer, 0);
    for (int i = 0; i < 100; ++i) core.run_routing();
  });
  EXPECT_LT(time, read_time({}) + 100_ns);
  // The command ends the first idle, the second one lets it have a turn after 1,000 polls of 10.
  const Time rare = read_time([](EthernetCore& core) {
    core.idle(10, 1000);
    core.idle(10, 1000);
    core.work(100'000);
  });
  EXPECT_GT(rare, 10_us);
  EXPECT_LT(rare, 10_us + read_time({}) + 100_ns);
}

TEST(BaseFirmware, HasTheCoreForAContextSwitch) {
  const Time time = read_time([](EthernetCore& core) {
    core.work(2000);
    core.check_and_context_switch();
    core.work(1000);
  });
  EXPECT_GT(time, 1_us);
  EXPECT_LT(time, 1_us + read_time({}) + 100_ns);
}

// The kernel's wait takes as long as without the host, apart from the firmware's work.
TEST(BaseFirmware, LeavesAKernelsPollingAsItIs) {
  const auto end_of = [](bool has_host) {
    Cluster cluster(board(false), {});
    Program& program = cluster.create_program(0);
    program.create_kernel({0, 0}, {.name = "waiter"},
                          [](EthernetCore& core) { core.eth_noc_semaphore_wait(kBuffer, 1); });
    program.create_kernel({.core = kWorker, .name = "setter"}, [](DataMovementCore& core) {
      core.work(10'000);
      core.store_word(0, 1);
      core.noc_semaphore_set_remote(0, core.get_noc_addr(0, 0, kBuffer));
      core.noc_async_write_barrier();
    });
    if (has_host) {
      cluster.run_host("tool", [](HostAccess& host) {
        Bytes bytes(4);
        host.read(1, {kWorker, 0}, bytes);
      });
    }
    cluster.run();
    return program.result().kernels[0].end;
  };
  // One look, in which the firmware sends one command: 22 cycles more of 108 for a poll and a turn.
  const noc::Cycle without = end_of(false);
  EXPECT_GE(end_of(true), without);
  EXPECT_LE(end_of(true), without + 22 + 108);
  EXPECT_NE(end_of(true), without);
}

TEST(BaseFirmware, NeverHasItsTurnIfTheKernelDoesNotYield) {
  Cluster cluster(board(false), {});
  cluster.create_program(1).create_kernel({0, 0}, {.name = "stubborn"}, [](EthernetCore& core) {
    core.noc_semaphore_wait(kBuffer, 1);
  });
  cluster.run_host("tool", [](HostAccess& host) {
    host.sleep(1_us);
    host.write(1, {kWorker, 64}, Bytes(2000));
  });
  const Failure failure = run_to_failure(cluster);
  EXPECT_EQ(failure.hazard, "deadlock");
  EXPECT_EQ(failure.sentence,
            "1 of 1 kernels wait forever: kernel 'stubborn' on core (0, 0) of chip 1 in "
            "noc_semaphore_wait since cycle 0: its word at offset 131072 is 0 and must become 1; "
            "host 'tool' in barrier since 1000 ns, whose write of 960 bytes to offset 64 of (1, 1) "
            "of chip 1 is not answered: the base firmware of Ethernet core (0, 0) of chip 1 has "
            "something to do, but kernel 'stubborn' on core (0, 0) of chip 1 has the core and does "
            "not yield");
}

// It continues as soon as the kernel has ended.
TEST(BaseFirmware, GoesOnWhenTheKernelHasEnded) {
  Cluster cluster(board(false), {});
  Program& program = cluster.create_program(1);
  program.create_kernel({0, 0}, {.name = "late"},
                        [](EthernetCore& core) { core.noc_semaphore_wait(kBuffer, 1); });
  program.create_kernel({.core = kWorker, .name = "setter"}, [](DataMovementCore& core) {
    core.work(300'000);
    core.store_word(0, 1);
    core.noc_semaphore_set_remote(0, core.get_noc_addr(0, 0, kBuffer));
    core.noc_async_write_barrier();
  });
  cluster.run_host("tool", [](HostAccess& host) {
    host.sleep(1_us);
    host.write(1, {kWorker, 64}, pattern(2000, 1));
  });
  cluster.run();
  EXPECT_EQ(memory_of(cluster, 1, kWorker, 64, 2000), pattern(2000, 1));
}

// Something that a kernel may do on an Ethernet core, and yield or not.
void do_something(EthernetCore& core, sim::Random& random) {
  switch (random.between(0, 5)) {
    case 0: core.run_routing(); break;
    case 1: core.work(random.between(1, 3000)); break;
    case 2: core.check_and_context_switch(); break;
    case 3: core.idle(random.between(1, 20), random.between(1, 200)); break;
    case 4:
      core.noc_async_write(kBuffer, core.get_noc_addr(2, 1, 0x80000), 2048);
      core.eth_noc_async_write_barrier();
      break;
    default:
      core.noc_async_read(core.get_noc_addr(2, 1, 0x80000), kBuffer, 4096);
      core.run_routing();
      core.noc_async_read_barrier();
  }
}

// Kernels come and go on all cores that serve the host, over links that lose frames.
void run_with_kernels(std::uint64_t seed) {
  const auto description = mesh(3, 2);
  Cluster cluster(description, {.seed = seed,
                                .start_skew_cycles = 5000,
                                .link_faults = {description->links.size(), {.frame_loss = 0.02}}});
  for (int chip = 0; chip < 6; ++chip) {
    for (int generation = 0; generation < 3; ++generation) {
      Program& program = cluster.create_program(chip);
      for (const LogicalCore core : cluster.device(chip).get_active_ethernet_cores(true)) {
        program.create_kernel(core, {.name = "kernel"}, [&cluster, chip](EthernetCore& core) {
          sim::Random random = cluster.simulation().random("kernel " + std::to_string(chip) + " " +
                                                           std::to_string(core.channel()));
          // A worker's word makes idle() return: what it would wait for may be over.
          for (int i = 0; i < 10; ++i) do_something(core, random);
        });
      }
      program.create_kernel({.core = {3, 1}, .name = "waker"}, [chip](DataMovementCore& core) {
        for (int i = 0; i < 200; ++i) {
          core.work(5000);
          for (int x = 0; x < 4; ++x) {
            core.noc_inline_dw_write(core.get_noc_addr(x, 0, 0x30000),
                                     static_cast<std::uint32_t>(i + chip));
          }
          core.noc_async_write_barrier();
        }
      });
    }
  }
  for (int number = 0; number < 4; ++number) {
    cluster.run_host("tool", [number](HostAccess& host) {
      for (int i = 0; i < 20; ++i) {
        const int chip = (number + i) % 6;
        const std::uint64_t offset = 0x10000 * static_cast<std::uint64_t>(number + 1) + 13;
        const Bytes bytes = pattern(static_cast<std::size_t>(500 * i + 1), 7);
        host.write(chip, {kWorker, offset}, bytes);
        Bytes back(bytes.size());
        host.read(chip, {kWorker, offset}, back);
        EXPECT_EQ(back, bytes);
        host.sleep(3_us);
      }
    });
  }
  EXPECT_EQ(run_to_failure(cluster).sentence, "") << "seed " << seed;
}

TEST(BaseFirmware, SharesItsCoresWithKernelsOfAllKinds) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) run_with_kernels(seed);
}

// --- links --------------------------------------------------------------------------------------

TEST(BaseFirmware, TrainsLinksThatDropAndGoesOn) {
  for (const double loss : {0.0, 0.05}) {
    Cluster cluster(
        board(),
        {.link_faults = {{}, {.frame_loss = loss, .drop_at = 20_us, .drop_period = 3_ms}}});
    const Bytes bytes = pattern(100'000, 2);
    Bytes back(bytes.size());
    cluster.run_host("tool", [&](HostAccess& host) {
      host.write(1, {kDram, 5}, bytes);
      host.read(1, {kDram, 5}, back);
    });
    cluster.run();
    EXPECT_EQ(back, bytes);
    EXPECT_GE(cluster.link(1).drops(), 1u);
    EXPECT_EQ(cluster.link(0).drops(), 0u);
  }
}

TEST(BaseFirmware, SaysThatALinkStaysDown) {
  Cluster cluster(board(), {.link_faults = {{}, {.drop_at = 5_us, .dead_time = Time::max()}}});
  cluster.run_host("tool", [&](HostAccess& host) { host.write(1, {kDram, 0}, Bytes(100'000)); });
  EXPECT_EQ(run_to_failure(cluster).sentence,
            "the host waits forever: host 'tool' in write of 100000 bytes to offset 0 of (0, 2) "
            "of chip 1 since 0 ns, whose write of 1024 bytes to offset 11264 of (0, 2) of chip 1 "
            "is not answered; the link between Ethernet core (1, 0) of chip 0 and Ethernet core "
            "(1, 0) of chip 1 is down since 5000 ns and cannot be trained again");
}

// --- hazards ------------------------------------------------------------------------------------

// Kernels on both ends of the firmware's link, whose channel is used at the same time.
TEST(BaseFirmware, IsNoHazardToKernelsOnItsLink) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Cluster cluster(board(false), {.seed = seed, .start_skew_cycles = 500});
    const Bytes payload = pattern(4096, seed);
    const auto sender = [&](EthernetCore& core) {
      handshake(core, true);
      for (int i = 0; i < 20; ++i) {
        core.store(kBuffer, payload);
        core.eth_send_bytes_over_channel(kBuffer, kBuffer, 4096, 1, 4096, 256);
        core.eth_wait_for_receiver_channel_done(1);
        core.run_routing();
      }
    };
    const auto receiver = [&](EthernetCore& core) {
      handshake(core, false);
      for (int i = 0; i < 20; ++i) {
        core.eth_wait_for_bytes_on_channel(4096, 1);
        Bytes bytes(4096);
        core.load(kBuffer, bytes);
        EXPECT_EQ(bytes, payload);
        core.eth_receiver_channel_done(1);
        core.run_routing();
      }
    };
    cluster.create_program(0).create_kernel({0, 0}, {.name = "sender"}, sender);
    cluster.create_program(1).create_kernel({0, 0}, {.name = "receiver"}, receiver);
    const Bytes bytes = pattern(30'000, seed + 100);
    Bytes back(bytes.size());
    cluster.run_host("tool", [&](HostAccess& host) {
      host.write(1, {kWorker, 3}, bytes);
      host.read(1, {kWorker, 3}, back);
    });
    EXPECT_EQ(run_to_failure(cluster).sentence, "");
    EXPECT_EQ(back, bytes);
  }
}

}  // namespace
}  // namespace towpath::tenstorrent
