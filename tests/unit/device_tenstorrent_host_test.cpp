// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "chip_bench.hpp"
#include "chips.hpp"
#include "ethernet_cluster.hpp"
#include "towpath/sim/random.hpp"
#include "towpath/sim/trace.hpp"

// Processes of the host, and the base firmware that carries what they do to chips that are not on
// PCIe. The base firmware looks every 100 cycles of 1 ns; a kernel's poll takes 8.

namespace towpath::device::tenstorrent {
namespace {

using namespace literals;
using machine::ChipCluster;
using machine::Coordinate;
using machine::EthernetEnd;
using noc::pattern;
using Bytes = std::vector<std::byte>;

constexpr Coordinate kWorker{1, 1};
constexpr Coordinate kDram{0, 2};
constexpr Coordinate kEthernet{3, 0};

// Ethernet cores (0, 0) to (3, 0), workers below, and DRAM.
std::shared_ptr<const machine::Chip> small_chip() {
  return machine::build_chip(machine::drawn_chip({"eeee", "wwww", "0..0", "p..."}));
}

ChipCluster chips(int count, const std::set<int>& on_pcie) {
  ChipCluster cluster;
  cluster.name = "test";
  const auto chip = small_chip();
  for (int i = 0; i < count; ++i) {
    cluster.chips.push_back({.chip = chip, .x = i, .has_host_link = on_pcie.contains(i)});
  }
  return cluster;
}

std::shared_ptr<const ChipCluster> built(ChipCluster cluster) {
  return machine::build_chip_cluster(std::move(cluster));
}

// As an n300: chip 0 is on PCIe, the link of channels 0 is free, that of channels 1 the
// dispatcher's.
std::shared_ptr<const ChipCluster> board(bool has_reserved_link = true) {
  ChipCluster cluster = chips(2, {0});
  cluster.links.push_back({{{{0, 0}, {1, 0}}}});
  if (has_reserved_link) cluster.links.push_back({{{{0, 1}, {1, 1}}}, true});
  return built(std::move(cluster));
}

// As a t3000: four boards, and links between their left chips, and between their right ones.
std::shared_ptr<const ChipCluster> four_boards() {
  ChipCluster cluster = chips(8, {0, 1, 2, 3});
  for (int i = 0; i < 4; ++i) {
    cluster.links.push_back({{{{i, 0}, {4 + i, 0}}}, true});
    if (i == 3) break;
    cluster.links.push_back({{{{i, 1}, {i + 1, 2}}}});
    cluster.links.push_back({{{{4 + i, 1}, {5 + i, 2}}}});
  }
  return built(std::move(cluster));
}

// As a Galaxy of which only chip 0, at a corner, is on PCIe: right, left, down, up are channels 0
// to 3.
std::shared_ptr<const ChipCluster> mesh(int columns, int rows) {
  ChipCluster cluster = chips(columns * rows, {0});
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < columns; ++x) {
      const int chip = y * columns + x;
      if (x + 1 < columns) cluster.links.push_back({{{{chip, 0}, {chip + 1, 1}}}});
      if (y + 1 < rows) cluster.links.push_back({{{{chip, 2}, {chip + columns, 3}}}});
    }
  }
  return built(std::move(cluster));
}

Bytes memory_of(Cluster& cluster, int chip, Coordinate tile, std::uint64_t offset,
                std::size_t size_bytes) {
  Bytes bytes(size_bytes);
  cluster.device(chip).memory(tile).read(offset, bytes);
  return bytes;
}

std::string refusal(Cluster& cluster) { return run_to_failure(cluster).sentence; }

// --- ways ---------------------------------------------------------------------------------------

TEST(HostRoutes, PreferFewLinksThenThoseOfTheDispatcher) {
  const auto cluster = board();
  const HostRoutes routes(*cluster);
  EXPECT_EQ(routes.to(0).links, 0);
  EXPECT_EQ(routes.to(1).links, 1);
  EXPECT_EQ(routes.gateway(1), (EthernetEnd{0, 1}));
  EXPECT_EQ(routes.to(1).far, (EthernetEnd{1, 1}));
}

