// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "kernels.hpp"

// The calls of a kernel that move data, one by one. Sources start at offset 0, targets at kTarget.

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

// --- arguments, addresses, memory ---------------------------------------------------------------

TEST(DataMovementCore, HasItsArguments) {
  Bench bench;
  const KernelConfig config{
      .core = kCore, .name = "k", .compile_args = {7}, .runtime_args = {8, 9}, .semaphores = {64}};
  run(
      bench,
      [](DataMovementCore& core) {
        EXPECT_EQ(core.get_compile_time_arg_val(0), 7u);
        EXPECT_EQ(core.get_arg_val(0), 8u);
        EXPECT_EQ(core.get_arg_val(1), 9u);
        EXPECT_EQ(core.get_semaphore(0), 64u);
        EXPECT_EQ(core.cycle(), 0);
      },
      config);
  EXPECT_EQ(refusal([](DataMovementCore& core) { core.get_arg_val(2); }, config),
            kBegin + "get_arg_val: there is no runtime argument 2; it has 2");
  EXPECT_EQ(refusal([](DataMovementCore& core) { core.get_compile_time_arg_val(1); }, config),
            kBegin + "get_compile_time_arg_val: there is no compile-time argument 1; it has 1");
  EXPECT_EQ(refusal([](DataMovementCore& core) { core.get_semaphore(1); }, config),
            kBegin + "get_semaphore: there is no semaphore 1; the program has 1");
}

TEST(DataMovementCore, KnowsAddresses) {
  Bench bench;
  run(bench, [](DataMovementCore& core) {
    EXPECT_EQ(core.get_noc_addr(3, 2, 5).tile, kFar);
    EXPECT_EQ(core.get_noc_addr(3, 2, 5).offset, 5u);
    EXPECT_EQ(core.get_noc_addr(5).tile, kCore);
    const NocMulticastAddress all = core.get_noc_multicast_addr(1, 1, 3, 2, 9);
    EXPECT_EQ(all.first, kCore);
    EXPECT_EQ(all.last, kFar);
    EXPECT_EQ(all.offset, 9u);
  });
  const machine::Chip& chip = bench.network.chip();
  EXPECT_EQ(multicast_destinations(chip, kCore, kSquare.on(0), false), 3);
  EXPECT_EQ(multicast_destinations(chip, kCore, kSquare.on(0), true), 4);
  EXPECT_EQ(multicast_destinations(chip, kFar, kSquare.on(0), false), 4);
  EXPECT_EQ(multicast_destinations(chip, kFar, {{0, 0}, {9, 9}, 0}, true), 9);
}

TEST(DataMovementCore, RunsWhereThereAreKernels) {
  const Kernel nothing = [](DataMovementCore&) {};
  EXPECT_EQ(refusal(nothing, {.core = {4, 1}, .name = "k"}),
            "kernel 'k' on core (4, 1): it is outside the 4 x 4 grid");
  EXPECT_EQ(refusal(nothing, {.core = {0, 0}, .name = "k"}),
            "kernel 'k' on core (0, 0): it is a dram tile; use a worker or an Ethernet tile");
  EXPECT_EQ(refusal(nothing, {.core = {2, 0}, .name = "k"}),
            "kernel 'k' on core (2, 0): it is a harvested tile; use a worker or an Ethernet tile");
  EXPECT_EQ(refusal(nothing, {.core = kCore, .name = "k", .noc_index = 2}),
            "kernel 'k' on core (1, 1): its NoC is 2; it must be 0 or 1");
  Bench bench;
  bench.put({1, 0}, 0, pattern(64, 1));
  run(bench,
      [](DataMovementCore& core) {
        core.noc_async_write(0, kFarTarget, 64);
        core.noc_async_write_barrier();
      },
      {.core = {1, 0}, .name = "on Ethernet"});
  EXPECT_EQ(bench.get(kFar, kTarget, 64), pattern(64, 1));
}

