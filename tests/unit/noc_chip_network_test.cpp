// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/chip_network.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "chip_bench.hpp"
#include "towpath/sim/invariant.hpp"

namespace towpath::noc {
namespace {

constexpr std::uint64_t kSizes[] = {1,    15,   16,   17,   32,    33,    64,   1000,
                                    8191, 8192, 8193, 8224, 16384, 20000, 65536};

// --- data ---------------------------------------------------------------------------------------

TEST(ChipNetwork, WritesArriveWholeAndTouchNothingElse) {
  for (const int noc : {0, 1}) {
    for (const std::uint64_t size_bytes : kSizes) {
      Bench bench;
      const Data sent = pattern(size_bytes, 1);
      const Data before = pattern(size_bytes + 64, 2);
      bench.put(kCore, 0x100, sent);
      bench.put(kFar, kTarget - 32, before);
      Request request = write(kFar, size_bytes, noc);
      request.local_offset = 0x100;
      bench.run(request);
      Data expected = before;
      std::copy(sent.begin(), sent.end(), expected.begin() + 32);
      EXPECT_EQ(bench.get(kFar, kTarget - 32, size_bytes + 64), expected)
          << size_bytes << " bytes on NoC " << noc;
    }
  }
}

TEST(ChipNetwork, ReadsBringWhatIsThere) {
  for (const Coordinate from : {kFar, Coordinate{1, 0}, kDram}) {
    for (const std::uint64_t size_bytes : kSizes) {
      Bench bench;
      const Data there = pattern(size_bytes, 3);
      bench.put(from, kTarget, there);
      bench.run(read(from, size_bytes));
      EXPECT_EQ(bench.get(kCore, 0, size_bytes), there) << size_bytes << " bytes";
      EXPECT_EQ(bench.get(kCore, size_bytes, 32), Data(32)) << size_bytes << " bytes";
    }
  }
}

TEST(ChipNetwork, TilesOfADramGroupShareItsMemory) {
  Bench bench;
  const std::uint64_t second_channel = bench.network.chip().dram.channel_bytes + 64;
  const Data sent = pattern(9000, 4);
  bench.put(kCore, 0, sent);
  Request request = write(kDram, sent.size());
  request.remote.offset = second_channel;
  bench.run(request);
  request = read(kSameDram, sent.size(), 1);
  request.remote.offset = second_channel;
  request.local_offset = 0x40000;
  bench.run(request);
  EXPECT_EQ(bench.get(kCore, 0x40000, sent.size()), sent);
}

TEST(ChipNetwork, ACoreMayWriteToItself) {
  Bench bench;
  const Data sent = pattern(10000, 5);
  bench.put(kCore, 0, sent);
  bench.run(write(kCore, sent.size()));
  EXPECT_EQ(bench.get(kCore, kTarget, sent.size()), sent);
  EXPECT_EQ(bench.counters().write_acks_received, 2u);
}

TEST(ChipNetwork, AnInlineWriteSetsOneWord) {
  Bench bench;
  bench.put(kFar, kTarget, pattern(12, 6));
  Request request = word_request(RequestKind::inline_write, kFar, 0xdeadbeef);
  request.remote.offset = kTarget + 4;
  bench.run(request);
  Data expected = pattern(12, 6);
  const std::uint32_t value = 0xdeadbeef;
  std::memcpy(expected.data() + 4, &value, kWordBytes);
  EXPECT_EQ(bench.get(kFar, kTarget, 12), expected);
}

TEST(ChipNetwork, AtomicsWrapAround) {
  Bench bench;
  bench.network.memory(kFar).store_word(kTarget, 0xfffffffe);
  bench.run(word_request(RequestKind::atomic_increment, kFar, 5));
  EXPECT_EQ(bench.word(kFar, kTarget), 3u);
}

TEST(ChipNetwork, AtomicsOfAllCoresAddUp) {
  Bench bench({}, 1, machine::wormhole_like_chip());
  const Coordinate target{6, 4};
  std::uint32_t sum = 0;
  for (const Coordinate core : bench.network.chip().workers) {
    std::vector<Request> requests;
    for (std::uint32_t i = 0; i < 20; ++i) {
      Request request = word_request(RequestKind::atomic_increment, target, i + 1,
                                     static_cast<int>(i % 2));
      request.core = core;
      request.is_posted = i % 3 == 0;
      sum += i + 1;
      requests.push_back(request);
    }
    bench.issue_all(std::move(requests));
  }
  bench.simulation.run();
  EXPECT_EQ(bench.word(target, kTarget), sum);
  EXPECT_EQ(bench.network.unfinished(), 0);
}

// --- multicasts ---------------------------------------------------------------------------------

TEST(ChipNetwork, AMulticastReachesTheWorkersOfItsRectangle) {
  for (const int noc : {0, 1}) {
    for (const bool includes_source : {false, true}) {
      for (const std::uint64_t size_bytes : {4u, 64u, 20000u}) {
        Bench bench;
        const Data sent = pattern(size_bytes, 7);
        bench.put(kCore, 0, sent);
        Request request = multicast({1, 1}, {2, 3}, size_bytes, noc);
        request.includes_source = includes_source;
        bench.run(request);
        for (const Coordinate worker : bench.network.chip().workers) {
          const bool gets_it = worker.x <= 2 && (worker != kCore || includes_source);
          EXPECT_EQ(bench.get(worker, kTarget, size_bytes), gets_it ? sent : Data(size_bytes))
              << "(" << worker.x << ", " << worker.y << ") on NoC " << noc;
        }
        const std::uint32_t packets = size_bytes > 8192 ? 3 : 1;
        EXPECT_EQ(bench.counters(kCore, noc).write_acks_received,
                  packets * (includes_source ? 6u : 5u));
      }
    }
  }
}

TEST(ChipNetwork, AMulticastPassesOverTilesThatAreNoWorkers) {
  Bench bench({}, 1, machine::wormhole_like_chip());
  Request request = multicast({3, 4}, {6, 7}, 256);  // harvested, ethernet and dram in between
  bench.put(kCore, 0, pattern(256, 8));
  bench.run(request);
  for (const Coordinate worker : {Coordinate{3, 4}, {4, 4}, {6, 4}, {3, 7}, {4, 7}, {6, 7}}) {
    EXPECT_EQ(bench.get(worker, kTarget, 256), pattern(256, 8));
  }
  EXPECT_EQ(bench.get({3, 6}, kTarget, 256), Data(256));
  EXPECT_EQ(bench.counters().write_acks_received, 6u);
}

TEST(ChipNetwork, AMulticastAtomicAddsOnEachWorker) {
  Bench bench;
  Request request = multicast({1, 1}, {3, 3}, kWordBytes);
  request.kind = RequestKind::atomic_increment;
  request.value = 7;
  bench.run(request);
  for (const Coordinate worker : bench.network.chip().workers) {
    EXPECT_EQ(bench.word(worker, kTarget), worker == kCore ? 0u : 7u);
  }
  EXPECT_EQ(bench.counters().atomic_responses_received, 8u);
  EXPECT_EQ(bench.counters().atomic_responses_awaited, 8u);
}

TEST(ChipNetwork, CrossingMulticastsAllArrive) {
  Bench bench({}, 5, machine::wormhole_like_chip());
  const std::vector<Coordinate> cores{{1, 1}, {9, 1}, {4, 4}, {6, 7}, {1, 10}, {9, 10}};
  for (std::size_t i = 0; i < cores.size(); ++i) {
    const std::uint64_t offset = kTarget + i * 4096;
    bench.put(cores[i], 0, pattern(4096, static_cast<unsigned>(i)));
    Request request = multicast({1, 1}, {9, 10}, 4096);
    request.core = cores[i];
    request.remote.offset = offset;
    bench.network.issue(request);
  }
  bench.simulation.run();
  for (const Coordinate worker : bench.network.chip().workers) {
    for (std::size_t i = 0; i < cores.size(); ++i) {
      if (worker == cores[i]) continue;
      EXPECT_EQ(bench.get(worker, kTarget + i * 4096, 4096),
                pattern(4096, static_cast<unsigned>(i)));
    }
  }
}

TEST(ChipNetwork, LinkedMulticastsKeepTheirPathUntilTheLast) {
  Bench bench;
  bench.put(kCore, 0, pattern(64, 1));
  Request request = multicast({1, 1}, {3, 3}, 64);
  request.is_linked = true;
  bench.run(request);
  EXPECT_EQ(bench.network.describe_unanswered(0, kCore),
            "the path of its linked multicast to the rectangle (1, 1) to (3, 3) is still reserved");
  EXPECT_EQ(bench.network.describe_deadlock(),
            "core (1, 1): " + bench.network.describe_unanswered(0, kCore));

  Request other = multicast({1, 1}, {3, 3}, 64);  // has to wait for the last one
  other.core = {2, 2};
  const Cycle issued = bench.network.cycle();
  bench.network.issue(other);
  bench.run_to(20000);
  EXPECT_EQ(bench.counters({2, 2}).write_acks_received, 0u);
  EXPECT_EQ(bench.network.describe_unanswered(0, {2, 2}),
            "its write of 64 bytes to the rectangle (1, 1) to (3, 3), issued in cycle " +
                std::to_string(issued) + ", has 1 of 1 packets to send");

  request.is_linked = false;
  bench.run(request);
  EXPECT_EQ(bench.counters().write_acks_received, 16u);
  EXPECT_EQ(bench.counters({2, 2}).write_acks_received, 8u);
  EXPECT_EQ(bench.network.describe_unanswered(0, kCore), "");
  EXPECT_EQ(bench.network.describe_deadlock(), "");
}

}  // namespace
}  // namespace towpath::noc
