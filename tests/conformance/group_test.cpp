// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <random>

#include "conformance/suite.hpp"

namespace towpath::conformance {
namespace {

using GroupConformance = TransportConformance;
INSTANTIATE_FOR_EACH_TRANSPORT(GroupConformance);
using Kind = TransportError::Kind;

TEST_P(GroupConformance, ABarrierLetsNobodyThroughBeforeAllHaveEntered) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    expect_success(ranks, [](Transport& t) {
      const Signal entered = t.allocate_signals(1);
      const auto ranks_u = static_cast<std::uint64_t>(t.ranks());
      for (std::uint64_t round = 1; round <= 100; ++round) {
        for (int to = 0; to < t.ranks(); ++to) {
          raise_signal(t, to, entered, 1, SignalOperation::add);
        }
        t.barrier(kTimeout);
        // All have entered this one, and nobody can have left the next.
        CHECK(t.signal_fetch(entered) >= round * ranks_u);
        CHECK(t.signal_fetch(entered) <= (round + 1) * ranks_u);
      }
    });
  }
}

TEST_P(GroupConformance, AgreeReturnsWhenAllSayTheSame) {
  expect_success(4, [](Transport& t) {
    for (int i = 0; i < 100; ++i) t.agree(fmt::format("all_reduce {} of 4096 bytes", i), kTimeout);
  });
}

TEST_P(GroupConformance, AgreeNamesBothStatementsOnEveryRankAndThenGoesOn) {
  expect_success(4, [](Transport& t) {
    for (int dissenter = 0; dissenter < t.ranks(); ++dissenter) {
      const bool dissents = t.rank() == dissenter;
      const TransportError error = error_of(
          [&] { t.agree(dissents ? "broadcast of 8 bytes" : "all_reduce of 4 bytes", kTimeout); });
      CHECK(error.kind() == Kind::disagreement);
      CHECK_EQUAL(error.peer(), dissents ? (dissenter == 0 ? 1 : 0) : dissenter);
      CHECK(mentions(error.what(), "broadcast of 8 bytes"));
      CHECK(mentions(error.what(), "all_reduce of 4 bytes"));
      CHECK(mentions(error.what(), fmt::format("rank {}", dissenter)));
      t.agree("again", kTimeout);
    }
  });
}

TEST_P(GroupConformance, AgreeNamesTheRanksThatSaidNothing) {
  expect_success(4, [](Transport& t) {
    const Signal given_up = t.allocate_signals(1);
    if (t.rank() == 2) {
      t.signal_wait_until(given_up, Comparison::equal, 3, kTimeout);
      return;
    }
    const TransportError error = error_of([&] { t.agree("all_gather", 50_ms); });
    CHECK(error.kind() == Kind::timeout);
    CHECK(mentions(error.what(), "statements of rank 2, "));
    raise_signal(t, 2, given_up, 1, SignalOperation::add);
  });
}

// A rank that gave up and says something else must not be taken for the missing one.
TEST_P(GroupConformance, StatementsOfLaterAgreementsDoNotStandInForAMissingOne) {
  expect_success(3, [](Transport& t) {
    const Signal given_up = t.allocate_signals(1);
    if (t.rank() == 2) {
      t.signal_wait_until(given_up, Comparison::equal, 2, kTimeout);
      return;
    }
    for (int i = 0; i < 5; ++i) {
      const TransportError error = error_of([&] { t.agree(fmt::format("try {}", i), 20_ms); });
      CHECK(error.kind() == Kind::timeout);
      CHECK(mentions(error.what(), "rank 2"));
    }
    raise_signal(t, 2, given_up, 1, SignalOperation::add);
  });
}

