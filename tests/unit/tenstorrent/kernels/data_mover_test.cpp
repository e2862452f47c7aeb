// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "chip_bench.hpp"
#include "data_mover_builder.hpp"
#include "joined_chips.hpp"
#include "sentence.hpp"
#include "towpath/sim/random.hpp"

// The data mover between two small chips, one link, workers of their own for each channel.

namespace towpath::tenstorrent::kernels {
namespace {

using namespace literals;
using machine::Coordinate;
using noc::Data;
using noc::pattern;
using tenstorrent::Cluster;
using tenstorrent::Program;
using tenstorrent::RunOptions;

constexpr int kWorkers = 8;
Coordinate worker(int number) { return {number % 4, 1 + number / 4}; }

struct Traffic {
  int channels = 1;  // the first from chip 0 to chip 1, the second back, ...
  bool is_one_way = false;
  int slots = 1;
  int messages = 6;
  int programs = 1;              // one after the other, each with all of the messages
  std::uint32_t size_bytes = 0;  // 0: random
  std::uint32_t size_bytes_max = 4096;
  bool is_count_fixed = true;
  DataMoverBuilder::Options mover{};
  RunOptions run{};
};

struct Outcome {
  std::string error;
  Time end;
  std::uint64_t bytes = 0;  // of all messages
  std::uint64_t drops = 0;
};

std::vector<std::uint32_t> sizes_of(const Traffic& traffic, int channel) {
  sim::Random random(traffic.run.seed, "sizes of channel " + std::to_string(channel));
  std::vector<std::uint32_t> sizes;
  for (int message = 0; message < traffic.messages; ++message) {
    sizes.push_back(
        traffic.size_bytes > 0
            ? traffic.size_bytes
            : static_cast<std::uint32_t>(16 * random.between(1, traffic.size_bytes_max / 16)));
  }
  return sizes;
}

// Content of a channel, all messages together.
Data content_of(const Traffic& traffic, int channel) {
  std::uint64_t bytes = 0;
  for (const std::uint32_t size_bytes : sizes_of(traffic, channel)) bytes += size_bytes;
  return pattern(bytes, static_cast<unsigned>(channel + 10));
}

int sending_chip(const Traffic& traffic, int channel) {
  return traffic.is_one_way ? 0 : channel % 2;
}
Coordinate receiving_worker(int channel) { return worker((channel + 3) % kWorkers); }

// Messages that the receiver of a channel got.
struct Received {
  int channel = 0;
  std::uint64_t offset = 0;                        // in its L1
  std::vector<std::uint64_t> sender_semaphores{};  // where those of the sender's worker are
  std::vector<DataMoverMessage> messages;
};

// A program for each chip. The same worker serves as sender of one channel on one NoC and as
// receiver of another on the other one. Programs have what they send at the same place, and take
// turns in which chip begins the handshake.
void create_programs(Cluster& cluster, const Traffic& traffic, int number,
                     std::deque<Received>& received) {
  std::vector<Program*> programs{&cluster.create_program(0), &cluster.create_program(1)};
  const int near = number % 2;
  const auto program = [&](int chip) { return programs[static_cast<std::size_t>(chip)]; };
  DataMoverBuilder mover(cluster, {near, {0, 2 * near}, program(near)}, *program(1 - near),
                         traffic.mover);
  const auto count = static_cast<std::uint64_t>(traffic.messages);
  for (int channel = 0; channel < traffic.channels; ++channel) {
    const int from = sending_chip(traffic, channel);
    Program& sends = *program(from);
    Program& receives = *program(1 - from);
    const Data content = content_of(traffic, channel);
    std::uint64_t offset = sends.allocate(content.size());
    cluster.device(from).memory(worker(channel)).write(offset, content);
    const auto ends = mover.add_channel(
        {.from_chip = from,
         .sender = worker(channel),
         .receiver = receiving_worker(channel),
         .message_bytes_max = traffic.size_bytes_max,
         .slots = traffic.slots,
         .messages = traffic.is_count_fixed ? std::optional(count) : std::nullopt});
    std::vector<DataMoverMessage> messages;
    for (const std::uint32_t size_bytes : sizes_of(traffic, channel)) {
      messages.push_back({offset, size_bytes});
      offset += size_bytes;
    }
    Received& to =
        received.emplace_back(Received{channel, receives.allocate(content.size()), {}, {}});
    sends.create_kernel({.core = worker(channel), .name = "sender"},
                        [ends, messages, &to](DataMovementCore& core) {
                          for (const auto& slot : ends.sender.slots) {
                            to.sender_semaphores.push_back(core.get_semaphore(slot.semaphore));
                          }
                          data_mover_sender(core, ends.sender, messages);
                        });
    receives.create_kernel({.core = receiving_worker(channel), .name = "receiver", .noc_index = 1},
                           [ends, &to](DataMovementCore& core) {
                             to.messages = data_mover_receiver(core, ends.receiver, to.offset);
                           });
  }
  mover.create_kernels();
}

void expect_right(Cluster& cluster, const Traffic& traffic, const Received& received) {
  const int chip = 1 - sending_chip(traffic, received.channel);
  const Data content = content_of(traffic, received.channel);
  Data got(content.size());
  cluster.device(chip).memory(receiving_worker(received.channel)).read(received.offset, got);
  EXPECT_EQ(got, content) << "channel " << received.channel;
  std::vector<std::uint32_t> sizes;
  for (const DataMoverMessage& message : received.messages) sizes.push_back(message.size_bytes);
  EXPECT_EQ(sizes, sizes_of(traffic, received.channel));
}

Outcome run(const Traffic& traffic) {
  Cluster cluster(machine::joined_chips({}), traffic.run);
  std::deque<Received> received;
  for (int i = 0; i < traffic.programs; ++i) create_programs(cluster, traffic, i, received);
  Outcome outcome;
  try {
    outcome.end = cluster.run();
  } catch (const std::runtime_error& error) {
    outcome.error = error.what();
    return outcome;
  }
  for (const Received& channel : received) {
    expect_right(cluster, traffic, channel);
    for (const DataMoverMessage& message : channel.messages) outcome.bytes += message.size_bytes;
  }
  outcome.drops = cluster.link(0).drops();
  return outcome;
}

const RunOptions kSkewed{.start_skew_cycles = 500, .program_skew_cycles = 20'000};

// --- order and data -----------------------------------------------------------------------------

TEST(DataMover, BringsMessagesInOrderOverOneToEightChannelsBothWays) {
  for (int channels = 1; channels <= 8; ++channels) {
    for (const ChannelSync sync : {ChannelSync::merged, ChannelSync::separate}) {
      if (sync == ChannelSync::separate && channels == 8) continue;  // there are 7
      Traffic traffic{.channels = channels, .mover = {.sync = sync}, .run = kSkewed};
      traffic.run.seed = static_cast<std::uint64_t>(channels);
      EXPECT_EQ(run(traffic).error, "");
    }
  }
}

TEST(DataMover, EndsByCountAndByTheWorkersWord) {
  for (const int messages : {1, 2, 3, 7}) {
    for (const int slots : {1, 2, 3}) {
      for (const bool is_count_fixed : {true, false}) {
        EXPECT_EQ(run({.channels = 2,
                       .slots = slots,
                       .messages = messages,
                       .size_bytes_max = 1024,
                       .is_count_fixed = is_count_fixed})
                      .error,
                  "")
            << messages << " messages, " << slots << " slots";
      }
    }
  }
}

// A notification that no worker waits for would be taken by the next program with that semaphore.
TEST(DataMover, LeavesNoNotificationWithAWorker) {
  for (const bool is_count_fixed : {true, false}) {
    for (const int messages : {1, 2, 5}) {
      const Traffic traffic{.slots = 3, .messages = messages, .is_count_fixed = is_count_fixed};
      Cluster cluster(machine::joined_chips({}), traffic.run);
      std::deque<Received> received;
      create_programs(cluster, traffic, 0, received);
      cluster.run();
      ASSERT_EQ(received.front().sender_semaphores.size(), 3u);
      for (const std::uint64_t semaphore : received.front().sender_semaphores) {
        EXPECT_EQ(cluster.device(0).memory(worker(0)).load_word(semaphore), 0u)
            << messages << " messages, fixed: " << is_count_fixed;
      }
    }
  }
}

// The last credits may be lost and come late, just ahead of the next program's handshake.
TEST(DataMover, GivesWayToTheNextProgramOverALinkThatLosesFrames) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Traffic traffic{.channels = 1,
                    .messages = 2,
                    .programs = 8,
                    .size_bytes = 16,
                    .mover = {.sync = seed % 2 == 0 ? ChannelSync::merged : ChannelSync::separate}};
    traffic.run = {.seed = seed, .program_skew_cycles = 500, .link_faults = {{.frame_loss = 0.2}}};
    EXPECT_EQ(run(traffic).error, "") << "seed " << seed;
  }
}

// Messages of several packets on the NoC; no semaphore may overtake the last.
TEST(DataMover, BringsMessagesOfSeveralPackets) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Traffic traffic{.channels = 4, .messages = 4, .size_bytes_max = 20'480, .run = kSkewed};
    traffic.run.seed = seed;
    EXPECT_EQ(run(traffic).error, "");
  }
}

