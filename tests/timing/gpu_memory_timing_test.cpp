// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// When accesses of a kernel are done and seen, to the picosecond, from the machine's KernelCost.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "towpath/gpu/study/exchange.hpp"
#include "towpath/gpu/study/rings.hpp"
#include "towpath/machine/load.hpp"
#include "towpath/transport/remote_memory.hpp"
#include "towpath/transport/simulated/gpu/gpu_ranks.hpp"

namespace towpath::transport::simulated {
namespace {
using namespace literals;

// Two GPUs joined by a wire of 1 us, in one host (NVLink) or two (network).
std::shared_ptr<const machine::Machine> pair(const machine::KernelCost& kernel,
                                             machine::LinkKind kind) {
  machine::MachineBuilder builder("pair");
  for (int i = 0; i < 2; ++i) {
    builder.add_device({"gpu" + std::to_string(i), machine::DeviceKind::gpu, i, false});
  }
  builder.add_link({0, 1, kind, 100_GBps, 1_us, 0_ns});
  builder.add_link({1, 0, kind, 100_GBps, 1_us, 0_ns});
  machine::GpuCost gpu;
  for (machine::ProtocolCost& protocol : gpu.protocol) protocol.block_rate = 100_GBps;
  gpu.kernel = kernel;
  builder.set_gpu_cost(gpu);
  return std::move(builder).build();
}

machine::KernelCost cost() {
  machine::KernelCost cost;
  cost.multiprocessors = cost.blocks_per_multiprocessor = 4;
  cost.threads_per_multiprocessor = 1024;
  cost.registers_per_multiprocessor = 65536;
  cost.shared_memory_kib = 100;
  cost.memory_latency = 500_ns;
  cost.peer_latency = 2500_ns;
  cost.memory_rate = 1000_GBps;
  cost.multiprocessor_rate = 50_GBps;
  cost.loads_in_flight = 1;
  cost.put_loads_in_flight = 5;
  cost.thread_put_overhead = 11_ns;
  cost.warp_put_overhead = 22_ns;
  cost.block_put_overhead = 33_ns;
  cost.signal = 7_ns;
  cost.fence = 100_ns;
  cost.poll = 40_ns;
  cost.proxy_overhead = 300_ns;
  cost.proxy_message = 900_ns;
  cost.initiation_overhead = 4_us;
  cost.queue_pairs = 2;
  cost.queue_pair_rate = 10_GBps;
  cost.queue_pair_message = 200_ns;
  cost.queue_pair_poll = 60_ns;
  return cost;
}

// When the callbacks of an access came.
struct Times {
  Time done;
  Time visible;
};

class GpuMemoryTiming : public testing::Test {
 public:
  void build(const machine::KernelCost& kernel, machine::LinkKind kind) {
    ranks_ = std::make_unique<GpuRanks>(simulation_, pair(kernel, kind), GpuRanksOptions{});
    for (int rank = 0; rank < 2; ++rank) heap_ = ranks_->transport(rank).allocate(1 << 20);
  }
  RemoteMemory& memory(int rank) { return *ranks_->transport(rank).remote_memory(); }

  // From GPU 0 to GPU 1; it has not begun.
  Access& access(AccessKind kind, std::uint64_t size_bytes, int threads = 256) {
    Access& access = accesses_.emplace_back();
    access.kind = kind;
    access.peer = 1;
    access.remote = heap_;
    access.size_bytes = size_bytes;
    access.issuer.threads = threads;
    return access;
  }
  Times& watch(Access& access) {
    Times& times = times_.emplace_back();
    access.context = &times;
    watched_ = &simulation_;
    access.done = [](Access& one) { static_cast<Times*>(one.context)->done = watched_->now(); };
    access.visible = [](Access& one) {
      static_cast<Times*>(one.context)->visible = watched_->now();
    };
    return times;
  }