TEST_P(GroupConformance, ATokenGoesRound1000Times) {
  expect_success(4, [](Transport& t) {
    const Offset inbox = t.allocate(8);
    const Signal arrived = t.allocate_signals(1);
    std::uint64_t token = 0;
    for (std::uint64_t round = 1; round <= 1000; ++round) {
      if (t.rank() != 0) {
        t.signal_wait_until(arrived, Comparison::equal, round, kTimeout, previous_rank(t));
        std::memcpy(&token, t.data(inbox), 8);
      }
      ++token;
      t.put_signal(next_rank(t), inbox, {&token, 8}, {arrived, round}, kTimeout);
      if (t.rank() == 0) {
        t.signal_wait_until(arrived, Comparison::equal, round, kTimeout, previous_rank(t));
        std::memcpy(&token, t.data(inbox), 8);
        CHECK_EQUAL(token, round * static_cast<std::uint64_t>(t.ranks()));
      }
    }
    t.barrier(kTimeout);
  });
}

TEST_P(GroupConformance, AllPutToAllOnOneToNineRanks) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    expect_success(ranks, [](Transport& t) {
      const std::uint64_t size = 4097;
      const Offset inbox = t.allocate(size * static_cast<std::uint64_t>(t.ranks()));
      const Signal arrived = t.allocate_signals(static_cast<std::uint32_t>(t.ranks()));
      for (int shift = 0; shift < t.ranks(); ++shift) {
        const int to = (t.rank() + shift) % t.ranks();
        const auto mine = patterned(static_cast<std::uint64_t>(16 * t.rank() + to), size);
        t.put_signal(to, inbox + size * static_cast<std::uint64_t>(t.rank()), {mine.data(), size},
                     {arrived + static_cast<Signal>(t.rank())}, kTimeout);
      }
      for (int from = 0; from < t.ranks(); ++from) {
        t.signal_wait_until(arrived + static_cast<Signal>(from), Comparison::equal, 1, kTimeout,
                            from);
        CHECK(is_patterned(t.data(inbox + size * static_cast<std::uint64_t>(from)),
                           static_cast<std::uint64_t>(16 * from + t.rank()), size));
      }
      t.barrier(kTimeout);
    });
  }
}

// Every rank knows the whole plan from the seed: who puts what where. Each writes into its own part
// of a peer's heap, so that the order of two ranks does not matter; its own puts are fenced.
TEST_P(GroupConformance, RandomTrafficEndsAsAModelSays) {
  expect_success(4, [](Transport& t) {
    constexpr std::uint64_t kPart = 50'000;
    const auto ranks = static_cast<std::uint64_t>(t.ranks());
    const Offset heap = t.allocate(kPart * ranks);
    const Signal count = t.allocate_signals(1);
    std::mt19937_64 random(20'240'607);
    std::vector<std::byte> model(kPart * ranks);
    std::memset(t.data(heap), 0, model.size());
    t.barrier(kTimeout);
    std::uint64_t expected = 0;
    for (std::uint64_t step = 0; step < 600; ++step) {
      const auto from = random() % ranks, to = random() % ranks;
      const std::uint64_t size = random() % 3 == 0 ? random() % 20'000 : random() % 100;
      const std::uint64_t at = kPart * from + random() % (kPart - size);
      const auto payload = patterned(step, size);
      if (from == static_cast<std::uint64_t>(t.rank())) {
        t.put_signal(static_cast<int>(to), heap + at, {payload.data(), size},
                     {count, step, SignalOperation::add}, kTimeout);
        t.fence();
      }
      if (to == static_cast<std::uint64_t>(t.rank())) {
        std::copy(payload.begin(), payload.end(), model.begin() + static_cast<std::ptrdiff_t>(at));
        expected += step;
      }
      if (step % 100 == 99) {
        t.barrier(kTimeout);
        CHECK_EQUAL(t.signal_fetch(count), expected);
        CHECK(std::memcmp(t.data(heap), model.data(), model.size()) == 0);
        t.barrier(kTimeout);
      }
    }
  });
}