TEST(DataMover, EndsWithoutAnyMessage) {
  for (const bool is_count_fixed : {true, false}) {
    const Traffic traffic{
        .channels = 3, .slots = 2, .messages = 0, .is_count_fixed = is_count_fixed};
    EXPECT_EQ(run(traffic).error, "");
  }
}

TEST(DataMover, BringsTheSameUnderAnySkewSizesAndOptions) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    sim::Random random(seed, "data mover");
    const auto is = [&] { return random.below(2) == 1; };
    Traffic traffic{.channels = static_cast<int>(random.between(1, 7)),
                    .is_one_way = random.below(4) == 0,
                    .messages = static_cast<int>(random.between(1, 10)),
                    .size_bytes_max = static_cast<std::uint32_t>(16 * random.between(1, 200)),
                    .is_count_fixed = is(),
                    .mover = {.sync = is() ? ChannelSync::merged : ChannelSync::separate,
                              .acknowledges = is(),
                              .noc_index = static_cast<int>(random.below(2))},
                    .run = kSkewed};
    traffic.slots = traffic.mover.sync == ChannelSync::merged
                        ? static_cast<int>(random.between(1, 3))
                        : 7 / traffic.channels;
    traffic.run.seed = seed;
    EXPECT_EQ(run(traffic).error, "") << "seed " << seed;
  }
}

