// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "pcie_noc_bench.hpp"

// Requests of the PCIe tile on its chip's NoC: legal at t, not one tick before. Parameters are
// those of pcie_bench.cpp.

namespace towpath::pcie {
namespace {
using namespace literals;

constexpr Time kOnLink = Time::from_ps(5'586);  // 88 B at 15.753846 GB/s, rounded up

// Times of a request that the network carries out alone.
noc::RequestTimes alone(noc::RequestKind kind, std::uint64_t size_bytes, bool is_posted = false) {
  struct Nobody final : noc::Outside {
    void request_left(std::uint64_t) override {}
    void request_completed(std::uint64_t, std::span<const std::byte>) override {}
  } nobody;
  sim::Simulation simulation;
  const auto chip = machine::build_chip(link_chip());
  noc::ChipNetwork network(simulation, chip, {.records_requests = true});
  noc::Request request = tile_request(*chip, kind, {kOther, 0}, size_bytes);
  request.is_posted = is_posted;
  network.issue(request, {.owner = nobody, .number = 0, .data = {}, .carries_data = false});
  simulation.run();
  return network.requests().front();
}

struct PcieNocTiming : testing::Test {
  SharedBench bench;
  Time begin;
  Transfer transfer;

  void open(Ordering ordering) {
    bench.run([&] { bench.link.configure_tlb(kOther, 1 << 20, 0, ordering); });
    begin = bench.simulation.now();
  }
  Time edge(noc::Cycle cycle) const { return bench.network.clock().edge(Cycles(cycle)); }
  // The first edge not before.
  Time edge_from(Time time) const { return bench.network.clock().next_edge(time); }
};

// The line is stored at 51 ns, crosses the link, and is 250 ns under way to the NoC, where it is a
// request in the next cycle.
TEST_F(PcieNocTiming, ALineIsARequestInTheFirstCycleInWhichItIsThere) {
  open(Ordering::posted);
  bench.run([&] { bench.link.write_to_device(counted(64), kOther, 0); });
  const Time arrives = begin + 51_ns + kOnLink + 250_ns;
  const noc::RequestTimes& times = bench.network.requests().front();
  EXPECT_EQ(edge(times.issued), edge_from(arrives));
  EXPECT_EQ(times.request.core, (Coordinate{0, 3}));
  EXPECT_EQ(times.request.noc, 0);
}

TEST_F(PcieNocTiming, ItsBytesAreThereWithItsLastFlitAndNotOneTickBefore) {
  open(Ordering::posted);
  const Time issued = edge_from(begin + 51_ns + kOnLink + 250_ns);
  const noc::RequestTimes reference = alone(noc::RequestKind::write, 64, true);
  const Time landed =
      issued + Time::from_ns(static_cast<double>(reference.received - reference.issued));
  bench.simulation.spawn("host", [&] { bench.link.write_to_device(counted(64), kOther, 0); });
  bench.simulation.run_until(landed - Time::from_ps(1));
  EXPECT_NE(bench.at(kOther, 0, 64), counted(64));
  bench.simulation.run_until(landed);
  EXPECT_EQ(bench.at(kOther, 0, 64), counted(64));
}

// Four at a time: the fifth is a request when the first is acknowledged; strict ones count as
// acknowledged 30 ns later; posted ones do not wait.
TEST_F(PcieNocTiming, TheFifthAcknowledgedLineIsARequestWhenTheFirstIsAnswered) {
  for (const auto& [ordering, later] :
       {std::pair{Ordering::standard, 0}, std::pair{Ordering::strict, 30}}) {
    SharedBench own;
    own.run([&, is = ordering] {
      own.link.configure_tlb(kOther, 1 << 20, 0, is);
      own.link.write_to_device(counted(5 * 64), kOther, 0);
    });
    const auto& requests = own.network.requests();
    ASSERT_EQ(requests.size(), 5U);
    EXPECT_EQ(requests[4].issued, requests[0].completed + later);
  }
  open(Ordering::posted);
  bench.run([&] { bench.link.write_to_device(counted(5 * 64), kOther, 0); });
  const auto& requests = bench.network.requests();
  EXPECT_EQ(edge(requests[4].issued), edge_from(begin + 51_ns + 40_ns + kOnLink + 250_ns));
}

// A chip with room for one line: the next one leaves the host when that one has left for the NoC.
TEST_F(PcieNocTiming, ALineLeavesTheHostWhenTheChipHasRoomForIt) {
  machine::Chip chip = link_chip();
  chip.pcie.posted_buffer_bytes = 64;
  SharedBench own(link_host(), chip);
  own.run([&] {
    own.link.configure_tlb(kOther, 1 << 20, 0, Ordering::posted);
    own.link.write_to_device(counted(2 * 64), kOther, 0);
  });
  const auto& requests = own.network.requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(edge(requests[1].issued), edge_from(edge(requests[0].sent) + kOnLink + 250_ns));
}

TEST_F(PcieNocTiming, AReadIsBackWhenItsAnswerHasCrossedTileAndLink) {
  open(Ordering::standard);
  const noc::RequestTimes reference = alone(noc::RequestKind::read, 64);
  const Time on_noc = Time::from_ns(static_cast<double>(reference.completed - reference.issued));
  std::vector<std::byte> to(64);
  bench.run([&] { transfer = bench.link.read_from_device(to, kOther, 0); });
  EXPECT_EQ(transfer.time(), 50_ns + 250_ns + on_noc + 250_ns);
  EXPECT_GE(on_noc, 142_ns);
  EXPECT_LE(on_noc, 148_ns);
}

TEST_F(PcieNocTiming, AReadIsARequestWhenTheWritesBeforeItAreDone) {
  open(Ordering::standard);
  bench.run([&] {
    bench.link.write_to_device(counted(64), kOther, 0);
    std::vector<std::byte> to(64);
    bench.link.read_from_device(to, kOther, 0);
  });
  const auto& requests = bench.network.requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].issued, requests[0].completed);
}

// The engine asks for 512 B, whose four bursts come at the rate of the link.
TEST_F(PcieNocTiming, ADmaWritesBurstsAsTheyCome) {
  open(Ordering::posted);
  machine::Host host = link_host();
  host.memory.has_iommu = false;
  SharedBench own(host);
  own.run([&] {
    own.link.dma_write_to_device(counted(512), kOther, 0, {.ordering = Ordering::posted});
  });
  const auto chip = machine::build_chip(link_chip());
  const Time burst = transfer_time(Bytes(128), answer_rate(host, *chip));
  // 50 ns of the call, 64 of copying, 1 us to set up, 500 until the first byte has come.
  const Time first = 50_ns + 64_ns + 1_us + 500_ns;
  const auto& requests = own.network.requests();
  ASSERT_EQ(requests.size(), 4U);
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(requests[static_cast<std::size_t>(i)].request.size_bytes, 128U);
    EXPECT_EQ(edge(requests[static_cast<std::size_t>(i)].issued),
              edge_from(first + burst * (i + 1)));
  }
}

// Eight payloads at a time: the ninth is a request when the first has come back through the tile.
TEST_F(PcieNocTiming, ADmaReadsAsManyPayloadsAtATimeAsTheChipAllows) {
  bench.run([&] {
    std::vector<std::byte> to(9 * 128);
    bench.link.dma_read_from_device(to, kOther, 0);
  });
  const auto& requests = bench.network.requests();
  ASSERT_EQ(requests.size(), 9U);
  EXPECT_EQ(requests[7].issued, requests[0].issued);
  EXPECT_EQ(requests[8].issued, requests[0].completed + 100);
}

}  // namespace
}  // namespace towpath::pcie
