// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/chip_network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "chip_bench.hpp"
#include "towpath/base/invariant.hpp"

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
      Request request =
          word_request(RequestKind::atomic_increment, target, i + 1, static_cast<int>(i % 2));
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

TEST(ChipNetwork, AMulticastGoesRoundTheTorusToTheWorkersBehindTheEdge) {
  for (const int noc : {0, 1}) {
    Bench bench({.records_requests = true}, 1, machine::wormhole_like_chip());
    const Data sent = pattern(256, 3);
    bench.put(kCore, 0, sent);
    Request request = multicast({2, 1}, {8, 1}, 256, noc);
    std::swap(request.remote.tile, request.last_tile);  // from column 8 or 2 over the edge
    bench.run(request);
    for (const Coordinate worker : bench.network.chip().workers) {
      const bool gets_it = worker.y == 1 && (worker.x >= 8 || worker.x <= 2) && worker != kCore;
      EXPECT_EQ(bench.get(worker, kTarget, 256), gets_it ? sent : Data(256))
          << "(" << worker.x << ", " << worker.y << ") on NoC " << noc;
    }
    EXPECT_EQ(bench.counters(kCore, noc).write_acks_received, 3u);
  }
}

TEST(ChipNetwork, AMulticastPassesOverTilesThatAreNoWorkers) {
  Bench bench({}, 1, machine::wormhole_like_chip());
  // the rectangle contains harvested, Ethernet and DRAM tiles
  Request request = multicast({3, 4}, {6, 7}, 256);
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

// The word that ends a linked path comes from another initiator, and others wait for the path.
TEST(ChipNetwork, MulticastsLeaveInTheOrderOfTheirIssue) {
  Bench bench({.records_requests = true}, 2, machine::wormhole_like_chip());
  const std::vector<Coordinate> cores{{1, 1}, {6, 4}, {9, 10}};
  for (std::size_t i = 0; i < cores.size(); ++i) {
    bench.put(cores[i], 0, pattern(40000, static_cast<unsigned>(i)));
    std::vector<Request> requests;
    for (int round = 0; round < 3; ++round) {
      Request data = multicast({1, 1}, {9, 10}, 40000);
      data.core = cores[i];
      data.remote.offset = kTarget + i * 65536;
      data.is_linked = true;
      Request word = multicast({1, 1}, {9, 10}, 4);
      word.core = cores[i];
      word.initiator = 2;
      word.local_offset = 16;
      word.remote.offset = kTarget + i * 65536 + 40000;
      requests.insert(requests.end(), {data, word});
    }
    bench.issue_all(std::move(requests));
  }
  bench.simulation.run();
  EXPECT_EQ(bench.network.unfinished(), 0);
  const std::vector<RequestTimes>& requests = bench.network.requests();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].request.size_bytes != 4) continue;
    const auto data = std::find_if(
        requests.rbegin() + static_cast<long>(requests.size() - i), requests.rend(),
        [&](const RequestTimes& times) { return times.request.core == requests[i].request.core; });
    EXPECT_GT(requests[i].sent, data->sent);
    EXPECT_GT(requests[i].received, data->received);
  }
  for (const Coordinate worker : bench.network.chip().workers) {
    for (std::size_t i = 0; i < cores.size(); ++i) {
      if (worker == cores[i]) continue;
      EXPECT_EQ(bench.get(worker, kTarget + i * 65536, 40000),
                pattern(40000, static_cast<unsigned>(i)));
    }
  }
}

// --- counters -----------------------------------------------------------------------------------

