// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "pcie_noc_bench.hpp"

// Accesses of a kernel to the host's memory: legal at t, not one tick before. Parameters are those
// of pcie_bench.cpp: 50 ns of the tile and 200 of the host each way, 15.753846 GB/s.

namespace towpath::pcie {
namespace {
using namespace literals;

using tenstorrent::DataMovementCore;

constexpr Coordinate kBeside{3, 3};  // in the PCIe tile's row, as kSameRow: a round trip is as long
constexpr Time kTick = Time::from_ps(1);

struct PcieDeviceTiming : testing::Test {
  SharedBench bench;
  SysmemBuffer& buffer = bench.buffer(4096);

  const noc::RequestTimes& times(std::size_t number = 0) const {
    return bench.network.requests()[number];
  }
  Time edge(noc::Cycle cycle) const { return bench.network.clock().edge(Cycles(cycle)); }
  noc::Address host() const { return {kPcie, *buffer.noc_address}; }
  noc::Address worker() const { return {kBeside, 0x1000}; }
  // The request that a kernel on kSameRow makes alone.
  noc::RequestTimes of(bool writes, const noc::Address& address) {
    const std::size_t number = bench.network.requests().size();
    bench.kernel(kSameRow, [=](DataMovementCore& core) {
      if (writes) core.noc_async_write(0, address, 64);
      if (!writes) core.noc_async_read(address, 0, 64);
      core.noc_async_full_barrier();
    });
    bench.simulation.run();
    return times(number);
  }
};

// 88 bytes of a packet take 5.586 ns on the link, 1.862 for each of three flits. The last two come
// in a row, and the first of them may have been due almost a cycle before.
TEST_F(PcieDeviceTiming, AWritesBytesAreInTheHostsMemoryAfterTileAndLink) {
  bench.put(kSameRow, 0, counted(64));
  const noc::RequestTimes reference = of(true, host());
  const Time begun = edge(reference.received - 1) - 1_ns + kTick;
  const Time landed = begun + Time::from_ps(2 * 1862) + 50_ns + 200_ns;
  SharedBench own;
  SysmemBuffer& fresh = own.buffer(4096);
  own.put(kSameRow, 0, counted(64));
  own.kernel(kSameRow, [&](DataMovementCore& core) {
    core.noc_async_write(0, {kPcie, *fresh.noc_address}, 64);
    core.noc_async_write_barrier();
  });
  const auto there = [&] {
    return std::vector<std::byte>(fresh.bytes.begin(), fresh.bytes.begin() + 64) == counted(64);
  };
  own.simulation.run_until(landed - kTick);
  EXPECT_FALSE(there());
  own.simulation.run_until(landed);
  EXPECT_TRUE(there());
}

// The tile takes 100 ns more than a worker at the same distance.
TEST_F(PcieDeviceTiming, AWriteIsAcknowledgedByTheTile) {
  const noc::RequestTimes to_host = of(true, host());
  const noc::RequestTimes to_worker = of(true, worker());
  EXPECT_EQ(to_host.completed - to_host.issued, to_worker.completed - to_worker.issued + 100);
}

// 50 + 200 + 200 + 50 ns, a header of 24 bytes to the host and 84 bytes back: 506.857 ns. The
// answer leaves then, its last of two data flits not before.
TEST_F(PcieDeviceTiming, AReadIsAnsweredAfterTheHostsRoundTrip) {
  const noc::RequestTimes write = of(true, host());
  const noc::RequestTimes read = of(false, host());
  const machine::NiuParameters& niu = bench.network.chip().niu;
  const noc::Cycle way_back = write.completed - (write.received + 100 + niu.acknowledge_cycles);
  const noc::Cycle last_flit = read.received + 507 + niu.read_response_cycles;
  EXPECT_EQ(read.completed, last_flit + way_back);
}

// The request is at the host's memory 50 + 1.524 + 200 ns after it reached the tile.
TEST_F(PcieDeviceTiming, AReadSeesWhatIsThereWhenItIsAtTheHostsMemory) {
  const noc::RequestTimes reference = of(false, host());
  const Time seen = edge(reference.received) + 250_ns + Time::from_ps(1524);
  for (const bool is_early : {true, false}) {
    SharedBench own;
    SysmemBuffer& fresh = own.buffer(4096);
    own.kernel(kSameRow, [&](DataMovementCore& core) {
      core.noc_async_read({kPcie, *fresh.noc_address}, 0, 64);
      core.noc_async_read_barrier();
    });
    own.run([&] {
      own.simulation.sleep_until(is_early ? seen - kTick : seen + kTick);
      fresh.bytes[0] = std::byte{1};
    });
    EXPECT_EQ(own.at(kSameRow, 0, 1)[0], is_early ? std::byte{1} : std::byte{0});
  }
}

}  // namespace
}  // namespace towpath::pcie