  sim::Simulation simulation_;
  std::unique_ptr<GpuRanks> ranks_;
  Offset heap_ = 0;
  std::deque<Access> accesses_;
  std::deque<Times> times_;
  static sim::Simulation* watched_;
};

sim::Simulation* GpuMemoryTiming::watched_ = nullptr;

// 256 threads keep 256 x 16 x 5 bytes on the way for 2.5 us: 8.192 GB/s.
constexpr Time kCopied = Time::from_ps(5'000'000);  // of 40960 bytes

TEST_F(GpuMemoryTiming, APutIsDoneWhenItsStoresHaveLeftAndVisibleAWayLater) {
  build(cost(), machine::LinkKind::nvlink);
  Access& put = access(AccessKind::put, 40'960);
  const Times& times = watch(put);
  memory(0).start(put);
  simulation_.run();
  EXPECT_EQ(times.done, 33_ns + kCopied);
  EXPECT_EQ(times.visible, 33_ns + kCopied + 1_us);
}

TEST_F(GpuMemoryTiming, OverheadsAreByScopeAndTheMultiprocessorBoundsAPut) {
  build(cost(), machine::LinkKind::nvlink);
  Access& one = access(AccessKind::put, 80, 1);
  Access& warp = access(AccessKind::put, 2560, 32);
  Access& whole = access(AccessKind::put, 50'000, 8192);
  whole.remote = heap_ + 4096;
  const Times &thread_times = watch(one), &warp_times = watch(warp);
  memory(0).start(one);
  memory(0).start(warp);
  simulation_.run();
  EXPECT_EQ(thread_times.done, 11_ns + 2500_ns);
  EXPECT_EQ(warp_times.done, 22_ns + 2500_ns);
  const Time begin = simulation_.now();
  const Times& whole_times = watch(whole);
  memory(0).start(whole);
  simulation_.run();
  EXPECT_EQ(whole_times.done, begin + 33_ns + 1_us);  // 50 GB/s
  Access& slow = access(AccessKind::put, 50'000, 8192);
  slow.issuer.rate_max = 25_GBps;
  const Times& slow_times = watch(slow);
  const Time again = simulation_.now();
  memory(0).start(slow);
  simulation_.run();
  EXPECT_EQ(slow_times.done, again + 33_ns + 2_us);
}

TEST_F(GpuMemoryTiming, ASignalBehindAPayloadTakesThreeWaysAFenceAndAPoll) {
  build(cost(), machine::LinkKind::nvlink);
  Access& put = access(AccessKind::put, 40'960);
  put.has_signal = true;
  put.signal_at = heap_ + 65'536;
  put.signal_value = 1;
  const Times& times = watch(put);
  MemoryWait wait;
  wait.first = put.signal_at;
  wait.size_bytes = 8;
  wait.holds = [](const MemoryWait& self) {
    auto& all = *static_cast<GpuMemoryTiming*>(self.context);
    return *all.ranks_->transport(1).data(self.first) == std::byte{1};
  };
  wait.context = this;
  wait.ready = [](MemoryWait& self) {
    auto& all = *static_cast<GpuMemoryTiming*>(self.context);
    all.times_.push_back({all.simulation_.now(), {}});
  };
  memory(1).wait(wait);
  memory(0).start(put);
  simulation_.run();
  EXPECT_EQ(times.done, 33_ns + kCopied + 2_us + 100_ns);
  EXPECT_EQ(times.visible, 33_ns + kCopied + 3_us + 100_ns);
  EXPECT_EQ(times_.back().done, times.visible + 40_ns);
}

TEST_F(GpuMemoryTiming, AWaitForAValueThatIsGoneAtTheNextLookGoesOnWaiting) {
  build(cost(), machine::LinkKind::nvlink);
  Access* signals[3];
  for (std::uint64_t i = 0; i < 3; ++i) {
    signals[i] = &access(AccessKind::put, 0, 1);
    signals[i]->has_signal = true;
    signals[i]->signal_at = heap_;
    signals[i]->signal_value = i == 1 ? 2 : 1;
  }
  MemoryWait wait;
  wait.first = heap_;
  wait.size_bytes = 8;
  wait.context = this;
  wait.holds = [](const MemoryWait& self) {
    auto& all = *static_cast<GpuMemoryTiming*>(self.context);
    return *all.ranks_->transport(1).data(self.first) == std::byte{1};
  };
  wait.ready = [](MemoryWait& self) {
    auto& all = *static_cast<GpuMemoryTiming*>(self.context);
    all.times_.push_back({all.simulation_.now(), {}});
  };
  memory(1).wait(wait);
  memory(0).start(*signals[0]);
  simulation_.run_until(39_ns);  // the look is 40 ns behind the first value
  memory(0).start(*signals[1]);
  simulation_.run();
  EXPECT_TRUE(times_.empty());
  EXPECT_TRUE(wait.is_waiting);
  const Time begin = simulation_.now();
  memory(0).start(*signals[2]);
  simulation_.run();
  ASSERT_EQ(times_.size(), 1u);
  EXPECT_EQ(times_.back().done, begin + 7_ns + 1_us + 40_ns);
}

TEST_F(GpuMemoryTiming, ASeparateSignalTakesOneWayAndAFetchTwo) {
  build(cost(), machine::LinkKind::nvlink);
  Access& signal = access(AccessKind::put, 0, 1);
  signal.has_signal = true;
  signal.signal_at = heap_;
  Access& fetch = access(AccessKind::atomic, 8, 1);
  fetch.fetches = true;
  const Times &signal_times = watch(signal), &fetch_times = watch(fetch);
  memory(0).start(signal);
  memory(0).start(fetch);
  simulation_.run();
  EXPECT_EQ(signal_times.done, 7_ns);
  EXPECT_EQ(signal_times.visible, 7_ns + 1_us);
  EXPECT_EQ(fetch_times.done, 7_ns + 2_us);
}

TEST_F(GpuMemoryTiming, AGetAsksAndTheBytesComeBack) {
  build(cost(), machine::LinkKind::nvlink);
  Access& get = access(AccessKind::get, 40'960);
  const Times& times = watch(get);
  memory(0).start(get);
  simulation_.run();
  EXPECT_EQ(times.done, 33_ns + 1_us + kCopied + 1_us);
}

TEST_F(GpuMemoryTiming, FencesOfOneMultiprocessorComeOneAfterTheOther) {
  build(cost(), machine::LinkKind::nvlink);
  Access& put = access(AccessKind::put, 40'960);
  Access& behind = access(AccessKind::fence, 0, 64);
  Access& same = access(AccessKind::fence, 0, 33);
  Access& elsewhere = access(AccessKind::fence, 0, 33);
  same.issuer.lane = elsewhere.issuer.lane = 1;
  elsewhere.issuer.multiprocessor = 1;
  const Times &behind_times = watch(behind), &same_times = watch(same),
              &elsewhere_times = watch(elsewhere);
  memory(0).start(put);
  memory(0).start(same);
  memory(0).start(behind);
  memory(0).start(elsewhere);
  simulation_.run();
  EXPECT_EQ(same_times.done, 200_ns);
  EXPECT_EQ(elsewhere_times.done, 200_ns);
  EXPECT_EQ(behind_times.done, 33_ns + kCopied + 2_us + 200_ns);  // acknowledged, then two warps
}

// 10,000 bytes take 1 us on a queue pair.
TEST_F(GpuMemoryTiming, ThreadsHandPutsToTheQueuePairOfTheirLane) {
  machine::KernelCost kernel = cost();
  kernel.gpu_initiated_adapters = true;
  build(kernel, machine::LinkKind::network);
  std::vector<const Times*> times;
  for (const int lane : {0, 1, 2}) {
    Access& put = access(AccessKind::put, 10'000);
    put.issuer.lane = lane;
    times.push_back(&watch(put));
    memory(0).start(put);
  }
  simulation_.run();
  const Time first = 33_ns + 200_ns + 1_us + 1_us + 4_us;
  EXPECT_EQ(times[0]->visible, first + 1_us);  // done, when it is acknowledged
  EXPECT_EQ(times[0]->done, first + 1_us);
  EXPECT_EQ(times[2]->done, times[0]->done + 200_ns + 1_us);
  // The other queue pair shares nothing but the wire, which is ten times as fast.
  EXPECT_GE(times[1]->done, times[0]->done);
  EXPECT_LE(times[1]->done, times[0]->done + 100_ns);
}

TEST_F(GpuMemoryTiming, AProxyTakesThePutsOfAllLanesInTurn) {
  build(cost(), machine::LinkKind::network);
  std::vector<const Times*> times;
  for (const int lane : {0, 1}) {
    Access& put = access(AccessKind::put, 1000);  // 100 ns
    put.issuer.lane = lane;
    times.push_back(&watch(put));
    memory(0).start(put);
  }
  simulation_.run();
  EXPECT_EQ(times[0]->done, 33_ns + 900_ns + 100_ns + 1_us + 300_ns + 1_us);
  EXPECT_EQ(times[1]->done, times[0]->done + 900_ns);
}

TEST_F(GpuMemoryTiming, AFenceLooksThroughTheQueuePairsOfAllPeers) {
  machine::KernelCost kernel = cost();
  kernel.gpu_initiated_adapters = true;
  build(kernel, machine::LinkKind::network);
  Access& fence = access(AccessKind::fence, 0, 96);
  const Times& times = watch(fence);
  memory(0).start(fence);
  simulation_.run();
  EXPECT_EQ(times.done, 300_ns + 60_ns * (3 * 2));
}

// --- kernels on them -----------------------------------------------------------------------------

TEST(GpuStudyTiming, AnExchangeOfOneBlockIsTheSumOfItsCalls) {
  machine::KernelCost kernel = cost();
  kernel.barrier = 9_ns;
  const auto machine = pair(kernel, machine::LinkKind::nvlink);
  gpu::study::ExchangeOptions options;
  options.size_bytes = 40'960;
  options.threads = 256;
  options.bytes_per_thread = 160;
  options.stage = gpu::study::ExchangeStage::plain;
  EXPECT_EQ(gpu::study::exchange_time(machine, options), 33_ns + kCopied + 1_us);
  options.stage = gpu::study::ExchangeStage::fused_signal;
  const Time signalled = 33_ns + kCopied + 3_us + 100_ns;
  EXPECT_EQ(gpu::study::exchange_time(machine, options),
            signalled + 40_ns + 500_ns * 10 + 9_ns);  // 10 loads of 16 bytes each
}

TEST(GpuStudyTiming, BlocksThatDoNotFitWaitForAWaveOfTheirOwn) {
  const auto machine = pair(cost(), machine::LinkKind::nvlink);
  gpu::study::ExchangeOptions options;
  options.stage = gpu::study::ExchangeStage::plain;
  options.threads = 1024;
  options.bytes_per_thread = 16;
  options.size_bytes = 4 * 16'384;  // one block on each of 4 multiprocessors
  const Time one_wave = gpu::study::exchange_time(machine, options);
  options.size_bytes *= 2;
  const Time two_waves = gpu::study::exchange_time(machine, options);
  EXPECT_GE(two_waves, one_wave + 33_ns);
  EXPECT_LE(two_waves, (one_wave - 1_us) * 2 + 1_us);
}

TEST(GpuStudyTiming, AlternatingRingsCrossBetweenHostsOnOneRail) {
  const auto machine = machine::load_machine("dgx-h100");
  for (int ring = 0; ring < 8; ++ring) {
    std::vector<int> order = gpu::study::ring_order(*machine, true, ring);
    ASSERT_EQ(order.size(), 16u);
    // Both ways between hosts are on one rail.
    int crossings = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int from = order[i], to = order[(i + 1) % order.size()];
      if (from / 8 == to / 8) continue;
      ++crossings;
      EXPECT_EQ(from % 8, to % 8) << "ring " << ring;
    }
    EXPECT_EQ(crossings, 2);
    std::sort(order.begin(), order.end());
    for (int gpu = 0; gpu < 16; ++gpu) EXPECT_EQ(order[static_cast<std::size_t>(gpu)], gpu);
  }
}

}  // namespace
}  // namespace towpath::transport::simulated