TEST(ChipNetwork, AnAcknowledgedWriteIsCountedAsItGoes) {
  Bench bench;
  bench.network.issue(write(kFar, 20000));  // three packets
  EXPECT_EQ(bench.counters().writes_issued, 3u);
  EXPECT_EQ(bench.counters().write_acks_awaited, 3u);
  EXPECT_EQ(bench.counters().outstanding[0], 3);
  EXPECT_EQ(bench.counters().outgoing[0], 3);
  EXPECT_EQ(bench.counters().packets_to_start[0], 2u);  // the first found its VC free
  EXPECT_EQ(bench.counters().writes_sent, 0u);
  while (bench.counters().outgoing[0] > 0) ASSERT_TRUE(bench.simulation.step());
  EXPECT_EQ(bench.counters().writes_sent, 3u);
  EXPECT_EQ(bench.counters().packets_to_start[0], 0u);
  EXPECT_LT(bench.counters().write_acks_received, 3u);
  bench.simulation.run();
  EXPECT_EQ(bench.counters().write_acks_received, 3u);
  EXPECT_EQ(bench.counters().outstanding[0], 0);
  EXPECT_EQ(bench.counters().posted_writes_issued, 0u);
  EXPECT_EQ(bench.network.unfinished(), 0);
  EXPECT_EQ(bench.counters(kCore, 1).writes_issued, 0u);
  EXPECT_EQ(bench.counters(kFar).writes_issued, 0u);
}

TEST(ChipNetwork, APostedWriteArrivesWithoutAnAnswer) {
  Bench bench({.records_requests = true});
  bench.put(kCore, 0, pattern(9000, 1));
  Request request = write(kFar, 9000);
  request.is_posted = true;
  bench.network.issue(request);
  EXPECT_EQ(bench.counters().posted_writes_issued, 2u);
  EXPECT_EQ(bench.counters().outstanding[0], 0);
  EXPECT_EQ(bench.counters().outgoing[0], 2);
  bench.simulation.run();
  EXPECT_EQ(bench.get(kFar, kTarget, 9000), pattern(9000, 1));
  EXPECT_EQ(bench.counters().posted_writes_sent, 2u);
  EXPECT_EQ(bench.counters().outgoing[0], 0);
  EXPECT_EQ(bench.counters().writes_issued, 0u);
  EXPECT_EQ(bench.counters().write_acks_received, 0u);
  EXPECT_EQ(bench.network.unfinished(), 0);
  const RequestTimes& times = bench.network.requests().at(0);
  EXPECT_GT(times.received, times.sent);
  EXPECT_EQ(times.completed, -1);
}

TEST(ChipNetwork, AReadIsCountedWhenItsDataIsHere) {
  Bench bench;
  bench.network.issue(read(kFar, 8193));
  EXPECT_EQ(bench.counters().reads_issued, 2u);
  EXPECT_EQ(bench.counters().outstanding[0], 2);
  EXPECT_EQ(bench.counters().outgoing[0], 0);
  while (bench.counters().read_responses_received == 0) ASSERT_TRUE(bench.simulation.step());
  EXPECT_EQ(bench.counters().outstanding[0], 1);
  bench.simulation.run();
  EXPECT_EQ(bench.counters().read_responses_received, 2u);
  EXPECT_EQ(bench.counters().outstanding[0], 0);
}

TEST(ChipNetwork, WordsInHeadersAreNoOutgoingWrites) {
  Bench bench;
  bench.network.issue(word_request(RequestKind::atomic_increment, kFar, 1));
  EXPECT_EQ(bench.counters().atomics_issued, 1u);
  EXPECT_EQ(bench.counters().atomic_responses_awaited, 1u);
  EXPECT_EQ(bench.counters().outstanding[0], 1);
  EXPECT_EQ(bench.counters().outgoing[0], 0);
  Request request = word_request(RequestKind::inline_write, kFar, 1);
  request.initiator = 2;
  request.remote.offset += 4;
  bench.network.issue(request);
  EXPECT_EQ(bench.counters().writes_issued, 1u);
  EXPECT_EQ(bench.counters().outgoing[0], 0);
  bench.simulation.run();
  EXPECT_EQ(bench.counters().atomic_responses_received, 1u);
  EXPECT_EQ(bench.counters().write_acks_received, 1u);
  EXPECT_EQ(bench.counters().writes_sent, 1u);
  request = word_request(RequestKind::atomic_increment, kFar, 1);
  request.is_posted = true;
  bench.run(request);
  EXPECT_EQ(bench.counters().atomics_issued, 2u);
  EXPECT_EQ(bench.counters().atomic_responses_awaited, 1u);
  EXPECT_EQ(bench.word(kFar, kTarget), 2u);
}

