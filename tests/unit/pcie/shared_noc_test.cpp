// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "pcie_noc_bench.hpp"
#include "sentence.hpp"
#include "towpath/sim/random.hpp"

// A host link whose requests are on a NoC that kernels use too.

namespace towpath::pcie {
namespace {
using namespace literals;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr Ordering kOrderings[] = {Ordering::standard, Ordering::strict, Ordering::posted};

// --- data ----------------------------------------------------------------------------------------

TEST(SharedNoc, BytesAreThoseWrittenWhateverCarriesThem) {
  for (const Ordering ordering : kOrderings) {
    for (const std::size_t size : {1U, 63U, 64U, 65U, 130U, 4096U, 10'000U}) {
      SharedBench bench;
      const auto data = counted(size);
      std::vector<std::byte> back(size);
      const TransferOptions options{.ordering = ordering};
      bench.run([&] {
        bench.link.write_to_device(data, kOther, 0x1001, options);
        bench.link.read_from_device(back, kOther, 0x1001, options);
      });
      EXPECT_EQ(bench.at(kOther, 0x1001, size), data);
      EXPECT_EQ(back, data);
      const auto words = counted((size + 3) / 4 * 4);
      std::vector<std::byte> words_back(words.size());
      bench.run([&] {
        bench.link.dma_write_to_device(words, kDram, 0x2000, options);
        bench.link.dma_read_from_device(words_back, kDram, 0x2000, options);
      });
      EXPECT_EQ(bench.at(kDram, 0x2000, words.size()), words);
      EXPECT_EQ(words_back, words);
    }
  }
}

// Random transfers beside kernels: memory holds them, and time never goes back.
TEST(SharedNoc, MemoryIsWhatAPlainArrayWouldBe) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    machine::Host host = link_host();
    host.core.copies_words = seed % 2 == 0;
    SharedBench bench(host);
    bench.flood({3, 1}, kOther, 200);
    sim::Random random(seed, "writes");
    std::vector<std::byte> expected(16 << 10);
    bench.run([&] {
      if (seed % 3 == 0) bench.link.configure_tlb(kOther, kMiB, 0, Ordering::posted);
      for (int i = 0; i < 20; ++i) {
        const std::size_t at = random.below(expected.size());
        const std::size_t size =
            1 + random.below(std::min<std::size_t>(expected.size() - at, 3000));
        const auto here = expected.begin() + static_cast<std::ptrdiff_t>(at);
        if (random.below(3) != 0) {
          const auto data = counted(size, static_cast<unsigned>(i));
          std::ranges::copy(data, here);
          bench.link.write_to_device(data, kOther, at);
        } else {
          std::vector<std::byte> back(size);
          const std::uint64_t misalignment = random.below(64);
          const Load load = random.below(2) == 0 ? Load::copy : Load::stream;
          bench.link.read_from_device(back, kOther, at,
                                      {.load = load, .misalignment_bytes = misalignment});
          ASSERT_TRUE(std::equal(back.begin(), back.end(), here)) << "seed " << seed;
        }
      }
    });
    EXPECT_EQ(bench.at(kOther, 0, expected.size()), expected) << "seed " << seed;
  }
}

// --- an idle chip --------------------------------------------------------------------------------

// What requests take on an idle NoC is what is computed without them, but for their packets' flits
// and the clock's edges.
TEST(SharedNoc, AnIdleChipsTimesAreThoseThatAreComputed) {
  const auto time = [](bool shares_noc, auto call) {
    SharedBench bench(link_host(), link_chip(), shares_noc);
    Transfer transfer;
    bench.run([&] { transfer = call(bench.link); });
    return transfer;
  };
  const auto expect_near = [&](const char* what, double tolerance, auto call) {
    const Transfer computed = time(false, call);
    const Transfer shared = time(true, call);
    EXPECT_NEAR(shared.time().ns() / computed.time().ns(), 1, tolerance) << what;
    EXPECT_EQ(shared.accesses, computed.accesses) << what;
    Time sum;
    for (const Part& part : shared.parts) sum += part.time;
    EXPECT_EQ(sum, shared.time()) << what;
  };
  const auto data = counted(64 << 10);
  std::vector<std::byte> to(64 << 10);
  for (const Coordinate tile : {kSameRow, kOther, kDram}) {
    for (const Ordering ordering : kOrderings) {
      const TransferOptions options{.ordering = ordering};
      expect_near("write", 0.05,
                  [&](HostLink& link) { return link.write_to_device(data, tile, 0, options); });
      if (ordering == Ordering::strict) continue;  // one after the other: the flits of each count
      expect_near("DMA write", 0.06, [&](HostLink& link) {
        const std::size_t buffer = link.allocate_sysmem_buffer(64 << 10);
        return link.dma_write_to_device({buffer, 0, 64 << 10}, tile, 0, options);
      });
      expect_near("DMA read", 0.05, [&](HostLink& link) {
        const std::size_t buffer = link.allocate_sysmem_buffer(64 << 10);
        return link.dma_read_from_device({buffer, 0, 64 << 10}, tile, 0, options);
      });
    }
    for (const std::uint64_t misalignment : {0, 16}) {
      expect_near("read", 0.01, [&](HostLink& link) {
        return link.read_from_device(to, tile, 64, {.misalignment_bytes = misalignment});
      });
    }
    expect_near("streaming read", 0.01, [&](HostLink& link) {
      return link.read_from_device(to, tile, 0, {.load = Load::stream});
    });
  }
}

// --- a busy chip ---------------------------------------------------------------------------------

struct Flooded {
  Time host;
  Time kernel;
};

// A host's write of 16 KiB to kOther beside a kernel that writes 400 packets of 8 KiB.
Flooded write_beside(Coordinate target, int noc, bool shares_noc = true, bool writes = true) {
  SharedBench bench(link_host(), link_chip(), shares_noc);
  Flooded times;
  bench.flood({3, 1}, target, 400, &times.kernel, noc);
  const auto data = counted(16 << 10);
  bench.run([&] {
    if (!writes) return;
    bench.link.configure_tlb(kOther, kMiB, 0, Ordering::posted);
    const Time begin = bench.simulation.now();
    bench.link.write_to_device(data, kOther, 0);
    std::vector<std::byte> last(4);
    bench.link.read_from_device(last, kOther, data.size() - 4);
    times.host = bench.simulation.now() - begin;
  });
  return times;
}

// A core takes packets whole, each VC in turn: of 8 KiB from the kernel, then a line of the host.
TEST(SharedNoc, AHostsWritesWaitForTheKernelsThatFloodTheirTarget) {
  const Time idle = write_beside({1, 0}, 0).host;
  const Time flooded = write_beside(kOther, 0).host;
  EXPECT_GT(flooded, 250_ns * 256);
  EXPECT_LT(flooded, 300_ns * 256);
  EXPECT_LT(idle, 6_us);
  // Switched off, nothing of that is seen.
  EXPECT_EQ(write_beside(kOther, 0, false).host, write_beside({1, 0}, 0, false).host);
}

TEST(SharedNoc, TheOtherNocIsAnothers) {
  EXPECT_EQ(write_beside(kOther, 1).host, write_beside({1, 0}, 1).host);
}

// Each line of the host is three flits, one of them its header.
TEST(SharedNoc, KernelsThatFloodAHostsTargetTakeLonger) {
  const Time alone = write_beside(kOther, 0, true, false).kernel;
  const Time beside = write_beside(kOther, 0).kernel;
  EXPECT_GE(beside, alone + 3_ns * 100);
  EXPECT_LE(beside, alone + 4_ns * 256 + 300_ns);
  EXPECT_EQ(write_beside(kOther, 0, false).kernel, alone);
}

// The kernel's packets go along the row of the PCIe tile, in which the host's target is too.
TEST(SharedNoc, KernelsThatShareALinkWithTheHostWaitForIt) {
  const auto kernel_time = [](bool writes) {
    machine::Host host = link_host();
    host.core.posted_write_interval = 1_ns;
    SharedBench bench(host);
    Time over;
    bench.flood({1, 3}, {3, 0}, 100, &over);
    bench.run([&] {
      if (writes)
        bench.link.dma_write_to_device(counted(512 << 10), {3, 3}, 0,
                                       {.ordering = Ordering::posted});
    });
    return over;
  };
  EXPECT_GT(kernel_time(true), kernel_time(false) + 1_us);
}

TEST(SharedNoc, AReadWaitsForWhatFloodsItsTarget) {
  const auto read_time = [](int packets) {
    SharedBench bench;
    bench.flood({3, 1}, kOther, packets);
    Transfer transfer;
    bench.run([&] {
      bench.link.configure_tlb(kOther, kMiB, 0, Ordering::standard);
      std::vector<std::byte> to(64 * 64);
      transfer = bench.link.read_from_device(to, kOther, 0);
    });
    return transfer;
  };
  const Transfer idle = read_time(0);
  const Transfer flooded = read_time(300);
  // 64 round trips, each held up by up to a packet of 257 flits.
  EXPECT_GT(flooded.time(), idle.time() + 50_ns * 64);
  EXPECT_LT(flooded.time(), idle.time() + 300_ns * 64);
  EXPECT_EQ(flooded.parts.back().name, "traffic on the NoC");
}

TEST(SharedNoc, ADmaInEitherDirectionWaitsForWhatFloodsItsTarget) {
  const auto dma_time = [](bool writes, int packets) {
    SharedBench bench;
    bench.flood({3, 1}, kOther, packets);
    Transfer transfer;
    bench.run([&] {
      std::vector<std::byte> bytes(4096);
      transfer = writes ? bench.link.dma_write_to_device(bytes, kOther, 0)
                        : bench.link.dma_read_from_device(bytes, kOther, 0);
    });
    EXPECT_EQ(transfer.used, Mechanism::dma);
    return transfer.time();
  };
  // 32 bursts of 128 B, each after a packet.
  EXPECT_GT(dma_time(true, 200), dma_time(true, 0) + 200_ns * 20);
  EXPECT_GT(dma_time(false, 200), dma_time(false, 0) + 200_ns * 20);
}

TEST(SharedNoc, IsRefusedWhereLimitsAreSwitchedOff) {
  sim::Simulation simulation;
  const auto chip = machine::build_chip(link_chip());
  noc::ChipNetwork network(simulation, chip, {});
  NetworkMemory memory(network);
  HostLink::Options options;
  options.limits.noc = false;
  HostLink link(simulation, machine::build_host(link_host()), chip, memory, options);
  EXPECT_EQ(
      sentence_of([&] { link.share_noc(network); }),
      "limits of the link of small are switched off, which is possible only if its NoC is idle");
}

// --- channels of the DMA engine ------------------------------------------------------------------

struct Dma {
  std::vector<Transfer> transfers;
};

Dma at_once(int transfers, int channels_of_chip, int channels_of_driver, bool writes) {
  machine::Host host = link_host();
  host.driver.dma_channels = channels_of_driver;
  machine::Chip chip = link_chip();
  chip.pcie.dma_channels = channels_of_chip;
  LinkBench bench(host, chip);
  Dma dma;
  dma.transfers.resize(static_cast<std::size_t>(transfers));
  for (int i = 0; i < transfers; ++i) {
    bench.simulation.spawn("host", [&, i] {
      std::vector<std::byte> bytes(4096);
      dma.transfers[static_cast<std::size_t>(i)] =
          writes ? bench.link.dma_write_to_device(bytes, kOther, 0)
                 : bench.link.dma_read_from_device(bytes, kOther, 0);
    });
  }
  bench.simulation.run();
  return dma;
}

TEST(DmaChannels, ATransferWaitsForTheChannelOfTheOneBeforeIt) {
  for (const bool writes : {true, false}) {
    const Time alone = at_once(1, 1, 1, writes).transfers[0].time();
    const Dma three = at_once(3, 8, 1, writes);
    EXPECT_EQ(three.transfers[0].time(), alone);
    // All have made their call of 50 ns when the first one has the channel.
    EXPECT_EQ(three.transfers[1].end, three.transfers[0].end + alone - 50_ns);
    EXPECT_EQ(three.transfers[2].end, three.transfers[1].end + alone - 50_ns);
    EXPECT_EQ(three.transfers[1].parts[1].name, "waiting for a channel of the DMA engine");
    EXPECT_EQ(three.transfers[1].parts[1].time, alone - 50_ns);
  }
}

// Two channels set up and copy at once; their bytes follow each other.
TEST(DmaChannels, TransfersOnTwoChannelsShareTheLink) {
  for (const bool writes : {true, false}) {
    const Transfer alone = at_once(1, 1, 1, writes).transfers[0];
    Time bytes;
    for (const Part& part : alone.parts) {
      if (part.name == "bytes on their way") bytes = part.time;
    }
    ASSERT_GT(bytes, Time());
    const Dma three = at_once(3, 2, 4, writes);
    EXPECT_EQ(three.transfers[0].time(), alone.time());
    EXPECT_EQ(three.transfers[1].time(), alone.time() + bytes);
    EXPECT_EQ(three.transfers[2].end, three.transfers[0].end + alone.time() - 50_ns);
  }
}

TEST(DmaChannels, AreThoseThatDriverAndChipBothHave) {
  EXPECT_EQ(at_once(2, 1, 4, true).transfers[1].time(), at_once(2, 4, 1, true).transfers[1].time());
  EXPECT_LT(at_once(2, 4, 4, true).transfers[1].time(), at_once(2, 4, 1, true).transfers[1].time());
}

}  // namespace
}  // namespace towpath::pcie
