// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "chip_bench.hpp"
#include "pcie_bench.hpp"
#include "towpath/pcie/link_rate.hpp"

// The parameters are those of pcie_bench.cpp: a call takes 50 ns, a line 1 ns to store; a line
// leaves every 10 ns, of which 88 bytes are 5.586 ns on the link; it is 200 ns under way to the
// chip and 50 in the PCIe tile; to another row and column a write takes 122 ns there and back, half
// of that one way.

namespace towpath::pcie {
namespace {
using namespace literals;

constexpr Time kOnLink = Time::from_ps(5'586);  // 88 B at 15.753846 GB/s, rounded up

struct PcieTiming : testing::Test {
  LinkBench bench;
  void open(Ordering ordering = Ordering::standard, Mapping mapping = Mapping::write_combining) {
    bench.run([&] { bench.link.configure_tlb(kOther, 1 << 20, 0, ordering, mapping); });
  }
  Transfer write(std::size_t size_bytes, std::uint64_t address = 0) {
    Transfer transfer;
    bench.run([&] { transfer = bench.link.write_to_device(counted(size_bytes), kOther, address); });
    return transfer;
  }
  Transfer read(std::size_t size_bytes, std::uint64_t address = 0,
                const TransferOptions& options = {}) {
    Transfer transfer;
    std::vector<std::byte> to(size_bytes);
    bench.run([&] { transfer = bench.link.read_from_device(to, kOther, address, options); });
    return transfer;
  }
};

TEST_F(PcieTiming, AConfiguredWindowCostsItsTimeOnce) {
  open();
  EXPECT_EQ(bench.simulation.now(), 500_ns);
  EXPECT_EQ(write(64).time(), 51_ns);
  EXPECT_EQ(write(64).windows, 0);
}

TEST_F(PcieTiming, ADynamicWindowCostsItsTimeEachTime) {
  const Transfer first = write(64);
  EXPECT_EQ(first.time(), 551_ns);
  EXPECT_EQ(first.windows, 1);
  EXPECT_EQ(write(64).time(), 551_ns);
}

// Four lines have places; the fifth waits until the first has left, 10 ns after it came, at 51 ns.
TEST_F(PcieTiming, TheFifthLineWaitsForTheFirstToLeave) {
  open();
  EXPECT_EQ(write(4 * 64).time(), 54_ns);
  EXPECT_EQ(write(5 * 64).time(), 61_ns);
  EXPECT_EQ(write(6 * 64).time(), 71_ns);
}

// Two lanes carry a line's 88 bytes in 45 ns, longer than the 10 ns between posted writes.
TEST_F(PcieTiming, OverASlowLinkTheFifthLineWaitsUntilTheFirstHasCrossedIt) {
  machine::Chip chip = link_chip();
  chip.pcie.lanes = 2;
  const Time on_link = transfer_time(Bytes(88), raw_rate({3, 2}));
  LinkBench slow(link_host(), chip);
  Transfer transfer;
  slow.run([&] {
    slow.link.configure_tlb(kOther, 1 << 20, 0, Ordering::standard);
    transfer = slow.link.write_to_device(counted(5 * 64), kOther, 0);
  });
  EXPECT_GT(on_link, 44_ns);
  EXPECT_EQ(transfer.time(), 51_ns + on_link);
}

TEST_F(PcieTiming, ABurstGoesAtTheCoresRateWhenWritesMayBeInfinitelyMany) {
  HostLink::Options options;
  options.limits.posted_writes = false;
  LinkBench unlimited(link_host(), link_chip(), options);
  Transfer transfer;
  unlimited.run([&] {
    unlimited.link.configure_tlb(kOther, 1 << 20, 0, Ordering::standard);
    transfer = unlimited.link.write_to_device(counted(100 * 64), kOther, 0);
  });
  EXPECT_EQ(transfer.time(), 150_ns);
}

TEST_F(PcieTiming, AWriteLandsWhenLinkTileAndNocHaveCarriedIt) {
  open();
  const Time begin = bench.simulation.now();
  write(64);
  const Time expected = begin + 51_ns + kOnLink + 200_ns + 50_ns + 61_ns;
  ASSERT_EQ(bench.memory.writes.size(), 1U);
  EXPECT_EQ(bench.memory.writes[0], expected);
}

// 10 ns apart on the link, but only four at a time on the NoC, each 122 ns: the fifth of them waits
// until the first is acknowledged. Strict ones are acknowledged 30 ns later, posted ones never.
TEST_F(PcieTiming, TheFifthWriteOnTheNocWaitsForAnAcknowledgement) {
  const auto last_landing = [](Ordering ordering) {
    LinkBench own;
    own.run([&] {
      own.link.configure_tlb(kOther, 1 << 20, 0, ordering);
      own.link.write_to_device(counted(5 * 64), kOther, 0);
    });
    return own.memory.writes.back() - 500_ns;
  };
  const Time first = 51_ns + kOnLink + 250_ns + 61_ns;
  EXPECT_EQ(last_landing(Ordering::standard), first + 122_ns);
  EXPECT_EQ(last_landing(Ordering::strict), first + 152_ns);
  EXPECT_EQ(last_landing(Ordering::posted), first + 40_ns);
}

TEST_F(PcieTiming, UncachedStoresAreOneWriteEach) {
  open(Ordering::posted, Mapping::uncached);
  EXPECT_EQ(write(4 * 32).time(), 50_ns + 20_ns);
  // Five of them: the fifth would be ready at 75 ns, after the first has left at 65.
  EXPECT_EQ(write(5 * 32).time(), 75_ns);
}

// A round trip: 400 ns of host and link, 100 of the tile, 142 of the NoC.
TEST_F(PcieTiming, AReadIsARoundTripPerLine) {
  open();
  EXPECT_EQ(read(64).time(), 50_ns + 642_ns);
  EXPECT_EQ(read(4).time(), 50_ns + 642_ns);
  EXPECT_EQ(read(4 * 64).time(), 50_ns + 642_ns * 4);
}

TEST_F(PcieTiming, ALoadAcrossTwoLinesIsTwoRoundTrips) {
  open();
  const Transfer transfer = read(4 * 64, 0, {.misalignment_bytes = 16});
  // Loads end after 48, 112, 176, 240 bytes, lines after 64, 128, 192: eight pieces.
  EXPECT_EQ(transfer.accesses, 8U);
  EXPECT_EQ(transfer.time(), 50_ns + 642_ns * 8);
}

TEST_F(PcieTiming, StreamingLoadsOverlapLinesOfWriteCombiningMemory) {
  open();
  EXPECT_EQ(read(8 * 64, 0, {.load = Load::stream}).time(), 50_ns + 642_ns * 2);
}

TEST_F(PcieTiming, StreamingLoadsFromUncachedMemoryAreRoundTrips) {
  open(Ordering::standard, Mapping::uncached);
  EXPECT_EQ(read(64, 0, {.load = Load::stream}).time(), 50_ns + 642_ns * 4);
}

// The read's request arrives 250 ns after it was sent, at 101 + 250 of the simulation's time after
// opening; the write before it is acknowledged at 51 + link + 250 + 122.
TEST_F(PcieTiming, AReadWaitsForTheWritesBeforeIt) {
  open();
  Transfer transfer;
  bench.run([&] {
    bench.link.write_to_device(counted(64), kOther, 0);
    std::vector<std::byte> to(64);
    transfer = bench.link.read_from_device(to, kOther, 0);
  });
  const Time wait = 51_ns + kOnLink + 250_ns + 122_ns - (101_ns + 250_ns);
  EXPECT_EQ(transfer.time(), 50_ns + wait + 642_ns);
}

// Per part of 4 KiB: 512 ns of copying at 8 GB/s, 1 us to set up, 400 + 100 + 122 ns until the
// first byte is there, and 4 KiB at 4 x 128 B per 122 ns, which is what the NoC acknowledges.
TEST_F(PcieTiming, ADmaThroughTheBounceBufferIsItsPartsOneAfterTheOther) {
  machine::Host host = link_host();
  host.memory.has_iommu = false;
  LinkBench own(host);
  Transfer transfer;
  own.run([&] { transfer = own.link.dma_write_to_device(counted(8192), kOther, 0); });
  const Time stream = transfer_time(4_KiB, Rate::from_bytes_per_second(4'196'721'311));
  EXPECT_EQ(transfer.time(), 50_ns + (512_ns + 1_us + 622_ns + stream) * 2);
}

// Eight bursts of 128 bytes at a time, each 142 ns on the NoC and 100 in the tile.
TEST_F(PcieTiming, ADmaFromTheDeviceHasAsManyReadsUnderWayAsTheChipAllows) {
  Transfer transfer;
  bench.run([&] {
    const std::size_t buffer = bench.link.allocate_sysmem_buffer(4096);
    transfer = bench.link.dma_read_from_device({buffer, 0, 4096}, kOther, 0);
  });
  EXPECT_EQ(transfer.used, Mechanism::dma);
  EXPECT_NEAR(transfer.parts.back().time.ns(), 4 * 242.0, 0.01);
}

TEST(PcieLinkRate, IsWhatTheSpecificationGives) {
  EXPECT_NEAR(raw_rate({3, 16}).gb_per_s(), 15.754, 0.001);
  EXPECT_NEAR(raw_rate({4, 16}).gb_per_s(), 31.508, 0.001);
  EXPECT_NEAR(raw_rate({5, 16}).gb_per_s(), 63.015, 0.001);
  EXPECT_NEAR(raw_rate({1, 4}).gb_per_s(), 1.0, 1e-9);
  EXPECT_NEAR(payload_rate({4, 16}, 128, kWriteOverheadBytes).gb_per_s(), 26.53, 0.01);
}

// The way that the host link reckons with is that of the flits, but for the flits of the packet:
// from a worker to one in its row, and to one in another row and column.
TEST(PcieNocWay, EqualsThatOfAnIdleNetwork) {
  const std::shared_ptr<const machine::Chip> chip = machine::wormhole_like_chip();
  machine::Chip linked = *chip;
  linked.pcie = link_chip().pcie;
  linked.workers.clear();
  const auto with_link = machine::build_chip(linked);
  ASSERT_FALSE(with_link->pcie_tiles.empty());
  const Coordinate pcie = with_link->pcie_tiles.front();
  const auto cycles = [&](const noc::Request& request) {
    noc::Bench bench({.records_requests = true}, 1, chip);
    bench.run(request);
    const noc::RequestTimes& times = bench.network.requests().front();
    return Time::from_ns(static_cast<double>(times.completed - times.issued));
  };
  const Coordinate core = noc::kCore;
  for (const Coordinate to : {Coordinate{core.x + 1, core.y}, Coordinate{core.x + 1, core.y + 1}}) {
    const Coordinate same_way{pcie.x + 1, pcie.y + to.y - core.y};
    const NocWay way = noc_way(*with_link, same_way);
    const Time write = cycles(noc::write(to, 64));
    const Time read = cycles(noc::read(to, 64));
    EXPECT_GE(write, way.write());
    EXPECT_LE(write, way.write() + 6_ns);
    EXPECT_GE(read, way.read());
    EXPECT_LE(read, way.read() + 6_ns);
  }
}

}  // namespace
}  // namespace towpath::pcie