TEST(ChipNetwork, TransactionIdsAreCountedApart) {
  Bench bench;
  Request one = write(kFar, 8192);
  one.transaction_id = 1;
  Request fifteen = read(kFar, 20000);
  fifteen.transaction_id = 15;
  fifteen.local_offset = 0x8000;
  bench.network.issue(one);
  bench.network.issue(fifteen);
  EXPECT_EQ(bench.counters().outstanding[0], 0);
  EXPECT_EQ(bench.counters().outstanding[1], 1);
  EXPECT_EQ(bench.counters().outstanding[15], 3);
  EXPECT_EQ(bench.counters().outgoing[1], 1);
  EXPECT_EQ(bench.counters().outgoing[15], 0);
  while (bench.counters().outstanding[1] > 0) ASSERT_TRUE(bench.simulation.step());
  EXPECT_GT(bench.counters().outstanding[15], 0);
  bench.simulation.run();
  EXPECT_EQ(bench.counters().outstanding[15], 0);
}

TEST(ChipNetwork, AMulticastSpoilsTheCountOfItsTransactionId) {
  Bench bench;
  Request request = multicast({1, 1}, {3, 3}, 64);
  request.transaction_id = 3;
  bench.run(request);
  EXPECT_EQ(bench.counters().outstanding[3], 1 - 8);
  EXPECT_EQ(bench.counters().multicast_ids, 1u << 3);
  bench.network.clear_outstanding(0, kCore, 1u << 2);
  EXPECT_EQ(bench.counters().outstanding[3], -7);
  bench.network.clear_outstanding(0, kCore, 1u << 3);
  EXPECT_EQ(bench.counters().outstanding[3], 0);
  EXPECT_EQ(bench.counters().multicast_ids, 0u);
}

TEST(ChipNetwork, AnInitiatorIsReadyOnceItsPacketsHaveWonAVc) {
  Bench bench;
  bench.network.issue(write(kFar, 8192));
  EXPECT_TRUE(bench.network.is_ready(0, kCore, 0));  // no request was before it
  bench.network.issue(write(kFar, 8192));
  EXPECT_FALSE(bench.network.is_ready(0, kCore, 0));
  for (const int other : {1, 2, 3}) EXPECT_TRUE(bench.network.is_ready(0, kCore, other));
  EXPECT_TRUE(bench.network.is_ready(1, kCore, 0));
  EXPECT_THROW(bench.network.issue(write(kFar, 64)), InvariantError);
  Request request = write(kFar, 64);
  request.initiator = 2;
  bench.network.issue(request);
  bench.simulation.run();
  EXPECT_TRUE(bench.network.is_ready(0, kCore, 0));
  EXPECT_EQ(bench.counters().write_acks_received, 3u);
}

// --- waking -------------------------------------------------------------------------------------

TEST(ChipNetwork, WakesAProcessWhenItsConditionHoldsAndNotBefore) {
  Bench bench;
  int woken = 0;
  bench.simulation.spawn("waiter", [&] {
    bench.network.issue(write(kFar, 20000));
    bench.network.wake_when(0, kCore,
                            {[](const NiuCounters& counters, int count) {
                               return counters.write_acks_received ==
                                      static_cast<std::uint32_t>(count);
                             },
                             2},
                            *bench.simulation.current());
    bench.simulation.suspend();
    ++woken;
    EXPECT_EQ(bench.counters().write_acks_received, 2u);
    bench.simulation.suspend();  // no wake-up is requested again
    ++woken;
  });
  bench.simulation.run();
  EXPECT_EQ(woken, 1);
}

