// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu_links/network.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace towpath::gpu_links {
namespace {
using namespace literals;

// GPU a > switch > GPU b, the second link at half the rate of the first.
std::shared_ptr<const machine::Machine> two_links() {
  machine::MachineBuilder builder("two links");
  const int a = builder.add_device({"a", machine::DeviceKind::gpu, 0, false});
  const int s = builder.add_device({"s", machine::DeviceKind::nvswitch, 0, true});
  const int b = builder.add_device({"b", machine::DeviceKind::gpu, 0, false});
  builder.add_link({a, s, machine::LinkKind::nvlink, 100_GBps, 300_ns, 20_ns});
  builder.add_link({s, b, machine::LinkKind::nvlink, 50_GBps, 200_ns, 10_ns});
  builder.add_link({b, s, machine::LinkKind::nvlink, 50_GBps, 200_ns, 10_ns});
  builder.add_link({s, a, machine::LinkKind::nvlink, 100_GBps, 300_ns, 20_ns});
  machine::GpuCost cost;
  for (machine::ProtocolCost& protocol : cost.protocol) protocol.block_rate = 50_GBps;
  builder.set_gpu_cost(cost);
  return std::move(builder).build();
}

// GPU a > its adapter > the other host's adapter > GPU b; all links 100 GB/s and 1 us.
std::shared_ptr<const machine::Machine> two_hosts(Rate adapter_rate) {
  machine::MachineBuilder builder("two hosts");
  const machine::DeviceKind kinds[] = {machine::DeviceKind::gpu, machine::DeviceKind::nic,
                                       machine::DeviceKind::nic, machine::DeviceKind::gpu};
  for (int i = 0; i < 4; ++i) {
    builder.add_device(
        {"device" + std::to_string(i), kinds[i], i / 2, kinds[i] == machine::DeviceKind::nic});
  }
  for (int i = 0; i < 3; ++i) {
    const auto kind = i == 1 ? machine::LinkKind::network : machine::LinkKind::pcie;
    builder.add_link({i, i + 1, kind, 100_GBps, 1_us, 0_ns});
    builder.add_link({i + 1, i, kind, 100_GBps, 1_us, 0_ns});
  }
  machine::GpuCost cost;
  for (machine::ProtocolCost& protocol : cost.protocol) {
    protocol.block_rate = 50_GBps;
    protocol.adapter_rate = adapter_rate;
  }
  builder.set_gpu_cost(cost);
  return std::move(builder).build();
}

struct Bench {
  struct Sent : Message {
    Bench* bench = nullptr;
    Time left_at;
    Time arrived_at;
  };

  explicit Bench(std::shared_ptr<const machine::Machine> machine) : network(simulation, machine) {}

  std::unique_ptr<Sent> send(std::uint64_t size_bytes, Rate pace, Time delay = {}) {
    std::unique_ptr<Sent> sent = make(size_bytes, pace, delay);
    network.send(*sent);
    return sent;
  }

  std::unique_ptr<Sent> make(std::uint64_t size_bytes, Rate pace, Time delay = {}) {
    auto sent = std::make_unique<Sent>();
    sent->bench = this;
    sent->route = &network.route(0, 1);
    sent->size = Bytes(size_bytes);
    sent->pace = pace;
    sent->delay = delay;
    sent->left = [](Message& message) {
      Sent& each = static_cast<Sent&>(message);
      each.left_at = each.bench->simulation.now();
    };
    sent->arrived = [](Message& message) {
      Sent& each = static_cast<Sent&>(message);
      each.arrived_at = each.bench->simulation.now();
    };
    return sent;
  }