// 0 - 1 - 3 over free links, 0 - 2 - 3 with one that is reserved, described later.
TEST(HostRoutes, PreferWaysWithMoreOfTheDispatchersLinks) {
  ChipCluster cluster = chips(5, {0});
  cluster.links = {
      {{{{0, 0}, {1, 0}}}}, {{{{1, 1}, {3, 0}}}}, {{{{0, 1}, {2, 0}}}, true}, {{{{2, 1}, {3, 1}}}}};
  const HostRoutes routes(*built(std::move(cluster)));
  EXPECT_EQ(routes.to(3).links, 2);
  EXPECT_EQ(routes.gateway(3), (EthernetEnd{0, 1}));
  EXPECT_EQ(routes.next(2, 3), (EthernetEnd{2, 1}));
  EXPECT_FALSE(routes.is_reached(4));
}

TEST(HostRoutes, TakeAsManyLinksAsAMeshHasBetweenItsChips) {
  const HostRoutes routes(*mesh(8, 4));
  for (int chip = 0; chip < 32; ++chip) EXPECT_EQ(routes.to(chip).links, chip % 8 + chip / 8);
}

// --- bytes --------------------------------------------------------------------------------------

TEST(HostAccess, WritesAndReadsEverySizeAtAnyOffset) {
  Cluster cluster(board(), {});
  const std::vector<std::size_t> sizes{1, 3, 15, 16, 17, 100, 1023, 1024, 1025, 4096, 100'000};
  int compared = 0;
  cluster.run_host("tool", [&](HostAccess& host) {
    std::uint64_t seed = 1;
    for (const int chip : {0, 1}) {
      for (const Coordinate tile : {kWorker, kDram, kEthernet}) {
        for (const std::size_t size : sizes) {
          const std::uint64_t offset = 0x20000 + 7 * seed;
          const Bytes bytes = pattern(size, ++seed);
          const Bytes before = memory_of(cluster, chip, tile, offset - 64, 64);
          host.write(chip, {tile, offset}, bytes);
          Bytes back(size);
          host.read(chip, {tile, offset}, back);
          EXPECT_EQ(back, bytes) << size;
          EXPECT_EQ(memory_of(cluster, chip, tile, offset, size), bytes) << size;
          EXPECT_EQ(memory_of(cluster, chip, tile, offset - 64, 64), before) << size;
          ++compared;
        }
      }
    }
  });
  cluster.run();
  EXPECT_EQ(compared, 66);
}

TEST(HostAccess, ReachesTheMemoryOfTheCoreThatServesIt) {
  Cluster cluster(board(), {});
  const Bytes bytes = pattern(5000, 3);
  Bytes back(5000);
  cluster.run_host("tool", [&](HostAccess& host) {
    host.write(1, {{1, 0}, 0x20010}, bytes);
    host.read(1, {{1, 0}, 0x20010}, back);
  });
  cluster.run();
  EXPECT_EQ(back, bytes);
}

TEST(HostAccess, ReachesEveryChipOfFourBoards) {
  Cluster cluster(four_boards(), {});
  std::vector<Bytes> back;
  cluster.run_host("tool", [&](HostAccess& host) {
    for (int chip = 0; chip < 8; ++chip) {
      host.write(chip, {kWorker, 64}, pattern(3000, static_cast<std::uint64_t>(chip)));
    }
    for (int chip = 0; chip < 8; ++chip) {
      host.read(chip, {kWorker, 64}, back.emplace_back(3000));
    }
  });
  cluster.run();
  for (int chip = 0; chip < 8; ++chip) {
    EXPECT_EQ(back[static_cast<std::size_t>(chip)], pattern(3000, static_cast<std::uint64_t>(chip)))
        << chip;
  }
}

TEST(HostAccess, GoesFromCornerToCornerOfAGalaxy) {
  Cluster cluster(mesh(8, 4), {});
  const Bytes bytes = pattern(20'000, 5);
  Bytes back(bytes.size());
  cluster.run_host("tool", [&](HostAccess& host) {
    host.write(31, {kDram, 32}, bytes);
    host.read(31, {kDram, 32}, back);
  });
  cluster.run();
  EXPECT_EQ(back, bytes);
}

// A write has been answered when its bytes are there.
TEST(HostAccess, KnowsAfterABarrierThatItsBytesAreThere) {
  Cluster cluster(mesh(3, 1), {});
  const Bytes bytes = pattern(2048, 6);
  bool was_there_at_once = true;
  cluster.run_host("tool", [&](HostAccess& host) {
    host.write(2, {kWorker, 0}, bytes);
    was_there_at_once = memory_of(cluster, 2, kWorker, 0, 2048) == bytes;
    host.barrier();
    EXPECT_EQ(memory_of(cluster, 2, kWorker, 0, 2048), bytes);
  });
  cluster.run();
  EXPECT_FALSE(was_there_at_once);
}

// Bytes that are written again and again through different slots: the last ones stay.
TEST(HostAccess, IsCarriedOutInItsOrder) {
  Cluster cluster(mesh(3, 2), {});
  Bytes back(900);
  cluster.run_host("tool", [&](HostAccess& host) {
    for (std::uint64_t i = 0; i < 50; ++i) host.write(5, {kWorker, 10}, pattern(900, i));
    host.read(5, {kWorker, 10}, back);
  });
  cluster.run();
  EXPECT_EQ(back, pattern(900, 49));
}

struct Outcome {
  Time end;
  std::uint64_t events = 0;
  std::uint64_t hash = 0;
  bool operator==(const Outcome&) const = default;
};

// Many processes with accesses of random sizes to random chips, each in a place of its own.
Outcome run_many(std::uint64_t seed) {
  sim::Trace trace(sim::Trace::Mode::hash_only);
  Cluster cluster(mesh(4, 2), {.seed = seed});
  cluster.simulation().set_trace(&trace);
  for (std::uint64_t number = 0; number < 8; ++number) {
    cluster.run_host("tool", [&cluster, number](HostAccess& host) {
      sim::Random random = cluster.simulation().random("tool" + std::to_string(number));
      const std::uint64_t base = 0x10000 * (number + 1);
      std::vector<Bytes> model(8, Bytes(0x4000));
      for (int i = 0; i < 40; ++i) {
        const auto chip = static_cast<int>(random.between(0, 7));
        const auto at = static_cast<std::size_t>(random.between(0, 0x3000));
        const auto size = static_cast<std::size_t>(random.between(1, 0x1000));
        const auto part = std::span(model[static_cast<std::size_t>(chip)]).subspan(at, size);
        if (random.between(0, 1) == 0) {
          std::ranges::copy(pattern(size, static_cast<std::uint64_t>(i)), part.begin());
          host.write(chip, {kWorker, base + at}, part);
        } else {
          Bytes back(size);
          host.read(chip, {kWorker, base + at}, back);
          EXPECT_TRUE(std::ranges::equal(back, part)) << number << " " << i;
        }
      }
      host.barrier();
      for (int chip = 0; chip < 8; ++chip) {
        EXPECT_EQ(memory_of(cluster, chip, kWorker, base, 0x4000),
                  model[static_cast<std::size_t>(chip)]);
      }
    });
  }
  const Time end = cluster.run();
  return {end, cluster.simulation().events(), trace.hash()};
}

TEST(HostAccess, OfManyProcessesAtOnceKeepsTheirBytesApart) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) run_many(seed);
}

