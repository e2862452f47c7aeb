// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/path_tuner.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>

namespace towpath::live {
namespace {

using namespace literals;

constexpr std::uint64_t kStageBytes = 1024;
constexpr std::array kPaths{CopyPath::staged, CopyPath::streamed, CopyPath::read};

using Times = std::array<Time, 3>;  // by path

std::size_t number(CopyPath path) { return static_cast<std::size_t>(path); }

// Calls of one kind and size. Without `may_read` an array can not be read in place.
struct Calls {
  PathTuner& tuner;
  std::uint64_t size_bytes = kStageBytes;
  bool may_read = true;

  CopyPath call(const std::function<Time(CopyPath)>& duration) const {
    const PathTuner::Choice choice = tuner.choose(Kind::broadcast, size_bytes, may_read);
    if (choice.is_timed) {
      tuner.note(Kind::broadcast, size_bytes, choice.path, duration(choice.path));
    }
    return choice.path;
  }
  CopyPath call(const Times& times) const {
    return call([&](CopyPath path) { return times[number(path)]; });
  }
  // The share of calls that take a path.
  double share(CopyPath path, int calls, const std::function<Time(CopyPath)>& duration) const {
    int taken = 0;
    for (int i = 0; i < calls; ++i) taken += call(duration) == path ? 1 : 0;
    return static_cast<double>(taken) / calls;
  }
  double share(CopyPath path, int calls, const Times& times) const {
    return share(path, calls, [&](CopyPath taken) { return times[number(taken)]; });
  }
};

Times fastest(CopyPath path) {
  Times times{3_us, 3_us, 3_us};
  times[number(path)] = 1_us;
  return times;
}

TEST(PathTuner, AFewHundredCallsFindTheFastestPathForAnySize) {
  for (const std::uint64_t size : {kStageBytes / 8, kStageBytes, 100 * kStageBytes}) {
    for (const CopyPath path : kPaths) {
      PathTuner tuner(kStageBytes);
      const Calls calls{tuner, size};
      calls.share(path, 300, fastest(path));
      EXPECT_GT(calls.share(path, 4000, fastest(path)), 0.95) << size << " bytes";
    }
  }
}

TEST(PathTuner, AnExpectedPathComesFirstAndIsFoundToBeSlow) {
  for (const CopyPath expected : {CopyPath::staged, CopyPath::streamed}) {
    PathTuner tuner(kStageBytes);
    tuner.expect(expected);
    const Calls calls{tuner, kStageBytes / 2};
    EXPECT_GT(calls.share(expected, 50, fastest(CopyPath::read)), 0.8);
    calls.share(expected, 300, fastest(CopyPath::read));
    EXPECT_GT(calls.share(CopyPath::read, 1000, fastest(CopyPath::read)), 0.9);
  }
}

TEST(PathTuner, AnotherExpectationRestartsTheTrialsAndTheSameOneDoesNot) {
  PathTuner tuner(kStageBytes);
  const Calls calls{tuner, kStageBytes / 2};
  tuner.expect(CopyPath::staged);
  calls.share(CopyPath::read, 400, fastest(CopyPath::read));
  tuner.expect(CopyPath::staged);
  EXPECT_GT(calls.share(CopyPath::read, 100, fastest(CopyPath::read)), 0.5);
  tuner.expect(CopyPath::streamed);
  EXPECT_GT(calls.share(CopyPath::streamed, 50, fastest(CopyPath::streamed)), 0.8);
}

TEST(PathTuner, InterruptionsOfSomeCallsDoNotCount) {
  PathTuner tuner(kStageBytes);
  const Calls calls{tuner};
  int timed = 0;
  const auto duration = [&](CopyPath path) {
    return ++timed % 9 == 0 ? 50_us : fastest(CopyPath::read)[number(path)];
  };
  calls.share(CopyPath::read, 300, duration);
  EXPECT_GT(calls.share(CopyPath::read, 4000, duration), 0.9);
}

// A short call after each long one: together they are slower than two calls of another path.
TEST(PathTuner, AShortCallCountsWithTheLongOneBesideIt) {
  PathTuner tuner(kStageBytes);
  const Calls calls{tuner};
  int timed = 0;
  const auto duration = [&](CopyPath path) {
    if (path != CopyPath::staged) return path == CopyPath::streamed ? 2_us : 3_us;
    return ++timed % 2 == 0 ? 1_us : 4_us;
  };
  calls.share(CopyPath::streamed, 300, duration);
  EXPECT_GT(calls.share(CopyPath::streamed, 1000, duration), 0.9);
}

TEST(PathTuner, APathThatBecomesFarSlowerIsReplacedWithinAHundredCalls) {
  PathTuner tuner(kStageBytes);
  const Calls calls{tuner};
  calls.share(CopyPath::staged, 300, fastest(CopyPath::staged));
  calls.share(CopyPath::staged, 100, {9_us, 2_us, 3_us});
  EXPECT_GT(calls.share(CopyPath::streamed, 500, {9_us, 2_us, 3_us}), 0.9);
}

TEST(PathTuner, APathThatBecomesFasterThanTheBestIsNoticed) {
  PathTuner tuner(kStageBytes);
  const Calls calls{tuner};
  calls.share(CopyPath::streamed, 300, {3_us, 2_us, 3_us});
  calls.share(CopyPath::staged, 3000, {1_us, 2_us, 3_us});
  EXPECT_GT(calls.share(CopyPath::staged, 1000, {1_us, 2_us, 3_us}), 0.9);
}

TEST(PathTuner, AnArrayThatCanNotBeReadIsStaged) {
  PathTuner tuner(kStageBytes);
  const Calls unreadable{tuner, kStageBytes, false};
  const Times times{3_us, 2_us, 1_us};
  EXPECT_EQ(unreadable.share(CopyPath::read, 300, times), 0);
  EXPECT_GT(unreadable.share(CopyPath::streamed, 1000, times), 0.9);
  const Calls readable{tuner};
  readable.share(CopyPath::read, 3000, times);
  EXPECT_GT(readable.share(CopyPath::read, 100, times), 0.8);
  EXPECT_EQ(unreadable.share(CopyPath::read, 100, times), 0);
}

TEST(PathTuner, NeighbouringSizesShareTrialsAndOthersDoNot) {
  PathTuner tuner(kStageBytes);
  const Times times = fastest(CopyPath::read);
  Calls{tuner, kStageBytes}.share(CopyPath::read, 300, times);
  EXPECT_GT((Calls{tuner, kStageBytes + 200}.share(CopyPath::read, 100, times)), 0.8);
  for (const CopyPath path : kPaths) {
    PathTuner fresh(kStageBytes);
    Calls{fresh, kStageBytes}.share(path, 300, times);
    EXPECT_GT((Calls{fresh, 5 * kStageBytes}.share(path, 20, times)), 0);
  }
}

}  // namespace
}  // namespace towpath::live
