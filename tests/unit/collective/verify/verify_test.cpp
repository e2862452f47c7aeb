// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/verify/verify.hpp"

#include <gtest/gtest.h>

#include "interpreter.hpp"
#include "schedules.hpp"
#include "sentence.hpp"
#include "towpath/collective/schedule/chunking.hpp"

namespace towpath::collective {
namespace {
using namespace samples;

Step& step_at(Schedule& schedule, std::size_t rank, std::size_t block, std::size_t step) {
  return schedule.ranks[rank].blocks[block].steps[step];
}

// Verifies, expecting findings of one kind, and returns the first.
Finding only_finding(const Schedule& schedule, std::uint64_t elements, std::uint64_t element_bytes,
                     FindingKind kind) {
  const Verdict verdict = verify(schedule, elements, element_bytes);
  if (verdict.is_correct()) {
    ADD_FAILURE() << "nothing found";
    return {};
  }
  for (const Finding& finding : verdict.findings) EXPECT_EQ(finding.kind, kind) << finding.sentence;
  return verdict.findings.front();
}

bool has_kind(const Verdict& verdict, FindingKind kind) {
  for (const Finding& finding : verdict.findings) {
    if (finding.kind == kind) return true;
  }
  return false;
}

// --- data ------------------------------------------------------------------------------------

TEST(Verify, NamesTheContributionThatAnOutputLacksAndTheOneThatDoesNotBelong) {
  Schedule schedule = ring_all_reduce(3, 1);
  schedule.in_place = false;
  // Rank 1 adds its chunk 1 to chunk 0's sum, which then goes to all.
  ASSERT_EQ(step_at(schedule, 1, 0, 1).type, StepType::receive_reduce_send);
  ASSERT_EQ(step_at(schedule, 1, 0, 1).source_chunk, 0u);
  step_at(schedule, 1, 0, 1).source_chunk = 1;
  const Finding finding = only_finding(schedule, 300, 4, FindingKind::wrong_data);
  EXPECT_EQ(finding.sentence,
            "wrong data: rank 0 output chunk 0 lacks input chunk 0 of rank 1; has input chunk 1 of "
            "rank 1, which do not belong there; last stored to by rank 0 thread block 0 (channel "
            "0) step 3 receive_copy_send (out of place)");
  EXPECT_EQ(finding.rank, 0);
  EXPECT_EQ(finding.block, 0);
  EXPECT_EQ(finding.step, 3);
}

TEST(Verify, SeesAContributionThatIsAddedTwice) {
  Schedule schedule = two_shot_all_reduce(3, 1);
  schedule.in_place = false;
  auto& steps = schedule.ranks[2].blocks.back().steps;
  steps.push_back(steps.back());
  // The last reduction is what the others wait for.
  for (std::size_t block = 0; block < 2; ++block) ++step_at(schedule, 2, block, 2).depends_on_step;
  const Finding finding = only_finding(schedule, 300, 4, FindingKind::wrong_data);
  EXPECT_NE(finding.sentence.find("has input chunk 2 of rank 1 2 times"), std::string::npos)
      << finding.sentence;
}

TEST(Verify, SeesUninitialisedScratchInAnOutput) {
  Schedule schedule = one_slot_reduce(2, 1);
  schedule.ranks[0].scratch_chunks = 2;
  step_at(schedule, 0, 1, 1).source_chunk = 1;
  const Finding finding = only_finding(schedule, 10, 4, FindingKind::wrong_data);
  EXPECT_NE(finding.sentence.find("has uninitialised scratch chunk 1 of rank 0"), std::string::npos)
      << finding.sentence;
}

TEST(Verify, SaysWhenNothingIsStoredToAnOutput) {
  Schedule schedule = chain_broadcast(2, 1);
  schedule.in_place = false;
  schedule.ranks[1].blocks[0].steps.pop_back();  // the root's own copy
  const Finding finding = only_finding(schedule, 10, 4, FindingKind::wrong_data);
  EXPECT_EQ(finding.rank, 1);
  EXPECT_EQ(finding.step, kNone);
  EXPECT_NE(finding.sentence.find("no step stores to it"), std::string::npos) << finding.sentence;
}

TEST(Verify, FilesThatNameOnlyTheInputAreRightInPlace) {
  Schedule schedule = ring_all_reduce(3, 1);
  for (RankProgram& program : schedule.ranks) {
    for (Step& step : program.blocks[0].steps) step.destination = Buffer::input;
  }
  schedule.out_of_place = false;
  EXPECT_TRUE(verify(schedule, 300, 4).is_correct());
}

TEST(Verify, OutOfPlaceAStoreToTheInputIsAFinding) {
  Schedule schedule = ring_all_reduce(3, 1);
  schedule.in_place = false;
  step_at(schedule, 1, 0, 3).destination = Buffer::input;
  const Verdict verdict = verify(schedule, 300, 4);
  ASSERT_FALSE(verdict.is_correct());
  const Finding& finding = verdict.findings.front();
  EXPECT_EQ(finding.kind, FindingKind::input_overwritten);
  EXPECT_EQ(finding.sentence,
            "rank 1 thread block 0 (channel 0) step 3 receive_copy_send stores to input chunk 1, "
            "which must stay as it is out of place");
}

// Chunk 0 passes through the memory of chunk 1, which is shorter when the array ends inside it.
Schedule broadcast_through_the_last_chunk() {
  Schedule schedule = empty_schedule(Collective::broadcast, 2, 2);
  schedule.protocol = Protocol::ll;
  add_block(schedule, 0, 1, kNone).steps = {
      make_step(StepType::send, {Buffer::input, 0}, {Buffer::input, 0}),
      make_step(StepType::send, {Buffer::input, 1}, {Buffer::input, 0}),
      make_step(StepType::copy, {Buffer::input, 0}, {Buffer::output, 0}, 2)};
  add_block(schedule, 1, kNone, 0).steps = {
      make_step(StepType::receive, {Buffer::input, 0}, {Buffer::output, 1}),
      make_step(StepType::copy, {Buffer::output, 1}, {Buffer::output, 0}),
      make_step(StepType::receive, {Buffer::input, 0}, {Buffer::output, 1})};
  return schedule;
}

TEST(Verify, ElementsThatTheRaggedChunkLacksAreLostThere) {
  const Schedule schedule = broadcast_through_the_last_chunk();
  EXPECT_TRUE(verify(schedule, 6, 4).is_correct());
  EXPECT_EQ(interpret(schedule, 6, 4, false, 1).outcome, Outcome::correct);
  // Chunks of 3 elements, but the second has 2.
  const Finding finding = only_finding(schedule, 5, 4, FindingKind::wrong_data);
  EXPECT_NE(finding.sentence.find("in elements that the ragged last chunk lacks"),
            std::string::npos)
      << finding.sentence;
  EXPECT_EQ(interpret(schedule, 5, 4, false, 1).outcome, Outcome::wrong_data);
}

// --- races -----------------------------------------------------------------------------------

TEST(Verify, NamesBothAccessesOfARace) {
  Schedule schedule = relayed_all_gather(3);
  Step& relay = step_at(schedule, 1, 1, 1);
  ASSERT_EQ(relay.depends_on_block, 0);
  relay.depends_on_block = relay.depends_on_step = kNone;
  const Verdict verdict = verify(schedule, 30, 4);
  ASSERT_EQ(verdict.findings.size(), 1u);  // the same in place
  const Finding& finding = verdict.findings.front();
  EXPECT_EQ(finding.kind, FindingKind::race);
  EXPECT_NE(finding.sentence.find("rank 1 thread block 0 (channel 0) step 0 receive"),
            std::string::npos)
      << finding.sentence;
  EXPECT_NE(finding.sentence.find("rank 1 thread block 1 (channel 0) step 1 send"),
            std::string::npos)
      << finding.sentence;
  EXPECT_NE(finding.sentence.find("output chunk 0"), std::string::npos) << finding.sentence;
  EXPECT_EQ(verdict.not_checked.size(), 2u);  // the data, in either placement
}

TEST(Verify, DataThatComeBackOrderWhatTheyLeftBehind) {
  const Schedule schedule = there_and_back_all_reduce(3, 2);
  EXPECT_TRUE(schedule.in_place);
  EXPECT_TRUE(verify(schedule, 20, 4).is_correct());
}

// On rank 0, block 0 sends three times and last what block 1 stores. Block 2's message lets rank 1
// take the first of the three; with two transfers in flight at most, the third is late enough.
TEST(Verify, BackPressureDoesNotOrderAccesses) {
  Schedule schedule = empty_schedule(Collective::reduce, 2, 3);
  schedule.root = 1;
  schedule.in_place = false;
  schedule.ranks[0].scratch_chunks = 1;
  schedule.ranks[1].scratch_chunks = 1;
  add_block(schedule, 0, 1, kNone, 0).steps = {
      make_step(StepType::send, {Buffer::input, 0}, {Buffer::input, 0}),
      make_step(StepType::send, {Buffer::input, 1}, {Buffer::input, 0}),
      make_step(StepType::send, {Buffer::scratch, 0}, {Buffer::input, 0})};
  add_block(schedule, 0, 1, kNone, 1).steps = {
      make_step(StepType::copy, {Buffer::input, 2}, {Buffer::scratch, 0}),
      make_step(StepType::send, {Buffer::input, 2}, {Buffer::input, 0})};
  std::vector<Step> sums;
  for (std::uint32_t chunk = 0; chunk < 3; ++chunk) {
    sums.push_back(
        make_step(StepType::receive_reduce_copy, {Buffer::input, chunk}, {Buffer::output, chunk}));
  }
  sums.front() = after(sums.front(), 1, 0);
  add_block(schedule, 1, kNone, 0, 0).steps = sums;
  add_block(schedule, 1, kNone, 0, 1).steps = {
      make_step(StepType::receive, {Buffer::input, 0}, {Buffer::scratch, 0})};

  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(interpret(schedule, 3, 4, false, seed).outcome, Outcome::correct);
  }
  only_finding(schedule, 3, 4, FindingKind::race);
}

// Rank 0's send goes round the ring and comes back, some chunks further on.
Schedule round_the_ring(std::uint32_t further) {
  Schedule schedule = empty_schedule(Collective::broadcast, 3, 3);
  add_block(schedule, 0, 1, kNone).steps = {
      make_step(StepType::send, {Buffer::output, 0}, {Buffer::input, 0}, 2)};
  add_block(schedule, 0, kNone, 2).steps = {
      make_step(StepType::receive, {Buffer::input, 0}, {Buffer::output, further}, 2)};
  for (int rank = 1; rank < 3; ++rank) {
    add_block(schedule, rank, (rank + 1) % 3, rank - 1).steps = {
        make_step(StepType::receive_copy_send, {Buffer::input, 0}, {Buffer::output, 0}, 2)};
  }
  return schedule;
}

// In two slices, the first comes back while the second is still being read from where it is stored.
TEST(Verify, SlicesOfOneTransferRaceByThemselves) {
  // Two chunks of 16 KiB are one slice; with an element more, two.
  EXPECT_FALSE(has_kind(verify(round_the_ring(1), 3 * 4096, 4), FindingKind::race));
  EXPECT_TRUE(has_kind(verify(round_the_ring(1), 3 * 4097, 4), FindingKind::race));
  EXPECT_FALSE(has_kind(verify(round_the_ring(0), 3 * 4097, 4), FindingKind::race));
}

TEST(Verify, AStepWhoseRangesOverlapRacesWithItself) {
  const auto shifted = [](std::uint32_t source, std::uint32_t destination, std::uint32_t count) {
    Schedule schedule = empty_schedule(Collective::broadcast, 1, 5);
    add_block(schedule, 0, kNone, kNone).steps = {
        make_step(StepType::copy, {Buffer::input, 0}, {Buffer::output, 0}, 5),
        make_step(StepType::copy, {Buffer::output, source}, {Buffer::output, destination}, count)};
    return schedule;
  };
  const Finding finding = only_finding(shifted(0, 1, 2), 30, 4, FindingKind::race);
  EXPECT_NE(finding.sentence.find("step 1 copy reads output chunks 0 to 1 and stores to output "
                                  "chunks 1 to 2, which overlap"),
            std::string::npos)
      << finding.sentence;
  // An overlap of one chunk, from either side, and ranges that only touch.
  EXPECT_TRUE(has_kind(verify(shifted(0, 1, 2), 30, 4), FindingKind::race));
  EXPECT_TRUE(has_kind(verify(shifted(1, 0, 2), 30, 4), FindingKind::race));
  EXPECT_FALSE(has_kind(verify(shifted(0, 2, 2), 30, 4), FindingKind::race));
  EXPECT_FALSE(has_kind(verify(shifted(2, 0, 2), 30, 4), FindingKind::race));
}

// --- connections -----------------------------------------------------------------------------

// One step of two chunks meets two steps of one.
Schedule two_meet_one_and_one() {
  Schedule schedule = empty_schedule(Collective::broadcast, 2, 2);
  add_block(schedule, 0, 1, kNone).steps = {
      make_step(StepType::send, {Buffer::input, 0}, {Buffer::input, 0}, 2),
      make_step(StepType::copy, {Buffer::input, 0}, {Buffer::output, 0}, 2)};
  add_block(schedule, 1, kNone, 0).steps = {
      make_step(StepType::receive, {Buffer::input, 0}, {Buffer::output, 0}),
      make_step(StepType::receive, {Buffer::input, 0}, {Buffer::output, 1})};
  return schedule;
}

TEST(Verify, EndsOfAConnectionMayDisagreeAtOneSizeAndAgreeAtAnother) {
  const Schedule schedule = two_meet_one_and_one();
  const Finding finding = only_finding(schedule, 2, 4, FindingKind::mismatch);
  EXPECT_EQ(finding.sentence,
            "rank 0 thread block 0 (channel 0) step 0 send sends 2 chunks in transfer 0, but rank "
            "1 thread block 0 (channel 0) step 0 receive receives 1");
  EXPECT_EQ(interpret(schedule, 2, 4, false, 1).outcome, Outcome::mismatch);
  // Chunks of more than 1 MiB travel one by one.
  EXPECT_TRUE(verify(schedule, 2 * 262145, 4).is_correct());
}

TEST(Verify, NamesTheSendThatNobodyReceives) {
  Schedule schedule = chain_broadcast(2, 2);
  schedule.ranks[0].blocks[0].steps.pop_back();
  const Finding finding = only_finding(schedule, 10, 4, FindingKind::mismatch);
  EXPECT_EQ(finding.sentence,
            "rank 1 thread block 0 (channel 0) step 2 send sends transfer 1 to rank 0 thread block "
            "0, which receives only 1");
}

TEST(Verify, NamesTheReceiveThatNobodySends) {
  Schedule schedule = chain_broadcast(2, 2);
  auto& steps = schedule.ranks[1].blocks[0].steps;
  steps.erase(steps.begin() + 2);
  const Finding finding = only_finding(schedule, 10, 4, FindingKind::mismatch);
  EXPECT_EQ(finding.sentence,
            "rank 0 thread block 0 (channel 0) step 1 receive waits for transfer 1 from rank 1 "
            "thread block 0, which sends only 1");
  EXPECT_EQ(finding.rank, 0);
  EXPECT_EQ(finding.other_rank, 1);
}

TEST(Verify, WhatMakesNoSenseAsATextIsAFindingToo) {
  Schedule schedule = ring_all_reduce(3, 1);
  step_at(schedule, 1, 0, 0).source_chunk = 7;
  const Finding finding = only_finding(schedule, 300, 4, FindingKind::structure);
  EXPECT_NE(finding.sentence.find("rank 1, thread block 0, step 0"), std::string::npos);
}

TEST(Verify, ShowsTheFirstFindingsOfAKindAndCountsTheRest) {
  Schedule schedule = chain_broadcast(2, 40);
  schedule.in_place = false;
  schedule.ranks[0].blocks[0].steps.clear();
  schedule.ranks[1].blocks[0].steps.clear();
  const Verdict verdict = verify(schedule, 40, 4);
  EXPECT_EQ(verdict.findings.size(), 16u);
  // 40 output chunks on two ranks; 16 are shown.
  EXPECT_EQ(verdict.omitted, 64u);
}

// --- deadlock --------------------------------------------------------------------------------

TEST(Verify, NamesTheCircleOfADeadlock) {
  // Both send three transfers of four slots each before they receive any.
  Schedule schedule = stepwise_all_to_all(2, 3);
  const Finding finding = only_finding(schedule, 600, 4, FindingKind::deadlock);
  EXPECT_EQ(finding.sentence,
            "deadlock: rank 0 thread block 1 (channel 0) step 2 send waits for a free slot from "
            "rank 1 thread block 0, which at step 2 send waits for a free slot from rank 0 thread "
            "block 1, where the circle closes");
  EXPECT_EQ(finding.rank, 0);
  EXPECT_EQ(finding.block, 1);
  EXPECT_EQ(finding.step, 2);
  EXPECT_EQ(finding.other_rank, 1);
  EXPECT_EQ(verify(schedule, 600, 4).not_checked.size(), 1u);
  schedule.protocol = Protocol::ll;
  EXPECT_TRUE(verify(schedule, 600, 4).is_correct());
}

TEST(Verify, DependenciesThatWaitForEachOtherAreADeadlock) {
  Schedule schedule = empty_schedule(Collective::broadcast, 1, 2);
  for (std::uint32_t chunk = 0; chunk < 2; ++chunk) {
    add_block(schedule, 0, kNone, kNone).steps = {
        after(make_step(StepType::copy, {Buffer::input, chunk}, {Buffer::output, chunk}),
              1 - static_cast<int>(chunk), 0)};
  }
  const Finding finding = only_finding(schedule, 2, 4, FindingKind::deadlock);
  EXPECT_EQ(finding.sentence,
            "deadlock: rank 0 thread block 0 (channel 0) step 0 copy waits for step 0 of rank 0 "
            "thread block 1, which at step 0 copy waits for step 0 of rank 0 thread block 0, where "
            "the circle closes");
}

// Every pair sends 8 chunks, then receives 8. Simple has 8 slots, 4 of them for each transfer: the
// 8 chunks fit in two transfers of 4 chunks, and no longer in three of 3. A transfer is at most
// 2 MiB, so 4 chunks fit while a chunk is at most 512 KiB: 131,072 floats. There are 64 chunks.
TEST(SmallestHangingSize, OfAllPairsWithEightChunksInSimpleIsOneElementOver32Mebibytes) {
  const Schedule schedule = two_shot_all_reduce(8, 8);
  constexpr std::uint64_t k32Mebibytes = 64 * 131'072;
  EXPECT_EQ(smallest_hanging_size(schedule, 4, UINT64_MAX), k32Mebibytes + 1);
  EXPECT_TRUE(verify(schedule, k32Mebibytes, 4).is_correct());
  only_finding(schedule, k32Mebibytes + 1, 4, FindingKind::deadlock);
  EXPECT_EQ(smallest_hanging_size(schedule, 4, k32Mebibytes), std::nullopt);
}

// The same in elements of 256 KiB, few enough to execute: a transfer holds 8.
TEST(SmallestHangingSize, IsWhereExecutionBeginsToHang) {
  const Schedule schedule = two_shot_all_reduce(8, 8);
  EXPECT_EQ(smallest_hanging_size(schedule, 262'144, UINT64_MAX), 64u * 2 + 1);
  EXPECT_EQ(interpret(schedule, 128, 262'144, false, 1).outcome, Outcome::correct);
  EXPECT_EQ(interpret(schedule, 129, 262'144, false, 1).outcome, Outcome::hang);
}

// One slot for each transfer, so even chunks that travel alone fit: 8 slots for 8.
TEST(SmallestHangingSize, OfTheSameInLlDoesNotExist) {
  Schedule schedule = two_shot_all_reduce(8, 8);
  schedule.protocol = Protocol::ll;
  EXPECT_EQ(smallest_hanging_size(schedule, 4, UINT64_MAX), std::nullopt);
  EXPECT_EQ(interpret(schedule, 64 * 9, 4096, false, 1).outcome, Outcome::correct);
}

// With 9 chunks LL hangs when each travels alone: when two do not fit in 32 KiB.
TEST(SmallestHangingSize, OfNineChunksInLlIsWhereTwoNoLongerFitInATransfer) {
  Schedule schedule = two_shot_all_reduce(2, 9);
  schedule.protocol = Protocol::ll;
  const std::uint64_t hanging = 18 * 4096 + 1;
  EXPECT_EQ(smallest_hanging_size(schedule, 4, UINT64_MAX), hanging);
  EXPECT_TRUE(verify(schedule, hanging - 1, 4).is_correct());
  EXPECT_EQ(interpret(schedule, hanging - 1, 4, false, 1).outcome, Outcome::correct);
  EXPECT_EQ(interpret(schedule, hanging, 4, false, 1).outcome, Outcome::hang);
}

// Between hosts the adapters of both ends have FIFOs, so twice as many slots are under way.
TEST(SmallestHangingSize, DependsOnTheSlotsOfEachConnection) {
  Schedule schedule = two_shot_all_reduce(2, 9);
  schedule.protocol = Protocol::ll;
  const std::uint64_t hanging = 18 * 4096 + 1;
  const SlotCounts apart{8, 16, 1};
  EXPECT_EQ(smallest_hanging_size(schedule, 4, UINT64_MAX, apart), std::nullopt);
  EXPECT_TRUE(verify(schedule, hanging, 4, apart).is_correct());
  const SlotCounts together{8, 16, 2};
  EXPECT_EQ(smallest_hanging_size(schedule, 4, UINT64_MAX, together), hanging);
  EXPECT_FALSE(verify(schedule, hanging, 4, together).is_correct());
}

TEST(Verify, RefusesSlotsThatHoldNoWholeTransfers) {
  EXPECT_EQ(sentence_of([] { (void)verify(two_shot_all_reduce(8, 8), 64, 4, {6, 8, 0}); }),
            "6 slots do not hold whole transfers; each takes 4");
}

TEST(SmallestHangingSize, IsAllowedByTheCollective) {
  // Parts of 8 chunks in one step: an all-to-all needs whole chunks then, 64 * 131,073 elements.
  EXPECT_EQ(smallest_hanging_size(pairwise_all_to_all(8, 8), 4, UINT64_MAX), 64u * 131'073);
  // In single steps it hangs from the first size on: one element for each of 8 * 8 pairs.
  EXPECT_EQ(smallest_hanging_size(stepwise_all_to_all(8, 3), 4, UINT64_MAX), 64u / 8);
}

// A scan over all sizes says the same.
TEST(SmallestHangingSize, IsTheFirstOfAllSizesThatHang) {
  for (const std::uint32_t count : {3u, 4u, 5u, 8u, 12u}) {
    for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
      Schedule schedule = two_shot_all_reduce(2, count);
      schedule.protocol = protocol;
      const std::uint64_t element_bytes = fifo_limits(protocol).transfer_bytes_max / 16;
      std::optional<std::uint64_t> first;
      for (std::uint64_t elements = 1; elements < 50 * count && !first; ++elements) {
        if (has_kind(verify(schedule, elements, element_bytes), FindingKind::deadlock)) {
          first = elements;
        }
      }
      EXPECT_EQ(smallest_hanging_size(schedule, element_bytes, 50 * count - 1), first);
    }
  }
}

// In Simple a transfer of 32 KiB is one slice and one with an element more is two; the last piece
// of a long chunk is one slice where those before are two. What hangs hangs however it is cut.
TEST(Verify, HowTransfersAreCutDoesNotMatterForDeadlocks) {
  const std::uint64_t elements_per_slice = 8192;
  const std::uint64_t elements_per_transfer = 524'288;
  for (const std::uint32_t count : {2u, 3u}) {  // two transfers fill a FIFO
    const Schedule schedule = stepwise_all_to_all(2, count);
    for (const std::uint64_t chunk :
         {std::uint64_t{1}, elements_per_slice, elements_per_slice + 1, elements_per_transfer,
          elements_per_transfer + 1, elements_per_transfer + elements_per_slice + 1}) {
      const std::uint64_t elements = chunk * schedule.chunks;
      const Outcome outcome = interpret(schedule, elements, 4, false, 1).outcome;
      EXPECT_EQ(outcome, count == 2 ? Outcome::correct : Outcome::hang) << chunk;
      EXPECT_EQ(has_kind(verify(schedule, elements, 4), FindingKind::deadlock), count == 3)
          << chunk;
    }
  }
}

}  // namespace
}  // namespace towpath::collective
