// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/chunking.hpp"

#include <gtest/gtest.h>

#include "schedules.hpp"

namespace towpath::collective {
namespace {
using namespace samples;

// An all-reduce of 8 chunks.
Schedule eight_chunks(Protocol protocol) {
  Schedule schedule = ring_all_reduce(8, 1);
  schedule.protocol = protocol;
  return schedule;
}

// --- floats: a transfer holds 2 MiB, 524,288 of them ----------------------------------------

TEST(ChunkingInSimple, FourChunksOf512KibibytesTravelTogether) {
  const Chunking chunking(eight_chunks(Protocol::simple), 8 * 131'072, 4);
  EXPECT_EQ(chunking.chunk_elements(), 131'072u);
  EXPECT_EQ(chunking.iterations(), 1u);
  EXPECT_EQ(chunking.chunks_per_transfer(), 4u);
  EXPECT_EQ(chunking.transfers(8), 2u);
  EXPECT_EQ(chunking.transfers(9), 3u);
  EXPECT_EQ(chunking.nominal(4, 0), 524'288u);
}

TEST(ChunkingInSimple, AnElementMoreMakesItThree) {
  const Chunking chunking(eight_chunks(Protocol::simple), 8 * 131'072 + 1, 4);
  EXPECT_EQ(chunking.chunk_elements(), 131'073u);
  EXPECT_EQ(chunking.chunks_per_transfer(), 3u);
}

TEST(ChunkingInSimple, ATransferIsTwoSlicesOfTwoSlotsAbove32Kibibytes) {
  const Chunking chunking(eight_chunks(Protocol::simple), 8, 4);
  EXPECT_EQ(chunking.slices(8'192), 1u);
  EXPECT_EQ(chunking.slice(8'192, 0).count, 8'192u);
  EXPECT_EQ(chunking.slice(8'192, 0).slots, 4u);
  EXPECT_EQ(chunking.slices(8'193), 2u);
  const Slice first = chunking.slice(8'193, 0);
  const Slice second = chunking.slice(8'193, 1);
  EXPECT_EQ(first.offset, 0u);
  EXPECT_EQ(first.count, 4'097u);
  EXPECT_EQ(first.slots, 2u);
  EXPECT_EQ(second.offset, 4'097u);
  EXPECT_EQ(second.count, 4'096u);
  EXPECT_EQ(second.slots, 2u);
}

TEST(ChunkingInSimple, AChunkLargerThanATransferIsWalkedInPieces) {
  // 8 MiB are four pieces; the element more makes a fifth of one element.
  EXPECT_EQ(Chunking(eight_chunks(Protocol::simple), 8 * 2'097'152, 4).iterations(), 4u);
  const Chunking chunking(eight_chunks(Protocol::simple), 8 * 2'097'152 + 1, 4);
  EXPECT_EQ(chunking.chunk_elements(), 2'097'153u);
  EXPECT_EQ(chunking.chunks_per_transfer(), 1u);
  EXPECT_EQ(chunking.iterations(), 5u);
  EXPECT_EQ(chunking.nominal(1, 0), 524'288u);
  EXPECT_EQ(chunking.nominal(1, 4), 1u);

  const Range last_of_first = chunking.range(Buffer::input, 0, 1, 4);
  EXPECT_EQ(last_of_first.offset, 2'097'152u);
  EXPECT_EQ(last_of_first.count, 1u);
  // The last chunk begins at 14,680,071 and has 7 elements less than the others: its fourth piece
  // is short by 6, its fifth does not exist.
  const Range fourth = chunking.range(Buffer::input, 7, 1, 3);
  EXPECT_EQ(fourth.offset, 14'680'071u + 3 * 524'288);
  EXPECT_EQ(fourth.count, 524'288u - 6);
  EXPECT_EQ(chunking.range(Buffer::input, 7, 1, 4).count, 0u);
}

TEST(ChunkingInSimple, NoMoreThan71ChunksTravelTogether) {
  EXPECT_EQ(Chunking(eight_chunks(Protocol::simple), 8 * 7'384, 4).chunks_per_transfer(), 71u);
  EXPECT_EQ(Chunking(eight_chunks(Protocol::simple), 8 * 7'385, 4).chunks_per_transfer(), 70u);
}

// --- LL: half of a slot of 64 KiB is payload, 8,192 floats -----------------------------------

TEST(ChunkingInLl, ATransferIsOneSliceOfOneSlot) {
  const Chunking chunking(eight_chunks(Protocol::ll), 8 * 8'192, 4);
  EXPECT_EQ(chunking.chunks_per_transfer(), 1u);
  EXPECT_EQ(chunking.iterations(), 1u);
  EXPECT_EQ(chunking.slices(8'192), 1u);
  EXPECT_EQ(chunking.slice(8'192, 0).slots, 1u);
  EXPECT_EQ(Chunking(eight_chunks(Protocol::ll), 8 * 8'192 + 1, 4).iterations(), 2u);
  EXPECT_EQ(Chunking(eight_chunks(Protocol::ll), 8 * 4'096, 4).chunks_per_transfer(), 2u);
}

// --- LL128: 15/16 of a slot of 614,400 bytes is payload, 144,000 floats ----------------------

TEST(ChunkingInLl128, ATransferIsOneSliceOfOneSlot) {
  const Chunking chunking(eight_chunks(Protocol::ll128), 8 * 144'000, 4);
  EXPECT_EQ(chunking.chunks_per_transfer(), 1u);
  EXPECT_EQ(chunking.iterations(), 1u);
  EXPECT_EQ(chunking.slice(144'000, 0).slots, 1u);
  EXPECT_EQ(Chunking(eight_chunks(Protocol::ll128), 8 * 144'000 + 1, 4).iterations(), 2u);
  EXPECT_EQ(Chunking(eight_chunks(Protocol::ll128), 8 * 72'000, 4).chunks_per_transfer(), 2u);
  EXPECT_EQ(Chunking(eight_chunks(Protocol::ll128), 8 * 72'001, 4).chunks_per_transfer(), 1u);
}

// --- parts and ragged ends -------------------------------------------------------------------

TEST(Chunking, ChunksDoNotCrossFromOnePartIntoTheNext) {
  // 4 parts of 5 elements, each cut into chunks of 3 and 2.
  const Chunking chunking(ring_all_gather(4, 2), 20, 4);
  EXPECT_EQ(chunking.part_elements(), 5u);
  EXPECT_EQ(chunking.chunk_elements(), 3u);
  EXPECT_EQ(chunking.range(Buffer::output, 2, 1, 0).offset, 5u);
  EXPECT_EQ(chunking.range(Buffer::output, 2, 1, 0).count, 3u);
  EXPECT_EQ(chunking.range(Buffer::output, 3, 1, 0).offset, 8u);
  EXPECT_EQ(chunking.range(Buffer::output, 3, 1, 0).count, 2u);
  EXPECT_EQ(chunking.range(Buffer::input, 1, 1, 0).offset, 3u);
  EXPECT_EQ(chunking.range(Buffer::input, 1, 1, 0).count, 2u);
  EXPECT_EQ(chunking.range(Buffer::scratch, 1, 1, 0).count, 3u);
  EXPECT_EQ(chunking.scratch_elements(7), 21u);
}

TEST(Chunking, ChunksPastTheEndAreEmptyButTravelAtFullLength) {
  const Chunking chunking(eight_chunks(Protocol::simple), 9, 4);
  EXPECT_EQ(chunking.chunk_elements(), 2u);
  EXPECT_EQ(chunking.range(Buffer::input, 4, 1, 0).count, 1u);
  EXPECT_EQ(chunking.range(Buffer::input, 5, 1, 0).count, 0u);
  EXPECT_EQ(chunking.range(Buffer::input, 3, 4, 0).offset, 6u);
  EXPECT_EQ(chunking.range(Buffer::input, 3, 4, 0).count, 3u);
  EXPECT_EQ(chunking.nominal(4, 0), 8u);
}

TEST(Chunking, ElementsMustDivideIntoRanksOrChunks) {
  EXPECT_EQ(element_granularity(ring_all_reduce(8, 2)), 1u);
  EXPECT_EQ(element_granularity(ring_all_gather(8, 2)), 8u);
  EXPECT_EQ(element_granularity(pairwise_all_to_all(8, 2)), 16u);
  EXPECT_THROW(Chunking(ring_all_gather(8, 2), 9, 4), std::invalid_argument);
  EXPECT_THROW(Chunking(ring_all_reduce(8, 2), 0, 4), std::invalid_argument);
}

TEST(Chunking, AnElementMustFitInATransfer) {
  EXPECT_THROW(Chunking(eight_chunks(Protocol::ll), 8, 0), std::invalid_argument);
  EXPECT_THROW(Chunking(eight_chunks(Protocol::ll), 8, 32'769), std::invalid_argument);
  EXPECT_EQ(Chunking(eight_chunks(Protocol::ll), 8, 32'768).chunks_per_transfer(), 1u);
}

// --- the way back: from a number of chunks to a size -----------------------------------------

TEST(SmallestElements, AreTheFirstWithSoFewChunksPerTransfer) {
  for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
    for (Schedule schedule :
         {ring_all_reduce(3, 2), ring_all_gather(3, 2), pairwise_all_to_all(3, 2)}) {
      schedule.protocol = protocol;
      for (std::uint32_t chunks = 1; chunks < kChunksPerTransferMax; ++chunks) {
        const std::uint64_t elements = smallest_elements_for(schedule, 4, chunks);
        EXPECT_LE(Chunking(schedule, elements, 4).chunks_per_transfer(), chunks);
        EXPECT_GT(
            Chunking(schedule, elements - element_granularity(schedule), 4).chunks_per_transfer(),
            chunks);
      }
      EXPECT_EQ(smallest_elements_for(schedule, 4, 71), element_granularity(schedule));
    }
  }
}

TEST(SmallestElements, AreTheFirstWithChunksOfASize) {
  for (const Schedule& schedule :
       {ring_all_reduce(3, 2), ring_all_gather(3, 2), pairwise_all_to_all(3, 2)}) {
    for (std::uint64_t chunk = 1; chunk < 20; ++chunk) {
      const std::uint64_t elements = smallest_elements_with_chunk(schedule, chunk);
      EXPECT_EQ(Chunking(schedule, elements, 4).chunk_elements(), chunk);
      const std::uint64_t below = elements - element_granularity(schedule);
      if (below > 0) {
        EXPECT_LT(Chunking(schedule, below, 4).chunk_elements(), chunk);
      }
    }
  }
}

}  // namespace
}  // namespace towpath::collective