TEST(HostAccess, IsTheSameInEveryRun) {
  EXPECT_EQ(run_many(1), run_many(1));
  EXPECT_FALSE(run_many(1) == run_many(2));
}

// --- refusals -----------------------------------------------------------------------------------

std::string refused(const std::function<void(HostAccess&)>& body) {
  ChipCluster description = chips(3, {0});
  description.links.push_back({{{{0, 0}, {1, 0}}}});
  Cluster cluster(built(std::move(description)), {});
  cluster.run_host("tool", body);
  return refusal(cluster);
}

TEST(HostAccess, RefusesWhatIsNotThere) {
  const Bytes word(4);
  EXPECT_EQ(
      refused([&](HostAccess& host) { host.write(3, {kWorker, 0}, word); }),
      "host 'tool': write of 4 bytes to offset 0 of (1, 1) of chip 3: there are chips 0 to 2");
  EXPECT_EQ(refused([&](HostAccess& host) { host.write(2, {kWorker, 0}, word); }),
            "host 'tool': write of 4 bytes to offset 0 of (1, 1) of chip 2: no link leads there "
            "from a chip on PCIe");
  EXPECT_EQ(refused([&](HostAccess& host) { host.write(1, {{0, 3}, 0}, word); }),
            "host 'tool': write of 4 bytes to offset 0 of (0, 3) of chip 1: (0, 3) is a pcie tile, "
            "which has no memory");
  EXPECT_EQ(refused([&](HostAccess& host) {
              Bytes bytes(8);
              host.read(1, {kWorker, 1'499'130}, bytes);
            }),
            "host 'tool': read of 8 bytes from offset 1499130 of (1, 1) of chip 1: the memory "
            "there has 1499136 bytes");
  EXPECT_EQ(refused([&](HostAccess& host) { host.write(0, {{0, 0}, 0x11000}, word); }),
            "host 'tool': write of 4 bytes to offset 69632 of (0, 0) of chip 0: bytes 36864 to "
            "98303 of an Ethernet core are its base firmware's");
}

