// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "chip_bench.hpp"
#include "ethernet_cluster.hpp"
#include "fabrics.hpp"
#include "sentence.hpp"
#include "towpath/tenstorrent/fabric/fabric.hpp"

// Buffers of a chip that kernels of another chip use: too early, too late, and as is right.

namespace towpath::tenstorrent {
namespace {

using fabric::Fabric;
using machine::Coordinate;

constexpr std::uint64_t kBytes = 2048;
constexpr std::uint64_t kMailbox = 0x30000;
constexpr std::uint64_t kWord = 0x50000;
constexpr int kSeeds = 12;

// Two chips with routers. Chip 0 has one program, with the sender; chip 1 has two, each with a
// receiver.
struct Chips {
  explicit Chips(std::uint64_t seed)
      : description(machine::chips_on_grid(2, 1, false, 1)),
        cluster(description,
                {.seed = seed, .program_skew_cycles = static_cast<noc::Cycle>(seed % 4 * 5000)}),
        routers(cluster, fabric::mesh_of(*description), {}),
        tile(cluster.device(1).chip().workers.back()),
        worker(cluster.device(0).chip().workers.front()) {}

  void send_with(std::function<void(DataMovementCore&, fabric::Connection&)> body) {
    on(routers.program(0), worker, 0, std::move(body));
  }
  // The kernels of chip 1, which may answer.
  void first(std::function<void(DataMovementCore&, fabric::Connection&)> body) {
    on(routers.program(1), tile, 1, std::move(body));
  }
  void second(std::function<void(DataMovementCore&, fabric::Connection&)> body) {
    on(cluster.create_program(1), tile, 1, std::move(body));
  }

  void buffer(const std::string& name, int first_program, int end_program = Allocation::kNoEnd) {
    cluster.device(1).allocate({name, {{tile, kBuffer}}, kBytes, first_program, end_program});
  }
  // Writes to the buffer and increments the word of the receiver, behind it.
  void write(fabric::Connection& connection, std::uint64_t to = kBuffer) const {
    send(connection,
         {.payload_to = fabric::pack({tile, to}),
          .word_at = fabric::pack({tile, kWord}),
          .increment = 1,
          .payload_bytes = kBytes,
          .operation = fabric::Operation::write_increment},
         0);
  }
  void tell(fabric::Connection& connection, int from) const {
    send(connection,
         {.word_at = fabric::pack({from == 0 ? tile : worker, kWord}),
          .increment = 1,
          .operation = fabric::Operation::increment},
         from);
  }
  Failure run() {
    return run_to_failure([&] { routers.run(); });
  }

  std::shared_ptr<const machine::ChipCluster> description;
  Cluster cluster;
  Fabric routers;
  Coordinate tile;
  Coordinate worker;

 private:
  void send(fabric::Connection& connection, fabric::Header header, int from) const {
    header.commands = routers.header(from, 1 - from).commands;
    connection.send(header, fabric::kWorkerHeaders, fabric::kWorkerPayloads);
    connection.wait_until_sent();
  }
  void on(Program& program, Coordinate core, int chip,
          std::function<void(DataMovementCore&, fabric::Connection&)> body) {
    program.create_kernel({.core = core, .name = chip == 0 ? "sender" : "receiver"},
                          [this, chip, body = std::move(body)](DataMovementCore& on) {
                            fabric::Connection connection(
                                on, routers.port(chip, fabric::direction_of(0, chip == 1), 0),
                                fabric::kWorkerWords);
                            connection.open();
                            body(on, connection);
                            connection.close();
                          });
  }
};

void expect_in_every_run(const std::function<void(Chips&)>& set_up, const std::string& hazard) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Chips chips(seed);
    set_up(chips);
    const Failure failure = chips.run();
    EXPECT_EQ(failure.hazard, hazard) << failure.sentence;
    if (hazard != "none") {
      EXPECT_EQ(failure.kernel, "sender") << failure.sentence;
      EXPECT_EQ(failure.chip, 0) << failure.sentence;
    }
  }
}

void wait_for_word(DataMovementCore& core) { core.noc_semaphore_wait_min(kWord, 1); }

// A kernel that runs so long, and looks at nothing.
auto work(noc::Cycle cycles) {
  return [=](DataMovementCore& core, fabric::Connection&) { core.work(cycles); };
}

// --- not there yet ------------------------------------------------------------------------------

