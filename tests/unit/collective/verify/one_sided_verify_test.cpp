// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "one_sided_schedules.hpp"
#include "towpath/collective/schedule/chunking.hpp"
#include "towpath/collective/schedule/one_sided.hpp"
#include "towpath/collective/verify/verify.hpp"

// The structure and the verifier of one-sided steps, on schedules written out by hand. Their data
// and time are in one_sided_test.cpp and in the tests of MSCCL++ plans.

namespace towpath::collective {
namespace {

using namespace samples;

constexpr std::uint64_t kElements = 4096;

ThreadBlock& block_of(Schedule& schedule, std::size_t rank, std::size_t block) {
  return schedule.ranks[rank].blocks[block];
}

// The access of a thread block's n-th step of a type.
Access& access_of(ThreadBlock& block, StepType type, std::size_t n = 0) {
  for (const Step& step : block.steps) {
    if (step.type == type && n-- == 0) return block.accesses[step.source_chunk];
  }
  throw std::out_of_range("the thread block has no such step");
}

std::string structure_error(const Schedule& schedule) {
  try {
    check_structure(schedule);
  } catch (const ScheduleError& error) {
    return error.what();
  }
  return {};
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// The first finding of a kind; an empty sentence when there is none.
Finding found(const Schedule& schedule, FindingKind kind, std::uint64_t elements = kElements) {
  for (const Finding& finding : verify(schedule, elements, 4).findings) {
    if (finding.kind == kind) return finding;
  }
  return {};
}

TEST(OneSidedVerify, PassesWhatIsRight) {
  for (const Schedule& schedule :
       {packet_all_reduce(), gathered_all_reduce(), piped_all_reduce(1024, 2)}) {
    const Verdict verdict = verify(schedule, kElements, 4);
    EXPECT_TRUE(verdict.is_correct()) << verdict.findings.front().sentence;
    EXPECT_TRUE(verdict.not_checked.empty()) << verdict.not_checked.front();
  }
}

TEST(OneSidedVerify, FindsAnInputThatIsReadBeforeItsRankHasBegun) {
  Schedule schedule = gathered_all_reduce();
  for (RankProgram& program : schedule.ranks) drop_signals(program, 0, 0);
  const Finding race = found(schedule, FindingKind::race);
  EXPECT_TRUE(contains(race.sentence, "reads input chunk 0 of rank")) << race.sentence;
  EXPECT_TRUE(contains(race.sentence, "the user of rank")) << race.sentence;
  EXPECT_EQ(race.block, 0);
  EXPECT_NE(race.rank, kNone);
  EXPECT_NE(race.step, kNone);
}

TEST(OneSidedVerify, FindsAnInputThatIsReadAfterItsRankHasEnded) {
  Schedule schedule = gathered_all_reduce();
  for (RankProgram& program : schedule.ranks) drop_signals(program, 0, 1);
  EXPECT_TRUE(contains(found(schedule, FindingKind::race).sentence, "the user of rank"));
}

TEST(OneSidedVerify, FindsAScratchThatIsReadBeforeItIsFull) {
  Schedule schedule = gathered_all_reduce();
  schedule.ranks[1].semaphores = {1};
  schedule.ranks[0].semaphores = {1};
  const Finding race = found(schedule, FindingKind::race);
  EXPECT_TRUE(contains(race.sentence, "scratch chunk 0")) << race.sentence;
}

TEST(OneSidedVerify, FindsAPipelineWithMoreRoomThanItsScratchHas) {
  Schedule schedule = piped_all_reduce(1024, 2);
  schedule.ranks[0].semaphores[1] = 3;
  const Finding race = found(schedule, FindingKind::race);
  EXPECT_TRUE(contains(race.sentence, "scratch chunk")) << race.sentence;
  EXPECT_EQ(race.rank, 0);
}

// Without a second scratch, a rank puts its next packets where the peer may still read the last.
TEST(OneSidedVerify, FindsPacketsThatComeTooEarlyForTheirReader) {
  Schedule schedule = packet_all_reduce();
  schedule.has_double_scratch = false;
  const Finding race = found(schedule, FindingKind::race);
  EXPECT_TRUE(contains(race.sentence, "scratch chunk")) << race.sentence;
}

TEST(OneSidedVerify, FindsAWrongSumAndNamesWhoStoredItLast) {
  Schedule schedule = gathered_all_reduce();
  access_of(block_of(schedule, 1, 1), StepType::direct).sources.pop_back();
  const Finding wrong = found(schedule, FindingKind::wrong_data);
  EXPECT_TRUE(contains(wrong.sentence, "lacks input chunk 0 of rank 0")) << wrong.sentence;
  EXPECT_EQ(wrong.rank, 1);
  EXPECT_EQ(wrong.block, 1);
}

TEST(OneSidedVerify, FindsAStoreToTheInputOfAPeer) {
  Schedule schedule = one_transfer(false);
  access_of(block_of(schedule, 0, 0), StepType::direct).destinations[0].buffer = Buffer::input;
  const Finding finding = found(schedule, FindingKind::input_overwritten);
  EXPECT_TRUE(contains(finding.sentence, "input chunk 0 of rank 1")) << finding.sentence;
}

TEST(OneSidedVerify, NamesTheCircleOfADeadlock) {
  Schedule schedule = gathered_all_reduce();
  for (RankProgram& program : schedule.ranks) {
    auto& steps = program.blocks[0].steps;
    std::swap(steps[0].type, steps[1].type);  // first wait, then signal
  }
  const Finding deadlock = found(schedule, FindingKind::deadlock);
  EXPECT_TRUE(contains(deadlock.sentence, "waits for a signal of rank 1 thread block 0"))
      << deadlock.sentence;
  EXPECT_TRUE(contains(deadlock.sentence, "where the circle closes")) << deadlock.sentence;
  EXPECT_EQ(deadlock.rank, 0);
}

TEST(OneSidedVerify, FollowsADeadlockThroughASemaphoreAndABarrier) {
  Schedule schedule = gathered_all_reduce();
  auto& steps = block_of(schedule, 0, 0).steps;
  const std::size_t last = steps.size() - 1;
  std::swap(steps[last].type, steps[last - 1].type);  // the barrier before the release
  auto& accesses = block_of(schedule, 0, 0).accesses;
  std::swap(accesses[last], accesses[last - 1]);
  const Finding deadlock = found(schedule, FindingKind::deadlock);
  EXPECT_TRUE(contains(deadlock.sentence, "a barrier")) << deadlock.sentence;
  EXPECT_TRUE(contains(deadlock.sentence, "a semaphore that is released by rank 0 thread block 0"))
      << deadlock.sentence;
}

TEST(OneSidedVerify, FindsSignalsThatAreNotTaken) {
  Schedule schedule = gathered_all_reduce();
  ThreadBlock& block = block_of(schedule, 0, 0);
  add(block, StepType::signal, ends_with({{1, 0}}), 0);
  const Finding mismatch = found(schedule, FindingKind::mismatch);
  EXPECT_TRUE(contains(mismatch.sentence, "raise a signal 3 times")) << mismatch.sentence;
  EXPECT_TRUE(contains(mismatch.sentence, "takes it 2 times")) << mismatch.sentence;
}

TEST(OneSidedVerify, SaysThatARelaxedSignalOrdersNoMemory) {
  Schedule schedule = gathered_all_reduce();
  access_of(block_of(schedule, 1, 0), StepType::signal, 1).is_relaxed = true;
  const Verdict verdict = verify(schedule, kElements, 4);
  EXPECT_TRUE(verdict.is_correct());
  ASSERT_EQ(verdict.not_checked.size(), 1u);
  EXPECT_TRUE(contains(verdict.not_checked[0], "rank 1 thread block 0")) << verdict.not_checked[0];
}

// --- structure ---------------------------------------------------------------------------------

// One thing that is not possible, and what the sentence says.
struct Slip {
  const char* words;
  std::function<void(Schedule&)> make;
};

TEST(OneSidedStructure, RefusesWhatIsNotPossible) {
  const auto first = [](Schedule& schedule) -> ThreadBlock& { return block_of(schedule, 0, 0); };
  const auto moved = [&](Schedule& schedule) -> Access& {
    return access_of(first(schedule), StepType::direct);
  };
  const std::vector<Slip> slips = {
      {"its peer is rank 0", [&](Schedule& s) { moved(s).sources[0].number = 0; }},
      {"its source is chunks 1 to 2", [&](Schedule& s) { moved(s).sources[0].chunk = 1; }},
      {"it has no destination", [&](Schedule& s) { moved(s).destinations.clear(); }},
      {"group 5", [&](Schedule& s) { moved(s).sources[0] = {Holder::group, {}, false, 5, 0}; }},
      {"it does part 2 of 2", [&](Schedule& s) { moved(s).part = moved(s).parts = 2; }},
      {"they must be in scratch", [&](Schedule& s) { moved(s).sources[0].is_packet = true; }},
      {"it loads through a port", [&](Schedule& s) { moved(s).is_port = true; }},
      {"its channel is 9",
       [&](Schedule& s) { access_of(first(s), StepType::wait).ends[0] = {1, 9}; }},
      {"its semaphore is 4",
       [&](Schedule& s) { access_of(first(s), StepType::release).semaphores = {4}; }},
      {"but 2 use it",
       [&](Schedule& s) { access_of(first(s), StepType::barrier).barrier_blocks = 3; }},
      {"which no step there raises",
       [&](Schedule& s) {
         s.channels = 2;
         access_of(first(s), StepType::wait).ends[0] = {1, 1};
       }},
      {"one may",
       [&](Schedule& s) { add(block_of(s, 0, 1), StepType::signal, ends_with({{1, 0}}), 0); }},
      {"it has access 1", [&](Schedule& s) { first(s).steps[0].source_chunk = 1; }},
      {"it is a pipeline of 9 steps",
       [&](Schedule& s) {
         Access pipeline;
         pipeline.unit_bytes = pipeline.chunks = 1;
         add(first(s), StepType::pipeline, pipeline, 9);
       }},
  };
  for (const Slip& slip : slips) {
    Schedule schedule = gathered_all_reduce();
    slip.make(schedule);
    const std::string sentence = structure_error(schedule);
    EXPECT_TRUE(contains(sentence, slip.words)) << slip.words << ": " << sentence;
    EXPECT_TRUE(contains(sentence, "rank 0, thread block")) << sentence;
    EXPECT_EQ(sentence.find('\n'), std::string::npos);
  }
}

TEST(OneSidedStructure, RefusesPacketsInOnePlaceTwiceOrNowhere) {
  Schedule twice = packet_all_reduce();
  for (ThreadBlock& block : twice.ranks[0].blocks) {
    Access& put = access_of(block, StepType::direct);
    put.part = 0;
  }
  EXPECT_TRUE(contains(structure_error(twice), "a place can receive packets only once"));
  Schedule nowhere = packet_all_reduce();
  access_of(block_of(nowhere, 0, 0), StepType::direct).destinations[0].is_packet = false;
  EXPECT_TRUE(contains(structure_error(nowhere), "no step puts all of them there"));
}

TEST(OneSidedStructure, CountsEveryFieldInFingerprintAndEquality) {
  const Schedule schedule = gathered_all_reduce();
  const std::vector<std::function<void(Schedule&)>> changes = {
      [](Schedule& s) { access_of(block_of(s, 0, 0), StepType::direct).sources[0].chunk = 1; },
      [](Schedule& s) { access_of(block_of(s, 0, 0), StepType::signal).is_relaxed = true; },
      [](Schedule& s) { access_of(block_of(s, 0, 0), StepType::signal).ends[0].channel = 1; },
      [](Schedule& s) { access_of(block_of(s, 0, 0), StepType::barrier).barrier = 1; },
      [](Schedule& s) { s.ranks[1].semaphores = {1}; },
      [](Schedule& s) { s.groups = {{0, 1}}; },
      [](Schedule& s) { s.has_double_scratch = true; },
      [](Schedule& s) { s.scratch_bytes_max = 1 << 20; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Schedule changed = schedule;
    changes[i](changed);
    EXPECT_NE(changed, schedule) << i;
    EXPECT_NE(fingerprint(changed), fingerprint(schedule)) << i;
  }
}

// --- chunking ----------------------------------------------------------------------------------

TEST(OneSidedChunking, SharesARangeAndGoesThroughItInUnits) {
  const Schedule schedule = piped_all_reduce(64, 2);  // 16 elements; scratch has room for 32
  const Chunking chunking(schedule, 200, 4);
  EXPECT_EQ(chunking.iterations(), 1u);
  EXPECT_EQ(chunking.chunk_elements(), 100u);
  EXPECT_EQ(chunking.scratch_chunk_elements(), 32u);
  const auto range = [&](Buffer buffer, std::uint64_t loop) {
    const Range found = chunking.range(buffer, 1, 1, Piece{0, 0, 1, 16, loop});
    return std::pair(found.offset, found.count);
  };
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(range(Buffer::input, 0), Pair(100, 16));
  EXPECT_EQ(range(Buffer::input, 6), Pair(196, 4));
  EXPECT_EQ(range(Buffer::scratch, 1), Pair(48, 16));
  EXPECT_EQ(range(Buffer::scratch, 2), Pair(32, 16));
  EXPECT_EQ(element_granularity(packet_all_reduce()), 4u);
  const Chunking shared(packet_all_reduce(), 40, 4);
  const Range half = shared.range(Buffer::input, 0, 2, Piece{0, 1, 2, 0, 0});
  EXPECT_EQ(Pair(half.offset, half.count), Pair(20, 20));
}

TEST(OneSidedChunking, RefusesAScratchThatIsTooSmallForItsSteps) {
  Schedule schedule = gathered_all_reduce();
  schedule.scratch_bytes_max = 64;
  EXPECT_NO_THROW(Chunking(schedule, 16, 4));
  EXPECT_THROW(Chunking(schedule, 18, 4), std::invalid_argument);
}

}  // namespace
}  // namespace towpath::collective
