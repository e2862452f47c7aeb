// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "kernels.hpp"

// Transaction ids, barriers and semaphores of a kernel.

namespace towpath::tenstorrent {
namespace {

using machine::Coordinate;
using noc::Bench;
using noc::Cycle;
using noc::Data;
using noc::kCore;
using noc::kDram;
using noc::kFar;
using noc::kTarget;
using noc::pattern;

const std::vector<Coordinate> kSquareWorkers{{2, 1}, {1, 2}, {2, 2}};

// --- inline writes, posted writes, transaction ids ----------------------------------------------

TEST(DataMovementCore, WritesWordsInline) {
  Bench bench;
  run(bench, [](DataMovementCore& core) {
    core.noc_inline_dw_write(kFarTarget, 11);
    core.noc_inline_dw_write_set_state({kFar, kTarget + 4});
    core.noc_inline_dw_write_with_state(12);
    core.noc_async_write_barrier();
  });
  EXPECT_EQ(bench.word(kFar, kTarget), 11u);
  EXPECT_EQ(bench.word(kFar, kTarget + 4), 12u);
}

TEST(DataMovementCore, FlushesPostedWritesApart) {
  Bench bench;
  run(bench, [&](DataMovementCore& core) {
    core.noc_async_write(0, kFarTarget, 8192, {.is_posted = true});
    core.noc_async_writes_flushed();  // there is none of these
    EXPECT_EQ(bench.counters().posted_writes_sent, 0u);
    core.noc_async_posted_writes_flushed();
    EXPECT_EQ(bench.counters().posted_writes_sent, 1u);
    core.noc_async_write(0, kFarTarget, 8192);
    core.noc_async_posted_writes_flushed();
    EXPECT_EQ(bench.counters().writes_sent, 0u);
    core.noc_async_writes_flushed();
    EXPECT_EQ(bench.counters().writes_sent, 1u);
    EXPECT_EQ(bench.counters().write_acks_received, 0u);
    core.noc_async_write_barrier();
    EXPECT_EQ(bench.counters().write_acks_received, 1u);
  });
}

TEST(DataMovementCore, WaitsForOneTransactionId) {
  Bench bench;
  run(bench, [&](DataMovementCore& core) {
    core.noc_async_write_set_trid(1);
    core.noc_async_write(0, kFarTarget, 64);
    core.noc_async_write_set_trid(2);
    core.noc_async_write(0, kFarTarget, 65536);
    core.noc_async_read_set_trid(3);
    core.noc_async_read(kFarTarget, 0x40000, 64);
    core.noc_async_write_barrier_with_trid(1);
    EXPECT_EQ(bench.counters().outstanding[1], 0);
    EXPECT_GT(bench.counters().outstanding[2], 0);
    core.noc_async_read_barrier_with_trid(3);
    EXPECT_EQ(bench.counters().read_responses_received, 1u);
    core.noc_async_write_flushed_with_trid(2);
    EXPECT_EQ(bench.counters().outgoing[2], 0);
    EXPECT_GT(bench.counters().outstanding[2], 0);
    core.noc_async_write_barrier_with_trid(2);
    EXPECT_EQ(bench.counters().write_acks_received, 9u);
    core.noc_async_write_one_packet_with_trid(0, kFarTarget, 64, 5);
    EXPECT_EQ(bench.counters().outstanding[5], 1);
    core.noc_async_write(0, kFarTarget, 64);  // an id stays until another is set
    EXPECT_EQ(bench.counters().outstanding[5], 2);
    core.noc_async_write_barrier_with_trid(5);
  });
}

TEST(DataMovementCore, RefusesTransactionIdsThatCannotBeWaitedFor) {
  EXPECT_EQ(refusal([](DataMovementCore& core) { core.noc_async_write_set_trid(16); }),
            kBegin + "noc_async_write_set_trid: there is no transaction id 16; it must be 0 to 15");
  EXPECT_EQ(
      refusal([](DataMovementCore& core) { core.noc_async_read_barrier_with_trid(-1); }),
      kBegin +
          "noc_async_read_barrier_with_trid: there is no transaction id -1; it must be 0 to 15");
  EXPECT_EQ(
      refusal([](DataMovementCore& core) { core.noc_async_write_flushed_with_trid(16); }),
      kBegin +
          "noc_async_write_flushed_with_trid: there is no transaction id 16; it must be 0 to 15");
  const std::string overflow = refusal([](DataMovementCore& core) {
    for (int i = 0; i < 2; ++i) core.noc_async_read({kDram, 0}, 0, 150 * 8192);
    core.noc_async_read_barrier_with_trid(0);
  });
  EXPECT_EQ(overflow.find(kBegin + "noc_async_read_barrier_with_trid: transaction id 0 has "), 0u)
      << overflow;
  EXPECT_NE(overflow.find(" outstanding packets; its counter can count 255"), std::string::npos)
      << overflow;
  EXPECT_EQ(refusal([](DataMovementCore& core) {
              core.noc_async_write_set_trid(4);
              core.noc_async_write_multicast(0, kSquare, 64, 3);
              core.noc_async_write_barrier_with_trid(4);
            }),
            kBegin +
                "noc_async_write_barrier_with_trid: transaction id 4 was used by a multicast, "
                "which every receiver answers; its count is meaningless before "
                "reset_noc_trid_barrier_counter");
  Bench bench;
  run(bench, [](DataMovementCore& core) {
    core.noc_async_write_set_trid(4);
    core.noc_async_write_multicast(0, kSquare, 64, 3);
    core.noc_async_write_barrier();
    core.reset_noc_trid_barrier_counter(1u << 4);
    core.noc_async_write(0, kFarTarget, 64);
    core.noc_async_write_barrier_with_trid(4);
  });
  EXPECT_EQ(bench.counters().write_acks_received, 4u);
}

// --- barriers and semaphores --------------------------------------------------------------------

TEST(DataMovementCore, BarriersWaitForTheirKindOnly) {
  Bench bench;
  const noc::NiuCounters& counters = bench.counters();
  run(bench, [&](DataMovementCore& core) {
    core.noc_async_read(kFarTarget, 0x40000, 65536);
    core.noc_semaphore_inc({kFar, 0}, 1, {.vc = 2});
    core.noc_async_write(0, kFarTarget, 16384, {.vc = 3});
    core.noc_async_atomic_barrier();
    EXPECT_EQ(counters.atomic_responses_received, 1u);
    EXPECT_LT(counters.write_acks_received, 2u);
    core.noc_async_write_barrier();
    EXPECT_EQ(counters.write_acks_received, 2u);
    EXPECT_LT(counters.read_responses_received, 8u);
    core.noc_async_read_barrier();
    EXPECT_EQ(counters.read_responses_received, 8u);

    core.noc_async_read(kFarTarget, 0x40000, 8192);
    core.noc_semaphore_inc({kFar, 0}, 1);
    core.noc_async_write(0, kFarTarget, 8192);
    core.noc_async_write(0, kFarTarget, 8192, {.is_posted = true});
    core.noc_async_full_barrier();
    EXPECT_EQ(counters.atomic_responses_received, 2u);
    EXPECT_EQ(counters.write_acks_received, 3u);
    EXPECT_EQ(counters.read_responses_received, 9u);
    EXPECT_EQ(counters.posted_writes_sent, 1u);
  });
}

TEST(DataMovementCore, LooksEveryPollingPeriod) {
  Bench bench({.records_requests = true});
  const Cycle period = kPollCycles;
  run(bench, [&](DataMovementCore& core) {
    Cycle before = core.cycle();
    core.noc_async_write_barrier();  // one look
    EXPECT_EQ(core.cycle(), before + period);
    core.noc_async_write(0, kFarTarget, 64);
    before = core.cycle();
    core.noc_async_write_barrier();
    const Cycle acknowledged = bench.network.requests()[0].completed;
    EXPECT_EQ((core.cycle() - before) % period, 0);
    EXPECT_GT(core.cycle(), acknowledged);
    EXPECT_LE(core.cycle(), acknowledged + period);
  });
}

TEST(DataMovementCore, WaitsForSemaphores) {
  Bench bench;
  const Cycle period = kPollCycles;
  std::vector<Cycle> seen;
  run_kernel(bench.network, {.core = kFar, .name = "waiter"}, [&](DataMovementCore& core) {
    core.noc_semaphore_wait(kTarget, 2);
    seen.push_back(core.cycle());
    core.noc_semaphore_wait_min(kTarget, 5);
    seen.push_back(core.cycle());
    core.noc_semaphore_wait_min(kTarget, 5);  // it is more already
    seen.push_back(core.cycle());
  });
  run(bench, [&](DataMovementCore& core) {
    core.noc_semaphore_inc(kFarTarget, 1);
    core.work(100);
    core.noc_semaphore_inc(kFarTarget, 1);
    core.noc_async_atomic_barrier();
    core.work(200);
    EXPECT_EQ(seen.size(), 1u);
    core.noc_inline_dw_write(kFarTarget, 9);
    core.noc_async_write_barrier();
  });
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0] % period, 0);
  EXPECT_EQ((seen[1] - seen[0]) % period, 0);
  EXPECT_EQ(seen[2], seen[1] + period);
}