TEST(DataMovementCore, ReachesItsOwnMemory) {
  Bench bench;
  run(bench, [](DataMovementCore& core) {
    core.store_word(12, 5);
    EXPECT_EQ(core.load_word(12), 5u);
    core.store(4000, pattern(500, 1));
    Data bytes(500);
    core.load(4000, bytes);
    EXPECT_EQ(bytes, pattern(500, 1));
    EXPECT_EQ(core.cycle(), 0);
    core.work(7);
    EXPECT_EQ(core.cycle(), 7);
    core.work_until(5);
    EXPECT_EQ(core.cycle(), 7);
  });
  EXPECT_EQ(refusal([](DataMovementCore& core) { core.store_word(1499136, 1); }),
            kBegin +
                "store_word: core (1, 1) accesses 4 bytes at offset 1499136 of its memory, which "
                "has 1499136");
  EXPECT_EQ(refusal([](DataMovementCore& core) { core.load_word(2); }),
            kBegin +
                "load_word: core (1, 1) accesses a word at offset 2 of its memory; it must be at a "
                "multiple of 4");
  EXPECT_EQ(
      refusal([](DataMovementCore& core) { core.store(1499130, pattern(8, 1)); }),
      kBegin +
          "store: core (1, 1) accesses 8 bytes at offset 1499130 of its memory, which has 1499136");
  EXPECT_EQ(refusal([](DataMovementCore& core) { core.noc_semaphore_wait(6, 1); }),
            kBegin +
                "noc_semaphore_wait: core (1, 1) accesses a word at offset 6 of its memory; it "
                "must be at a multiple of 4");
}

// --- reads and writes ---------------------------------------------------------------------------

TEST(DataMovementCore, ReadsAndWritesWithAndWithoutState) {
  using Call = void (*)(DataMovementCore&);
  const std::vector<std::pair<std::string, Call>> writes{
      {"noc_async_write",
       [](DataMovementCore& core) { core.noc_async_write(64, kFarTarget, 4096); }},
      {"one_packet",
       [](DataMovementCore& core) { core.noc_async_write_one_packet(64, kFarTarget, 4096); }},
      {"set_state",
       [](DataMovementCore& core) {
         core.noc_async_write_set_state({kFar, 0});
         core.noc_async_write_with_state(64, kTarget, 4096);
       }},
      {"one_packet_set_state",
       [](DataMovementCore& core) {
         core.noc_async_write_one_packet_set_state({kFar, 0}, 4096);
         core.noc_async_write_one_packet_with_state(64, kTarget);
       }},
      {"with_trid",
       [](DataMovementCore& core) {
         core.noc_async_write_one_packet_with_trid(64, kFarTarget, 4096, 3);
       }},
      {"with_trid_set_state",
       [](DataMovementCore& core) {
         core.noc_async_write_one_packet_with_trid_set_state({kFar, 0});
         core.noc_async_write_one_packet_with_trid_with_state(64, kTarget, 4096, 3);
       }},
  };
  for (const auto& [name, call] : writes) {
    Bench bench;
    bench.put(kCore, 64, pattern(4096, 1));
    run(bench, [call = call](DataMovementCore& core) {
      call(core);
      core.noc_async_write_barrier();
    });
    EXPECT_EQ(bench.get(kFar, kTarget, 4096), pattern(4096, 1)) << name;
    EXPECT_EQ(bench.counters().write_acks_received, 1u) << name;
  }
  const std::vector<std::pair<std::string, Call>> reads{
      {"noc_async_read", [](DataMovementCore& core) { core.noc_async_read(kFarTarget, 64, 4096); }},
      {"one_packet",
       [](DataMovementCore& core) { core.noc_async_read_one_packet(kFarTarget, 64, 4096); }},
      {"set_state",
       [](DataMovementCore& core) {
         core.noc_async_read_set_state({kFar, 0});
         core.noc_async_read_with_state(kTarget, 64, 4096);
       }},
      {"one_packet_set_state",
       [](DataMovementCore& core) {
         core.noc_async_read_one_packet_set_state({kFar, 0}, 4096);
         core.noc_async_read_one_packet_with_state(kTarget, 64);
       }},
      {"with_trid",
       [](DataMovementCore& core) {
         core.noc_async_read_one_packet_set_state({kFar, 0}, 4096);
         core.noc_async_read_one_packet_with_state_with_trid(kTarget - 96, 96, 64, 3);
       }},
  };
  for (const auto& [name, call] : reads) {
    Bench bench;
    bench.put(kFar, kTarget, pattern(4096, 2));
    run(bench, [call = call](DataMovementCore& core) {
      call(core);
      core.noc_async_read_barrier();
      Data bytes(4096);
      core.load(64, bytes);
      EXPECT_EQ(bytes, pattern(4096, 2));
    });
    EXPECT_EQ(bench.counters().read_responses_received, 1u) << name;
  }
}

