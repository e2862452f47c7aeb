// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "chip_bench.hpp"
#include "ethernet_cluster.hpp"

// Sources that workers write while an Ethernet core sends them.

namespace towpath::tenstorrent {
namespace {

using machine::TileKind;
using noc::pattern;

constexpr std::uint64_t kBytes = 2048;
constexpr int kSeeds = 20;

using Programs = std::function<void(Cluster&)>;

Failure failure_of(const Programs& set_up, std::uint64_t seed) {
  const auto skew = static_cast<noc::Cycle>(seed % 4 * seed * 1000);
  Pair pair({.seed = seed, .start_skew_cycles = skew / 50, .program_skew_cycles = skew});
  set_up(pair.cluster);
  return run_to_failure(pair.cluster);
}

void expect_in_every_run(const Programs& set_up, const std::string& kernel) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Failure failure = failure_of(set_up, seed);
    EXPECT_EQ(failure.hazard, "source_overwritten") << failure.sentence;
    EXPECT_EQ(failure.kernel, kernel) << failure.sentence;
  }
}
void expect_clean(const Programs& set_up) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    EXPECT_EQ(failure_of(set_up, seed).sentence, "");
  }
}

void send(EthernetCore& core) {
  core.eth_send_bytes_over_channel(kBuffer, kBuffer, kBytes, 1, kBytes, kBytes / 16);
  core.eth_wait_for_receiver_channel_done(1);
}
void receive(EthernetCore& core, std::uint32_t packets) {
  handshake(core, false);
  for (std::uint32_t packet = 0; packet < packets; ++packet) {
    core.eth_wait_for_bytes_on_channel(kBytes, 1);
    core.eth_receiver_channel_done(1);
  }
}

// A worker pushes payload after payload into an Ethernet core, which sends them; it may push the
// next one when the core has announced that the buffer is free.
enum class Waits { before, after, never };

Programs worker_pushes(Waits waits) {
  return [=](Cluster& cluster) {
    Program& program = cluster.create_program(0);
    const std::size_t full = program.create_semaphore(0, TileKind::ethernet);
    const std::size_t free = program.create_semaphore(1);
    constexpr std::uint32_t kPackets = 3;
    program.create_kernel({.core = {2, 1}, .name = "worker"}, [=](DataMovementCore& core) {
      const std::uint64_t own = core.get_semaphore(free);
      for (std::uint32_t packet = 0; packet < kPackets; ++packet) {
        const auto wait = [&] {
          core.noc_semaphore_wait(own, 1);
          core.noc_semaphore_set(own, 0);
        };
        if (waits == Waits::before) wait();
        core.store(kBuffer, pattern(kBytes, packet));
        core.noc_async_write(kBuffer, {{0, 0}, kBuffer}, kBytes);
        core.noc_async_write_barrier();
        if (waits == Waits::after) wait();
        core.noc_semaphore_inc({{0, 0}, core.get_semaphore(full)}, 1);
        core.noc_async_atomic_barrier();
        if (waits == Waits::never) core.work(20'000);  // it has long been sent
      }
    });
    program.create_kernel({0, 0}, {.name = "sender"}, [=](EthernetCore& core) {
      const std::uint64_t own = core.get_semaphore(full);
      handshake(core, true);
      for (std::uint32_t packet = 0; packet < kPackets; ++packet) {
        core.eth_noc_semaphore_wait_min(own, packet + 1);
        send(core);
        core.noc_semaphore_inc({{2, 1}, core.get_semaphore(free)}, 1);
        core.noc_async_atomic_barrier();
      }
    });
    cluster.create_program(1).create_kernel({0, 0}, {.name = "receiver"},
                                            [](EthernetCore& core) { receive(core, kPackets); });
  };
}

// The core may have sent the payload before, or it is about to.
TEST(Hazard, SourceThatAWorkerFillsTooEarlyIsFoundInEveryRun) {
  expect_clean(worker_pushes(Waits::before));
  for (const Waits waits : {Waits::after, Waits::never}) {
    expect_in_every_run(worker_pushes(waits), "worker");
  }
}

// The core sends what a worker writes, without a message that the worker has finished.
TEST(Hazard, SourceIsSentAfterTheNotificationOfItsWriter) {
  const auto setup = [](bool is_told) {
    return [=](Cluster& cluster) {
      Program& program = cluster.create_program(0);
      const std::size_t full = program.create_semaphore(0, TileKind::ethernet);
      program.create_kernel({.core = {2, 1}, .name = "worker"}, [=](DataMovementCore& core) {
        core.noc_async_write(kBuffer, {{0, 0}, kBuffer}, kBytes);
        core.noc_semaphore_inc({{0, 0}, core.get_semaphore(full)}, 1);
        core.noc_async_write_barrier();
        core.noc_async_atomic_barrier();
      });
      program.create_kernel({0, 0}, {.name = "sender"}, [=](EthernetCore& core) {
        handshake(core, true);
        if (is_told) {
          core.eth_noc_semaphore_wait(core.get_semaphore(full), 1);
        } else {
          core.work(50'000);  // it has long been written
        }
        send(core);
      });
      cluster.create_program(1).create_kernel({0, 0}, {.name = "receiver"},
                                              [](EthernetCore& core) { receive(core, 1); });
    };
  };
  expect_clean(setup(true));
  expect_in_every_run(setup(false), "sender");
  const std::string expected =
      "kernel 'sender' on core (0, 0) of chip 0 in eth_send_bytes_over_channel: sends bytes 131072 "
      "to 133119 of core (0, 0) of chip 0, which kernel 'worker' on core (2, 1) of chip 0 writes, "
      "without proof that it is done; send a source after its writer has released it";
  EXPECT_EQ(failure_of(setup(false), 4).sentence, expected);
}

}  // namespace
}  // namespace towpath::tenstorrent
