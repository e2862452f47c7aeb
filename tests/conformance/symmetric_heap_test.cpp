// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <random>

#include "conformance/suite.hpp"

namespace towpath::conformance {
namespace {

using SymmetricHeapConformance = TransportConformance;
INSTANTIATE_FOR_EACH_TRANSPORT(SymmetricHeapConformance);

TEST_P(SymmetricHeapConformance, EqualCallsGiveEqualOffsetsAndSignalsOnAllRanks) {
  expect_success(4, [](Transport& t) {
    std::mt19937 random(7);
    std::vector<Offset> live;
    std::vector<std::uint64_t> answers;
    for (int i = 0; i < 200; ++i) {
      if (live.size() < 3 || random() % 2 == 0) {
        live.push_back(t.allocate(1 + random() % 100'000));
        CHECK_EQUAL(live.back() % 256, 0u);
        answers.push_back(live.back());
      } else {
        const std::size_t victim = random() % live.size();
        t.release(live[victim]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
      }
      if (i % 20 == 0)
        answers.push_back(t.allocate_signals(static_cast<std::uint32_t>(1 + random() % 5)));
    }
    std::string statement;
    for (const std::uint64_t answer : answers) {
      statement = std::to_string(std::hash<std::string>()(statement + std::to_string(answer)));
    }
    t.agree(statement, kTimeout);
  });
}

TEST_P(SymmetricHeapConformance, AllocationsDoNotOverlapTheContractsOwnPlaces) {
  expect_success(3, [](Transport& t) {
    CHECK(t.allocate(1) >= Transport::reserved_bytes(t.ranks()));
    CHECK(t.allocate_signals(1) >= Transport::kReservedSignals);
  });
}

TEST_P(SymmetricHeapConformance, AnAllocationThatDoesNotFitThrowsBadAlloc) {
  expect_success(1, [](Transport& t) {
    bool was_thrown = false;
    try {
      t.allocate(std::uint64_t{1} << 62);
    } catch (const std::bad_alloc&) {
      was_thrown = true;
    }
    CHECK(was_thrown);
    t.allocate(1);
  });
}

TEST_P(SymmetricHeapConformance, ReleasedMemoryIsUsedAgainAndWorks) {
  expect_success(3, [](Transport& t) {
    Offset first = 0;
    for (int round = 0; round < 50; ++round) {
      const Offset offset = t.allocate(10'000);
      const Signal arrived = t.allocate_signals(1);
      if (round == 0) first = offset;
      CHECK_EQUAL(offset, first);
      const auto mine = patterned(static_cast<std::uint64_t>(100 * round + t.rank()), 10'000);
      t.put_signal(next_rank(t), offset, {mine.data(), mine.size()}, {arrived}, kTimeout);
      t.signal_wait_until(arrived, Comparison::equal, 1, kTimeout, previous_rank(t));
      CHECK(is_patterned(t.data(offset), static_cast<std::uint64_t>(100 * round + previous_rank(t)),
                         10'000));
      t.barrier(kTimeout);
      t.release(offset);
      t.release_signals(arrived);
    }
  });
}

TEST_P(SymmetricHeapConformance, SignalsAreZeroAtFirstAndAfterEachReuse) {
  expect_success(2, [](Transport& t) {
    for (int round = 0; round < 5; ++round) {
      const Signal first = t.allocate_signals(8);
      for (Signal signal = first; signal < first + 8; ++signal) {
        CHECK_EQUAL(t.signal_fetch(signal), 0u);
      }
      t.barrier(kTimeout);
      for (Signal signal = first; signal < first + 8; ++signal) {
        raise_signal(t, next_rank(t), signal, 1000 + signal);
        t.signal_wait_until(signal, Comparison::equal, 1000 + signal, kTimeout, previous_rank(t));
      }
      t.barrier(kTimeout);
      t.release_signals(first);
    }
  });
}

// Rank 0 releases, allocates and raises the same number while rank 1 has not released it yet.
TEST_P(SymmetricHeapConformance, ARankThatRunsAheadMayRaiseAReusedSignal) {
  expect_success(2, [](Transport& t) {
    const Signal go = t.allocate_signals(1);
    const Signal old = t.allocate_signals(3);
    raise_signal(t, next_rank(t), old, 99);
    t.signal_wait_until(old, Comparison::equal, 99, kTimeout, previous_rank(t));
    t.barrier(kTimeout);
    if (t.rank() == 1) t.signal_wait_until(go, Comparison::equal, 1, kTimeout, 0);
    t.release_signals(old);
    const Signal reused = t.allocate_signals(3);
    CHECK_EQUAL(reused, old);
    if (t.rank() == 0) {
      raise_signal(t, 1, reused, 7);
      t.fence();
      raise_signal(t, 1, go);
    } else {
      CHECK_EQUAL(t.signal_fetch(reused), 7u);
      CHECK_EQUAL(t.signal_fetch(reused + 1), 0u);
    }
    t.barrier(kTimeout);
  });
}

}  // namespace
}  // namespace towpath::conformance
