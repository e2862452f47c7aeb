// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ethernet_bench.hpp"
#include "towpath/sim/trace.hpp"

// Random commands over a link with random faults, against plain copies of the bytes.
//
// Each queue of each port has a part of the memory at the far end for itself, because nothing is
// promised between queues; inside it commands overlap, so that their order matters.

namespace towpath::ethernet {
namespace {
using namespace literals;

constexpr std::uint64_t kPartBytes = 64 << 10;
constexpr std::uint64_t kSourceBytes = 16 << 10;  // of one command, at most
constexpr int kCommands = 40;                     // per queue

LinkFaults random_faults(sim::Random& random) {
  LinkFaults faults;
  if (random.below(2) == 0) faults.frame_loss = 0.3 * random.uniform();
  if (random.below(2) == 0) {
    faults.drop_at = Time::from_ps(random.between(0, 20'000'000));
    faults.drop_period = Time::from_ps(random.between(20'000'000, 50'000'000));
    if (random.below(2) == 0) faults.dead_time = Time::from_ps(random.between(0, 10'000'000));
    if (random.below(2) == 0) faults.training_time = Time::from_ps(random.between(0, 5'000'000));
  }
  return faults;
}

machine::EthernetParameters random_figures(sim::Random& random) {
  machine::EthernetParameters figures = plain_figures();
  if (random.below(2) == 0) figures.line_rate = 25_GBps;
  if (random.below(2) == 0) figures.delivery_rate = 80_GBps;
  if (random.below(2) == 0) figures.read_rate = 54_GBps;
  figures.tx_queues = 2;
  figures.queue_commands_max = static_cast<int>(random.between(1, 3));
  figures.frames_unacknowledged_max = static_cast<int>(random.between(1, 64));
  figures.resend_timeout = Time::from_ps(random.between(2'000'000, 20'000'000));
  figures.training_time = Time::from_ps(random.below(2) == 0 ? 0 : random.between(0, 5'000'000));
  return figures;
}

// One random scenario from its seed.
class Scenario {
 public:
  explicit Scenario(std::uint64_t seed)
      : random_(seed, "scenario"), pair_(random_figures(random_), random_faults(random_), seed) {
    for (PlainMemory* memory : {&pair_.memory_a, &pair_.memory_b}) {
      for (std::byte& byte : memory->bytes) byte = std::byte(random_.below(256));
    }
    expected_a_ = pair_.memory_a.bytes;
    expected_b_ = pair_.memory_b.bytes;
    pair_.simulation.set_trace(&trace_);
    spawn(pair_.a, pair_.memory_a, expected_b_);
    spawn(pair_.b, pair_.memory_b, expected_a_);
    pair_.answer_routing();
    pair_.simulation.run();
  }

  void expect_right() const {
    EXPECT_TRUE(pair_.simulation.blocked().empty());
    expect_part_right(pair_.memory_a, expected_a_);
    expect_part_right(pair_.memory_b, expected_b_);
    EXPECT_EQ(written(pair_.memory_b), sent_from_a_);
    EXPECT_EQ(written(pair_.memory_a), sent_from_b_);
    for (const Port* port : {&pair_.a, &pair_.b}) expect_counted(*port);
    EXPECT_TRUE(pair_.memory_a.held.empty());
    EXPECT_TRUE(pair_.memory_b.held.empty());
    EXPECT_EQ(pair_.memory_a.bytes_read_unheld + pair_.memory_b.bytes_read_unheld, 0u);
  }

  std::uint64_t hash() const { return trace_.hash(); }
  const PortPair& pair() const { return pair_; }

 private:
  // Where the bytes of a queue went, in the order in which they were written.
  using Offsets = std::vector<std::uint64_t>;
  using OffsetsOfQueue = std::vector<Offsets>;

  static constexpr std::uint64_t part_of(int queue) {
    return static_cast<std::uint64_t>(queue) * kPartBytes;
  }

  // The upper half of a memory holds sources; the lower half is written from the other side.
  static constexpr std::uint64_t kSources = 2 * kPartBytes;

  void spawn(Port& port, PlainMemory& memory, std::vector<std::byte>& expected) {
    for (int queue = 0; queue < 2; ++queue) {
      const std::string name = port.name() + std::to_string(queue);
      pair_.simulation.spawn(name, [this, &port, &memory, &expected, queue, name] {
        sim::Random random = pair_.simulation.random(name);
        for (int i = 0; i < kCommands; ++i) {
          if (random.below(3) == 0) {
            pair_.simulation.sleep(Time::from_ps(random.between(0, 3'000'000)));
          }
          send_one(port, memory, expected, queue, random);
        }
      });
    }
  }

