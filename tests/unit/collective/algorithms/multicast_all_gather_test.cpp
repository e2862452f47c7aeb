// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "fabrics.hpp"
#include "sentence.hpp"
#include "towpath/collective/algorithms/algorithms.hpp"
#include "towpath/collective/schedule/plan.hpp"
#include "towpath/collective/verify/verify.hpp"
#include "towpath/machine/load.hpp"
#include "towpath/simulate/simulated_run.hpp"
#include "towpath/tenstorrent/ccl/simulated_chips.hpp"

// All-gather by multicast: what each rank has goes to all others at once.

namespace towpath::tenstorrent::ccl {
namespace {

using simulate::SimulatedRun;

using collective::Buffers;
using collective::Plan;
using machine::ChipCluster;
using Words = std::vector<std::int32_t>;

std::shared_ptr<const Plan> plan_of(std::string_view algorithm, int ranks, std::uint64_t count,
                                    int channels = 1) {
  collective::AlgorithmOptions options;
  options.ranks = ranks;
  options.channels = channels;
  auto schedule =
      std::make_shared<collective::Schedule>(collective::make_schedule(algorithm, options));
  return collective::make_plan(schedule, count, {transport::DataType::int32, {}});
}

struct Chips {
  int chips = 2;
  bool is_ring = false;
  int links = 1;
  int threads = 1;
};

std::unique_ptr<SimulatedChips> simulated(const Chips& form, bool carries_data) {
  SimulatedChipsOptions options;
  options.carries_data = carries_data;
  options.run.threads = form.threads;
  return std::make_unique<SimulatedChips>(
      machine::chips_on_grid(form.chips, 1, form.is_ring, form.links), form.chips, options);
}

std::int32_t word(int rank, std::size_t place) {
  return static_cast<std::int32_t>(1'000'003 * (rank + 1) + static_cast<int>(place));
}

// Runs two calls, the second in place, and looks at what each rank has then.
Time gathered(const Chips& form, std::uint64_t count, int channels = 1) {
  const auto ranks = static_cast<std::size_t>(form.chips);
  SimulatedRun run(simulated(form, true),
                   plan_of("multicast_all_gather", form.chips, count, channels));
  const std::size_t part = count / ranks;
  std::vector<Words> inputs, outputs(ranks, Words(count));
  std::vector<Buffers> apart, in_place;
  Words expected;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Words& input = inputs.emplace_back(part);
    for (std::size_t i = 0; i < part; ++i) input[i] = word(static_cast<int>(rank), i);
    expected.insert(expected.end(), input.begin(), input.end());
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    auto* output = reinterpret_cast<std::byte*>(outputs[rank].data());
    apart.push_back({reinterpret_cast<const std::byte*>(inputs[rank].data()), output});
    in_place.push_back({output + rank * part * sizeof(std::int32_t), output});
  }
  const Time first = run.invoke(apart);
  for (const Words& output : outputs) EXPECT_EQ(output, expected);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::ranges::fill(outputs[rank], -1);
    std::ranges::copy(inputs[rank],
                      outputs[rank].begin() + static_cast<std::ptrdiff_t>(rank * part));
  }
  run.invoke(in_place);
  for (const Words& output : outputs) EXPECT_EQ(output, expected);
  return first;
}