TEST(ChipNetwork, WakesAProcessThatWaitsForAWord) {
  Bench bench;
  std::vector<Cycle> woken;
  bench.simulation.spawn("waiter", [&] {
    for (int i = 0; i < 4; ++i) {
      bench.network.wake_on_write(kFar, kTarget + 60, *bench.simulation.current());
      bench.simulation.suspend();
      woken.push_back(bench.network.cycle());
    }
  });
  bench.simulation.run();
  bench.run(write(kFar, 60));  // ends right before it
  EXPECT_EQ(woken.size(), 0u);
  bench.run(write(kFar, 64));
  EXPECT_EQ(woken.size(), 1u);
  Request request = word_request(RequestKind::atomic_increment, kFar, 1);
  request.remote.offset += 60;
  bench.run(request);
  EXPECT_EQ(woken.size(), 2u);
  bench.network.store_word(kFar, kTarget + 64, 1);
  bench.simulation.run();
  EXPECT_EQ(woken.size(), 2u);
  bench.network.store_word(kFar, kTarget + 60, 1);
  bench.simulation.run();
  EXPECT_EQ(woken.size(), 3u);
  bench.network.store(kFar, kTarget + 62, std::vector<std::byte>(2, std::byte{1}));
  bench.simulation.run();
  EXPECT_EQ(woken.size(), 4u);
}

// --- time ---------------------------------------------------------------------------------------

// Random requests of every core on both NoCs.
void issue_mix(Bench& bench) {
  const machine::Chip& chip = bench.network.chip();
  sim::Random random(7, "requests");
  for (const Coordinate core : chip.workers) {
    for (const int noc : {0, 1}) {
      std::vector<Request> requests;
      for (int i = 0; i < 12; ++i) {
        const Coordinate other = chip.workers[random.below(chip.workers.size())];
        Request request = write(other, random.between(1, 9000), noc);
        switch (random.below(6)) {
          case 0: request = read(other, request.size_bytes, noc); break;
          case 1: request = read(kDram, request.size_bytes, noc); break;
          case 2: request.is_posted = true; break;
          case 3: request = word_request(RequestKind::atomic_increment, other, 1, noc); break;
          case 4: request = multicast({1, 1}, {3, 3}, request.size_bytes, noc); break;
          default: request.is_static_vc = false;
        }
        request.core = core;
        requests.push_back(request);
      }
      bench.issue_all(std::move(requests));
    }
  }
}

std::vector<Cycle> cycles_of(const Bench& bench) {
  std::vector<Cycle> cycles;
  for (const RequestTimes& times : bench.network.requests()) {
    cycles.insert(cycles.end(), {times.issued, times.started, times.sent, times.received,
                                 times.completed, times.request.core.x, times.request.core.y});
  }
  cycles.push_back(bench.network.network(0).flit_hops());
  cycles.push_back(bench.network.network(1).flit_hops());
  return cycles;
}

TEST(ChipNetwork, TheSameSeedGivesTheSameRun) {
  Bench one({.records_requests = true}, 3);
  Bench other({.records_requests = true}, 3);
  for (Bench* bench : {&one, &other}) {
    issue_mix(*bench);
    bench->simulation.run();
    EXPECT_EQ(bench->network.unfinished(), 0);
  }
  EXPECT_EQ(one.network.requests().size(), 9u * 2 * 12);
  EXPECT_EQ(cycles_of(one), cycles_of(other));
  EXPECT_EQ(one.simulation.events(), other.simulation.events());
}