TEST(HostAccess, NeedsAClusterThatCarriesData) {
  Cluster cluster(board(), {.carries_data = false});
  try {
    cluster.run_host("tool", [](HostAccess&) {});
    FAIL() << "it was not refused";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "host 'tool': cluster 'test' keeps times only; the host needs carries_data");
  }
}

// --- together with kernels ----------------------------------------------------------------------

// A worker that waits for a word of the host, and answers with what it found.
TEST(HostAccess, IsSeenByKernels) {
  Cluster cluster(board(), {});
  std::vector<std::uint32_t> seen;
  cluster.create_program(1).create_kernel({.core = kWorker, .name = "waiter"},
                                          [&](DataMovementCore& core) {
                                            core.noc_semaphore_wait(0x100, 7);
                                            seen.push_back(core.load_word(0x200));
                                            core.noc_semaphore_set(0x300, 9);
                                          });
  Program& later = cluster.create_program(1);
  later.create_kernel({.core = kWorker, .name = "later"},
                      [&](DataMovementCore& core) { seen.push_back(core.load_word(0x200)); });
  cluster.run_host("tool", [&](HostAccess& host) {
    const std::uint32_t value = 42;
    const std::uint32_t flag = 7;
    std::uint32_t answer = 0;
    host.write(1, {kWorker, 0x200}, std::as_bytes(std::span(&value, 1)));
    host.write(1, {kWorker, 0x100}, std::as_bytes(std::span(&flag, 1)));
    while (answer != 9) {
      host.read(1, {kWorker, 0x300}, std::as_writable_bytes(std::span(&answer, 1)));
    }
  });
  cluster.run();
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{42, 42}));
}

// The time of a read of one word, over a link whose near end a kernel has.
Time read_time(const EthernetKernel& kernel, const RunOptions& options = {}) {
  Cluster cluster(board(false), options);
  Time time;
  const std::uint64_t offset = 0x500;
  const Bytes bytes = pattern(4, 1);
  cluster.device(1).memory(kWorker).write(offset, bytes);
  if (kernel) {
    cluster.create_program(0).create_kernel({0, 0}, {.name = "kernel"}, kernel);
  }
  cluster.run_host("tool", [&](HostAccess& host) {
    host.sleep(1_us);
    const Time begin = cluster.simulation().now();
    Bytes back(4);
    host.read(1, {kWorker, offset}, back);
    EXPECT_EQ(back, bytes);
    time = cluster.simulation().now() - begin;
  });
  cluster.run();
  return time;
}

