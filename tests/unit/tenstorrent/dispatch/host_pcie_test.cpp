// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "chip_bench.hpp"
#include "host_cluster.hpp"
#include "pcie_bench.hpp"

// Processes of a described host: what they do to chips on PCIe takes time, on the chips' NoC too.

namespace towpath::tenstorrent {
namespace {
using namespace literals;

using machine::Coordinate;
using noc::pattern;
using Bytes = std::vector<std::byte>;

RunOptions with_host() { return {.host = machine::build_host(pcie::link_host())}; }

// When a process is over that does this to a board.
Time time_of(const RunOptions& options, const std::function<void(HostAccess&)>& body) {
  Cluster cluster(board(), options);
  cluster.run_host("tool", body);
  return cluster.run();
}

TEST(HostOverPcie, WritesAndReadsEverySizeAtAnyOffset) {
  Cluster cluster(board(), with_host());
  int compared = 0;
  cluster.run_host("tool", [&](HostAccess& host) {
    std::uint64_t seed = 1;
    for (const int chip : {0, 1}) {
      for (const Coordinate tile : {kHostWorker, kHostDram, kHostEthernet}) {
        for (const std::size_t size : {0U, 1U, 3U, 17U, 100U, 1025U, 20'000U}) {
          const std::uint64_t offset = 0x20000 + 7 * seed;
          const Bytes bytes = pattern(size, ++seed);
          host.write(chip, {tile, offset}, bytes);
          Bytes back(size);
          host.read(chip, {tile, offset}, back);
          EXPECT_EQ(back, bytes) << size;
          ++compared;
        }
      }
    }
  });
  cluster.run();
  EXPECT_EQ(compared, 42);
}

// A call of 50 ns, a window of 500, and a round trip of 642 ns but for the NoC's hops and the
// flits.
TEST(HostOverPcie, AReadTakesARoundTripOfTheLink) {
  const auto body = [](HostAccess& host) {
    Bytes word(4);
    host.read(0, {kHostWorker, 0x100}, word);
  };
  EXPECT_EQ(time_of({}, body), Time());
  EXPECT_GT(time_of(with_host(), body), 1150_ns);
  EXPECT_LT(time_of(with_host(), body), 1250_ns);
}

TEST(HostOverPcie, ABarrierWaitsUntilBytesHaveArrived) {
  Cluster cluster(board(), with_host());
  const Bytes bytes = pattern(4096, 1);
  cluster.run_host("tool", [&](HostAccess& host) {
    host.write(0, {kHostWorker, 0x1000}, bytes);
    EXPECT_NE(memory_of(cluster, 0, kHostWorker, 0x1000, bytes.size()), bytes);
    host.barrier();
    EXPECT_EQ(memory_of(cluster, 0, kHostWorker, 0x1000, bytes.size()), bytes);
  });
  cluster.run();
}

TEST(HostOverPcie, AKernelSeesDataBeforeTheFlagWrittenAfterIt) {
  Cluster cluster(board(), with_host());
  Bytes seen(3000);
  cluster.create_program(0).create_kernel({.core = kHostWorker, .name = "waiter"},
                                          [&](DataMovementCore& core) {
                                            core.noc_semaphore_wait(0x10100, 7);
                                            core.network().load(kHostWorker, 0x11000, seen);
                                            core.noc_semaphore_set(0x10300, 9);
                                          });
  cluster.run_host("tool", [&](HostAccess& host) {
    const std::uint32_t flag = 7;
    host.write(0, {kHostWorker, 0x11000}, pattern(3000, 2));
    host.write(0, {kHostWorker, 0x10100}, std::as_bytes(std::span(&flag, 1)));
    // Polling takes time: no sleep is needed.
    for (std::uint32_t answer = 0; answer != 9;) {
      host.read(0, {kHostWorker, 0x10300}, std::as_writable_bytes(std::span(&answer, 1)));
    }
  });
  cluster.run();
  EXPECT_EQ(seen, pattern(3000, 2));
}

TEST(HostOverPcie, WaitsForKernelsThatFloodItsTarget) {
  const auto end_of_host = [](int packets) {
    Cluster cluster(board(), with_host());
    cluster.create_program(0).create_kernel(
        {.core = {3, 1}, .name = "flood"}, [=](DataMovementCore& core) {
          for (int i = 0; i < packets; ++i) core.noc_async_write(0, {kHostWorker, 0x40000}, 8192);
          core.noc_async_write_barrier();
        });
    Time end;
    cluster.run_host("tool", [&](HostAccess& host) {
      host.sleep(10_us);  // the kernel is launched meanwhile
      host.write(0, {kHostWorker, 0x1000}, pattern(8192, 3));
      host.barrier();
      end = cluster.simulation().now();
    });
    cluster.run();
    return end;
  };
  // A line for each packet of 257 flits.
  EXPECT_GT(end_of_host(200), end_of_host(0) + 250_ns * 100);
}

// Four cores get 4 KiB each, a line of 64 B every 10 ns at least.
TEST(HostOverPcie, SlowDispatchTakesTheTimeOfTheLink) {
  const auto end = [](RunOptions options) {
    options.slow_dispatch = true;
    Cluster cluster(board(false), options);
    Program& program = cluster.create_program(0);
    for (int x = 0; x < 4; ++x) {
      program.create_kernel({.core = {x, 1}, .name = "idle"}, [](DataMovementCore&) {});
    }
    return cluster.run();
  };
  EXPECT_GT(end(with_host()), end({}) + 10_ns * (4 * 64));
}

TEST(HostOverPcie, AKernelThatWaitsForeverIsNamed) {
  Cluster cluster(board(), with_host());
  cluster.create_program(0).create_kernel(
      {.core = kHostWorker, .name = "stubborn"},
      [](DataMovementCore& core) { core.noc_semaphore_wait(0x10100, 1); });
  cluster.run_host(
      "tool", [&](HostAccess& host) { host.write(0, {kHostWorker, 0x1000}, pattern(100'000, 3)); });
  try {
    cluster.run();
    FAIL() << "nothing is said";
  } catch (const DeadlockError& error) {
    EXPECT_NE(std::string(error.what()).find("'stubborn'"), std::string::npos) << error.what();
  }
}

// Nothing moves on the chip while a window of 10 ms is configured.
TEST(HostOverPcie, IsNotTakenForADeadlockWhileItConfiguresAWindow) {
  machine::Host host = pcie::link_host();
  host.driver.window_time = 10_ms;
  Cluster cluster(board(), {.host = machine::build_host(host)});
  cluster.create_program(0).create_kernel(
      {.core = kHostWorker, .name = "waiter"},
      [](DataMovementCore& core) { core.noc_semaphore_wait(0x10100, 1); });
  cluster.run_host("tool", [](HostAccess& access) {
    const std::uint32_t one = 1;
    access.write(0, {kHostWorker, 0x10100}, std::as_bytes(std::span(&one, 1)));
  });
  EXPECT_GT(cluster.run(), 10_ms);
}

// --- the host's memory ---------------------------------------------------------------------------

TEST(HostOverPcie, AKernelOfAProgramReadsAndWritesABufferOfTheHost) {
  Cluster cluster(board(), with_host());
  const Bytes data = pattern(4096, 3);
  Bytes back(4096);
  std::uint64_t address = 0;
  Program& program = cluster.create_program(0);
  const std::uint64_t is_there = program.allocate(64);
  program.create_kernel({.core = kHostWorker, .name = "mover"}, [&](DataMovementCore& core) {
    core.noc_semaphore_wait(is_there, 1);
    core.noc_async_read({pcie::kPcie, address}, 0x20000, 4096);
    core.noc_async_read_barrier();
    core.noc_async_write(0x20000, {pcie::kPcie, address + 4096}, 4096);
    core.noc_async_write_barrier();
  });
  cluster.run_host("tool", [&](HostAccess& host) {
    pcie::SysmemBuffer& buffer = host.allocate_sysmem_buffer(0, 8192);
    std::ranges::copy(data, buffer.bytes.begin());
    address = *buffer.noc_address;
    const std::uint32_t one = 1;
    host.write(0, {kHostWorker, is_there}, std::as_bytes(std::span(&one, 1)));
    host.wait_for_programs(0, 1);
    host.sleep(1_us);  // the last bytes are on the link
    std::ranges::copy(buffer.memory().subspan(4096), back.begin());
  });
  cluster.run();
  EXPECT_EQ(back, data);
}

TEST(HostOverPcie, WithoutALinkThereIsNoMemoryOfTheHost) {
  const auto sentence = [](const RunOptions& options, int chip) -> std::string {
    try {
      time_of(options, [&](HostAccess& host) { host.allocate_sysmem_buffer(chip, 64); });
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(sentence({}, 0),
            "host 'tool': chip 0 has no link to a described host, and so no host memory; it needs "
            "PCIe, and Options::host");
  EXPECT_NE(sentence(with_host(), 1), "");
}

}  // namespace
}  // namespace towpath::tenstorrent