// --- links that go down -------------------------------------------------------------------------

// Training takes 5 us. Each drop loses the frames on the line, which are then sent again.
TEST(DataMover, BringsItsDataOverALinkThatDropsEvery100us) {
  for (const ChannelSync sync : {ChannelSync::merged, ChannelSync::separate}) {
    Traffic traffic{.channels = 4, .messages = 1200, .size_bytes = 256, .mover = {.sync = sync}};
    const Outcome healthy = run(traffic);
    ASSERT_EQ(healthy.error, "");
    traffic.run.link_faults = {{.drop_at = 50_us, .drop_period = 100_us, .dead_time = 1_us}};
    const Outcome dropped = run(traffic);
    EXPECT_EQ(dropped.error, "");
    EXPECT_GE(dropped.drops, 5u);
    const auto drops = static_cast<std::int64_t>(dropped.drops);
    EXPECT_GT(dropped.end, healthy.end + 6_us * drops);
    EXPECT_LT(dropped.end, healthy.end + 40_us * drops);
  }
}

TEST(DataMover, BringsItsDataOverALinkThatLosesFrames) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Traffic traffic{.channels = 3, .slots = 2, .messages = 20};
    traffic.run = {.seed = seed, .link_faults = {{.frame_loss = 0.1}}};
    EXPECT_EQ(run(traffic).error, "");
  }
}

TEST(DataMover, NamesTheLinkThatNeverComesBack) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Traffic traffic{.channels = 4, .messages = 100, .run = kSkewed};
    traffic.run.seed = seed;
    traffic.run.link_faults = {{.drop_at = 40_us, .dead_time = Time::max()}};
    const std::string error = run(traffic).error;
    EXPECT_NE(error.find("the link between Ethernet core (0, 0) of chip 0 and Ethernet core (2, 0) "
                         "of chip 1 is down since 40000 ns and cannot be trained again"),
              std::string::npos)
        << error;
  }
}

// --- how fast -----------------------------------------------------------------------------------

double gb_per_s(const Traffic& traffic) {
  const Outcome outcome = run(traffic);
  EXPECT_EQ(outcome.error, "");
  return static_cast<double>(outcome.bytes) / outcome.end.ns();
}

// A round of a channel with one slot: NoC to the mover, about 1 us there and back over the link,
// NoC from it. The wire takes 346 ns of that: four channels and more fill it, and no number of
// channels gets more than 4096 of the 4262 bytes that go over it.
TEST(DataMover, FillsItsLinkWithEnoughChannels) {
  const auto rate = [](int channels, int slots) {
    return gb_per_s({.channels = channels,
                     .is_one_way = true,
                     .slots = slots,
                     .messages = 40,
                     .size_bytes = 4096});
  };
  constexpr double kWire = 12.5 * 4096 / (4096 + 16 + 3 * 50);
  const double one = rate(1, 1);
  EXPECT_GT(one, 0.15 * kWire);
  EXPECT_LT(one, 0.35 * kWire);
  EXPECT_GT(rate(2, 1), 1.7 * one);
  EXPECT_GT(rate(1, 2), 1.7 * one);  // a second slot does as much as a second channel
  EXPECT_GT(rate(4, 2), 0.85 * kWire);
  EXPECT_LT(rate(6, 2), kWire);
}