TEST(DataMovementCore, WritesAndReadsDram) {
  Bench bench;
  bench.put(kCore, 0, pattern(20000, 3));
  run(bench, [](DataMovementCore& core) {
    core.noc_async_write(0, {kDram, 4096}, 20000);
    core.noc_async_write_barrier();
    core.noc_async_read({kDram, 4096}, kTarget, 20000);
    core.noc_async_read_barrier();
  });
  EXPECT_EQ(bench.get(kCore, kTarget, 20000), pattern(20000, 3));
}

TEST(DataMovementCore, CallsCostWhatTheirTableSays) {
  Bench bench({.records_requests = true});
  const CallCosts& cost = kCallCosts.of(bench.network.chip());
  run(bench, [&](DataMovementCore& core) {
    const auto costs = [&](int cycles, const std::function<void()>& call) {
      const Cycle before = core.cycle();
      call();
      EXPECT_EQ(core.cycle() - before, cycles);
      core.noc_async_full_barrier();
    };
    costs(cost.write, [&] { core.noc_async_write(0, kFarTarget, 64); });
    costs(cost.read, [&] { core.noc_async_read(kFarTarget, 0, 64); });
    costs(cost.set_state, [&] { core.noc_async_write_set_state(kFarTarget); });
    costs(cost.write_with_state, [&] { core.noc_async_write_with_state(0, kTarget, 64); });
    costs(cost.set_state, [&] { core.noc_async_read_set_state(kFarTarget); });
    costs(cost.read_with_state, [&] { core.noc_async_read_with_state(kTarget, 0, 64); });
    costs(cost.multicast, [&] { core.noc_async_write_multicast(0, kSquare, 64, 3); });
    costs(cost.inline_write, [&] { core.noc_inline_dw_write(kFarTarget, 1); });
    costs(cost.atomic, [&] { core.noc_semaphore_inc(kFarTarget, 1); });
    costs(cost.write, [&] { core.noc_semaphore_set_remote(0, kFarTarget); });
    costs(0, [&] { core.noc_semaphore_set(0, 0); });
  });
  EXPECT_EQ(bench.network.requests().front().issued, cost.write);
}

TEST(DataMovementCore, WaitsForAnInitiatorThatHasWonNoVc) {
  Bench bench({.records_requests = true});
  run(bench, [](DataMovementCore& core) {
    for (int i = 0; i < 3; ++i) core.noc_async_write(0, kFarTarget, 8192);
    core.noc_async_write_barrier();
  });
  const std::vector<noc::RequestTimes>& requests = bench.network.requests();
  EXPECT_EQ(requests[1].issued, requests[0].issued + 22);
  EXPECT_GT(requests[2].issued, requests[1].started);  // a packet of 8 KiB later
  EXPECT_GT(requests[2].issued, requests[1].issued + 256);
}