TEST(MulticastAllGather, GathersOnLinesAndRingsOfAnySize) {
  for (const int chips : {2, 3, 4, 5, 8}) {
    for (const bool is_ring : {false, true}) {
      if (is_ring && chips == 2) continue;
      // A word, less than a page, a page and some, and several entries of the workers' buffer.
      for (const int part : {1, 100, 600, 20'000}) {
        gathered({chips, is_ring}, static_cast<std::uint64_t>(part * chips));
      }
    }
  }
}

TEST(MulticastAllGather, GathersOverSeveralLinksAndByManyThreadBlocks) {
  for (const bool is_ring : {false, true}) {
    gathered({4, is_ring, 2}, 4 * 1);  // the second link has an increment only
    gathered({4, is_ring, 2}, 4 * 5'000);
    gathered({4, is_ring, 2}, 4 * 6'000, 3);
  }
}

TEST(MulticastAllGather, TakesTheSameTimeWithChipsSideBySide) {
  const Time one = gathered({6, true}, 6 * 3'000);
  EXPECT_EQ(gathered({6, true, 1, 3}, 6 * 3'000), one);
}

TEST(MulticastAllGather, IsVerified) {
  for (const int channels : {1, 2}) {
    const auto plan = plan_of("multicast_all_gather", 5, 100, channels);
    EXPECT_TRUE(collective::verify(*plan->schedule, 100, 4).is_correct()) << channels;
  }
}

// --- time ----------------------------------------------------------------------------------------

Time time_of(std::shared_ptr<const ChipCluster> chips, int ranks, std::uint64_t bytes) {
  SimulatedChipsOptions options;
  options.carries_data = false;
  const auto plan = plan_of("multicast_all_gather", ranks, bytes / sizeof(std::int32_t));
  SimulatedRun run(std::make_unique<SimulatedChips>(std::move(chips), ranks, options), plan);
  return run.invoke({});
}

// Neither RISC-V begins a packet before the one before has left: 500 cycles of software, and 128 in
// which 4 KiB leave the core. tt-metal's stops at 6.4 GB/s, 640 ns a packet.
TEST(MulticastAllGather, APairTakesTheSoftwareAndTheBytesOfEachPacket) {
  const auto pair = machine::load_chip_cluster("n300");
  const Time small = time_of(pair, 2, 1 << 20), large = time_of(pair, 2, 2 << 20);
  const double packets = (1 << 19) / 4096.0;
  const double per_packet_ns = (large - small).ns() / packets;
  EXPECT_GT(per_packet_ns, 500 + 128);
  EXPECT_LT(per_packet_ns, 700);
}

// Half way round, each direction brings every other packet.
TEST(MulticastAllGather, BothWaysRoundARingCarryTheSame) {
  SimulatedRun run(simulated({4, true}, false), plan_of("multicast_all_gather", 4, 1 << 16));
  run.invoke({});
  const std::vector<sim::LinkLoad> loads = run.loads();
  const auto bytes = [](const sim::LinkLoad& load) { return load.bytes.count(); };
  const auto [least, most] = std::ranges::minmax(loads, {}, bytes);
  // A part of 64 KiB to a neighbour, and half of another one's to the next.
  EXPECT_GT(least.bytes.count(), (64u << 10) * 3 / 2);
  EXPECT_LT(most.bytes.count(), (64u << 10) * 3 / 2 * 21 / 20);
}

// --- what is refused -----------------------------------------------------------------------------

std::string refusal_of(std::shared_ptr<const ChipCluster> chips, std::string_view algorithm) {
  const auto ranks = static_cast<int>(chips->chips.size());
  SimulatedChipsOptions options;
  options.shape = tenstorrent::fabric::mesh_of(*chips);
  return sentence_of<std::invalid_argument>([&] {
    SimulatedRun(std::make_unique<SimulatedChips>(chips, ranks, options),
                 plan_of(algorithm, ranks, 720));
  });
}

TEST(MulticastAllGather, WhatTheChipsCannotDoIsRefused) {
  const auto line = machine::chips_on_grid(3, 1, false, 1);
  EXPECT_EQ(refusal_of(machine::chips_on_grid(3, 2, false, 1), "multicast_all_gather"),
            "schedule 'multicast_all_gather': ranks on a mesh of chips do not store to all others "
            "at once; those on a line or ring of them do");
  EXPECT_EQ(refusal_of(line, "nvls_reduce_scatter"),
            "schedule 'nvls_reduce_scatter': chips do not add up what they load from others");
  EXPECT_EQ(refusal_of(line, "two_shot_pull_all_reduce"),
            "schedule 'two_shot_pull_all_reduce': chips do not load from or store to the memory of "
            "one other; all at once they do store to");
}

}  // namespace
}  // namespace towpath::tenstorrent::ccl