// The second command is taken once the first has been fetched, and is submitted and fetched itself;
// a longer message hides that, because it is still on the wire then.
TEST(DataMover, IsFasterWithMergedSyncWordsThanWithSeparateOnes) {
  const auto round_ns = [](ChannelSync sync, std::uint32_t size_bytes) {
    constexpr int kMessages = 60;
    return run({.is_one_way = true,
                .messages = kMessages,
                .size_bytes = size_bytes,
                .mover = {.sync = sync}})
               .end.ns() /
           kMessages;
  };
  const auto gain_ns = [&](std::uint32_t size_bytes) {
    return round_ns(ChannelSync::separate, size_bytes) - round_ns(ChannelSync::merged, size_bytes);
  };
  EXPECT_NEAR(gain_ns(16), 56 + 22, 16);  // looks are 8 ns apart
  EXPECT_GT(gain_ns(256), 20);
  EXPECT_NEAR(gain_ns(4096), 0, 16);
}

// The buffer of the sender is free a NoC round trip earlier.
TEST(DataMover, IsFasterWithFirstLevelAcknowledgements) {
  const auto rate = [](bool acknowledges) {
    return gb_per_s({.is_one_way = true,
                     .messages = 60,
                     .size_bytes = 4096,
                     .mover = {.acknowledges = acknowledges}});
  };
  EXPECT_GT(rate(true), 1.05 * rate(false));
}

// --- refusals -----------------------------------------------------------------------------------

std::string refusal(const std::function<void(DataMoverBuilder&)>& action,
                    const DataMoverBuilder::Options& options = {}) {
  Cluster cluster(machine::joined_chips({}), {});
  Program& here = cluster.create_program(0);
  DataMoverBuilder mover(cluster, {0, {0, 0}, &here}, cluster.create_program(1), options);
  return sentence_of([&] { action(mover); });
}

TEST(DataMover, RefusesChannelsThatCannotBe) {
  EXPECT_EQ(refusal([](auto& mover) { mover.add_channel({.slots = 0}); }),
            "a channel has 0 slots; it needs at least one");
  EXPECT_EQ(refusal([](auto& mover) { mover.add_channel({.message_bytes_max = 100}); }),
            "a channel's messages have up to 100 bytes; multiples of 16 below 2^30 are possible");
  EXPECT_EQ(refusal([](auto& mover) { mover.add_channel({.from_chip = 2}); }),
            "the data mover joins chips 0 and 1; it is asked for 2");
  EXPECT_EQ(refusal([](auto& mover) { mover.create_kernels(); }),
            "a data mover has no channels; add one");
  EXPECT_EQ(refusal([](auto& mover) { mover.add_channel({.slots = 8}); },
                    {.sync = ChannelSync::separate}),
            "8 more slots with separate sync words are asked for; a link has 7, of which 0 are "
            "taken");
}

TEST(DataMover, RefusesMessagesThatDoNotFit) {
  const auto send = [](std::vector<DataMoverMessage> messages) {
    Cluster cluster(machine::joined_chips({}), {});
    Program& here = cluster.create_program(0);
    DataMoverBuilder mover(cluster, {0, {0, 0}, &here}, cluster.create_program(1), {});
    const auto ends = mover.add_channel({.sender = {1, 1}, .receiver = {1, 1}, .messages = 1});
    here.create_kernel({.core = {1, 1}, .name = "sender"}, [=](DataMovementCore& core) {
      data_mover_sender(core, ends.sender, messages);
    });
    mover.create_kernels();
    return sentence_of([&] { cluster.run(); });
  };
  EXPECT_EQ(send({{0, 8192}}),
            "kernel 'sender' on core (1, 1) of chip 0 in noc_semaphore_set: message 0 has 8192 "
            "bytes; its channel takes multiples of 16 up to 4096");
  EXPECT_EQ(send({{0, 16}, {16, 16}}),
            "kernel 'sender' on core (1, 1) of chip 0: has 2 messages for a channel of 1");
}

}  // namespace
}  // namespace towpath::tenstorrent::kernels