// The command is there at 1000 ns. The firmware looks at 1100, sends 22 later, and 32 bytes take
// twice 6.56 ns on the wire and 400 on the path: 1535.12. The far end looks at 1600, reads, sends
// the data 22 later, and finds the queue busy for 56.125 ns more; it looks again 100 after that
// send, and sends the answer 22 later, which takes 413.12 ns again.
TEST(BaseFirmware, TakesALookAtEitherEndAndTwoTripsOverTheLink) {
  Cluster cluster(board(false), {});
  noc::Cycle cycles = 0;
  cluster.create_program(1).create_kernel({0, 0}, {.name = "reader"}, [&](EthernetCore& core) {
    core.noc_async_read({kWorker, 0x500}, 0x18500, 4);
    core.noc_async_read_barrier();
    cycles = core.cycle();
  });
  cluster.run();
  const Time reading = 1_ns * cycles;
  EXPECT_EQ(read_time({}), 600_ns + reading + 22_ns + 100_ns + 22_ns + 413_ns + 120_ps);
}

TEST(BaseFirmware, WaitsForAKernelThatDoesSomethingElse) {
  EXPECT_EQ(read_time([](EthernetCore& core) { core.work(500); }), read_time({}));
  const Time time = read_time([](EthernetCore& core) { core.work(50'000); });
  EXPECT_GT(time, 49_us);
  EXPECT_LT(time, 51_us);
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

// What the kernel's wait takes is what it takes without the host, but for the firmware's work.
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
            "1 of 1 kernels wait for ever: kernel 'stubborn' on core (0, 0) of chip 1 in "
            "noc_semaphore_wait since cycle 0: its word at offset 131072 is 0 and must become 1; "
            "host 'tool' in barrier since 1000 ns, whose write of 960 bytes to offset 64 of (1, 1) "
            "of chip 1 is not answered: the base firmware of Ethernet core (0, 0) of chip 1 has "
            "something to do, but kernel 'stubborn' on core (0, 0) of chip 1 has the core and does "
            "not yield");
}

// It goes on as soon as the kernel has ended.
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
            "the host waits for ever: host 'tool' in write of 100000 bytes to offset 0 of (0, 2) "
            "of chip 1 since 0 ns, whose write of 1024 bytes to offset 11264 of (0, 2) of chip 1 "
            "is not answered; the link between Ethernet core (1, 0) of chip 0 and Ethernet core (1, "
            "0) of chip 1 is down since 5000 ns and cannot be trained again");
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

// The host sets a semaphore back that a kernel has counted up.
TEST(HostAccess, StartsASemaphoreAnew) {
  Cluster cluster(board(), {});
  Program& program = cluster.create_program(1);
  program.create_kernel({.core = kWorker, .name = "counter"}, [](DataMovementCore& core) {
    core.noc_semaphore_inc(core.get_noc_addr(2, 1, 0x40), 5);
    core.noc_async_atomic_barrier();
  });
  program.create_kernel({.core = {2, 1}, .name = "waiter"}, [](DataMovementCore& core) {
    core.noc_semaphore_wait(0x40, 1);
    core.noc_semaphore_set(0x40, 0);
  });
  cluster.run_host("tool", [](HostAccess& host) {
    const std::uint32_t one = 1;
    std::uint32_t value = 0;
    while (value != 5) {
      host.read(1, {{2, 1}, 0x40}, std::as_writable_bytes(std::span(&value, 1)));
    }
    host.write(1, {{2, 1}, 0x40}, std::as_bytes(std::span(&one, 1)));
  });
  EXPECT_EQ(run_to_failure(cluster).sentence, "");
}

}  // namespace
}  // namespace towpath::device::tenstorrent