// The time of 100 read calls, during which three responses are received, or sent to another core.
Cycle cycles_of_reads(bool has_state, bool receives, bool serves) {
  Bench bench;
  noc::Request served = noc::read(kCore, 20'000);  // three responses
  served.core = kFar;
  Cycle cycles = 0;
  run(bench, [&](DataMovementCore& core) {
    if (receives) core.noc_async_read({kFar, kTarget}, 0, 20'000);
    core.work(20);  // until its request has left
    if (has_state) core.noc_async_read_set_state({kFar, kTarget});
    if (serves) bench.network.issue(served);
    const Cycle begin = core.cycle();
    for (int call = 0; call < 100; ++call) {
      if (has_state) {
        core.noc_async_read_with_state(kTarget, 0x8000, 32);
      } else {
        core.noc_async_read({kFar, kTarget}, 0x8000, 32);
      }
    }
    cycles = core.cycle() - begin;
    core.noc_async_read_barrier();
  });
  return cycles;
}

TEST(DataMovementCore, IsNotHeldUpByResponsesThatArriveDuringACall) {
  for (const bool has_state : {false, true}) {
    EXPECT_EQ(cycles_of_reads(has_state, true, false), cycles_of_reads(has_state, false, false));
  }
}

TEST(DataMovementCore, IsHeldUpByEveryResponseThatItSends) {
  for (const bool has_state : {false, true}) {
    EXPECT_EQ(cycles_of_reads(has_state, false, true),
              cycles_of_reads(has_state, false, false) +
                  3 * kCallCosts.of(*machine::tiny_chip()).read_held_up);
  }
}

TEST(DataMovementCore, GoesOnOnceTheLastPacketOfARequestIsHandedOver) {
  Bench bench({.records_requests = true});
  run(bench, [&](DataMovementCore& core) {
    core.noc_async_write(0, kFarTarget, 8192);
    EXPECT_EQ(core.cycle(), 22);
    core.noc_async_write_barrier();
    const Cycle before = core.cycle();
    core.noc_async_write(0, kFarTarget, 5 * 8192);
    EXPECT_EQ(bench.counters().packets_to_start[0], 1u);
    EXPECT_GT(core.cycle(), before + 3 * 256);
    core.noc_async_write_barrier();
  });
}

TEST(DataMovementCore, UsesTheOtherNocWhenTold) {
  Bench bench;
  bench.put(kCore, 0, pattern(64, 1));
  run(bench, [](DataMovementCore& core) {
    core.noc_async_write(0, kFarTarget, 64, {.noc = 1});
    core.noc_async_read(kFarTarget, 128, 64, {.noc = 1});
    core.noc_async_write_multicast(0, {kSquare.last, kSquare.first, kTarget}, 64, 3, {.noc = 1});
    core.noc_semaphore_inc({kFar, kTarget + 64}, 1, {.noc = 1});
    core.noc_async_full_barrier(1);
  });
  EXPECT_EQ(bench.counters(kCore, 0).writes_issued, 0u);
  EXPECT_EQ(bench.counters(kCore, 1).write_acks_received, 4u);
  EXPECT_EQ(bench.counters(kCore, 1).read_responses_received, 1u);
  EXPECT_EQ(bench.counters(kCore, 1).atomic_responses_received, 1u);
  EXPECT_EQ(bench.get({2, 2}, kTarget, 64), pattern(64, 1));
  EXPECT_EQ(refusal([](DataMovementCore& core) { core.noc_async_read_barrier(2); }),
            kBegin + "noc_async_read_barrier: there is no NoC 2; choose 0 or 1");
  EXPECT_EQ(
      refusal([](DataMovementCore& core) { core.noc_async_write(0, kFarTarget, 64, {.noc = -2}); }),
      kBegin + "noc_async_write: there is no NoC -2; choose 0 or 1");
}

TEST(DataMovementCore, NamesTheCallThatTheNetworkRefuses) {
  EXPECT_EQ(refusal([](DataMovementCore& core) { core.noc_async_write(0, {{9, 9}, 0}, 64); }),
            kBegin +
                "noc_async_write: core (1, 1), NoC 0: the write of 64 bytes to (9, 9) leaves "
                "the 4 x 4 grid");
  EXPECT_EQ(refusal([](DataMovementCore& core) { core.noc_async_read({{2, 0}, 0}, 0, 64); }),
            kBegin +
                "noc_async_read: core (1, 1), NoC 0: the read of 64 bytes from (2, 0) reaches "
                "a harvested tile, which has no memory");
  EXPECT_EQ(
      refusal([](DataMovementCore& core) { core.noc_semaphore_inc(kFarTarget, 1, {.vc = 4}); }),
      kBegin +
          "noc_semaphore_inc: core (1, 1), NoC 0: the atomic increment to (3, 2) uses VC 4; it "
          "must be 0 to 3 for unicasts");
  EXPECT_EQ(refusal([](DataMovementCore& core) { core.noc_inline_dw_write({kDram, 0}, 1); }),
            kBegin +
                "noc_inline_dw_write: core (1, 1), NoC 0: the inline write to (0, 0) reaches a "
                "dram tile; only L1 accepts it");
}

TEST(DataMovementCore, RefusesMoreThanOnePacket) {
  const auto sentence = [](const std::string& call) {
    return kBegin + call + ": 8193 bytes do not fit into one packet; use at most 8192";
  };
  EXPECT_EQ(
      refusal([](DataMovementCore& core) { core.noc_async_write_one_packet(0, kFarTarget, 8193); }),
      sentence("noc_async_write_one_packet"));
  EXPECT_EQ(refusal([](DataMovementCore& core) {
              core.noc_async_write_one_packet_set_state(kFarTarget, 8193);
            }),
            sentence("noc_async_write_one_packet_set_state"));
  EXPECT_EQ(refusal([](DataMovementCore& core) {
              core.noc_async_write_one_packet_with_trid(0, kFarTarget, 8193, 1);
            }),
            sentence("noc_async_write_one_packet_with_trid"));
  EXPECT_EQ(refusal([](DataMovementCore& core) {
              core.noc_async_write_one_packet_with_trid_set_state(kFarTarget);
              core.noc_async_write_one_packet_with_trid_with_state(0, kTarget, 8193, 1);
            }),
            sentence("noc_async_write_one_packet_with_trid_with_state"));
  EXPECT_EQ(refusal([](DataMovementCore& core) {
              core.noc_async_write_multicast_one_packet(0, kSquare, 8193, 3);
            }),
            sentence("noc_async_write_multicast_one_packet"));
  EXPECT_EQ(
      refusal([](DataMovementCore& core) { core.noc_async_read_one_packet(kFarTarget, 0, 8193); }),
      sentence("noc_async_read_one_packet"));
  EXPECT_EQ(refusal([](DataMovementCore& core) {
              core.noc_async_read_one_packet_set_state(kFarTarget, 8193);
            }),
            sentence("noc_async_read_one_packet_set_state"));
}

TEST(DataMovementCore, RefusesAStateThatIsNotSetAnyMore) {
  const std::string why =
      ": no state is set on NoC 0: call set_state first, without a call without state after it";
  EXPECT_EQ(refusal([](DataMovementCore& core) {
              core.noc_async_write_one_packet_with_state(0, kTarget);
            }),
            kBegin + "noc_async_write_one_packet_with_state" + why);
  EXPECT_EQ(refusal([](DataMovementCore& core) {
              core.noc_async_read_one_packet_set_state(kFarTarget, 64, {.noc = 1});
              core.noc_async_read_one_packet_with_state(kTarget, 0);
            }),
            kBegin + "noc_async_read_one_packet_with_state" + why);
  EXPECT_EQ(refusal([](DataMovementCore& core) {
              core.noc_async_write_set_state(kFarTarget);
              core.noc_async_write_multicast(0, kSquare, 64, 3);
              core.noc_async_write_with_state(0, kTarget, 64);
            }),
            kBegin + "noc_async_write_with_state" + why);
  EXPECT_EQ(refusal([](DataMovementCore& core) {
              core.noc_inline_dw_write_set_state(kFarTarget);
              core.noc_semaphore_inc(kFarTarget, 1);
              core.noc_inline_dw_write_with_state(1);
            }),
            kBegin + "noc_inline_dw_write_with_state" + why);
  Bench bench;
  run(bench, [](DataMovementCore& core) {  // calls of another kind leave it
    core.noc_async_write_one_packet_set_state(kFarTarget, 64);
    core.noc_async_read(kFarTarget, 0, 64);
    core.noc_semaphore_inc({kFar, 0}, 1);
    core.noc_async_write_one_packet_with_state(0, kTarget);
    core.noc_async_write_one_packet_with_state(0, kTarget + 64);
    core.noc_async_full_barrier();
  });
  EXPECT_EQ(bench.counters().write_acks_received, 2u);
}

// --- multicasts ---------------------------------------------------------------------------------

TEST(DataMovementCore, MulticastsToWorkersAndToItself) {
  for (const int noc : {0, 1}) {
    const NocMulticastAddress square =
        noc == 0 ? kSquare : NocMulticastAddress{kSquare.last, kSquare.first, kTarget};
    Bench bench;
    bench.put(kCore, 0, pattern(9000, 1));
    run(bench, [noc, square](DataMovementCore& core) {
      core.noc_async_write_multicast(0, square, 9000, 3, {.noc = noc});
      core.noc_async_write_barrier(noc);
    });
    for (const Coordinate worker : kSquareWorkers) {
      EXPECT_EQ(bench.get(worker, kTarget, 9000), pattern(9000, 1));
    }
    EXPECT_EQ(bench.get(kCore, kTarget, 9000), Data(9000));
    EXPECT_EQ(bench.get({3, 3}, kTarget, 9000), Data(9000));
    run(bench, [noc, square](DataMovementCore& core) {
      core.noc_async_write_multicast_loopback_src(0, square, 9000, 4, {.noc = noc});
      core.noc_async_write_barrier(noc);
    });
    EXPECT_EQ(bench.get(kCore, kTarget, 9000), pattern(9000, 1));
  }
}

TEST(DataMovementCore, LinksMulticasts) {
  Bench bench({.records_requests = true});
  bench.put(kCore, 0, pattern(64, 1));
  run(bench, [](DataMovementCore& core) {
    core.noc_async_write_multicast_one_packet(0, kSquare, 64, 3, {.is_linked = true});
    core.noc_async_write_multicast_one_packet(0, kSquare, 64, 3, {.is_linked = false});
    core.noc_async_write_multicast_one_packet(0, kSquare, 64, 3);
    core.noc_async_write_barrier();
  });
  const auto took = [&](std::size_t number) {
    const noc::RequestTimes& times = bench.network.requests()[number];
    return times.sent - times.issued;
  };
  EXPECT_LT(took(1), took(2));  // its path was there
}

TEST(DataMovementCore, RefusesAWrongNumberOfDestinations) {
  EXPECT_EQ(
      refusal([](DataMovementCore& core) { core.noc_async_write_multicast(0, kSquare, 64, 4); }),
      kBegin +
          "noc_async_write_multicast: has 4 destinations, but the rectangle (1, 1) to "
          "(2, 2) has 3 workers other than this core");
  EXPECT_EQ(refusal([](DataMovementCore& core) {
              core.noc_semaphore_set_multicast_loopback_src(0, kSquare, 3);
            }),
            kBegin +
                "noc_semaphore_set_multicast_loopback_src: has 3 destinations, but the "
                "rectangle (1, 1) to (2, 2) has 4 workers");
}

TEST(DataMovementCore, RefusesTheNumberOfDestinationsOfSwappedCorners) {
  EXPECT_EQ(refusal([](DataMovementCore& core) {
              core.noc_async_write_multicast(0, {{3, 1}, {1, 3}, kTarget}, 64, 8);
            }),
            kBegin +
                "noc_async_write_multicast: has 8 destinations, but the rectangle (3, 1) to (1, "
                "3), which goes round the torus on NoC 0 over columns 3 and 0 to 1 and rows 1 to "
                "3, has 5 workers other than this core; the rectangle (1, 1) to (3, 3) has 8");
  EXPECT_EQ(refusal([](DataMovementCore& core) {
              core.noc_async_write_multicast(0, {{1, 1}, {1, 3}, kTarget}, 64, 7, {.noc = 1});
            }),
            kBegin +
                "noc_async_write_multicast: has 7 destinations, but the rectangle (1, 1) to (1, "
                "3), which goes round the torus on NoC 1 over column 1 and rows 3 and 0 to 1, has "
                "1 worker other than this core");
}

}  // namespace
}  // namespace towpath::tenstorrent