TEST(DataMovementCore, SetsSemaphoresElsewhere) {
  Bench bench;
  run(bench, [](DataMovementCore& core) {
    core.noc_semaphore_set(32, 77);
    EXPECT_EQ(core.load_word(32), 77u);
    core.noc_semaphore_set_remote(32, kFarTarget);
    core.noc_semaphore_set_multicast(32, kSquare, 3);
    core.noc_semaphore_inc_multicast({kSquare.first, kSquare.last, kTarget + 16}, 5, 3);
    core.noc_async_full_barrier();
  });
  EXPECT_EQ(bench.word(kFar, kTarget), 77u);
  for (const Coordinate worker : kSquareWorkers) {
    EXPECT_EQ(bench.word(worker, kTarget), 77u);
    EXPECT_EQ(bench.word(worker, kTarget + 16), 5u);
  }
  EXPECT_EQ(bench.word(kCore, kTarget), 0u);
  EXPECT_EQ(bench.word(kCore, kTarget + 16), 0u);
  run(bench, [](DataMovementCore& core) {
    core.noc_semaphore_set_multicast_loopback_src(32, kSquare, 4);
    core.noc_async_write_barrier();
  });
  EXPECT_EQ(bench.word(kCore, kTarget), 77u);
}

TEST(DataMovementCore, SharesMemoryWithTheOtherKernelOfItsCore) {
  Bench bench;
  std::vector<std::string> order;
  run_kernel(bench.network, {.core = kCore, .name = "reader"}, [&](DataMovementCore& core) {
    core.work(500);
    order.push_back("data");
    core.store(1024, pattern(64, 1));
    core.noc_semaphore_set(16, 1);
  });
  run(bench,
      [&](DataMovementCore& core) {
        core.noc_semaphore_wait(16, 1);
        order.push_back("seen");
        core.noc_async_write(1024, kFarTarget, 64);
        core.noc_async_write_barrier();
      },
      {.core = kCore, .name = "writer", .noc_index = 1});
  EXPECT_EQ(order, (std::vector<std::string>{"data", "seen"}));
  EXPECT_EQ(bench.get(kFar, kTarget, 64), pattern(64, 1));
}

TEST(DataMovementCore, KernelsThatShareANocTakeTurnsAtAnInitiator) {
  Bench bench;
  for (const char* name : {"one", "other"}) {
    run_kernel(bench.network, {.core = kCore, .name = name}, [](DataMovementCore& core) {
      for (int i = 0; i < 20; ++i) core.noc_async_write(0, kFarTarget, 8192);
      core.noc_async_write_barrier();
    });
  }
  bench.simulation.run();
  EXPECT_EQ(bench.counters().write_acks_received, 40u);
  EXPECT_TRUE(bench.simulation.blocked().empty());
}

}  // namespace
}  // namespace towpath::tenstorrent
