// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/data/call_data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "towpath/transport/reduction.hpp"

// tests/unit/python/test_data.py holds each value against numpy's.

namespace towpath::collective {
namespace {

using transport::DataType;
using transport::Reduction;
using transport::ReductionOperation;

constexpr std::uint64_t kElements = 40'000;  // more than the numbers of two ranks repeat after

std::shared_ptr<const Schedule> schedule_of(Collective collective, int ranks, int root = 0) {
  Schedule schedule;
  schedule.collective = collective;
  schedule.root = root;
  schedule.ranks.resize(static_cast<std::size_t>(ranks));
  return std::make_shared<const Schedule>(std::move(schedule));
}

TEST(CallData, AllReducedByTheTransportIsRightInEveryTypeAndOperation) {
  constexpr int kRanks = 3;
  for (int type = 0; type < transport::kDataTypes; ++type) {
    for (int operation = 0; operation < transport::kReductionOperations; ++operation) {
      const Reduction reduction{DataType(type), ReductionOperation(operation)};
      const CallData data(schedule_of(Collective::all_reduce, kRanks), kElements, reduction);
      const RankBuffers first(data, 0, true);
      EXPECT_GT(data.count_wrong({&first}), kElements / 4);
      for (int rank = 1; rank < kRanks; ++rank) {
        const RankBuffers other(data, rank, true);
        transport::reduce(first.output().data(), first.output().data(), other.input().data(),
                          data.input_bytes(), reduction);
      }
      if (reduction.operation == ReductionOperation::avg) {
        transport::divide(first.output().data(), data.output_bytes(), reduction.type, kRanks);
      }
      EXPECT_EQ(data.count_wrong({&first}), 0u) << type << " " << operation;
    }
  }
}

TEST(CallData, OneWrongElementOfOneRankIsOne) {
  const CallData data(schedule_of(Collective::broadcast, 2), kElements, {});
  const RankBuffers root(data, 0, true);
  const RankBuffers other(data, 1, false);
  std::ranges::copy(root.output(), other.output().begin());
  EXPECT_EQ(data.count_wrong({&root, &other}), 0u);
  other.output()[4 * 12'345] ^= std::byte{1};
  EXPECT_EQ(data.count_wrong({&root, &other}), 1u);
  EXPECT_EQ(data.count_wrong({&other}), 1u);
}

TEST(CallData, WhatIsNeverWrittenIsWrong) {
  for (int type = 0; type < transport::kDataTypes; ++type) {
    for (int operation = 0; operation < transport::kReductionOperations; ++operation) {
      const Reduction reduction{DataType(type), ReductionOperation(operation)};
      const CallData data(schedule_of(Collective::all_reduce, 4), 4'000, reduction);
      const RankBuffers buffers(data, 1, false);
      EXPECT_GT(data.count_wrong({&buffers}), 3'800u);
    }
  }
}

TEST(CallData, ARankThatIsPromisedNothingHasNothingWrong) {
  for (const Collective collective : {Collective::reduce, Collective::gather}) {
    const CallData data(schedule_of(collective, 4, 2), 400, {});
    const RankBuffers root(data, 2, false);
    const RankBuffers other(data, 3, false);
    EXPECT_EQ(data.count_wrong({&other}), 0u);
    EXPECT_EQ(data.count_wrong({&root, &other}), 400u);
  }
}

TEST(CallData, InPlaceTheSmallerBufferIsARanksOwnPartOfTheLarger) {
  for (const Collective collective : {Collective::all_gather, Collective::gather}) {
    const CallData data(schedule_of(collective, 4), 400, {});
    const RankBuffers buffers(data, 3, true);
    EXPECT_EQ(buffers.input().size(), 400u);
    EXPECT_EQ(buffers.output().size(), 1600u);
    EXPECT_EQ(buffers.input().data(), buffers.output().data() + 1200);
    EXPECT_EQ(buffers.output()[0], std::byte{0x5A});
  }
  for (const Collective collective : {Collective::reduce_scatter, Collective::scatter}) {
    const CallData data(schedule_of(collective, 4), 400, {});
    const RankBuffers buffers(data, 3, true);
    EXPECT_EQ(buffers.output().size(), 400u);
    EXPECT_EQ(buffers.output().data(), buffers.input().data() + 1200);
  }
  const CallData data(schedule_of(Collective::all_to_all, 4), 400, {});
  const RankBuffers same(data, 3, true);
  EXPECT_EQ(same.input().data(), same.output().data());
  const RankBuffers apart(data, 3, false);
  EXPECT_NE(apart.input().data(), apart.output().data());
}

TEST(CallData, BuffersOfAnotherSizeAreRefused) {
  const CallData data(schedule_of(Collective::all_reduce, 2), 100, {});
  std::vector<std::byte> memory(399);
  EXPECT_THROW(data.fill_input(0, memory), std::invalid_argument);
  const CallData other(schedule_of(Collective::all_reduce, 2), 99, {});
  const RankBuffers buffers(other, 0, false);
  EXPECT_THROW(data.count_wrong({&buffers}), std::invalid_argument);
}

}  // namespace
}  // namespace towpath::collective