  void send_one(Port& port, PlainMemory& memory, std::vector<std::byte>& expected, int queue,
                sim::Random& random) {
    const std::uint64_t words = random.between(1, random.below(2) == 0 ? 8 : kSourceBytes / 16);
    Command command;
    command.size_bytes = words * 16;
    command.source =
        kSources + part_of(queue) + 16 * random.below((kPartBytes - command.size_bytes) / 16 + 1);
    command.destination =
        part_of(queue) + 16 * random.below((kPartBytes - command.size_bytes) / 16 + 1);
    pair_.wait_until_free(port, queue);
    const auto source = memory.bytes.begin() + static_cast<std::ptrdiff_t>(command.source);
    if (random.below(2) == 0 && !overlaps_held(memory, command)) {
      std::generate_n(source, command.size_bytes, [&] { return std::byte(random.below(256)); });
    }
    std::copy_n(source, command.size_bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(command.destination));
    Offsets& sent = (&port == &pair_.a ? sent_from_a_ : sent_from_b_)[index(queue)];
    for (std::uint64_t i = 0; i < command.size_bytes; i += 4) {
      sent.push_back(command.destination + i);
    }
    port.send(queue, command);
  }

  // Software does not change a source until it is released.
  static bool overlaps_held(const PlainMemory& memory, const Command& command) {
    return std::ranges::any_of(memory.held, [&](const auto& entry) {
      const PlainMemory::Write& held = entry.second;
      return held.offset < command.source + command.size_bytes &&
             command.source < held.offset + held.size_bytes;
    });
  }

  // Frames are multiples of 4 bytes.
  static OffsetsOfQueue written(const PlainMemory& memory) {
    OffsetsOfQueue result(2);
    for (const PlainMemory::Write& write : memory.writes) {
      for (std::uint64_t i = 0; i < write.size_bytes; i += 4) {
        result[(write.offset + i) / kPartBytes].push_back(write.offset + i);
      }
    }
    return result;
  }

  static void expect_part_right(const PlainMemory& memory, const std::vector<std::byte>& expected) {
    EXPECT_TRUE(
        std::equal(expected.begin(), expected.begin() + 2 * kPartBytes, memory.bytes.begin()));
  }

  static void expect_counted(const Port& port) {
    EXPECT_TRUE(port.is_idle());
    const PortCounters& sent = port.counters();
    const PortCounters& received = port.far_end()->counters();
    EXPECT_EQ(sent.commands, 2u * kCommands);
    EXPECT_EQ(sent.payload_bytes_sent, received.payload_bytes_received);
    EXPECT_EQ(sent.frames_sent - sent.frames_resent, received.frames_received);
    EXPECT_EQ(sent.frames_sent,
              sent.frames_lost + received.frames_received + received.frames_dropped);
  }

  static std::size_t index(int queue) { return static_cast<std::size_t>(queue); }

  sim::Random random_;
  sim::Trace trace_{sim::Trace::Mode::hash_only};
  PortPair pair_;
  std::vector<std::byte> expected_a_;
  std::vector<std::byte> expected_b_;
  OffsetsOfQueue sent_from_a_ = OffsetsOfQueue(2);
  OffsetsOfQueue sent_from_b_ = OffsetsOfQueue(2);
};

TEST(EthernetRandom, EveryByteArrivesOnceAndInTheOrderOfItsQueue) {
  std::uint64_t lost = 0;
  std::uint64_t dropped = 0;
  std::uint64_t drops = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Scenario scenario(seed);
    scenario.expect_right();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    lost += scenario.pair().a.counters().frames_lost;
    dropped += scenario.pair().a.counters().frames_dropped;
    drops += scenario.pair().link.drops();
  }
  EXPECT_GT(lost, 1000u);
  EXPECT_GT(dropped, 1000u);
  EXPECT_GT(drops, 500u);
}

TEST(EthernetRandom, TheSameSeedDoesTheSame) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(Scenario(seed).hash(), Scenario(seed).hash());
  }
  EXPECT_NE(Scenario(1).hash(), Scenario(2).hash());
}

}  // namespace
}  // namespace towpath::ethernet
