// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "chip_bench.hpp"
#include "chips.hpp"
#include "ethernet_cluster.hpp"
#include "sentence.hpp"

// Kernels on Ethernet cores, and the clusters and devices that they run on. Sends cost 22 cycles
// of 1 ns, a poll 8, the base firmware 100; a queue is busy for 56 ns and the fetch; the path takes
// 400 ns.

namespace towpath::tenstorrent {
namespace {

using namespace literals;
using machine::Coordinate;
using machine::TileKind;
using noc::Cycle;
using noc::pattern;

const EthernetKernel kNothing = [](EthernetCore&) {};

// --- devices ------------------------------------------------------------------------------------

TEST(Device, KnowsItsEthernetCoresAndWhatTheyAreJoinedTo) {
  machine::ChipCluster description;
  description.name = "two";
  const auto chip = machine::build_chip(machine::drawn_chip({"eeee", "wwww"}));
  description.chips = {{.chip = chip}, {.chip = chip}};
  description.links = {{{{{0, 2}, {1, 0}}}, true}, {{{{0, 3}, {1, 1}}}}};
  Cluster cluster(machine::build_chip_cluster(description), {});
  Device& device = cluster.device(0);
  EXPECT_EQ(device.get_active_ethernet_cores(false), (std::vector<LogicalCore>{{0, 2}, {0, 3}}));
  EXPECT_EQ(device.get_active_ethernet_cores(true), (std::vector<LogicalCore>{{0, 3}}));
  EXPECT_EQ(device.get_connected_ethernet_core({0, 3}), std::pair(1, LogicalCore{0, 1}));
  EXPECT_EQ(cluster.device(1).get_connected_ethernet_core({0, 0}), std::pair(0, LogicalCore{0, 2}));
  EXPECT_EQ(device.ethernet_core({0, 2}), (Coordinate{2, 0}));
  EXPECT_EQ(device.id(), 0);
}

TEST(Device, RefusesEthernetCoresThatItHasNot) {
  Pair pair;
  Device& device = pair.cluster.device(0);
  EXPECT_EQ(sentence_of([&] { device.ethernet_core({0, 4}); }),
            "chip 0 has no Ethernet core (0, 4); it has (0, 0) to (0, 3)");
  EXPECT_EQ(sentence_of([&] { device.ethernet_core({1, 0}); }),
            "chip 0 has no Ethernet core (1, 0); it has (0, 0) to (0, 3)");
  EXPECT_EQ(sentence_of([&] { device.get_connected_ethernet_core({0, 1}); }),
            "Ethernet core (0, 1) of chip 0 has no link");
  EXPECT_EQ(sentence_of([&] { pair.cluster.device(2); }),
            "cluster 'test' has no chip 2; it has 0 to 1");
}

TEST(Program, RefusesEthernetKernelsThatCannotBe) {
  machine::ChipCluster description = *two_chips(2);
  description.links[1].is_reserved = true;
  Cluster cluster(machine::build_chip_cluster(description), {});
  Program& program = cluster.create_program(0);
  program.create_kernel({0, 0}, {.name = "a"}, kNothing);
  EXPECT_EQ(
      sentence_of([&] { program.create_kernel({0, 0}, {.name = "b", .noc_index = 1}, kNothing); }),
      "kernel 'a' on core (0, 0) of chip 0 and kernel 'b' are both on Ethernet core (0, 0), which "
      "can run only one kernel");
  EXPECT_EQ(sentence_of([&] { program.create_kernel({0, 1}, {.name = "b"}, kNothing); }),
            "kernel 'b': the link of Ethernet core (0, 1) of chip 0 belongs to the dispatcher; use "
            "get_active_ethernet_cores(true), which leaves such cores out");
}

TEST(Program, HasPlacesAndSemaphoresOnEthernetCores) {
  Pair pair;
  Program& program = pair.cluster.create_program(0);
  // Behind the 16 bytes for handshakes, at a multiple of 32.
  EXPECT_EQ(program.allocate(100, TileKind::ethernet), EthernetCore::handshake_scratch() + 32);
  EXPECT_EQ(program.allocate(100), 0u);
  const std::size_t semaphore = program.create_semaphore(7, TileKind::ethernet);
  std::uint32_t seen = 0;
  program.create_kernel({0, 0}, {.name = "k"}, [&](EthernetCore& core) {
    seen = core.load_word(core.get_semaphore(semaphore));
  });
  pair.cluster.run();
  EXPECT_EQ(seen, 7u);
}

// Chip 0 runs two programs, chip 1 three; a program begins when the one before is over.
TEST(Device, RunsItsProgramsOneAfterTheOther) {
  Pair pair({.seed = 3, .start_skew_cycles = 50, .program_skew_cycles = 500});
  std::vector<Program*> programs;
  for (const int chip : {0, 1, 0, 1, 1}) {
    Program& program = pair.cluster.create_program(chip);
    for (int x = 0; x < 3; ++x) {
      program.create_kernel({.core = {x, 1}, .name = "k"},
                            [](DataMovementCore& core) { core.work(1000); });
    }
    programs.push_back(&program);
  }
  EXPECT_EQ(programs[3]->generation(), 1);
  EXPECT_EQ(programs[4]->generation(), 2);
  const Time end = pair.cluster.run();
  std::set<Cycle> begins;
  const auto follows = [&](int second, int first) {
    for (const auto& times : programs[static_cast<std::size_t>(second)]->result().kernels) {
      const Cycle before = programs[static_cast<std::size_t>(first)]->result().cycles;
      EXPECT_GE(times.begin, before);
      EXPECT_LE(times.begin, before + 550);
      EXPECT_EQ(times.end, times.begin + 1000);
      begins.insert(times.begin - before);
    }
  };
  follows(2, 0);
  follows(3, 1);
  follows(4, 3);
  EXPECT_GT(begins.size(), 6u);  // skewed each in its own way
  EXPECT_EQ(end, Time::from_ns(static_cast<double>(programs[4]->result().cycles)));
}

// --- sending ------------------------------------------------------------------------------------

// Packets over channel 1 with a separate sync word, as the guide has it.
constexpr int kPackets = 5;
constexpr std::uint64_t kPacketBytes = 4096;

void send_packets(EthernetCore& core) {
  handshake(core, true);
  for (unsigned packet = 0; packet < kPackets; ++packet) {
    core.store(kBuffer, pattern(kPacketBytes, packet));
    core.eth_send_bytes_over_channel(kBuffer, kBuffer, kPacketBytes, 1, kPacketBytes,
                                     kPacketBytes / 16);
    core.eth_wait_for_receiver_channel_done(1);
  }
}

void receive_packets(EthernetCore& core, std::vector<noc::Data>& seen) {
  handshake(core, false);
  for (int packet = 0; packet < kPackets; ++packet) {
    core.eth_wait_for_bytes_on_channel(kPacketBytes, 1);
    EXPECT_EQ(core.load_word(EthernetCore::bytes_sent_at(1)), kPacketBytes);
    seen.emplace_back(kPacketBytes);
    core.load(kBuffer, seen.back());
    core.eth_receiver_channel_done(1);
  }
}

TEST(EthernetCore, SendsOverAChannelUnderAnySkew) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Pair pair({.seed = seed, .start_skew_cycles = 100, .program_skew_cycles = 20'000});
    std::vector<noc::Data> seen;
    pair.create(send_packets, [&](EthernetCore& core) { receive_packets(core, seen); });
    const Failure failure = run_to_failure(pair.cluster);
    ASSERT_EQ(failure.sentence, "");
    ASSERT_EQ(seen.size(), std::size_t{kPackets});
    for (unsigned packet = 0; packet < kPackets; ++packet) {
      EXPECT_EQ(seen[packet], pattern(kPacketBytes, packet));
    }
  }
}

TEST(EthernetCore, TakesTheSameTimeWithoutData) {
  const auto time = [](bool carries_data) {
    Pair pair({.carries_data = carries_data});
    std::vector<noc::Data> seen;
    pair.create(send_packets, [&](EthernetCore& core) { receive_packets(core, seen); });
    return pair.cluster.run();
  };
  EXPECT_EQ(time(true), time(false));
}

TEST(EthernetCore, GoesOnWithAChannelInTheNextProgram) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Pair pair({.seed = seed, .program_skew_cycles = 50'000});
    std::vector<noc::Data> seen;
    for (int program = 0; program < 3; ++program) {
      pair.create(send_packets, [&](EthernetCore& core) { receive_packets(core, seen); });
    }
    ASSERT_EQ(run_to_failure(pair.cluster).sentence, "");
    EXPECT_EQ(seen.size(), std::size_t{3 * kPackets});
  }
}

// The roles of a handshake change from one program to the next.
TEST(EthernetCore, ShakesHandsEitherWayRound) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Pair pair({.seed = seed, .program_skew_cycles = 5'000});
    for (int program = 0; program < 4; ++program) {
      pair.create([=](EthernetCore& core) { handshake(core, program % 2 == 0); },
                  [=](EthernetCore& core) { handshake(core, program % 2 == 1); });
    }
    EXPECT_EQ(run_to_failure(pair.cluster).sentence, "");
  }
}

// The other handshake: a magic word is sent again and again until the peer sends it back.
TEST(EthernetCore, ShakesHandsWithAMagicWord) {
  constexpr std::uint32_t kMagic = 0xaa;
  const auto shake_hands = [](EthernetCore& core, bool is_master) {
    const std::uint64_t own = EthernetCore::handshake_scratch();
    const std::uint64_t to_send = own + 16;
    core.store_word(own, 0);
    core.store_word(to_send, kMagic);
    while (core.load_word(own) != kMagic) {
      if (is_master) core.eth_send_packet(0, to_send / 16, own / 16, 1);
      if (is_master) {
        core.work(500);
      } else {
        core.idle(8);
      }
    }
    if (!is_master) core.eth_send_packet(0, to_send / 16, own / 16, 1);
  };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Pair pair({.seed = seed, .program_skew_cycles = 20'000});
    for (int program = 0; program < 3; ++program) {
      pair.create(
          [&](EthernetCore& core) {
            shake_hands(core, true);
            core.store(kBuffer, pattern(64, 1));
            core.eth_send_bytes_over_channel(kBuffer, kBuffer, 64, 1, 64, 4);
            core.eth_wait_for_receiver_channel_done(1);
          },
          [&](EthernetCore& core) {
            shake_hands(core, false);
            core.eth_wait_for_bytes_on_channel(64, 1);
            core.eth_receiver_channel_done(1);
          });
    }
    EXPECT_EQ(run_to_failure(pair.cluster).sentence, "");
  }
}

TEST(EthernetCore, SendsBytesInPacketsOfSixteenUnlessTold) {
  Pair pair;
  std::uint64_t by_default = 0;
  std::uint64_t at_once = 0;
  pair.create(
      [&](EthernetCore& core) {
        handshake(core, true);
        const auto& commands =
            pair.cluster.device(0).ethernet_tile({0, 0}).port().counters().commands;
        std::uint64_t before = commands;
        core.eth_send_bytes(kBuffer, kBuffer, 256);
        by_default = commands - before;
        before = commands;
        core.eth_send_bytes(kBuffer, kBuffer, 256, 256, 16);
        at_once = commands - before;
        EXPECT_EQ(core.load_word(EthernetCore::bytes_sent_at(0)), 512u);
        core.eth_wait_for_receiver_done();
      },
      [](EthernetCore& core) {
        handshake(core, false);
        core.eth_wait_for_bytes(512);
        core.eth_receiver_done();
      });
  pair.cluster.run();
  EXPECT_EQ(by_default, 16u);
  EXPECT_EQ(at_once, 1u);
}

// A command of 4096 bytes is fetched for 56 + 32 ns. The first is taken when its call returns, in
// cycle 22; the kernel looks again every 8 cycles from there on and sees the queue free in the look
// that ends in cycle 22 + 96; the second call returns 22 cycles later. Two are then not yet on the
// wire, whose 4246 bytes take 339.68 ns from cycle 22 on.
TEST(EthernetCore, WaitsForAQueueThatIsBusy) {
  std::vector<Cycle> returns;
  Pair pair;
  pair.create(
      [&](EthernetCore& core) {
        handshake(core, true);
        const Cycle start = core.cycle();
        for (int i = 0; i < 3; ++i) {
          core.eth_send_packet(0, kBuffer / 16, kBuffer / 16 + 256 * i, 256);
          returns.push_back(core.cycle() - start);
          if (i == 0) {
            EXPECT_TRUE(core.eth_txq_is_busy());
          }
        }
        EXPECT_FALSE(core.eth_txq_is_busy(1));
        core.eth_send_payload_complete_signal_over_channel(1, 3 * 4096);
        core.eth_wait_for_receiver_channel_done(1);
      },
      [](EthernetCore& core) {
        handshake(core, false);
        core.eth_wait_for_bytes_on_channel(3 * 4096, 1);
        core.eth_receiver_channel_done(1);
      });
  ASSERT_EQ(run_to_failure(pair.cluster).sentence, "");
  ASSERT_EQ(returns.size(), 3u);
  EXPECT_EQ(returns[0], 22);
  // The test of the queue took a poll, to cycle 30; looks end in cycles 38, 46, ..., 110, and the
  // next one sees that it was free in cycle 110.
  EXPECT_EQ(returns[1], 118 + 22);
  EXPECT_GT(returns[2], 22 + 339);
  EXPECT_LE(returns[2], 22 + 340 + 16 + 22);
}

// The call takes 22 ns, the queue is busy for 56; 16 bytes and a frame's 50 are on the wire for
// 5.28 ns, and once more at the far end.
TEST(EthernetCore, WritesARemoteRegisterWhichTakesTimeAndChangesNothing) {
  Pair pair({.finds_hazards = false});
  Cycle called = 0;
  Cycle free = 0;
  pair.create(
      [&](EthernetCore& core) {
        const Cycle begin = core.cycle();
        core.eth_write_remote_reg(0, 0x20000, 7);
        called = core.cycle() - begin;
        while (core.eth_txq_is_busy()) {
        }
        free = core.cycle() - begin;
      },
      kNothing);
  pair.cluster.run();
  EXPECT_EQ(called, 22);
  EXPECT_GE(free, 22 + 56);
  EXPECT_LT(free, 22 + 56 + 2 * 8);
  EXPECT_EQ(pair.word(1, 0x20000), 0u);
  const ethernet::PortCounters& far =
      pair.cluster.device(1).ethernet_tile({0, 0}).port().counters();
  EXPECT_EQ(far.frames_received, 1u);
}

TEST(EthernetCore, AcknowledgesInTwoLevels) {
  Pair pair;
  constexpr std::uint64_t kAckWord = kBuffer - 16;
  std::vector<std::string> seen;
  pair.create(
      [&](EthernetCore& core) {
        handshake(core, true);
        core.store_word(kBuffer, 77);
        core.eth_send_bytes_over_channel(kBuffer, kBuffer, 16, 2);
        EXPECT_FALSE(core.eth_is_receiver_channel_send_acked(2));
        while (!core.eth_is_receiver_channel_send_acked(2)) core.idle(8);
        seen.push_back("acked");
        core.store_word(kBuffer, 78);  // the source is free
        EXPECT_FALSE(core.eth_is_receiver_channel_send_done(2));
        while (!core.eth_is_receiver_channel_send_done(2)) core.idle(8);
        seen.push_back("done");
        core.eth_clear_sender_channel_ack(2);
      },
      [&](EthernetCore& core) {
        core.store_word(kAckWord, 1);
        core.store_word(kAckWord + 4, 1);
        handshake(core, false);
        while (!core.eth_bytes_are_available_on_channel(2)) core.idle(8);
        core.eth_receiver_channel_ack(2, kAckWord);
        core.work(5000);
        EXPECT_EQ(core.load_word(kBuffer), 77u);
        core.eth_receiver_channel_done(2);
      });
  ASSERT_EQ(run_to_failure(pair.cluster).sentence, "");
  EXPECT_EQ(seen, (std::vector<std::string>{"acked", "done"}));
}

TEST(EthernetCore, RefusesAnAcknowledgementThatSaysNothing) {
  Pair pair;
  pair.create([](EthernetCore& core) { handshake(core, true); },
              [](EthernetCore& core) {
                handshake(core, false);
                core.eth_receiver_channel_ack(1, kBuffer);
              });
  EXPECT_EQ(run_to_failure(pair.cluster).sentence,
            "kernel 'receiver' on core (0, 0) of chip 1 in eth_receiver_channel_ack: the word at "
            "offset 131072 has bytes_sent = 0, receiver_ack = 0; both must be 1");
}

TEST(EthernetCore, AcknowledgesOnce) {
  Pair pair;
  pair.create([](EthernetCore& core) { core.eth_receiver_acknowledge(); },
              [](EthernetCore& core) { core.eth_wait_receiver_acknowledge(); });
  EXPECT_EQ(run_to_failure(pair.cluster).sentence, "");
  EXPECT_EQ(pair.word(1, EthernetCore::bytes_sent_at(0)), 1u);
  EXPECT_EQ(pair.word(1, EthernetCore::receiver_ack_at(0)), 1u);
}

TEST(EthernetCore, NamesCallsThatItsPortCannotCarryOut) {
  const auto sentence = [](const EthernetKernel& kernel) {
    Pair pair;
    pair.create(kernel, kNothing);
    return run_to_failure(pair.cluster).sentence;
  };
  EXPECT_EQ(sentence([](EthernetCore& core) { core.eth_send_packet(0, 0, 0x4000, 1); }),
            "kernel 'sender' on core (0, 0) of chip 0 in eth_send_packet: Ethernet core (0, 0) of "
            "chip 0 was given a destination of 0x40000 for 16 bytes; the L1 of Ethernet core "
            "(0, 0) of chip 1 ends at 0x40000");
  EXPECT_EQ(sentence([](EthernetCore& core) { core.eth_wait_for_bytes_on_channel(16, 8); }),
            "kernel 'sender' on core (0, 0) of chip 0 in eth_wait_for_bytes_on_channel: there is "
            "no channel 8; it must be 0 to 7");
  EXPECT_EQ(sentence([](EthernetCore& core) { core.eth_txq_is_busy(2); }),
            "kernel 'sender' on core (0, 0) of chip 0 in eth_txq_is_busy: Ethernet core (0, 0) of "
            "chip 0 has no queue 2; its queues are 0 to 1");
  EXPECT_EQ(sentence([](EthernetCore& core) { core.eth_send_packet(1, 0, 0, 1); }),
            "kernel 'sender' on core (0, 0) of chip 0 in eth_send_packet: there is no queue 1 for "
            "kernels; it must be 0 to 0");
  EXPECT_EQ(sentence([](EthernetCore& core) { core.eth_send_bytes(0, 0, 16, 0, 1); }),
            "kernel 'sender' on core (0, 0) of chip 0 in eth_send_bytes: its packets have 0 bytes "
            "and 1 words; both must be at least 1");
}

// The receiver core passes what arrived to its sibling, which sends it on, back to the first chip.
TEST(EthernetCore, FetchesFromItsSiblingWhileItWaits) {
  Pair pair({}, 2);
  constexpr std::uint64_t kBytes = 64;
  Program& there = pair.cluster.create_program(1);
  const std::size_t filled = there.create_semaphore(0, TileKind::ethernet);
  const std::size_t fetched = there.create_semaphore(0, TileKind::ethernet);
  const Coordinate receiver{0, 0};
  const Coordinate sender{1, 0};
  there.create_kernel({0, 0}, {.name = "receiver"}, [&](EthernetCore& core) {
    core.store(kBuffer, pattern(kBytes, 5));
    core.noc_semaphore_inc({sender, core.get_semaphore(filled)}, 1);
    core.noc_async_atomic_barrier();
    core.eth_noc_semaphore_wait(core.get_semaphore(fetched), 1);
  });
  there.create_kernel({0, 1}, {.name = "sender"}, [&](EthernetCore& core) {
    handshake(core, true);
    core.eth_send_bytes(kBuffer, kBuffer, 16);
    core.eth_wait_for_remote_receiver_done_and_get_local_receiver_data(
        core.get_semaphore(filled), {receiver, core.get_semaphore(fetched)}, {receiver, kBuffer},
        kBuffer + 4096, kBytes);
    core.noc_async_atomic_barrier();
    noc::Data data(kBytes);
    core.load(kBuffer + 4096, data);
    EXPECT_EQ(data, pattern(kBytes, 5));
    EXPECT_EQ(core.load_word(core.get_semaphore(filled)), 0u);
  });
  pair.cluster.create_program(0).create_kernel({0, 1}, {.name = "far"}, [](EthernetCore& core) {
    handshake(core, false);
    core.eth_wait_for_bytes(16);
    core.work(3000);
    core.eth_receiver_done();
  });
  EXPECT_EQ(run_to_failure(pair.cluster).sentence, "");
}

// --- waiting ------------------------------------------------------------------------------------

// Something changes in cycle 1000 and is seen in the first look that begins no earlier.
TEST(EthernetCore, IdlesUntilTheNextLookThatSeesSomething) {
  Pair pair;
  Program& program = pair.cluster.create_program(0);
  std::vector<Cycle> returns;
  program.create_kernel({0, 0}, {.name = "idler"}, [&](EthernetCore& core) {
    for (int i = 0; i < 2; ++i) {
      core.idle(10);
      returns.push_back(core.cycle());
    }
  });
  Cycle first = 0;
  program.create_kernel({.core = {0, 1}, .name = "waker"}, [&](DataMovementCore& core) {
    core.work_until(1000);
    core.noc_inline_dw_write({{0, 0}, kBuffer}, 1);
    core.noc_async_write_barrier();
    first = core.cycle();
    core.work_until(5000);
    core.noc_inline_dw_write({{0, 0}, kBuffer}, 1);  // written, if to the same value
    core.noc_async_write_barrier();
  });
  const auto& simulation = pair.cluster.simulation();
  ASSERT_EQ(run_to_failure(pair.cluster).sentence, "");
  ASSERT_EQ(returns.size(), 2u);
  EXPECT_GT(returns[0], 1000);
  EXPECT_LT(returns[0], first);
  EXPECT_EQ(returns[0] % 10, 0);
  EXPECT_GT(returns[1], 5000);
  EXPECT_EQ((returns[1] - returns[0]) % 10, 0);
  EXPECT_LT(simulation.events(), 400u);  // not one per poll
}

// A change between two looks, while the kernel is busy, is not missed.
TEST(EthernetCore, DoesNotIdlePastAnEarlierChange) {
  Pair pair;
  Program& program = pair.cluster.create_program(0);
  Cycle end = 0;
  program.create_kernel({0, 0}, {.name = "idler"}, [&](EthernetCore& core) {
    core.work_until(2000);
    core.idle(10);
    end = core.cycle();
  });
  program.create_kernel({.core = {0, 1}, .name = "waker"}, [&](DataMovementCore& core) {
    core.work_until(1000);
    core.noc_inline_dw_write({{0, 0}, kBuffer}, 1);
    core.noc_async_write_barrier();
  });
  ASSERT_EQ(run_to_failure(pair.cluster).sentence, "");
  EXPECT_EQ(end, 2010);
}

TEST(EthernetCore, YieldsForTheTimeThatIsDocumented) {
  Pair pair;
  std::vector<Cycle> cycles;
  pair.cluster.create_program(0).create_kernel({0, 0}, {.name = "k"}, [&](EthernetCore& core) {
    core.run_routing();
    cycles.push_back(core.cycle());
    core.check_and_context_switch();
    cycles.push_back(core.cycle());
    core.notify_dispatch_core_done({{3, 1}, 64});
    core.noc_async_atomic_barrier();
  });
  ASSERT_EQ(run_to_failure(pair.cluster).sentence, "");
  EXPECT_EQ(cycles, (std::vector<Cycle>{100, 100'100}));
  EXPECT_EQ(pair.cluster.device(0).memory({3, 1}).load_word(64), 1u);
}

// --- links that go down -------------------------------------------------------------------------

TEST(EthernetCore, GetsItsDataOverALinkThatWasRetrained) {
  const auto run = [](const ethernet::LinkFaults& faults, std::uint64_t* drops) {
    Pair pair({.link_faults = {faults}});
    std::vector<noc::Data> seen;
    pair.create(send_packets, [&](EthernetCore& core) { receive_packets(core, seen); });
    const Failure failure = run_to_failure(pair.cluster);
    EXPECT_EQ(failure.sentence, "");
    for (unsigned packet = 0; packet < seen.size(); ++packet) {
      EXPECT_EQ(seen[packet], pattern(kPacketBytes, packet));
    }
    EXPECT_EQ(seen.size(), std::size_t{kPackets});
    *drops = pair.cluster.link(0).drops();
    return pair.cluster.device(0).over_at();
  };
  std::uint64_t drops = 0;
  const Time healthy = run({}, &drops);
  EXPECT_EQ(drops, 0u);
  const Time dropped = run({.drop_at = 5_us}, &drops);
  EXPECT_EQ(drops, 1u);
  // Training takes 1 ms, and each end needs its turn: after 100,000 polls of 8 cycles the sender,
  // after 1,000,000 the receiver.
  EXPECT_GT(dropped, healthy + 1_ms);
  EXPECT_LT(dropped, healthy + 1_ms + 8_ms + 100_us);
  const Time lossy = run({.frame_loss = 0.2}, &drops);
  EXPECT_GT(lossy, healthy);
}

// A kernel that has not started, or is over, leaves the core to the base firmware.
TEST(Device, TrainsALinkWhoseCoreNoKernelHas) {
  Pair pair({.link_faults = {{.drop_at = 300_ns}}});
  pair.cluster.create_program(0).create_kernel({0, 0}, {.name = "early"},
                                               [](EthernetCore& core) { handshake(core, true); });
  pair.cluster.create_program(1).create_kernel({0, 0}, {.name = "late", .start_cycle = 3'000'000},
                                               [](EthernetCore& core) { handshake(core, false); });
  EXPECT_EQ(run_to_failure(pair.cluster).sentence, "");
  EXPECT_GE(pair.cluster.link(0).drops(), 1u);
}

TEST(EthernetCore, IsNamedWhenItsLinkNeverComesBack) {
  Pair pair({.link_faults = {{.drop_at = 5_us, .dead_time = Time::max()}}});
  std::vector<noc::Data> seen;
  pair.create(send_packets, [&](EthernetCore& core) { receive_packets(core, seen); });
  const Failure failure = run_to_failure(pair.cluster);
  EXPECT_EQ(failure.hazard, "deadlock");
  EXPECT_NE(failure.sentence.find("the link between Ethernet core (0, 0) of chip 0 and Ethernet "
                                  "core (0, 0) of chip 1 is down since 5000 ns and cannot be "
                                  "trained again"),
            std::string::npos)
      << failure.sentence;
}

}  // namespace
}  // namespace towpath::tenstorrent
