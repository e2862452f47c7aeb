// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/host_link.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "pcie_bench.hpp"
#include "towpath/sim/random.hpp"

namespace towpath::pcie {
namespace {
using namespace literals;

constexpr std::uint64_t kMiB = 1 << 20;

TEST(HostLink, BytesWrittenLieInTheChipAndAreReadBack) {
  LinkBench bench;
  const std::vector<std::byte> data = counted(10'000);
  std::vector<std::byte> back(10'000);
  bench.run([&] {
    bench.link.write_to_device(data, kOther, 0x1003);
    bench.link.read_from_device(back, kOther, 0x1003);
  });
  EXPECT_EQ(back, data);
  EXPECT_EQ(bench.memory.at(kOther, 0x1003), data.front());
  EXPECT_EQ(bench.memory.at(kOther, 0x1003 + 9'999), data.back());
}

TEST(HostLink, AWriteIsNotThereWhenItsCallReturns) {
  LinkBench bench;
  const std::vector<std::byte> data = counted(64);
  bench.run([&] {
    bench.link.write_to_device(data, kOther, 0);
    EXPECT_EQ(bench.memory.at(kOther, 5), std::byte{0});
  });
  EXPECT_EQ(bench.memory.at(kOther, 5), data[5]);
}

TEST(HostLink, ChunksATransferThatExceedsItsWindow) {
  LinkBench bench;
  Transfer transfer;
  std::vector<std::byte> data = counted(3 * kMiB);
  bench.run([&] { transfer = bench.link.write_to_device(data, kDram, kMiB / 2); });
  EXPECT_EQ(transfer.windows, 4);  // half a window, two, half of one
  std::vector<std::byte> back(data.size());
  bench.run([&] {
    transfer = bench.link.read_from_device(back, kDram, kMiB / 2, {.window_bytes = 2 * kMiB});
  });
  EXPECT_EQ(transfer.windows, 2);
  EXPECT_EQ(back, data);
}

TEST(HostLink, TakesAConfiguredWindowAsFarAsItGoes) {
  LinkBench bench;
  Transfer transfer;
  bench.run([&] {
    bench.link.configure_tlb(kDram, kMiB, 0, Ordering::standard);
    transfer = bench.link.write_to_device(counted(kMiB + 4096), kDram, 0);
  });
  EXPECT_EQ(transfer.windows, 1);
}

TEST(HostLink, ThePartsOfATransferAreItsTime) {
  LinkBench bench;
  std::vector<Transfer> transfers;
  std::vector<std::byte> back(5'000);
  bench.run([&] {
    const std::size_t buffer = bench.link.allocate_sysmem_buffer(8192);
    transfers.push_back(bench.link.write_to_device(counted(5'000), kOther, 3));
    transfers.push_back(bench.link.read_from_device(back, kDram, 3));
    transfers.push_back(bench.link.dma_write_to_device(counted(5'000), kOther, 0));
    transfers.push_back(bench.link.dma_read_from_device(back, kOther, 0));
    transfers.push_back(bench.link.dma_write_to_device({buffer, 0, 8192}, kOther, 0));
    transfers.push_back(bench.link.noc_read_from_host({buffer, 0, 8192}, kOther, 0));
  });
  for (const Transfer& transfer : transfers) {
    Time sum;
    for (const Part& part : transfer.parts) sum += part.time;
    EXPECT_EQ(sum, transfer.time());
  }
}

TEST(HostLink, MovesABufferByTheEngineAndByACoreOfTheChip) {
  LinkBench bench;
  const std::vector<std::byte> data = counted(8192);
  bench.run([&] {
    HostLink& link = bench.link;
    const std::size_t there = link.allocate_sysmem_buffer(8192);
    const std::size_t back = link.allocate_sysmem_buffer(8192);
    link.sysmem_buffer(there).bytes = data;
    link.dma_write_to_device({there, 4096, 4096}, kOther, 0x100);
    link.dma_read_from_device({back, 0, 4096}, kOther, 0x100);
    link.noc_read_from_host({there, 0, 4096}, kSameRow, 0);
    link.noc_write_to_host({back, 4096, 4096}, kSameRow, 0);
    const std::vector<std::byte>& bytes = link.sysmem_buffer(back).bytes;
    EXPECT_TRUE(std::equal(data.begin() + 4096, data.end(), bytes.begin()));
    EXPECT_TRUE(std::equal(data.begin(), data.begin() + 4096, bytes.begin() + 4096));
  });
}

TEST(HostLink, ACopyOfWordsReadsAWordBeforeItWritesAPartOfIt) {
  machine::Host host = link_host();
  host.core.copies_words = true;
  host.core.load_bytes = 4;
  LinkBench bench(host);
  std::vector<std::uint64_t> accesses;
  const std::vector<std::byte> data = counted(11);
  std::vector<std::byte> back(11);
  bench.run([&] {
    const std::span<const std::byte> all(data);
    accesses.push_back(bench.link.write_to_device(all.first(4), kOther, 0).accesses);
    accesses.push_back(bench.link.write_to_device(all.first(1), kOther, 3).accesses);
    accesses.push_back(bench.link.write_to_device(all, kOther, 0x103).accesses);
    accesses.push_back(bench.link.write_to_device(all.first(8), kOther, 0x202).accesses);
    bench.link.read_from_device(back, kOther, 0x103);
  });
  // 1 + 8 + 2 and 2 + 4 + 2 bytes: both ends.
  EXPECT_EQ(accesses, (std::vector<std::uint64_t>{0, 1, 2, 2}));
  EXPECT_EQ(back, data);
}

TEST(HostLink, SaysThatItFellBackToMmioAndWhy) {
  LinkBench without(link_host(), link_chip(), {.host_memory_channels = 0});
  Transfer transfer;
  without.run([&] { transfer = without.link.dma_write_to_device(counted(64), kOther, 0); });
  EXPECT_EQ(transfer.asked, Mechanism::dma);
  EXPECT_EQ(transfer.used, Mechanism::mmio);
  EXPECT_EQ(transfer.obstacle,
            "no DMA buffer was allocated: the host gives the chip 0 host memory channels");

  machine::Chip one_way = link_chip();
  one_way.pcie.dma_from_device = false;
  LinkBench bench(link_host(), one_way);
  std::vector<std::byte> to(64);
  bench.run([&] { transfer = bench.link.dma_read_from_device(to, kOther, 0); });
  EXPECT_EQ(transfer.used, Mechanism::mmio);
  EXPECT_EQ(transfer.obstacle,
            "the DMA engine of small does not move data from the device; it moves it to it only");
}

TEST(HostLink, AnErrorIsOneSentence) {
  LinkBench bench;
  HostLink& link = bench.link;
  const std::vector<std::byte> data(64);
  const auto sentence = [&](const std::function<void()>& body) { return bench.sentence_of(body); };
  EXPECT_EQ(sentence([&] { link.write_to_device(data, kHarvested, 0); }),
            "core (2, 1) of small is harvested: mask 0x2 over the columns with workers leaves "
            "columns 1, 3");
  EXPECT_EQ(sentence([&] { link.write_to_device(data, kOther, 1'499'100); }),
            "64 bytes at address 1499100 of (1, 1) are beyond its memory, which has 1499136");
  EXPECT_EQ(sentence([&] { link.write_to_device({}, kOther, 0); }),
            "a transfer has 0 bytes; it must have at least 1");
  EXPECT_EQ(sentence([&] { link.write_to_device(data, kOther, 0, {.window_bytes = 16 * kMiB}); }),
            "small has no windows of 16 MiB; it has windows of 1 MiB, 2 MiB");
  EXPECT_EQ(sentence([&] { link.dma_write_to_device(data, kOther, 2); }),
            "a DMA of 64 bytes at address 2 is not aligned; both must be multiples of 4");
  EXPECT_EQ(sentence([&] { link.dma_write_to_device(counted(kMiB + 4), kDram, 0); }),
            "a DMA of 1048580 bytes exceeds the limit of the engine of small, which moves at most "
            "1048576");
  EXPECT_EQ(sentence([&] { link.sysmem_buffer(7); }),
            "there is no sysmem buffer 7; 0 were allocated");
}

TEST(HostLink, ABufferThatIsNotMappedIsRefused) {
  LinkBench bench;
  HostLink& link = bench.link;
  bench.run([&] { link.allocate_sysmem_buffer(4096); });
  EXPECT_EQ(bench.sentence_of([&] { link.dma_write_to_device({0, 64, 4096}, kOther, 0); }),
            "4096 bytes at offset 64 are beyond sysmem buffer 0, which has 4096");
  bench.run([&] { link.unmap_sysmem_buffer(0); });
  EXPECT_EQ(bench.sentence_of([&] { link.dma_write_to_device({0, 0, 64}, kOther, 0); }),
            "sysmem buffer 0 is not mapped, so the device cannot reach it");
  EXPECT_EQ(bench.sentence_of([&] { link.unmap_sysmem_buffer(0); }),
            "sysmem buffer 0 is not mapped");
}

TEST(HostLink, BuffersOfTwoProcessesAreNotTakenForEachOther) {
  LinkBench bench;
  std::vector<std::size_t> numbers;
  for (int i = 0; i < 2; ++i) {
    bench.simulation.spawn("host",
                           [&] { numbers.push_back(bench.link.allocate_sysmem_buffer(64)); });
  }
  bench.simulation.run();
  EXPECT_EQ(numbers, (std::vector<std::size_t>{0, 1}));
}

TEST(HostLink, NeedsAnIommuOrHugepagesForALargeBuffer) {
  machine::Host host = link_host();
  host.memory.has_iommu = false;
  LinkBench small_pages(host);
  EXPECT_EQ(small_pages.sentence_of([&] { small_pages.link.allocate_sysmem_buffer(8192); }),
            "a buffer of 8192 bytes is not contiguous for the device: host 'plain' has no IOMMU, "
            "and its pages have 4096 bytes");
  host.memory.has_hugepages = true;
  LinkBench large_pages(host);
  EXPECT_EQ(large_pages.sentence_of([&] { large_pages.link.allocate_sysmem_buffer(8192); }), "");
}

TEST(HostLink, HugepagesMakeMappingCheap) {
  machine::Host host = link_host();
  EXPECT_EQ(map_time(host, 2 * kMiB), 20_us + 3_us * 512);
  EXPECT_EQ(unmap_time(host, 4097), 21_us + 7_us * 2);
  host.memory.has_hugepages = true;
  EXPECT_EQ(map_time(host, 2 * kMiB), 23_us);
}

// Random writes in random pieces and windows: memory holds them, and time never goes back.
TEST(HostLink, MemoryIsWhatAPlainArrayWouldBe) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    machine::Host host = link_host();
    host.core.copies_words = seed % 2 == 0;
    LinkBench bench(host);
    sim::Random random(seed, "writes");
    std::vector<std::byte> expected(64 << 10);
    bench.run([&] {
      Time last;
      if (seed % 3 == 0) bench.link.configure_tlb(kOther, kMiB, 0, Ordering::posted);
      for (int i = 0; i < 40; ++i) {
        const std::size_t at = random.below(expected.size());
        const std::size_t size =
            1 + random.below(std::min<std::size_t>(expected.size() - at, 9000));
        if (random.below(3) != 0) {
          const auto data = counted(size, static_cast<unsigned>(i));
          std::ranges::copy(data, expected.begin() + static_cast<std::ptrdiff_t>(at));
          bench.link.write_to_device(data, kOther, at);
        } else {
          std::vector<std::byte> back(size);
          bench.link.read_from_device(back, kOther, at);
          ASSERT_TRUE(std::equal(back.begin(), back.end(),
                                 expected.begin() + static_cast<std::ptrdiff_t>(at)));
        }
        ASSERT_GE(bench.simulation.now(), last);
        last = bench.simulation.now();
      }
    });
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(bench.memory.at(kOther, i), expected[i]) << "seed " << seed << " byte " << i;
    }
  }
}

TEST(BuildHost, NamesWhatDoesNotFit) {
  const auto sentence = [](auto change) {
    machine::Host host = link_host();
    change(host);
    try {
      machine::build_host(host);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(sentence([](machine::Host&) {}), "");
  EXPECT_EQ(sentence([](machine::Host& host) { host.link.generation = 7; }),
            "host 'plain': link.generation is 7; it must be 1 to 6");
  EXPECT_EQ(sentence([](machine::Host& host) { host.core.load_bytes = 128; }),
            "host 'plain': core.load_bytes is 128; it must be a power of two, 1 to 64");
  EXPECT_EQ(sentence([](machine::Host& host) { host.core.store_rate = Rate(); }),
            "host 'plain': core.store_rate_gb_per_s is 0; it must be 0.001 to 1000000");
  EXPECT_EQ(sentence([](machine::Host& host) { host.memory.page_bytes = 4095; }),
            "host 'plain': memory.page_bytes is 4095; it must be a power of two, 4096 to "
            "1073741824");
}

}  // namespace
}  // namespace towpath::pcie