TEST_P(GroupConformance, ADeadRankEndsTheWaitsOfAllOthersAndIsNamed) {
  if (!GetParam().has_processes) GTEST_SKIP() << "a rank here is not a process that can die";
  const auto ended = outcomes(4, [](Transport& t) {
    const Signal never = t.allocate_signals(1);
    const Signal left = t.allocate_signals(1);
    t.barrier(kTimeout);
    // One rank may be through a barrier while others still wait in it for each other.
    if (t.rank() == 2) {
      t.signal_wait_until(left, Comparison::equal, 3, kTimeout);
      std::raise(SIGKILL);
    }
    raise_signal(t, 2, left, 1, SignalOperation::add);
    // Rank 0 waits for the dead one, the others for ranks that live.
    const int awaited = t.rank() == 0 ? 2 : 0;
    const auto wait = [&] { t.signal_wait_until(never, Comparison::equal, 1, kTimeout, awaited); };
    const TransportError error = error_of(wait);
    CHECK(error.kind() == Kind::peer_died);
    CHECK_EQUAL(error.peer(), 2);
    CHECK(mentions(error.what(), "rank 2 (pid "));
    CHECK(mentions(error.what(), fmt::format("died while rank {} waited for signal", t.rank())));
    CHECK_EQUAL(std::string(error_of(wait).what()), error.what());
    CHECK_EQUAL(std::string(error_of([&] { t.barrier(kTimeout); }).what()), error.what());
    CHECK_EQUAL(std::string(error_of([&] { t.progress(); }).what()), error.what());
  });
  EXPECT_EQ(ended, (std::vector<std::string>{"", "", "killed by signal 9", ""}));
}

TEST_P(GroupConformance, ADeadRankIsNoticedByProgressAlone) {
  if (!GetParam().has_processes) GTEST_SKIP() << "a rank here is not a process that can die";
  const auto ended = outcomes(2, [](Transport& t) {
    SignalWait wait;
    wait.signal = t.allocate_signals(1);
    wait.value = 1;
    wait.peer = 1;
    wait.describe = [](const SignalWait&) { return std::string("slot 3 from rank 1, step 5"); };
    t.barrier(kTimeout);
    if (t.rank() == 1) std::raise(SIGKILL);
    t.wait(wait);
    const TransportError error = error_of([&] {
      while (t.now() < kTimeout) t.progress();
    });
    CHECK_EQUAL(error.peer(), 1);
    CHECK(mentions(error.what(), "died while rank 0 waited for slot 3 from rank 1, step 5"));
    t.cancel(wait);
  });
  EXPECT_EQ(ended, (std::vector<std::string>{"", "killed by signal 9"}));
}

TEST_P(GroupConformance, WhatADeadRankDidBeforeItDiedStillCounts) {
  if (!GetParam().has_processes) GTEST_SKIP() << "a rank here is not a process that can die";
  const auto ended = outcomes(2, [](Transport& t) {
    const Signal last_words = t.allocate_signals(1);
    if (t.rank() == 1) {
      raise_signal(t, 0, last_words, 3);
      std::raise(SIGKILL);
    }
    t.signal_wait_until(last_words, Comparison::equal, 3, kTimeout, 1);
  });
  EXPECT_EQ(ended, (std::vector<std::string>{"", "killed by signal 9"}));
}

TEST_P(GroupConformance, AWaitForARankThatLeftSaysSo) {
  if (!GetParam().has_processes) GTEST_SKIP() << "a rank here does not leave before the others";
  expect_success(3, [](Transport& t) {
    const Signal never = t.allocate_signals(1);
    if (t.rank() == 1) return;
    const TransportError error =
        error_of([&] { t.signal_wait_until(never, Comparison::equal, 1, kTimeout, 1); });
    CHECK_EQUAL(error.peer(), 1);
    CHECK(mentions(error.what(), fmt::format("left while rank {} waited for signal", t.rank())));
    // It was not needed for this one, so that a departure in good order is no end.
    const int other = t.rank() == 0 ? 2 : 0;
    raise_signal(t, other, never, 8);
    t.signal_wait_until(never, Comparison::equal, 8, kTimeout, other);
  });
}

}  // namespace
}  // namespace towpath::conformance
