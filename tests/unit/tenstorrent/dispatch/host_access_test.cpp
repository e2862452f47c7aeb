// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chip_bench.hpp"
#include "ethernet_cluster.hpp"
#include "host_cluster.hpp"
#include "towpath/sim/random.hpp"
#include "towpath/sim/trace.hpp"

// Processes of the host: what they write arrives, and what they read is right.

namespace towpath::tenstorrent {
namespace {

using machine::Coordinate;
using noc::pattern;
using Bytes = std::vector<std::byte>;

constexpr Coordinate kWorker = kHostWorker;
constexpr Coordinate kDram = kHostDram;
constexpr Coordinate kEthernet = kHostEthernet;

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
  machine::ChipCluster description = chips_with_host(3, {0});
  description.links.push_back({{{{0, 0}, {1, 0}}}});
  Cluster cluster(machine::build_chip_cluster(std::move(description)), {});
  cluster.run_host("tool", body);
  return run_to_failure(cluster).sentence;
}

TEST(HostAccess, RefusesWhatIsNotThere) {
  const Bytes word(4);
  EXPECT_EQ(
      refused([&](HostAccess& host) { host.write(3, {kWorker, 0}, word); }),
      "host 'tool': write of 4 bytes to offset 0 of (1, 1) of chip 3: the chip must be 0 to 2");
  EXPECT_EQ(refused([&](HostAccess& host) { host.write(2, {kWorker, 0}, word); }),
            "host 'tool': write of 4 bytes to offset 0 of (1, 1) of chip 2: no link leads to it "
            "from a chip on PCIe");
  EXPECT_EQ(refused([&](HostAccess& host) { host.write(1, {{0, 3}, 0}, word); }),
            "host 'tool': write of 4 bytes to offset 0 of (0, 3) of chip 1: (0, 3) is a pcie tile, "
            "which has no memory");
  EXPECT_EQ(refused([&](HostAccess& host) {
              Bytes bytes(8);
              host.read(1, {kWorker, 1'499'130}, bytes);
            }),
            "host 'tool': read of 8 bytes from offset 1499130 of (1, 1) of chip 1: the memory of "
            "the tile has 1499136 bytes");
  EXPECT_EQ(refused([&](HostAccess& host) { host.write(0, {{0, 0}, 0x11000}, word); }),
            "host 'tool': write of 4 bytes to offset 69632 of (0, 0) of chip 0: bytes 36864 to "
            "98303 of an Ethernet core belong to its base firmware");
}

TEST(HostAccess, NeedsAClusterThatCarriesData) {
  Cluster cluster(board(), {.carries_data = false});
  try {
    cluster.run_host("tool", [](HostAccess&) {});
    FAIL() << "it was not refused";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "host 'tool': cluster 'test' simulates only time; the host needs carries_data");
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

// Nothing moves for a long time, but the host will.
TEST(HostAccess, IsNotTakenForADeadlockWhileItSleeps) {
  Cluster cluster(board(), {});
  cluster.create_program(1).create_kernel(
      {.core = kWorker, .name = "waiter"},
      [](DataMovementCore& core) { core.noc_semaphore_wait(0x100, 1); });
  cluster.run_host("tool", [](HostAccess& host) {
    const std::uint32_t one = 1;
    host.sleep(Time::from_ns(5'000'000));
    host.write(1, {kWorker, 0x100}, std::as_bytes(std::span(&one, 1)));
  });
  EXPECT_EQ(run_to_failure(cluster).sentence, "");
}

// The host sets a semaphore back that a kernel has counted up, before another looks at it.
TEST(HostAccess, StartsASemaphoreAnew) {
  Cluster cluster(board(), {});
  Program& program = cluster.create_program(1);
  program.create_kernel({.core = kWorker, .name = "counter"}, [](DataMovementCore& core) {
    core.noc_semaphore_inc(core.get_noc_addr(2, 1, 0x40), 5);
    core.noc_async_atomic_barrier();
  });
  const auto waiter = [](DataMovementCore& core) {
    core.noc_semaphore_wait(0x40, 1);
    core.noc_semaphore_set(0x40, 0);
  };
  program.create_kernel({.core = {2, 1}, .name = "waiter", .start_cycle = 50'000}, waiter);
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
}  // namespace towpath::tenstorrent
