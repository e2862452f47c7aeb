// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/symmetric_heap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <new>
#include <random>
#include <stdexcept>
#include <vector>

namespace towpath::transport {
namespace {

constexpr std::uint64_t kHeapBytes = 1 << 20;
constexpr std::uint32_t kSignals = 256;

SymmetricHeap make_heap(int ranks = 4) { return SymmetricHeap(ranks, kHeapBytes, kSignals); }

TEST(SymmetricHeap, StartsBehindTheContractsOwnBytesAndSignals) {
  SymmetricHeap heap = make_heap(3);
  EXPECT_GE(heap.allocate(1), Transport::reserved_bytes(3));
  EXPECT_EQ(heap.allocate_signals(1), Transport::kReservedSignals);
}

TEST(SymmetricHeap, GivesTheLowestPlaceThatFits) {
  SymmetricHeap heap = make_heap();
  const Offset a = heap.allocate(1000);
  const Offset b = heap.allocate(1000);
  EXPECT_EQ(b, a + 1024);
  heap.release(a);
  EXPECT_EQ(heap.allocate(2000), b + 1024);  // the gap at a is too small
  EXPECT_EQ(heap.allocate(500), a);
}

TEST(SymmetricHeap, JoinsNeighboursThatAreReleasedInAnyOrder) {
  for (const std::vector<int>& order :
       {std::vector{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    SymmetricHeap heap = make_heap();
    std::vector<Offset> offsets;
    for (int i = 0; i < 3; ++i) offsets.push_back(heap.allocate(256));
    heap.allocate(256);
    for (const int i : order) heap.release(offsets[static_cast<std::size_t>(i)]);
    EXPECT_EQ(heap.allocate(768), offsets[0]);
  }
}

TEST(SymmetricHeap, ThrowsBadAllocWhenFullAndGoesOnAfterARelease) {
  SymmetricHeap heap(1, 1024 + 4 * 256, Transport::kReservedSignals + 2);
  const Offset all = heap.allocate(4 * 256);
  EXPECT_THROW(heap.allocate(1), std::bad_alloc);
  heap.release(all);
  EXPECT_THROW(heap.allocate(UINT64_MAX), std::bad_alloc);
  EXPECT_EQ(heap.allocate(1), all);
  const Signal both = heap.allocate_signals(2);
  EXPECT_THROW(heap.allocate_signals(1), std::bad_alloc);
  heap.release_signals(both);
  EXPECT_EQ(heap.allocate_signals(1), both);
}

TEST(SymmetricHeap, NamesWhatCannotBeReleased) {
  SymmetricHeap heap = make_heap();
  const Offset offset = heap.allocate(512);
  EXPECT_THROW(heap.release(offset + 256), std::invalid_argument);
  heap.release(offset);
  EXPECT_THROW(heap.release(offset), std::invalid_argument);
  EXPECT_THROW(heap.release_signals(0), std::invalid_argument);
}

TEST(SymmetricHeap, RejectsAHeapThatCannotHoldTheContractsOwn) {
  EXPECT_THROW(SymmetricHeap(4, Transport::reserved_bytes(4) - 1, kSignals), std::invalid_argument);
  const std::uint32_t too_few = Transport::kReservedSignals - 1;
  EXPECT_THROW(SymmetricHeap(4, kHeapBytes, too_few), std::invalid_argument);
  EXPECT_THROW(SymmetricHeap(0, kHeapBytes, kSignals), std::invalid_argument);
}

TEST(SymmetricHeap, ChecksRangesWithoutOverflow) {
  const SymmetricHeap heap = make_heap();
  EXPECT_NO_THROW(heap.check_range(kHeapBytes - 8, 8));
  EXPECT_THROW(heap.check_range(kHeapBytes - 8, 9), std::out_of_range);
  EXPECT_THROW(heap.check_range(UINT64_MAX, 2), std::out_of_range);
  EXPECT_THROW(heap.check_range(2, UINT64_MAX), std::out_of_range);
  EXPECT_NO_THROW(heap.check_signal(kSignals - 1));
  EXPECT_THROW(heap.check_signal(kSignals), std::out_of_range);
}

TEST(SymmetricHeap, ChangesTheWordOfASignalAtEachRelease) {
  SymmetricHeap heap = make_heap();
  const Signal first = heap.allocate_signals(2);
  const std::uint64_t before[] = {heap.word_of(first), heap.word_of(first + 1)};
  heap.release_signals(first);
  ASSERT_EQ(heap.allocate_signals(2), first);
  EXPECT_NE(heap.word_of(first), before[0]);
  EXPECT_NE(heap.word_of(first + 1), before[1]);
  EXPECT_EQ(heap.previous_word_of(first), before[0]);
  heap.release_signals(first);
  EXPECT_EQ(heap.word_of(first), before[0]);
}

// A random life of two heaps with the same calls: equal answers, no overlap, inside, aligned, and
// at the end everything is whole again.
TEST(SymmetricHeap, EqualCallsGiveEqualOffsetsThatNeverOverlap) {
  std::mt19937_64 random(20240607);
  SymmetricHeap heap = make_heap(), twin = make_heap();
  const Offset lowest = heap.allocate(0);
  EXPECT_EQ(twin.allocate(0), lowest);
  heap.release(lowest);
  twin.release(lowest);
  std::map<Offset, std::uint64_t> live;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 100 < 55) {
      const std::uint64_t size = random() % 20'000;
      try {
        const Offset offset = heap.allocate(size);
        ASSERT_EQ(twin.allocate(size), offset);
        ASSERT_EQ(offset % SymmetricHeap::kAlignment, 0u);
        ASSERT_LE(offset + size, kHeapBytes);
        const auto after = live.lower_bound(offset);
        if (after != live.end()) {
          ASSERT_LE(offset + std::max<std::uint64_t>(size, 1), after->first);
        }
        if (after != live.begin()) {
          const auto before = std::prev(after);
          ASSERT_LE(before->first + std::max<std::uint64_t>(before->second, 1), offset);
        }
        live.emplace(offset, size);
      } catch (const std::bad_alloc&) {
        ASSERT_THROW(twin.allocate(size), std::bad_alloc);
      }
    } else if (!live.empty()) {
      const auto entry = std::next(live.begin(), static_cast<long>(random() % live.size()));
      heap.release(entry->first);
      twin.release(entry->first);
      live.erase(entry);
    }
  }
  for (const auto& entry : live) heap.release(entry.first);
  EXPECT_EQ(heap.allocate(kHeapBytes - lowest), lowest);
}

}  // namespace
}  // namespace towpath::transport
