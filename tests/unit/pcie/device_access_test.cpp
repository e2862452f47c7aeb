// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "pcie_noc_bench.hpp"
#include "towpath/pcie/link_rate.hpp"

// Kernels that read and write the host's memory through the PCIe tile.

namespace towpath::pcie {
namespace {
using namespace literals;

using tenstorrent::DataMovementCore;
using tenstorrent::NocAddress;

constexpr std::uint64_t kKiB = 1 << 10;
constexpr std::uint64_t kPacket = 8 * kKiB;
constexpr std::uint64_t kSizes[] = {4, 16, 48, 64, 600, 4096, 8192, 8208, 20'000};

NocAddress in(const SysmemBuffer& buffer, std::uint64_t offset = 0) {
  return {kPcie, *buffer.noc_address + offset};
}

std::vector<std::byte> part(SysmemBuffer& buffer, std::uint64_t offset, std::uint64_t size_bytes) {
  const auto bytes = buffer.memory().subspan(offset, size_bytes);
  return {bytes.begin(), bytes.end()};
}

// --- bytes ---------------------------------------------------------------------------------------

TEST(DeviceAccess, WhatAKernelWritesIsInTheHostsBuffer) {
  for (const std::uint64_t size_bytes : kSizes) {
    SharedBench bench;
    SysmemBuffer& buffer = bench.buffer(64 * kKiB);
    const auto data = counted(size_bytes);
    bench.put(kOther, 0x1000, data);
    bench.kernel(kOther, [&](DataMovementCore& core) {
      core.noc_async_write(0x1000, in(buffer, 0x2000), size_bytes);
      core.noc_async_write_barrier();
    });
    bench.simulation.run();
    EXPECT_EQ(part(buffer, 0x2000, size_bytes), data);
    EXPECT_EQ(part(buffer, 0x2000 + size_bytes, 16), std::vector<std::byte>(16));
    EXPECT_EQ(bench.network.unfinished(), 0);
  }
}

TEST(DeviceAccess, WhatAKernelReadsIsWhatTheHostsBufferHas) {
  for (const std::uint64_t size_bytes : kSizes) {
    SharedBench bench;
    SysmemBuffer& buffer = bench.buffer(64 * kKiB);
    const auto data = counted(size_bytes);
    std::ranges::copy(data, buffer.memory().begin() + 0x220);
    bench.kernel(kOther, [&](DataMovementCore& core) {
      core.noc_async_read(in(buffer, 0x220), 0x1020, size_bytes);
      core.noc_async_read_barrier();
      std::vector<std::byte> there(size_bytes);
      core.load(0x1020, there);
      EXPECT_EQ(there, data) << "when the barrier is over";
    });
    bench.simulation.run();
    EXPECT_EQ(bench.at(kOther, 0x1020, size_bytes), data);
    EXPECT_EQ(bench.network.unfinished(), 0);
  }
}

TEST(DeviceAccess, MemoryThatTheProgramHasIsReachedInPlace) {
  SharedBench bench;
  std::vector<std::byte> own = counted(kPacket);
  std::size_t number = 0;
  bench.run([&] { number = bench.link.map_sysmem_buffer(own); });
  const SysmemBuffer& buffer = bench.link.sysmem_buffer(number);
  bench.kernel(kOther, [&](DataMovementCore& core) {
    core.noc_async_read(in(buffer), 0, 4096);
    core.noc_async_read_barrier();
    core.noc_async_write(0, in(buffer, 4096), 4096);
    core.noc_async_write_barrier();
  });
  bench.simulation.run();
  EXPECT_TRUE(std::equal(own.begin(), own.begin() + 4096, own.begin() + 4096));
}

TEST(DeviceAccess, EthernetCoresAndBothNocsReachIt) {
  SharedBench bench;
  SysmemBuffer& buffer = bench.buffer(64 * kKiB);
  bench.put({0, 2}, 0x1000, counted(64, 1));
  bench.put(kOther, 0x1000, counted(64, 2));
  const auto write = [&](std::uint64_t offset) {
    return [&, offset](DataMovementCore& core) {
      core.noc_async_write(0x1000, in(buffer, offset), 64);
      core.noc_async_write_barrier();
    };
  };
  bench.kernel({0, 2}, write(0));
  bench.kernel(kOther, write(64), 1);
  bench.simulation.run();
  EXPECT_EQ(part(buffer, 0, 64), counted(64, 1));
  EXPECT_EQ(part(buffer, 64, 64), counted(64, 2));
}

// --- order ---------------------------------------------------------------------------------------

TEST(DeviceAccess, ReadsSeeTheWritesBeforeThem) {
  for (const std::uint64_t size_bytes : {std::uint64_t{64}, kPacket, 3 * kPacket}) {
    SharedBench bench;
    SysmemBuffer& buffer = bench.buffer(64 * kKiB);
    const auto data = counted(size_bytes);
    bench.put(kOther, 0x10000, data);
    bench.kernel(kOther, [&](DataMovementCore& core) {
      core.noc_async_write(0x10000, in(buffer), size_bytes);
      core.noc_async_writes_flushed();  // it has left; its bytes are on their way
      core.noc_async_read(in(buffer), 0x20000, size_bytes);
      core.noc_async_read_barrier();
      core.noc_async_write_barrier();
    });
    bench.simulation.run();
    EXPECT_EQ(bench.at(kOther, 0x20000, size_bytes), data) << size_bytes;
  }
}

TEST(DeviceAccess, WritesArriveInOrder) {
  SharedBench bench;
  SysmemBuffer& buffer = bench.buffer(4096);
  bench.kernel(kOther, [&](DataMovementCore& core) {
    for (std::uint32_t i = 1; i <= 40; ++i) {
      core.store_word(0x1000 + 16 * i, i);
      core.noc_async_write(0x1000 + 16 * i, in(buffer), 4);
    }
    core.noc_async_write_barrier();
  });
  std::vector<std::byte> seen;
  bench.run([&] {
    for (int i = 0; i < 4000; ++i) {
      bench.simulation.sleep(1_ns);
      if (seen.empty() || buffer.bytes[0] != seen.back()) seen.push_back(buffer.bytes[0]);
    }
  });
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_EQ(seen.back(), std::byte(40));
}

// The kernel's barrier does not wait for the host's memory; the answer to the host's load follows
// the kernel's bytes all the same.
TEST(DeviceAccess, AHostThatSeesAKernelsFlagSeesWhatItWroteBefore) {
  for (const Coordinate core : {kOther, kSameRow}) {
    SharedBench bench;
    SysmemBuffer& buffer = bench.buffer(kPacket);
    const auto data = counted(kPacket);
    bench.put(core, 0x10000, data);
    bench.kernel(core, [&](DataMovementCore& on) {
      on.noc_async_write(0x10000, in(buffer), kPacket);
      on.noc_async_write_barrier();
      EXPECT_NE(part(buffer, 0, kPacket), data);
      on.store_word(0, 1);
    });
    bench.run([&] {
      std::vector<std::byte> flag(4);
      while (flag[0] == std::byte{0}) bench.link.read_from_device(flag, core, 0);
      EXPECT_EQ(part(buffer, 0, kPacket), data);
    });
  }
}

// Where other packets flood a core, the answers to its reads stand in the tile, and the tile asks
// the host for no more than it may hold; another core's reads go on.
TEST(DeviceAccess, ACoreThatTakesItsAnswersSlowlyIsAnsweredSlowly) {
  const auto time = [](int flooding) {
    SharedBench bench;
    SysmemBuffer& buffer = bench.buffer(kPacket);
    const auto data = counted(kPacket);
    std::ranges::copy(data, buffer.memory().begin());
    const Coordinate others[] = {{3, 0}, {3, 1}, {3, 2}};
    for (int i = 0; i < flooding; ++i) bench.flood(others[i], kOther, 200);
    Time taken;
    bench.kernel(kOther, [&](DataMovementCore& core) {
      const Time begin = bench.simulation.now();
      for (int i = 0; i < 50; ++i) core.noc_async_read(in(buffer), 0, kPacket);
      core.noc_async_read_barrier();
      taken = bench.simulation.now() - begin;
    });
    bench.simulation.run();
    EXPECT_EQ(bench.at(kOther, 0, kPacket), data);
    EXPECT_EQ(bench.network.unfinished(), 0);
    return taken;
  };
  EXPECT_GT(time(3), time(0) + 1_us);
}

// Random kernels on four cores with a part of the buffer each: all parts are what plain arrays
// would be.
TEST(DeviceAccess, MemoryIsWhatAPlainArrayWouldBe) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SharedBench bench;
    SysmemBuffer& buffer = bench.buffer(64 * kKiB);
    const Coordinate cores[] = {kOther, kSameRow, {3, 0}, {3, 2}};
    for (std::uint64_t number = 0; number < 4; ++number) {
      const std::uint64_t base = number * 16 * kKiB;
      bench.kernel(cores[number], [&, base, number](DataMovementCore& core) {
        sim::Random random(seed, "kernel " + std::to_string(number));
        std::vector<std::byte> expected(16 * kKiB);
        for (int i = 0; i < 20; ++i) {
          const std::uint64_t at = random.below(200) * 64;
          const std::uint64_t size = 1 + random.below(16 * kKiB - at);
          if (random.below(2) == 0) {
            const auto data = counted(size, static_cast<unsigned>(i));
            std::ranges::copy(data, expected.begin() + static_cast<std::ptrdiff_t>(at));
            core.store(0x10000 + at, data);
            core.noc_async_write(0x10000 + at, in(buffer, base + at), size);
            core.noc_async_writes_flushed();
          } else {
            core.noc_async_read(in(buffer, base + at), 0x20000 + at, size);
            core.noc_async_read_barrier();
            std::vector<std::byte> there(size);
            core.load(0x20000 + at, there);
            const auto here = expected.begin() + static_cast<std::ptrdiff_t>(at);
            ASSERT_TRUE(std::equal(there.begin(), there.end(), here)) << "seed " << seed;
          }
        }
        core.noc_async_write_barrier();
      });
    }
    bench.simulation.run();
    EXPECT_EQ(bench.network.unfinished(), 0);
  }
}

// --- rates ---------------------------------------------------------------------------------------

struct Moved {
  std::vector<Time> kernels;  // each kernel's time
  Time host;
  double gb_per_s(std::size_t kernel, std::uint64_t size_bytes) const {
    return static_cast<double>(size_bytes) / kernels[kernel].ns();
  }
};

constexpr int kPackets = 200;

constexpr std::uint64_t kDmaBytes = 512 * kKiB;
constexpr std::size_t kDmaBuffer = 1;

// Kernels that write, or read, packets of 8 KiB beside calls of the host.
Moved move(const std::vector<Coordinate>& cores, bool writes,
           const std::function<void(HostLink&)>& calls = {}, int generation = 3) {
  machine::Host host = link_host();
  machine::Chip chip = link_chip();
  host.link.generation = chip.pcie.generation = generation;
  host.core.posted_write_interval = Time();
  SharedBench bench(host, chip);
  SysmemBuffer& buffer = bench.buffer(kPacket * 4);
  static_cast<void>(bench.buffer(kDmaBytes));
  Moved moved;
  moved.kernels.resize(cores.size());
  const Time begin = bench.simulation.now();
  for (std::size_t number = 0; number < cores.size(); ++number) {
    bench.kernel(cores[number], [&, number](DataMovementCore& core) {
      for (int i = 0; i < kPackets; ++i) {
        if (writes) core.noc_async_write(0, in(buffer, number * kPacket), kPacket);
        if (!writes) core.noc_async_read(in(buffer, number * kPacket), 0, kPacket);
      }
      if (writes) core.noc_async_write_barrier();
      if (!writes) core.noc_async_read_barrier();
      moved.kernels[number] = bench.simulation.now() - begin;
    });
  }
  bench.run([&] {
    if (!calls) return;
    calls(bench.link);
    moved.host = bench.simulation.now() - begin;
  });
  return moved;
}

double link_gb_per_s(bool writes) {
  const auto chip = machine::build_chip(link_chip());
  return (writes ? write_rate(link_host(), *chip) : answer_rate(link_host(), *chip)).gb_per_s();
}

// The NoC carries twice as much.
TEST(DeviceAccess, ALinkThatIsSlowerThanTheNocHoldsTheKernelUp) {
  for (const bool writes : {true, false}) {
    const Moved one = move({kOther}, writes);
    EXPECT_NEAR(one.gb_per_s(0, kPackets * kPacket), link_gb_per_s(writes),
                link_gb_per_s(writes) * 0.01);
  }
}

TEST(DeviceAccess, TwoKernelsShareTheLink) {
  for (const bool writes : {true, false}) {
    const Moved one = move({kOther}, writes);
    const Moved two = move({kOther, {3, 0}}, writes);
    for (const Time time : two.kernels) EXPECT_NEAR(time.ns() / one.kernels[0].ns(), 2, 0.03);
  }
}

TEST(DeviceAccess, FewReadRequestsUnderWayLimitTheRate) {
  const auto rate = [](int places) {
    machine::Host host = link_host();
    host.link.device_reads_outstanding = places;
    SharedBench bench(host);
    SysmemBuffer& buffer = bench.buffer(kPacket);
    Time time;
    bench.kernel(kOther, [&](DataMovementCore& core) {
      const Time begin = bench.simulation.now();
      for (int i = 0; i < 50; ++i) core.noc_async_read(in(buffer), 0, kPacket);
      core.noc_async_read_barrier();
      time = bench.simulation.now() - begin;
    });
    bench.simulation.run();
    return 50 * static_cast<double>(kPacket) / time.ns();
  };
  // 512 bytes per round trip of 100 + 400 ns, a read's header of 1.5 and 42.7 of its bytes.
  EXPECT_NEAR(rate(1), 512 / 544.2, 0.01);
  EXPECT_NEAR(rate(4), 4 * 512 / 544.2, 0.1);
}

// --- beside the host -----------------------------------------------------------------------------

// The engine's reads of the chip are limited by their way, so the kernel gets what they leave.
TEST(DeviceAccess, KernelsAndTheDmaEngineShareTheLink) {
  for (const bool to_host : {true, false}) {
    const auto dma = [&](HostLink& link) {
      const BufferRange range{kDmaBuffer, 0, kDmaBytes};
      if (to_host) link.dma_read_from_device(range, kDram, 0);
      if (!to_host) link.dma_write_to_device(range, kDram, 0, {.ordering = Ordering::posted});
    };
    const Moved both = move({kOther}, to_host, dma);
    const Moved kernel = move({kOther}, to_host);
    const Moved host = move({}, to_host, dma);
    EXPECT_GT(both.kernels[0], kernel.kernels[0] + 20_us) << to_host;
    EXPECT_GT(both.host, host.host + (to_host ? Time() - 20_us : 20_us));
  }
}

// Both leave the PCIe tile for the NoC through its interface, which carries less than this link.
TEST(DeviceAccess, TheHostsLinesAndAKernelsReadsWaitForEachOtherInTheTile) {
  const auto data = counted(1 << 20);
  const auto lines = [&](HostLink& link) {
    link.configure_tlb(kOther, 1 << 20, 0, Ordering::posted);
    link.write_to_device(data, kOther, 0);
    link.wait_for_writes();
  };
  const Moved both = move({kSameRow}, false, lines, 5);
  const Moved kernel = move({kSameRow}, false, {}, 5);
  const Moved host = move({}, false, lines, 5);
  EXPECT_GT(both.kernels[0], kernel.kernels[0] + 10_us);
  EXPECT_GT(both.host, host.host + 10_us);
}

// --- what is refused -----------------------------------------------------------------------------

std::string sentence_of(SharedBench& bench, const tenstorrent::Kernel& body) {
  bench.kernel(kOther, body);
  try {
    bench.simulation.run();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(DeviceAccess, AnAddressThatNoBufferHoldsIsOneSentence) {
  SharedBench bench;
  bench.buffer(4096);
  EXPECT_EQ(sentence_of(bench,
                        [](DataMovementCore& core) {
                          core.noc_async_write(0, {kPcie, kHostAddress + 0x0fc0}, 128);
                        }),
            "kernel 'mover' on core (1, 1) in noc_async_write: core (1, 1), NoC 0: the "
            "write of 128 bytes to (0, 3) is at address 0x800000fc0 of the host, where no buffer "
            "holds all of it; mapped are 0x800000000 to 0x800000fff");
  SharedBench none;
  EXPECT_NE(
      sentence_of(none,
                  [](DataMovementCore& core) { core.noc_async_read({kPcie, kHostAddress}, 0, 64); })
          .find("the read of 64 bytes from (0, 3) is at address 0x800000000 of the host, "
                "where no buffer holds all of it; no buffer is mapped there"),
      std::string::npos);
}

TEST(DeviceAccess, OnlyReadsAndWritesAlignedAsForDramReachTheHost) {
  const auto refused = [](const auto& body) {
    SharedBench bench;
    const SysmemBuffer& buffer = bench.buffer(4096);
    return sentence_of(bench, [&](DataMovementCore& core) { body(core, in(buffer)); });
  };
  EXPECT_NE(refused([](DataMovementCore& core, NocAddress to) { core.noc_semaphore_inc(to, 1); })
                .find("the atomic increment to (0, 3) reaches memory outside the chip; only reads "
                      "and writes can"),
            std::string::npos);
  EXPECT_NE(refused([](DataMovementCore& core, NocAddress to) {
              core.noc_inline_dw_write(to, 1);
            }).find("only reads and writes can"),
            std::string::npos);
  EXPECT_NE(refused([](DataMovementCore& core, NocAddress from) {
              core.noc_async_read({from.tile, from.offset + 16}, 0, 64);
            }).find("must be equal modulo 32"),
            std::string::npos);
}

TEST(DeviceAccess, ABufferThatIsUnmappedTooEarlyIsNamed) {
  SharedBench bench;
  std::size_t number = 0;
  bench.run([&] { number = bench.link.allocate_sysmem_buffer(kPacket); });
  const NocAddress from = in(bench.link.sysmem_buffer(number));
  bench.simulation.spawn("host", [&] {
    bench.simulation.sleep(200_ns);
    bench.link.unmap_sysmem_buffer(number);
  });
  EXPECT_EQ(sentence_of(bench,
                        [&](DataMovementCore& core) {
                          core.noc_async_read(from, 0, 64);
                          core.noc_async_read_barrier();
                        }),
            "64 bytes at address 0x800000000 of the host were unmapped during a kernel's access to "
            "them; wait for the kernel's barrier first");
}

TEST(DeviceAccess, WithoutASharedNocThereIsNoMemoryBehindTheTile) {
  SharedBench bench(link_host(), link_chip(), false);
  EXPECT_NE(
      sentence_of(
          bench, [](DataMovementCore& core) { core.noc_async_write(0, {kPcie, kHostAddress}, 64); })
          .find("reaches a pcie tile, which has no memory"),
      std::string::npos);
}

// --- addresses -----------------------------------------------------------------------------------

TEST(SysmemBuffers, EachBeginsAtAPageOfItsOwnAndPlacesAreUsedAgain) {
  const auto host = machine::build_host(link_host());
  SysmemBuffers buffers(*host, *machine::build_chip(link_chip()), {.carries_data = false});
  EXPECT_EQ(buffers.at(buffers.allocate(100)).noc_address, kHostAddress);
  EXPECT_EQ(buffers.at(buffers.allocate(2 * 4096)).noc_address, kHostAddress + 0x1000);
  EXPECT_EQ(buffers.at(buffers.allocate(1)).noc_address, kHostAddress + 0x3000);
  buffers.at(1).is_mapped = false;
  EXPECT_EQ(buffers.at(buffers.allocate(3 * 4096)).noc_address, kHostAddress + 0x4000);
  EXPECT_EQ(buffers.at(buffers.allocate(4096)).noc_address, kHostAddress + 0x1000);
  EXPECT_EQ(buffers.find(kHostAddress + 0x1000, 4096), &buffers.at(4));
  EXPECT_EQ(buffers.find(kHostAddress + 0x1000, 4097), nullptr);
  EXPECT_EQ(buffers.find(kHostAddress - 1, 1), nullptr);
}

TEST(SysmemBuffers, ABufferThatFindsNoRoomInTheWindowHasNoAddress) {
  const auto host = machine::build_host(link_host());
  SysmemBuffers buffers(*host, *machine::build_chip(link_chip()), {.carries_data = false});
  EXPECT_TRUE(buffers.at(buffers.allocate(3 << 20)).noc_address);
  EXPECT_FALSE(buffers.at(buffers.allocate(2 << 20)).noc_address);
  EXPECT_TRUE(buffers.at(buffers.allocate(1 << 20)).noc_address);
  EXPECT_FALSE(buffers.at(buffers.allocate(1)).noc_address);
  EXPECT_EQ(buffers.describe(),
            "mapped are 0x800000000 to 0x8002fffff, 0x800300000 to 0x8003fffff");
}

}  // namespace
}  // namespace towpath::pcie