TEST(ChipNetwork, TimeDoesNotDependOnWhetherDataIsCarried) {
  Bench with_data({.records_requests = true});
  Bench without({.carries_data = false, .records_requests = true});
  Bench without_dram({.stores_dram = false, .records_requests = true});
  for (Bench* bench : {&with_data, &without, &without_dram}) {
    issue_mix(*bench);
    bench->simulation.run();
  }
  EXPECT_EQ(cycles_of(with_data), cycles_of(without));
  EXPECT_EQ(cycles_of(with_data), cycles_of(without_dram));
}

// On the tiny chip a round trip within a row is 4 hops. Request: 5 cycles to leave the NIU, 5 to
// the router, 9 per hop, 5 to the NIU there; the data flit follows by 1.25 cycles and a port takes
// one in 1.03, so the last is taken in the cycle after next. Answer: 25 later, 5, 9 per hop, 5.
TEST(ChipNetwork, ASmallWriteTakesWhatItsWayTakes) {
  for (const Coordinate to : {Coordinate{2, 1}, Coordinate{3, 1}}) {
    Bench bench({.records_requests = true});
    bench.run(write(to, 32));
    const int hops = to.x - kCore.x;
    const RequestTimes& times = bench.network.requests().at(0);
    EXPECT_EQ(times.started, 0);
    EXPECT_EQ(times.sent, 5 + 2);
    EXPECT_EQ(times.received, 5 + 2 + 5 + 9 * hops + 5);
    EXPECT_EQ(times.completed, times.received + 25 + 5 + 9 * (4 - hops) + 5);
  }
}

TEST(ChipNetwork, BothNetworksCarryAtOnce) {
  std::vector<Cycle> alone;
  for (const int noc : {0, 1}) {
    Bench bench({.records_requests = true});
    bench.run(write(kFar, 65536, noc));
    alone.push_back(bench.network.requests().at(0).completed);
  }
  Bench bench({.records_requests = true});
  bench.put(kCore, 0, pattern(65536, 1));
  bench.network.issue(write(kFar, 65536, 0));
  Request request = write(kFar, 65536, 1);
  request.remote.offset += 65536;
  bench.network.issue(request);
  bench.simulation.run();
  EXPECT_EQ(bench.network.requests().at(0).completed, alone[0]);
  EXPECT_EQ(bench.network.requests().at(1).completed, alone[1]);
  EXPECT_EQ(bench.get(kFar, kTarget, 65536), pattern(65536, 1));
  EXPECT_EQ(bench.get(kFar, kTarget + 65536, 65536), pattern(65536, 1));
}

TEST(ChipNetwork, ChipsInOneSimulationKeepApart) {
  Bench alone({.records_requests = true});
  alone.run(write(kFar, 8192));
  Bench bench({.records_requests = true});
  ChipNetwork second(bench.simulation, machine::wormhole_like_chip(), {.records_requests = true});
  bench.network.issue(write(kFar, 8192));
  second.issue(write(kFar, 8192));
  bench.simulation.run();
  EXPECT_EQ(bench.network.requests().at(0).completed, alone.network.requests().at(0).completed);
  EXPECT_EQ(second.requests().at(0).received, bench.network.requests().at(0).received);
  EXPECT_GT(second.requests().at(0).completed, bench.network.requests().at(0).completed);
}

TEST(ChipNetwork, RequestsToOneDramChannelShareItsRate) {
  const auto cycles = [](std::uint64_t second_offset) {
    Bench bench({.records_requests = true});
    Request request = read(kDram, 32768);
    bench.network.issue(request);
    request.core = {2, 3};
    request.remote.offset = second_offset;
    bench.network.issue(request);
    bench.simulation.run();
    return std::max(bench.network.requests()[0].completed, bench.network.requests()[1].completed);
  };
  const Cycle one_channel = cycles(kTarget);
  const Cycle two_channels = cycles(kTarget + (std::uint64_t{1} << 30));
  EXPECT_GT(one_channel, two_channels + 500);  // 2048 flits at 1.45 cycles, or at the NIU's 1.03
}

}  // namespace
}  // namespace towpath::noc