// The second program's buffer is written while the first one runs, or long after.
void write_to_second(Chips& chips, noc::Cycle delay) {
  chips.buffer("second", 1);
  chips.send_with([&chips, delay](DataMovementCore& core, fabric::Connection& connection) {
    core.work(delay);
    chips.write(connection);
  });
  chips.first(work(20'000));
  chips.second([](DataMovementCore& core, fabric::Connection&) { wait_for_word(core); });
}

TEST(BufferHazard, ABufferThatIsNotThereIsFoundInEveryRun) {
  for (const noc::Cycle delay : {0, 100'000}) {
    expect_in_every_run([=](Chips& chips) { write_to_second(chips, delay); }, "buffer_not_there");
  }
  Chips chips(4);
  write_to_second(chips, 100);
  const std::string sentence = chips.run().sentence;
  EXPECT_EQ(sentence.find("kernel 'sender' on core (1, 1) of chip 0"), 0u) << sentence;
  EXPECT_NE(sentence.find(": writes bytes 131072 to 133119 of tile (9, 10) of chip 1 at "),
            std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find(" ns, without proof that buffer 'second' exists, which comes with "
                          "program 1 of that chip; use an address after a word from its chip, or "
                          "after the host has waited for the buffer"),
            std::string::npos)
      << sentence;
}

// The host has waited for it before it gave the address away.
TEST(BufferHazard, ABufferThatIsThereBeforeEverythingIsClean) {
  expect_in_every_run(
      [](Chips& chips) {
        chips.buffer("tensor", 0);
        chips.send_with([&chips](DataMovementCore&, fabric::Connection& connection) {
          chips.write(connection);
        });
        chips.first(work(20'000));
        chips.second([](DataMovementCore& core, fabric::Connection&) { wait_for_word(core); });
      },
      "none");
}

// A kernel of the buffer's own program says that it runs.
TEST(BufferHazard, ABufferWhoseProgramHasSaidThatItRunsIsClean) {
  expect_in_every_run(
      [](Chips& chips) {
        chips.buffer("second", 1);
        chips.send_with([&chips](DataMovementCore& core, fabric::Connection& connection) {
          wait_for_word(core);
          chips.write(connection);
        });
        chips.first(work(20'000));
        chips.second([&chips](DataMovementCore& core, fabric::Connection& connection) {
          chips.tell(connection, 1);
          wait_for_word(core);
        });
      },
      "none");
}

// A word of the program before says nothing about the next one.
TEST(BufferHazard, AWordOfTheProgramBeforeIsNotEnough) {
  expect_in_every_run(
      [](Chips& chips) {
        chips.buffer("second", 1);
        chips.send_with([&chips](DataMovementCore& core, fabric::Connection& connection) {
          wait_for_word(core);
          core.work(100'000);
          chips.write(connection);
        });
        chips.first([&chips](DataMovementCore&, fabric::Connection& connection) {
          chips.tell(connection, 1);
        });
        chips.second([](DataMovementCore& core, fabric::Connection&) { wait_for_word(core); });
      },
      "buffer_not_there");
}

// A pipe from end to end: the address of the tensor is known to the kernel beside it only.
TEST(BufferHazard, APipeWhoseEndKnowsTheBufferIsClean) {
  expect_in_every_run(
      [](Chips& chips) {
        chips.buffer("first", 0, 1);
        chips.buffer("second", 1);
        chips.send_with([&chips](DataMovementCore&, fabric::Connection& connection) {
          chips.write(connection, kMailbox);
        });
        chips.first(work(20'000));
        chips.second([&chips](DataMovementCore& core, fabric::Connection&) {
          wait_for_word(core);
          core.noc_async_write(kMailbox, {chips.tile, kBuffer}, kBytes);
          core.noc_async_write_barrier();
        });
      },
      "none");
}

// --- freed --------------------------------------------------------------------------------------

// What is sent for the second buffer is taken for the first one's, which is freed meanwhile.
void write_to_successor(Chips& chips, noc::Cycle delay) {
  chips.buffer("first", 0, 1);
  chips.buffer("second", 1);
  chips.send_with([&chips, delay](DataMovementCore& core, fabric::Connection& connection) {
    core.work(delay);
    chips.write(connection);
  });
  chips.first(work(30'000));
  chips.second([](DataMovementCore& core, fabric::Connection&) { wait_for_word(core); });
}

TEST(BufferHazard, ABufferThatBelongsToAnotherIsFoundInEveryRun) {
  for (const noc::Cycle delay : {0, 29'000, 100'000}) {
    expect_in_every_run([=](Chips& chips) { write_to_successor(chips, delay); }, "buffer_freed");
  }
  Chips late(4);
  write_to_successor(late, 100'000);
  std::string sentence = late.run().sentence;
  EXPECT_NE(sentence.find(", which buffer 'first' had until it was freed at "), std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find(", and now the bytes are those of buffer 'second'; free a buffer after "
                          "its chip has seen all accesses by other chips"),
            std::string::npos)
      << sentence;
  Chips early(4);
  write_to_successor(early, 0);
  sentence = early.run().sentence;
  EXPECT_EQ(sentence.find("kernel 'sender' on core (1, 1) of chip 0 writes bytes 131072 to 133119 "
                          "of tile (9, 10) of chip 1, sent at "),
            0u)
      << sentence;
  EXPECT_NE(sentence.find("; buffer 'first' is freed there at "), std::string::npos) << sentence;
}

// Its chip has waited for the word behind the bytes; a second packet is not waited for.
TEST(BufferHazard, ABufferIsFreedWhenEverythingForItHasArrived) {
  for (const int packets : {1, 2}) {
    expect_in_every_run(
        [=](Chips& chips) {
          chips.buffer("first", 0, 1);
          chips.buffer("second", 1);
          chips.send_with([&chips, packets](DataMovementCore&, fabric::Connection& connection) {
            for (int packet = 0; packet < packets; ++packet) chips.write(connection);
          });
          chips.first([](DataMovementCore& core, fabric::Connection&) { wait_for_word(core); });
          chips.second(work(100));
        },
        packets == 1 ? "none" : "buffer_freed");
  }
}

// The chip was idle when the host freed it.
TEST(BufferHazard, ABufferThatWasFreedBeforeEverythingIsFound) {
  expect_in_every_run(
      [](Chips& chips) {
        chips.buffer("gone", 0, 0);
        chips.send_with([&chips](DataMovementCore&, fabric::Connection& connection) {
          chips.write(connection);
        });
        chips.first(work(100));
      },
      "buffer_freed");
}

// --- words --------------------------------------------------------------------------------------

// A semaphore of the next program is set when that begins, so an increment may be lost.
TEST(BufferHazard, ASemaphoreOfAProgramThatIsNotKnownToRunIsFound) {
  for (const bool is_told : {false, true}) {
    expect_in_every_run(
        [=](Chips& chips) {
          Program& second = chips.cluster.create_program(1);
          const std::size_t semaphore = second.create_semaphore(0);
          second.create_kernel({.core = chips.tile, .name = "receiver"}, [&chips, semaphore](
                                                                             DataMovementCore& on) {
            fabric::Connection connection(
                on, chips.routers.port(1, fabric::direction_of(0, true), 0), fabric::kWorkerWords);
            connection.open();
            chips.tell(connection, 1);
            on.noc_semaphore_wait(on.get_semaphore(semaphore), 1);
            connection.close();
          });
          Program& sending = chips.cluster.create_program(0);
          sending.create_kernel(
              {.core = chips.worker, .name = "sender"}, [&chips, is_told](DataMovementCore& on) {
                fabric::Connection connection(
                    on, chips.routers.port(0, fabric::direction_of(0, false), 0),
                    fabric::kWorkerWords);
                connection.open();
                if (is_told) wait_for_word(on);
                fabric::Header header = chips.routers.header(0, 1);
                header.word_at = fabric::pack({chips.tile, 0});
                header.increment = 1;
                header.operation = fabric::Operation::increment;
                connection.send(header, fabric::kWorkerHeaders, fabric::kWorkerPayloads);
                connection.close();
              });
        },
        is_told ? "none" : "missing_handshake");
  }
}

// --- the chip's own kernels ---------------------------------------------------------------------

TEST(BufferHazard, AProgramThatUsesABufferOfAnotherProgramIsFound) {
  const auto run = [](int first_program, int end_program) {
    Pair pair;
    Device& device = pair.cluster.device(0);
    const Coordinate other{2, 1};
    device.allocate({"tensor", {{other, kBuffer}}, kBytes, first_program, end_program});
    for (int program = 0; program < 3; ++program) {
      pair.cluster.create_program(0).create_kernel(
          {.core = {1, 1}, .name = "reader"}, [=](DataMovementCore& core) {
            if (program != 1) return;
            core.noc_async_read({other, kBuffer + 64}, kBuffer, 64);
            core.noc_async_read_barrier();
          });
    }
    return run_to_failure(pair.cluster);
  };
  EXPECT_EQ(run(1, 2).hazard, "none");
  EXPECT_EQ(run(2, 3).hazard, "buffer_not_there");
  EXPECT_EQ(run(0, 1).hazard, "buffer_freed");
  const std::string sentence = run(0, 1).sentence;
  EXPECT_NE(sentence.find(" in program 1, and buffer 'tensor' is freed before program 1 of this "
                          "chip"),
            std::string::npos)
      << sentence;
}

TEST(BufferHazard, ABufferBeyondTheMemoryIsRefused) {
  Pair pair;
  EXPECT_NE(sentence_of([&] {
              pair.cluster.device(1).allocate({"huge", {{{1, 1}, 64}}, std::uint64_t{1} << 40});
            })
                .find("buffer 'huge' of 1099511627776 bytes starts at offset 64 of tile (1, 1) of "
                      "chip 1, whose memory has "),
            std::string::npos);
}

}  // namespace
}  // namespace towpath::tenstorrent
