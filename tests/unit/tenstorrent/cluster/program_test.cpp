// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "chip_bench.hpp"
#include "sentence.hpp"
#include "towpath/tenstorrent/cluster/chip_program.hpp"

// Kernels that synchronize: the result, its time, and the errors when they do not.

namespace towpath::tenstorrent {
namespace {

using machine::Coordinate;
using noc::Cycle;
using noc::Data;
using noc::kCore;
using noc::kDram;
using noc::kFar;
using noc::pattern;

Data read_memory(Program& program, Coordinate tile, std::uint64_t offset, std::uint64_t size) {
  Data data(size);
  program.memory(tile).read(offset, data);
  return data;
}

// --- what kernels agree on ----------------------------------------------------------------------

// A token goes `rounds` times round all workers; each adds one to it.
struct Ring {
  Ring(std::shared_ptr<const machine::Chip> chip, int rounds, const Program::Options& options)
      : program(chip, options) {
    const std::size_t token = program.create_semaphore(0);
    last_word = program.allocate(noc::kWordBytes);
    const std::vector<Coordinate>& workers = chip->workers;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      const Coordinate next = workers[(i + 1) % workers.size()];
      program.create_kernel({.core = workers[i], .name = "ring"}, [=, this](auto& core) {
        const std::uint64_t word = core.get_semaphore(token);
        for (int round = 0; round < rounds; ++round) {
          if (i > 0 || round > 0) {
            core.noc_semaphore_wait_min(word, 1);
          }
          const std::uint32_t value = core.load_word(word) + 1;
          seen.push_back({i, core.cycle()});
          core.noc_semaphore_set(word, 0);
          core.noc_inline_dw_write(core.get_noc_addr(next.x, next.y, word), value);
          core.noc_async_write_barrier();
          core.store_word(last_word, value);
        }
      });
    }
  }
  struct Seen {
    std::size_t worker;
    Cycle cycle;
  };
  ChipProgram program;
  std::uint64_t last_word = 0;
  std::vector<Seen> seen;
};

TEST(Program, PassesATokenRoundAllWorkers) {
  const auto chip = machine::wormhole_like_chip();
  Ring ring(chip, 3, {});
  const ProgramResult result = ring.program.run();
  for (std::size_t i = 0; i < chip->workers.size(); ++i) {
    EXPECT_EQ(ring.program.memory(chip->workers[i]).load_word(ring.last_word), 2 * 64 + i + 1);
    EXPECT_EQ(result.kernels[i].begin, 0);
    EXPECT_GT(result.kernels[i].end, result.kernels[i].begin);
  }
  ASSERT_EQ(ring.seen.size(), 3u * 64);
  for (std::size_t i = 1; i < ring.seen.size(); ++i) {
    EXPECT_EQ(ring.seen[i].worker, i % 64);
    EXPECT_GT(ring.seen[i].cycle, ring.seen[i - 1].cycle + 22);  // to write it on took that long
  }
  EXPECT_EQ(result.cycles, result.kernels.back().end);  // the last to pass it on
  EXPECT_GT(result.flit_hops, 3 * 64);
}

TEST(Program, TakesTheSameTimeWithoutData) {
  Ring with_data(machine::tiny_chip(), 5, {});
  Ring without(machine::tiny_chip(), 5, {.carries_data = false});
  EXPECT_EQ(with_data.program.run().cycles, without.program.run().cycles);
}

TEST(Program, PlaysPingPong) {
  ChipProgram program(machine::tiny_chip(), {.records_requests = true});
  const std::size_t ball = program.create_semaphore(0);
  constexpr int kRounds = 10;
  std::vector<Cycle> hits;
  const auto player = [&](Coordinate other, std::uint32_t first) {
    return [&, other, first](DataMovementCore& core) {
      const std::uint64_t word = core.get_semaphore(ball);
      for (std::uint32_t round = 0; round < kRounds; ++round) {
        if (first > 0 || round > 0) core.noc_semaphore_wait(word, 2 * round + first);
        if (first == 0) hits.push_back(core.cycle());
        core.noc_semaphore_set(word, 2 * round + first + 1);
        core.noc_semaphore_set_remote(word, core.get_noc_addr(other.x, other.y, word));
      }
      core.noc_async_write_barrier();
    };
  };
  program.create_kernel({.core = {1, 1}, .name = "ping"}, player({1, 3}, 0));
  program.create_kernel({.core = {1, 3}, .name = "pong"}, player({1, 1}, 1));
  program.run();
  ASSERT_EQ(hits.size(), std::size_t{kRounds});
  for (std::size_t i = 2; i < hits.size(); ++i) {
    EXPECT_EQ(hits[i] - hits[i - 1], hits[1] - hits[0]);
  }
}

// Each worker adds one to the first worker's counter; when all have, the first notifies all.
TEST(Program, HoldsABarrierOfAllWorkers) {
  const auto chip = machine::wormhole_like_chip();
  ChipProgram program(chip, {.seed = 5, .start_skew_cycles = 3000});
  const std::size_t arrived = program.create_semaphore(0);
  const std::size_t go = program.create_semaphore(0);
  const Coordinate first = chip->workers.front();
  const Coordinate last = chip->workers.back();
  const auto workers = static_cast<std::uint32_t>(chip->workers.size());
  std::vector<Cycle> entered;
  std::vector<Cycle> left;
  for (const Coordinate worker : chip->workers) {
    program.create_kernel({.core = worker, .name = "barrier"}, [&, worker](auto& core) {
      const std::uint64_t count = core.get_semaphore(arrived);
      const std::uint64_t gate = core.get_semaphore(go);
      entered.push_back(core.cycle());
      core.noc_semaphore_inc(core.get_noc_addr(first.x, first.y, count), 1);
      core.noc_async_atomic_barrier();
      if (worker == first) {
        core.noc_semaphore_wait(count, workers);
        core.noc_semaphore_set(gate, 1);
        core.noc_semaphore_set_multicast(
            gate, core.get_noc_multicast_addr(first.x, first.y, last.x, last.y, gate),
            static_cast<int>(workers) - 1);
        core.noc_async_write_barrier();
      } else {
        core.noc_semaphore_wait(gate, 1);
      }
      left.push_back(core.cycle());
    });
  }
  const ProgramResult result = program.run();
  ASSERT_EQ(left.size(), std::size_t{workers});
  EXPECT_GT(*std::ranges::min_element(left), *std::ranges::max_element(entered));
  EXPECT_GT(*std::ranges::max_element(entered), *std::ranges::min_element(entered) + 1000);
  for (const ProgramResult::KernelTimes& times : result.kernels) {
    EXPECT_GE(times.begin, 0);
    EXPECT_LE(times.begin, 3000);
  }
}

TEST(Program, StartsKernelsWhenTheyAreToldTo) {
  const auto begins = [](std::uint64_t seed) {
    const auto chip = machine::tiny_chip();
    ChipProgram program(chip, {.seed = seed, .start_skew_cycles = 100});
    for (const Coordinate worker : chip->workers) {
      program.create_kernel({.core = worker, .name = "k", .start_cycle = 50},
                            [](DataMovementCore& core) { core.work(10); });
    }
    std::vector<Cycle> cycles;
    for (const ProgramResult::KernelTimes& times : program.run().kernels) {
      EXPECT_EQ(times.end, times.begin + 10);
      cycles.push_back(times.begin);
    }
    return cycles;
  };
  EXPECT_EQ(begins(1), begins(1));
  EXPECT_NE(begins(1), begins(2));
  const std::vector<Cycle> cycles = begins(1);
  EXPECT_GE(*std::ranges::min_element(cycles), 50);
  EXPECT_LE(*std::ranges::max_element(cycles), 150);
}

TEST(Program, AllocatesTheSamePlaceOnEveryWorker) {
  const auto chip = machine::tiny_chip();
  ChipProgram program(chip, {});
  EXPECT_EQ(program.allocate(1), 0u);
  const std::uint64_t second = program.allocate(100);
  EXPECT_EQ(second, 32u);  // the strictest alignment of the chip
  const std::size_t semaphore = program.create_semaphore(9);
  EXPECT_EQ(semaphore, 0u);
  for (const Coordinate worker : chip->workers) {
    EXPECT_EQ(program.memory(worker).load_word(160), 9u);
  }
  std::string sentence;
  try {
    program.allocate(2'000'000);
  } catch (const std::invalid_argument& error) {
    sentence = error.what();
  }
  EXPECT_EQ(sentence, "2000000 bytes of L1 are requested, but only 1498944 of 1499136 are left");
}

TEST(Program, LetsPostedWritesArriveAfterTheLastKernel) {
  Cycle limit = 0;
  for (int i = 0; i < 2; ++i) {  // the second time the run ends right behind the kernel
    ChipProgram program(machine::tiny_chip(), {.cycles_max = limit});
    program.memory(kCore).write(0, pattern(8192, 1));
    program.create_kernel({.core = kCore, .name = "k"}, [](DataMovementCore& core) {
      core.noc_async_write(0, {kFar, 4096}, 8192, {.is_posted = true});
      core.noc_async_posted_writes_flushed();
    });
    limit = program.run().cycles + 1;
    EXPECT_EQ(read_memory(program, kFar, 4096, 8192), pattern(8192, 1));
  }
}

// --- order --------------------------------------------------------------------------------------

// The receiver is notified on `vc` that so many bytes have been written on VC 1, and looks.
Data seen_by_receiver(std::uint64_t size_bytes, int vc) {
  ChipProgram program(machine::tiny_chip(), {});
  const std::uint64_t buffer = program.allocate(size_bytes);
  const std::size_t ready = program.create_semaphore(0);
  program.memory(kCore).write(buffer, pattern(size_bytes, 1));
  Data seen(size_bytes);
  program.create_kernel({.core = kCore, .name = "sender"}, [=](DataMovementCore& core) {
    core.noc_async_write(buffer, {kFar, buffer}, size_bytes, {.vc = 1});
    core.noc_semaphore_inc({kFar, core.get_semaphore(ready)}, 1, {.vc = vc});
    core.noc_async_full_barrier();
  });
  program.create_kernel({.core = kFar, .name = "receiver"}, [=, &seen](DataMovementCore& core) {
    core.noc_semaphore_wait(core.get_semaphore(ready), 1);
    core.load(buffer, seen);
  });
  program.run();
  return seen;
}

TEST(Program, ShowsThatASemaphoreMayOvertakeTheDataItAnnounces) {
  EXPECT_EQ(seen_by_receiver(8192, 1), pattern(8192, 1));
  const Data seen = seen_by_receiver(3 * 8192, 2);
  EXPECT_TRUE(std::equal(seen.end() - 8192, seen.end(), Data(8192).begin()));  // is on its way
}

// --- errors -------------------------------------------------------------------------------------

TEST(Program, RefusesKernelsThatCannotBe) {
  const Kernel nothing = [](DataMovementCore&) {};
  const auto refusal = [&](const KernelConfig& config) -> std::string {
    ChipProgram program(machine::tiny_chip(), {});
    program.create_kernel({.core = kCore, .name = "a"}, nothing);
    program.create_kernel({.core = kCore, .name = "b", .noc_index = 1}, nothing);
    return sentence_of([&] { program.create_kernel(config, nothing); });
  };
  EXPECT_EQ(refusal({.core = kCore, .name = "c", .noc_index = 1}),
            "kernel 'b' on core (1, 1) and kernel 'c' both use NoC 1, which can serve only one "
            "kernel of a core");
  EXPECT_EQ(refusal({.core = {2, 0}, .name = "c"}),
            "kernel 'c' on core (2, 0): it is a harvested tile; use a worker or an Ethernet tile");
  EXPECT_EQ(refusal({.core = {4, 4}, .name = "c"}),
            "kernel 'c' on core (4, 4): it is outside the 4 x 4 grid");
}

TEST(Program, NamesWhoWaitsForWhatInADeadlock) {
  ChipProgram program(machine::tiny_chip(), {});
  const std::size_t flag = program.create_semaphore(0);
  for (const auto& [core, other] : {std::pair{kCore, kFar}, std::pair{kFar, kCore}}) {
    program.create_kernel({.core = core, .name = core == kCore ? "a" : "b"},
                          [=, other = other](DataMovementCore& core) {
                            const std::uint64_t word = core.get_semaphore(flag);
                            core.work(core.config().core.x);
                            core.noc_semaphore_wait_min(word, 1);  // before it is sent
                            core.noc_semaphore_inc({other, word}, 1);
                            core.noc_async_atomic_barrier();
                          });
  }
  EXPECT_EQ(sentence_of<std::runtime_error>([&] { program.run(); }),
            "2 of 2 kernels wait forever: kernel 'a' on core (1, 1) in noc_semaphore_wait_min "
            "since cycle 1: its word at offset 0 is 0 and must become at least 1; kernel 'b' on "
            "core (3, 2) in noc_semaphore_wait_min since cycle 3: its word at offset 0 is 0 and "
            "must become at least 1");
}

TEST(Program, NamesAWaitThatTheOtherKernelsOutlast) {
  ChipProgram program(machine::tiny_chip(), {});
  program.create_kernel({.core = kCore, .name = "waiter"},
                        [](DataMovementCore& core) { core.noc_semaphore_wait(64, 2); });
  program.create_kernel({.core = kFar, .name = "sender"}, [](DataMovementCore& core) {
    core.noc_semaphore_inc({kCore, 64}, 3);  // goes past it
    core.noc_async_atomic_barrier();
    core.work(1'000'000);
  });
  EXPECT_EQ(sentence_of<std::runtime_error>([&] { program.run(); }),
            "1 of 2 kernels wait forever: kernel 'waiter' on core (1, 1) in noc_semaphore_wait "
            "since cycle 0: its word at offset 64 is 3 and must become 2");
}

TEST(Program, NamesThePathThatIsNeverReleased) {
  ChipProgram program(machine::tiny_chip(), {});
  program.create_kernel({.core = kCore, .name = "keeper"}, [](DataMovementCore& core) {
    core.noc_async_write_multicast(0, {{1, 1}, {3, 3}, 4096}, 64, 8, {.is_linked = true});
    core.noc_async_write_barrier();
    core.work_until(900);
    core.noc_semaphore_wait(0, 1);
  });
  program.create_kernel({.core = {2, 2}, .name = "other", .start_cycle = 1000},
                        [](DataMovementCore& core) {
                          core.noc_async_write_multicast(0, {{1, 1}, {3, 3}, 4096}, 64, 8);
                          core.noc_async_write_barrier();
                        });
  EXPECT_EQ(sentence_of<std::runtime_error>([&] { program.run(); }),
            "2 of 2 kernels wait forever: kernel 'keeper' on core (1, 1) in noc_semaphore_wait "
            "since cycle 900: its word at offset 0 is 0 and must become 1; kernel 'other' on core "
            "(2, 2) in noc_async_write_barrier since cycle 1022: its write of 64 bytes to the "
            "rectangle (1, 1) to (3, 3), issued in cycle 1022, has 1 of 1 packets to send; core "
            "(1, 1): the path of its linked multicast to the rectangle (1, 1) to (3, 3) is still "
            "reserved");
}

// A ring of four without the dateline: each packet has its first link and waits for the next.
TEST(Program, NamesThePacketsThatWaitForEachOther) {
  machine::Chip chip = machine::drawn_chip({"wwww"});
  chip.router.has_dateline = false;
  ChipProgram program(machine::build_chip(chip), {});
  for (int x = 0; x < 4; ++x) {
    program.create_kernel({.core = {x, 0}, .name = fmt::format("k{}", x)},
                          [](DataMovementCore& core) {
                            const int to = (core.config().core.x + 2) % 4;
                            for (int i = 0; i < 4; ++i) {
                              core.noc_async_write(0, core.get_noc_addr(to, 0, 65536), 8192);
                            }
                            core.noc_async_write_barrier();
                          });
  }
  const std::string sentence = sentence_of<std::runtime_error>([&] { program.run(); });
  EXPECT_EQ(sentence.find("4 of 4 kernels wait forever: kernel 'k0' on core (0, 0) in "),
            std::size_t{0})
      << sentence;
  EXPECT_NE(sentence.find("the packet from (3, 0) to (1, 0) on VC 1 at (0, 0) waits for the packet "
                          "from (0, 0) to (2, 0)"),
            std::string::npos)
      << sentence;
}

TEST(Program, WaitsForASlowMemory) {
  machine::Chip chip = machine::drawn_chip({"0w"});
  chip.dram.read_cycles = 1'000'000;
  ChipProgram program(machine::build_chip(chip), {});
  program.create_kernel({.core = {1, 0}, .name = "k"}, [](DataMovementCore& core) {
    core.noc_async_read({{0, 0}, 0}, 0, 64);
    core.noc_async_read_barrier();
  });
  EXPECT_GT(program.run().cycles, 1'000'000);
}

TEST(Program, NamesAtMostEightWaitingKernels) {
  const auto chip = machine::wormhole_like_chip();
  ChipProgram program(chip, {});
  for (const Coordinate worker : chip->workers) {
    program.create_kernel({.core = worker, .name = "k"},
                          [](DataMovementCore& core) { core.noc_semaphore_wait(0, 1); });
  }
  const std::string sentence = sentence_of<std::runtime_error>([&] { program.run(); });
  EXPECT_EQ(sentence.find("64 of 64 kernels wait forever: "), std::size_t{0});
  EXPECT_NE(sentence.find("; and 56 more"), std::string::npos) << sentence;
}

TEST(Program, StopsAtTheLimit) {
  ChipProgram program(machine::tiny_chip(), {.cycles_max = 1000});
  program.create_kernel({.core = kCore, .name = "long"},
                        [](DataMovementCore& core) { core.work(1'000'000); });
  program.create_kernel({.core = kFar, .name = "short"}, [](DataMovementCore&) {});
  EXPECT_EQ(
      sentence_of<std::runtime_error>([&] { program.run(); }),
      "after 1000 cycles, the limit (cycles_max), 1 of 2 kernels still run: kernel 'long' on core "
      "(1, 1) is at work");
}

TEST(Program, NamesKernelCallAndCoreOfARefusal) {
  ChipProgram program(machine::tiny_chip(), {});
  program.create_kernel({.core = kFar, .name = "k"},
                        [](DataMovementCore& core) { core.noc_async_read({kDram, 16}, 0, 64); });
  EXPECT_EQ(sentence_of<std::invalid_argument>([&] { program.run(); }),
            "kernel 'k' on core (3, 2) in noc_async_read: core (3, 2), NoC 0: the read of 64 bytes "
            "from (0, 0) has local offset 0 and remote offset 16, which must be equal modulo 32");
}

TEST(Program, NamesASourceThatChangesTooEarly) {
  ChipProgram program(machine::tiny_chip(), {});
  program.create_kernel({.core = kCore, .name = "hasty"}, [](DataMovementCore& core) {
    core.noc_async_write(0, {kFar, 4096}, 8192);
    core.store_word(8000, 1);
  });
  EXPECT_EQ(sentence_of<std::runtime_error>([&] { program.run(); }),
            "kernel 'hasty' on core (1, 1) in store_word: cycle 22: core (1, 1) itself changes "
            "bytes 8000 to 8003 of core (1, 1)'s memory, which its write of 8192 bytes to (3, 2), "
            "issued in cycle 22, has yet to read");
  ChipProgram patient(machine::tiny_chip(), {});
  patient.create_kernel({.core = kCore, .name = "patient"}, [](DataMovementCore& core) {
    core.noc_async_write(0, {kFar, 4096}, 8192);
    core.noc_async_writes_flushed();
    core.store_word(8000, 1);
    core.noc_async_write_barrier();
  });
  patient.run();
  EXPECT_EQ(patient.memory(kFar).load_word(4096 + 8000), 0u);
}

TEST(Program, NamesARequestWithoutAWait) {
  const auto expect = [](const Kernel& kernel, const std::string& request) {
    ChipProgram program(machine::tiny_chip(), {});
    program.create_kernel({.core = kCore, .name = "k"}, kernel);
    const std::string sentence = sentence_of<std::runtime_error>([&] { program.run(); });
    EXPECT_EQ(sentence.find("kernel 'k' on core (1, 1) ends in cycle "), std::size_t{0})
        << sentence;
    EXPECT_NE(sentence.find(" without the barrier it needs: its " + request), std::string::npos)
        << sentence;
  };
  expect([](DataMovementCore& core) { core.noc_async_write(0, {kFar, 0}, 64); },
         "write of 64 bytes to (3, 2), issued in cycle 22, has 1 of 1 packets to send");
  expect(
      [](DataMovementCore& core) {
        core.noc_async_write(0, {kFar, 0}, 64);
        core.noc_async_writes_flushed();
      },
      "write of 64 bytes to (3, 2), issued in cycle 22, lacks 1 answer");
  expect(
      [](DataMovementCore& core) {
        core.noc_semaphore_inc({kFar, 0}, 1, {.noc = 1});
        core.noc_async_full_barrier();  // of the wrong NoC
      },
      "atomic increment to (3, 2), issued in cycle 22, lacks 1 answer");
  expect(
      [](DataMovementCore& core) {
        core.noc_async_write(0, {kFar, 0}, 8192, {.is_posted = true});
        core.noc_async_write_barrier();  // not for posted ones
      },
      "write of 8192 bytes to (3, 2), issued in cycle 22, has 1 of 1 packets to send");
}

}  // namespace
}  // namespace towpath::tenstorrent
