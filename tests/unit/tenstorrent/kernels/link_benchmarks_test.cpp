// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/kernels/link_benchmarks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>

#include "ethernet_cluster.hpp"
#include "sentence.hpp"

// The microbenchmarks, with hazards monitored: facts that hold whatever the parameters are.

namespace towpath::tenstorrent::kernels {
namespace {

using Description = std::shared_ptr<const machine::ChipCluster>;

// Runs a benchmark of the first link between two chips.
template <typename Run, typename Test>
auto over_link(Run run, const Description& description, const Test& test) {
  Cluster cluster(description, {.program_skew_cycles = 1000});
  return run(cluster, socket_between(cluster, 0, 1), test);
}

std::vector<Time> ring(const RingPing& ping, noc::Cycle skew_cycles = 1000) {
  Cluster cluster(ring_of_chips(4), {.program_skew_cycles = skew_cycles});
  return run_ring_ping(cluster, ping);
}

RingPing four_hops() { return {.chips = {0, 1, 2, 3}, .samples = 10}; }

TEST(RingPing, MeasuresAsManyTripsAsItIsAsked) {
  for (const bool is_merged : {true, false}) {
    for (const int channels : {1, 8}) {
      RingPing ping = four_hops();
      ping.is_merged = is_merged;
      ping.channels = channels;
      EXPECT_EQ(ring(ping).size(), 10u);
    }
  }
}

TEST(RingPing, DoesNotMeasureHowFarApartProgramsStart) {
  const auto worst = [](noc::Cycle skew) {
    const std::vector<Time> times = ring(four_hops(), skew);
    return *std::ranges::max_element(times);
  };
  EXPECT_LT(worst(100'000), worst(0) + Time::from_ns(100));
}

TEST(RingPing, TakesLongerForMorePacketsAndLargerOnesAndTwoCommands) {
  const auto time = [](std::uint64_t packet_bytes, int channels, bool is_merged) {
    RingPing ping = four_hops();
    ping.packet_bytes = packet_bytes;
    ping.channels = channels;
    ping.is_merged = is_merged;
    const std::vector<Time> times = ring(ping);
    return *std::ranges::min_element(times);
  };
  EXPECT_LT(time(16, 1, true), time(16, 1, false));
  EXPECT_LT(time(16, 1, true), time(1024, 1, true));
  EXPECT_LT(time(16, 1, true), time(16, 4, true));
}

TEST(RingPing, RefusesWhatCannotBe) {
  const auto refused = [](const std::function<void(RingPing&)>& change) {
    RingPing ping = four_hops();
    change(ping);
    return sentence_of([&] { ring(ping); });
  };
  EXPECT_EQ(refused([](auto& ping) { ping.chips = {0}; }),
            "the ring has 1 chips; it must have at least 2");
  EXPECT_EQ(refused([](auto& ping) { ping.channels = 9; }),
            "9 packets circulate together; it must be 1 to 8");
  EXPECT_NE(refused([](auto& ping) { ping.packet_bytes = 24; }), "");
  EXPECT_EQ(refused([](auto& ping) { ping.samples = 0; }),
            "there are 0 round trips; there must be at least 1");
}

// Handing over a command is one call between two timestamps.
TEST(LinkPing, TellsItsParts) {
  const auto cluster = two_chips();
  const auto times =
      over_link(run_link_ping, cluster, LinkPing{.payload_bytes = 4096, .samples = 3});
  ASSERT_EQ(times.size(), 3u);
  const machine::Chip& chip = *cluster->chips[0].chip;
  constexpr int kTimestampCycles = 67;
  const auto cycles = kCallCosts.of(chip).ethernet_send + kTimestampCycles;
  for (const LinkPingTimes& sample : times) {
    EXPECT_EQ(sample.send, chip.clock.time_of(Cycles(cycles)));
    EXPECT_GT(sample.send_and_receive, sample.wait + sample.send);
    EXPECT_GT(sample.wait, chip.ethernet.path_time * 2);
  }
  EXPECT_EQ(sentence_of([&] { over_link(run_link_ping, cluster, LinkPing{.samples = 0}); }),
            "there are 0 pings; there must be at least 1");
}

double link_gb_per_s(const LinkBandwidth& test) {
  const double bytes = static_cast<double>(test.message_bytes) * test.messages;
  return bytes / over_link(run_link_bandwidth, two_chips(), test).ns();
}

TEST(LinkBandwidth, IsBoundByTheLineForLargeMessagesAndByItsSlotsForSmallOnes) {
  const double line =
      static_cast<double>(two_chips()->chips[0].chip->ethernet.line_rate.bytes_per_second()) / 1e9;
  const auto rate = [](std::uint64_t message_bytes, int slots) {
    return link_gb_per_s({.message_bytes = message_bytes, .slots = slots, .messages = 300});
  };
  EXPECT_LT(rate(8192, 16), line);
  EXPECT_GT(rate(8192, 16), 0.9 * line);
  EXPECT_LT(rate(16, 4), 0.5 * rate(16, 16));
}

TEST(LinkBandwidth, TakesLongerWhenEachMessageGoesOnToAWorker) {
  const auto time = [](LinkBandwidthKind kind) {
    return over_link(
        run_link_bandwidth, two_chips(),
        LinkBandwidth{.kind = kind, .message_bytes = 4096, .messages = 1, .returns_payload = true});
  };
  EXPECT_LT(time(LinkBandwidthKind::erisc), time(LinkBandwidthKind::erisc_write_worker));
  EXPECT_LT(time(LinkBandwidthKind::erisc_write_worker_no_trid),
            time(LinkBandwidthKind::erisc_write_worker));
}

TEST(LinkBandwidth, RefusesWhatCannotBe) {
  EXPECT_EQ(sentence_of([] { link_gb_per_s({.slots = 3}); }),
            "there are 3 slots; use an even number from 2 to 30");
  EXPECT_EQ(sentence_of([] { link_gb_per_s({.messages = 0}); }),
            "there are 0 messages; there must be at least 1");
}

double bidirectional(const DuplexBandwidth& test) {
  return over_link(run_duplex_bandwidth, two_chips(), test);
}

TEST(DuplexBandwidth, CarriesMoreOverMoreChannels) {
  const double lines =
      2 * static_cast<double>(two_chips()->chips[0].chip->ethernet.line_rate.bytes_per_second()) /
      1e9;
  const auto rate = [](int channels) {
    return bidirectional({.packet_bytes = 4096, .channels = channels, .packets = 30});
  };
  EXPECT_GT(rate(4), 1.5 * rate(1));
  EXPECT_GT(rate(16), rate(4));
  EXPECT_LT(rate(16), lines);
}

TEST(DuplexBandwidth, TakesLongerWithTwoCommandsPerPacket) {
  const auto rate = [](bool is_merged) {
    return bidirectional(
        {.packet_bytes = 512, .is_merged = is_merged, .channels = 4, .packets = 30});
  };
  EXPECT_LT(rate(false), rate(true));
}

TEST(DuplexBandwidth, RefusesWhatCannotBe) {
  EXPECT_EQ(sentence_of([] { bidirectional({.channels = 31}); }),
            "there are 31 channels in each direction; there must be 1 to 30");
  EXPECT_EQ(sentence_of([] { bidirectional({.is_merged = false, .channels = 5}); }),
            "there are 5 channels in each direction; there must be 1 to 4");
  EXPECT_EQ(sentence_of([] { bidirectional({.packets = 0}); }),
            "there are 0 packets per channel; there must be at least 1");
  EXPECT_NE(sentence_of([] { bidirectional({.packet_bytes = 65536}); }), "");  // L1 is too small
}

TEST(LinkBenchmarks, GiveTheSameTwice) {
  const DuplexBandwidth test{.packet_bytes = 1024, .channels = 3, .packets = 30};
  EXPECT_EQ(bidirectional(test), bidirectional(test));
  EXPECT_EQ(ring(four_hops()), ring(four_hops()));
}

}  // namespace
}  // namespace towpath::tenstorrent::kernels