  sim::Simulation simulation;
  Network network;
};

// 500 ns and 20 ns on the first link; the head is at the second one after 300 ns, which then takes
// 1,000 ns and 10 ns; 200 ns to b.
TEST(GpuLinks, AMessageGoesOnWhileItsTailComesIn) {
  Bench bench(two_links());
  const auto sent = bench.send(50'000, 200_GBps, 7_ns);
  bench.simulation.run();
  EXPECT_EQ(sent->left_at, 520_ns);
  EXPECT_EQ(sent->arrived_at, 300_ns + 1010_ns + 200_ns + 7_ns);
}

TEST(GpuLinks, TheLowestTurnGoesFirstOfThoseThatComeAtTheSameMoment) {
  Bench bench(two_links());
  std::vector<std::unique_ptr<Bench::Sent>> sent;
  for (const std::uint64_t turn : {3u, 1u, 2u}) {
    sent.push_back(bench.make(50'000, 200_GBps));
    sent.back()->turn = turn;
    bench.network.send_at(100_ns, *sent.back());
  }
  bench.simulation.run();
  EXPECT_EQ(sent[1]->left_at, 100_ns + 520_ns);
  EXPECT_EQ(sent[2]->left_at, 100_ns + 520_ns * 2);
  EXPECT_EQ(sent[0]->left_at, 100_ns + 520_ns * 3);
}

// At 10 GB/s the tail is ready after 5 us, and follows the head over both links.
TEST(GpuLinks, ATailLeavesALinkNoEarlierThanItComesIn) {
  Bench bench(two_links());
  const auto sent = bench.send(50'000, 10_GBps);
  bench.simulation.run();
  EXPECT_EQ(sent->left_at, 5_us);
  EXPECT_EQ(sent->arrived_at, 5_us + 300_ns + 200_ns);
}

TEST(GpuLinks, TwoMessagesTakeTurnsOnALink) {
  Bench bench(two_links());
  const auto first = bench.send(50'000, 200_GBps);
  const auto second = bench.send(50'000, 200_GBps);
  bench.simulation.run();
  EXPECT_EQ(first->left_at, 520_ns);
  EXPECT_EQ(second->left_at, 520_ns * 2);
  EXPECT_EQ(second->arrived_at, first->arrived_at + 1010_ns);
}

// Two segments of 64 KiB: 655.36 ns each on the first link, 1,310.72 ns on the second, which the
// second segment finds occupied.
TEST(GpuLinks, OnlyTheFirstSegmentOfAMessageHasItsOverhead) {
  Bench bench(two_links());
  const auto sent = bench.send(2 * kSegment.count(), 200_GBps);
  bench.simulation.run();
  const Time first_link = Time::from_ps(2 * 655'360) + 20_ns;
  const Time second_link = Time::from_ps(2 * 1'310'720) + 10_ns;
  EXPECT_EQ(sent->left_at, first_link);
  EXPECT_EQ(sent->arrived_at, 300_ns + second_link + 200_ns);
  const LinkLoad& load = bench.network.loads()[1];
  EXPECT_EQ(load.bytes, Bytes(2 * kSegment.count()));
  EXPECT_EQ(load.busy, second_link);
  EXPECT_EQ(load.messages, 1u);
  EXPECT_EQ(bench.network.loads()[2].messages, 0u);
}

TEST(GpuLinks, AnEmptyMessageTakesTheLatencyAndLoadsNothing) {
  Bench bench(two_links());
  const auto sent = bench.send(0, 200_GBps, 7_ns);
  bench.simulation.run();
  EXPECT_EQ(sent->arrived_at, 507_ns);
  EXPECT_EQ(bench.network.loads()[0].messages, 0u);
}

// An adapter that sends 5 GB/s slows down the link that leaves it, and no other.
TEST(GpuLinks, AnAdapterSlowsDownTheNetworkOnly) {
  Bench bench(two_hosts(5_GBps));
  const auto sent = bench.send(50'000, 200_GBps);
  bench.simulation.run();
  EXPECT_EQ(bench.network.loads()[0].busy, 500_ns);
  EXPECT_EQ(bench.network.loads()[2].busy, 10_us);
  EXPECT_EQ(bench.network.loads()[4].busy, 500_ns);
  EXPECT_EQ(sent->left_at, 500_ns);
  EXPECT_EQ(sent->arrived_at, 1_us + 10_us + 2_us);
}

}  // namespace
}  // namespace towpath::gpu_links
