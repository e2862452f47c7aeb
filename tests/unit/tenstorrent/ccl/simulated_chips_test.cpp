// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/simulated_chips.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "fabrics.hpp"
#include "sentence.hpp"
#include "towpath/base/deadlock_error.hpp"
#include "towpath/collective/algorithms/algorithms.hpp"
#include "towpath/collective/schedule/plan.hpp"
#include "towpath/simulate/simulated_run.hpp"
#include "towpath/tenstorrent/ccl/link_faults.hpp"

namespace towpath::tenstorrent::ccl {
namespace {

using simulate::LinkFailure;
using simulate::SimulatedRun;

using collective::AlgorithmOptions;
using collective::Buffers;

using namespace literals;
using ethernet::LinkFaults;
using transport::TransportError;

struct Result {
  Time time;
  std::vector<std::vector<std::int32_t>> outputs;
  std::vector<sim::LinkLoad> loads;
  std::vector<LinkFailure> failures;
};

std::shared_ptr<const machine::ChipCluster> ring_of_four() {
  return machine::chips_on_grid(4, 1, true, 1);
}

// All-reduce of `count` integers on four chips in a ring; rank r has r + i in place i.
Result all_reduce(std::uint64_t count, int channels, std::uint64_t seed,
                  const std::vector<LinkFaults>& faults = {}, Time deadline = 1_s) {
  AlgorithmOptions options;
  options.ranks = 4;
  options.channels = channels;
  const auto plan = collective::make_plan(
      std::make_shared<collective::Schedule>(collective::ring_all_reduce(options)), count,
      {transport::DataType::int32, transport::ReductionOperation::sum});
  SimulatedChipsOptions run_options;
  run_options.run.seed = seed;
  run_options.run.link_faults = faults;
  run_options.deadline = deadline;
  SimulatedRun run(std::make_unique<SimulatedChips>(ring_of_four(), 4, run_options), plan);
  std::vector<std::vector<std::int32_t>> inputs(4, std::vector<std::int32_t>(count));
  Result result{Time(), inputs, {}, {}};
  std::vector<Buffers> buffers;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    for (std::size_t i = 0; i < count; ++i) {
      inputs[rank][i] = static_cast<std::int32_t>(rank + i);
    }
    buffers.push_back({reinterpret_cast<const std::byte*>(inputs[rank].data()),
                       reinterpret_cast<std::byte*>(result.outputs[rank].data())});
  }
  result.time = run.invoke(buffers);
  result.loads = run.loads();
  result.failures = run.link_failures();
  return result;
}

void expect_sums(const Result& result) {
  for (const auto& output : result.outputs) {
    for (std::size_t i = 0; i < output.size(); ++i) {
      ASSERT_EQ(output[i], static_cast<std::int32_t>(6 + 4 * i)) << i << " of " << output.size();
    }
  }
}

TEST(SimulatedChips, AnAllReduceGivesTheSumOnAllRanks) {
  for (const std::uint64_t count : {12u, 1'200u, 60'000u}) {
    for (const int channels : {1, 3}) {
      expect_sums(all_reduce(count, channels, 1));
    }
  }
}

collective::Schedule schedule_of_four(std::string_view algorithm) {
  AlgorithmOptions options;
  options.ranks = 4;
  return collective::make_schedule(algorithm, options);
}

// Ranks that begin when the first three of four have been called.
std::vector<int> ranks_of_three_that_begin(const collective::Schedule& schedule) {
  SimulatedChips chips(ring_of_four(), 4);
  std::vector<int> begun;
  chips.on_begin = [&](int rank) { begun.push_back(rank); };
  const auto plan =
      collective::make_plan(std::make_shared<collective::Schedule>(schedule), 64,
                            {transport::DataType::int32, transport::ReductionOperation::sum});
  chips.set_plan(*plan);
  const collective::Schedule any{};
  for (const int rank : {0, 1, 2}) chips.start(rank, any);
  chips.run();
  const std::vector<int> found = begun;
  chips.start(3, any);
  chips.run();
  std::ranges::sort(begun);
  EXPECT_EQ(begun, (std::vector<int>{0, 1, 2, 3})) << schedule.name;
  return found;
}

TEST(SimulatedChips, ARankBeginsWhenThoseThatItAwaitsHaveBeenCalled) {
  EXPECT_EQ(ranks_of_three_that_begin(schedule_of_four("ring_all_gather")), std::vector<int>{1});
  EXPECT_EQ(ranks_of_three_that_begin(schedule_of_four("ring_all_reduce")), std::vector<int>{});
  EXPECT_EQ(ranks_of_three_that_begin(schedule_of_four("all_pairs_all_to_all")),
            std::vector<int>{});
}

TEST(SimulatedChips, AScheduleSaysWhichRanksAwaitEachOther) {
  collective::Schedule schedule = schedule_of_four("ring_all_reduce");
  schedule.rendezvous = collective::Rendezvous::peers;
  EXPECT_EQ(ranks_of_three_that_begin(schedule), std::vector<int>{1});
}

TEST(SimulatedChips, AScheduleSaysWhichPacketNotifies) {
  SimulatedChipsOptions options;
  options.carries_data = false;
  const auto commands_of = [&](const collective::Schedule& schedule) {
    SimulatedRun run(std::make_unique<SimulatedChips>(ring_of_four(), 4, options),
                     collective::make_plan(std::make_shared<collective::Schedule>(schedule),
                                           1 << 16, {transport::DataType::int32, {}}));
    run.invoke({});
    std::uint64_t commands = 0;
    for (const sim::LinkLoad& load : run.loads()) commands += load.messages;
    return commands;
  };
  collective::Schedule schedule = schedule_of_four("ring_reduce_scatter");
  EXPECT_EQ(schedule.notification, collective::Notification::attached);
  const std::uint64_t attached = commands_of(schedule);
  schedule.notification = collective::Notification::trailing;
  EXPECT_GT(commands_of(schedule), attached);
}

// What is half way round goes up from all: three parts over each link one way, one the other way.
TEST(SimulatedChips, ReduceScattersStraightToTheirRanksLoadOneWayMore) {
  AlgorithmOptions options;
  options.ranks = 4;
  const auto plan = collective::make_plan(
      std::make_shared<collective::Schedule>(
          collective::make_schedule("all_pairs_reduce_scatter", options)),
      1 << 16, {transport::DataType::int32, transport::ReductionOperation::sum});
  SimulatedChipsOptions run_options;
  run_options.carries_data = false;
  SimulatedRun run(std::make_unique<SimulatedChips>(ring_of_four(), 4, run_options), plan);
  run.invoke({});
  std::vector<double> parts;
  for (const sim::LinkLoad& load : run.loads()) {
    parts.push_back(static_cast<double>(load.bytes.count()) / (64 << 10));
  }
  std::ranges::sort(parts);
  ASSERT_EQ(parts.size(), 8u);
  EXPECT_NEAR(parts[0], 1, 0.1);
  EXPECT_NEAR(parts[3], 1, 0.1);
  EXPECT_NEAR(parts[4], 3, 0.15);
  EXPECT_NEAR(parts[7], 3, 0.15);
}

TEST(SimulatedChips, TheSameRunTakesTheSameTime) {
  EXPECT_EQ(all_reduce(6'000, 2, 1).time.ps(), all_reduce(6'000, 2, 1).time.ps());
}

// On every number of threads; what is under way is left as it is.
TEST(SimulatedChips, ARunEndsAtItsLimitAndNotAPicosecondBefore) {
  AlgorithmOptions options;
  options.ranks = 4;
  options.channels = 2;
  const auto plan = collective::make_plan(
      std::make_shared<collective::Schedule>(collective::ring_all_reduce(options)), 6'000, {});
  for (const int threads : {0, 1, 2}) {
    const auto within = [&](Time limit) {
      SimulatedChipsOptions run_options;
      run_options.carries_data = false;
      run_options.run.threads = threads;
      SimulatedRun run(std::make_unique<SimulatedChips>(ring_of_four(), 4, run_options), plan);
      return run.invoke_within(limit);
    };
    const std::optional<Time> whole = within(Time::max());
    ASSERT_TRUE(whole);
    EXPECT_EQ(within(*whole), whole);
    EXPECT_EQ(within(*whole - Time::from_ps(1)), std::nullopt);
    EXPECT_EQ(within(Time::from_ps(whole->ps() / 2)), std::nullopt);
    EXPECT_EQ(within(Time()), std::nullopt);
  }
}

TEST(SimulatedChips, ACallTakesAtLeastItsEntryAndTheWayRoundTheRing) {
  // Six steps one after the other, each over a link of 400 ns, after a notice over one.
  EXPECT_GT(all_reduce(12, 1, 1).time, Time::from_ns(7 * 400));
}

// --- loads ---------------------------------------------------------------------------------------

TEST(SimulatedChips, EachDirectionOfALinkHasItsLoad) {
  const auto chips = ring_of_four();
  const Result one_way = all_reduce(6'000, 1, 1);
  ASSERT_EQ(one_way.loads.size(), 2 * chips->links.size());
  std::uint64_t bytes = 0;
  for (const sim::LinkLoad& load : one_way.loads) {
    EXPECT_GT(load.busy, Time());
    EXPECT_LT(load.busy, one_way.time);
    bytes += load.bytes.count();
  }
  // Each of four ranks sends three quarters of 24,000 bytes twice, and little else.
  EXPECT_GT(bytes, 4u * 36'000u);
  EXPECT_LT(bytes, 4u * 36'000u * 5 / 4);
  EXPECT_TRUE(one_way.failures.empty());
}

// --- links that fail -----------------------------------------------------------------------------

// Training takes 5 us, and before it each router looks 10,000 times in vain.
constexpr std::uint64_t kManyElements = 400'000;

std::vector<LinkFaults> faults_at(std::size_t link, const LinkFaults& faults) {
  std::vector<LinkFaults> all(link + 1);
  all[link] = faults;
  return all;
}

TEST(SimulatedChips, AnAllReduceGivesTheSumWithEachLinkOfAChipDroppingEvery100us) {
  const Result healthy = all_reduce(kManyElements, 2, 1);
  const auto chips = ring_of_four();
  for (const int channel : chips->active_channels(0, false)) {
    const std::size_t link = *chips->link_at({0, channel});
    const Result result = all_reduce(
        kManyElements, 2, 1,
        faults_at(link, {.drop_at = 100_us, .drop_period = 100_us, .training_time = 5_us}));
    expect_sums(result);
    ASSERT_EQ(result.failures.size(), 1u);
    const LinkFailure& failure = result.failures.front();
    EXPECT_EQ(failure.link, link);
    EXPECT_GE(failure.drops, 2u);
    EXPECT_GT(failure.down_time, 5_us * static_cast<std::int64_t>(failure.drops));
    EXPECT_GT(failure.resent[0] + failure.resent[1], Bytes());
    EXPECT_TRUE(failure.is_up);
    EXPECT_GT(result.time, healthy.time + 5_us);
    EXPECT_LT(result.time, healthy.time + failure.down_time + 50_us);
  }
}

TEST(SimulatedChips, AnAllReduceGivesTheSumOverLinksThatLoseFrames) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const std::vector<LinkFaults> faults(ring_of_four()->links.size(), {.frame_loss = 0.01});
    const Result result = all_reduce(60'000, 2, seed, faults);
    expect_sums(result);
    std::uint64_t lost = 0;
    std::array<Bytes, 2> resent;
    for (const LinkFailure& failure : result.failures) {
      lost += failure.frames_lost;
      for (std::size_t end = 0; end < 2; ++end) resent[end] += failure.resent[end];
    }
    EXPECT_GT(lost, 0u);
    EXPECT_GT(resent[0], Bytes(0));
    EXPECT_GT(resent[1], Bytes(0));
  }
}

TEST(SimulatedChips, ADropAfterTheEndCostsNothing) {
  const Time healthy = all_reduce(6'000, 2, 1).time;
  const Result result = all_reduce(6'000, 2, 1, faults_at(0, {.drop_at = 1_s}));
  EXPECT_EQ(result.time, healthy);
  EXPECT_EQ(result.failures.front().drops, 0u);
}

// When the last answer has arrived, only its acknowledgement is still on the line. If that is lost,
// the answer is sent again, but nobody waits for it.
TEST(SimulatedChips, ADropWhenAllIsReleasedCostsNothing) {
  const Time healthy = all_reduce(6'000, 2, 1).time;
  Time last_that_costs;
  Time first_resend_for_nothing = Time::max();
  for (Time drop_at = healthy - 1_us; drop_at < healthy; drop_at += 20_ns) {
    const Result result =
        all_reduce(6'000, 2, 1, faults_at(0, {.drop_at = drop_at, .training_time = 5_us}));
    const LinkFailure& failure = result.failures.front();
    EXPECT_EQ(failure.drops, 1u);
    if (result.time > healthy) last_that_costs = drop_at;
    if (result.time == healthy && failure.resent[0] + failure.resent[1] > Bytes()) {
      first_resend_for_nothing = std::min(first_resend_for_nothing, drop_at);
    }
  }
  EXPECT_GT(last_that_costs, Time());
  EXPECT_LT(last_that_costs, first_resend_for_nothing);
  EXPECT_LT(first_resend_for_nothing, healthy);
}

template <typename Error>
std::string failure_of(const std::vector<LinkFaults>& faults, Time deadline) {
  return sentence_of<Error>([&] { all_reduce(60'000, 2, 1, faults, deadline); });
}

TEST(SimulatedChips, ALinkThatNeverComesBackIsNamedWithBothEnds) {
  const auto chips = ring_of_four();
  for (std::size_t link = 0; link < chips->links.size(); ++link) {
    const std::string sentence = failure_of<DeadlockError>(
        faults_at(link, {.drop_at = 20_us, .dead_time = Time::max()}), 1_s);
    EXPECT_NE(sentence.find(" is down since 20000 ns and cannot be trained again; "),
              std::string::npos)
        << sentence;
    for (const machine::EthernetEnd& end : chips->links[link].ends) {
      const machine::Coordinate core = chips->core_of(end);
      EXPECT_NE(
          sentence.find(fmt::format("Ethernet core ({}, {}) of chip {}", core.x, core.y, end.chip)),
          std::string::npos)
          << sentence;
    }
  }
}

// Not only while ranks wait: the call ends when routers have released what workers sent.
TEST(SimulatedChips, ALinkThatDiesAtTheEndIsNamedUnlessAllIsDone) {
  const Time healthy = all_reduce(60'000, 2, 1).time;
  int waits = 0;
  int open = 0;
  for (Time drop_at = healthy - 10_us; drop_at < healthy; drop_at += 500_ns) {
    try {
      const Result result =
          all_reduce(60'000, 2, 1, faults_at(0, {.drop_at = drop_at, .dead_time = Time::max()}));
      expect_sums(result);
      EXPECT_GE(result.time, healthy);
    } catch (const std::runtime_error& error) {
      const std::string sentence = error.what();
      EXPECT_EQ(sentence.find("the link between Ethernet core "), 0u) << sentence;
      waits += sentence.find(" waits for ") != std::string::npos;
      open +=
          sentence.find("connections of workers to their routers never close") != std::string::npos;
    }
  }
  EXPECT_GT(waits, 0);
  EXPECT_GT(open, 0);
}

// The link is down from 20 us on, for more than the 80 us in which its routers look in vain.
TEST(SimulatedChips, ACallOverAFailingLinkEndsAtItsDeadline) {
  const std::vector<LinkFaults> faults = faults_at(0, {.drop_at = 20_us, .training_time = 5_us});
  const std::string sentence = failure_of<TransportError>(faults, 60_us);
  EXPECT_EQ(sentence.find("the run has not ended after 60 us of simulated time; the link between "),
            0u)
      << sentence;
  EXPECT_NE(sentence.find(" dropped 1 times and was down for 40 us"), std::string::npos)
      << sentence;
  EXPECT_EQ(failure_of<TransportError>(faults, 1_s), "");
}

// A ring round two rows of four leaves out the links in the middle, such as that of chips 1 and 5.
TEST(SimulatedChips, FaultsThatNothingWouldComeOfAreRefused) {
  const auto chips = machine::chips_on_grid(4, 2, false, 1);
  const tenstorrent::fabric::Topology topology(*chips, tenstorrent::fabric::default_shape(*chips));
  const auto refused = [&](const std::vector<LinkFaults>& faults) {
    return sentence_of([&] { check_link_faults(faults, *chips, topology); });
  };
  const machine::EthernetEnd middle{1, chips->channels_to(1, 5, false).front()};
  EXPECT_EQ(
      refused(faults_at(*chips->link_at(middle), {.frame_loss = 0.1})),
      "the link between channel 2 of chip 1 and channel 0 of chip 5 has faults, but the fabric "
      "does not use it; it uses channels 0, 1 of chip 1 and 1, 2 of chip 5");
  EXPECT_EQ(refused(faults_at(*chips->link_at({1, 0}), {.frame_loss = 0.1})), "");
  EXPECT_EQ(refused(std::vector<LinkFaults>(11)),
            "there are faults for 11 links, but cluster 'grid' has 10");
}

}  // namespace
}  // namespace towpath::tenstorrent::ccl
