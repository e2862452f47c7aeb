// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/simulation_group.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "towpath/sim/crossing.hpp"
#include "towpath/sim/trace.hpp"

namespace towpath::sim {
namespace {

using namespace towpath::literals;

constexpr Time kLatency = Time::from_ps(100'000);

// Partitions that pass balls on at random, each with events of its own and a process, in one
// simulation or in several.
class Machine {
 public:
  Machine(int places, std::size_t partitions, int threads, std::uint64_t seed)
      : group_({.partitions = partitions, .lookahead = kLatency, .threads = threads}) {
    group_.set_trace(&trace_);
    group_.share_every_window();
    for (int number = 0; number < places; ++number) {
      const auto at = static_cast<std::size_t>(number) % partitions;
      places_.emplace_back(*this, group_[at], number, seed);
    }
    for (Place& place : places_) {
      place.simulation.spawn("keeper", [&place] { place.keep(); });
    }
  }

  using Outcome = std::tuple<std::uint64_t, std::uint64_t, Time, std::vector<int>>;
  Outcome run() {
    group_.run();
    std::vector<int> caught;
    for (const Place& place : places_) caught.push_back(place.caught);
    return {trace_.hash(), group_.events(), group_.now(), caught};
  }
  SimulationGroup& group() { return group_; }

 private:
  struct Place;
  struct Ball {
    Place* to = nullptr;
    int passes_left = 0;
  };
  struct Place {
    Place(Machine& all, Simulation& own, int own_number, std::uint64_t seed)
        : machine(all),
          simulation(own),
          number(own_number),
          random(seed, "place " + std::to_string(own_number)),
          crossing(own) {}

    // Starts some balls, and notes each that comes.
    void keep() {
      for (int i = 0; i < 4; ++i) {
        simulation.sleep(Time::from_ps(random.between(0, 300'000)));
        throw_ball(10);
      }
      keeper = simulation.current();
      while (caught < 1'000'000) {
        simulation.suspend("a ball");
        note("awake");
      }
    }
    void throw_ball(int passes) {
      const auto others = static_cast<std::uint64_t>(machine.places_.size());
      balls.push_back({&machine.places_[random.below(others)], passes});
      // Times are few, so that many arrive at the same one.
      const Time when = simulation.now() + kLatency + Time::from_ps(random.between(0, 3) * 1'000);
      crossing.at(balls.back().to->simulation, when, &Place::come, &balls.back());
    }
    static void come(void* context) {
      const Ball ball = *static_cast<Ball*>(context);
      Place& place = *ball.to;
      ++place.caught;
      place.note("ball " + std::to_string(ball.passes_left));
      if (place.keeper != nullptr) place.simulation.wake(*place.keeper);
      if (ball.passes_left == 0) return;
      place.passes.push_back(ball.passes_left - 1);
      place.simulation.after(Time::from_ps(place.random.between(0, 5) * 500), &Place::go_on,
                             &place);
    }
    static void go_on(void* context) {
      Place& place = *static_cast<Place*>(context);
      const int passes = place.passes.front();
      place.passes.pop_front();
      place.throw_ball(passes);
    }
    void note(const std::string& what) {
      Trace& trace = *simulation.trace();
      trace.instant(trace.track("place " + std::to_string(number)), trace.name(what),
                    simulation.now(), caught);
    }

    Machine& machine;
    Simulation& simulation;
    int number;
    Random random;
    Crossing crossing;
    int caught = 0;
    Process* keeper = nullptr;
    std::deque<Ball> balls;
    std::deque<int> passes;
  };

  Trace trace_{Trace::Mode::hash_only};
  SimulationGroup group_;
  std::deque<Place> places_;
};

TEST(SimulationGroup, DoesTheSameInOnePartitionAndInManyWithAnyNumberOfThreads) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const int places = 2 + static_cast<int>(seed % 7);
    const Machine::Outcome plain = Machine(places, 1, 1, seed).run();
    EXPECT_GT(std::get<1>(plain), 80u);
    for (const int threads : {1, 2, 4, 8}) {
      Machine apart(places, static_cast<std::size_t>(places), threads, seed);
      EXPECT_EQ(apart.run(), plain) << "seed " << seed << ", " << threads << " threads";
      EXPECT_GE(apart.group().windows().events, apart.group().windows().critical_events);
    }
  }
}

// What many threads do to each other shows only where windows have enough events to be shared.
TEST(SimulationGroup, SharesLongWindowsAmongThreads) {
  struct Worker {
    Simulation& simulation;
    std::uint64_t left;
    std::uint64_t sum = 0;
    void work() {
      sum = sum * 31 + left;
      if (--left > 0) {
        simulation.after(1_ns, [](void* context) { static_cast<Worker*>(context)->work(); }, this);
      }
    }
  };
  std::vector<std::vector<std::uint64_t>> sums;
  for (const int threads : {1, 3, 8}) {
    SimulationGroup group({.partitions = 16, .lookahead = 1_us, .threads = threads});
    std::deque<Worker> workers;
    for (std::size_t i = 0; i < group.partitions(); ++i) {
      workers.push_back(Worker{group[i], 3'000 + 100 * i});
      workers.back().work();
    }
    group.run();
    EXPECT_EQ(group.now(), 4'499_ns);
    EXPECT_EQ(group.windows().windows, 5u);
    sums.emplace_back();
    for (const Worker& worker : workers) sums.back().push_back(worker.sum);
  }
  EXPECT_EQ(sums[1], sums[0]);
  EXPECT_EQ(sums[2], sums[0]);
}

TEST(SimulationGroup, ArrivalsAtOneTimeComeByCrossingWhateverWasSentFirst) {
  for (const std::size_t partitions : {1, 3}) {
    SimulationGroup group({.partitions = partitions, .lookahead = kLatency});
    struct Letter {
      std::string* text;
      char letter;
    };
    std::string text;
    Crossing first(group[1 % partitions]);
    Crossing second(group[2 % partitions]);
    Letter a{&text, 'a'}, b{&text, 'b'}, c{&text, 'c'}, own{&text, '.'};
    const auto add = [](void* context) {
      *static_cast<Letter*>(context)->text += static_cast<Letter*>(context)->letter;
    };
    group[0].at(kLatency, add, &own, kHardwarePriority);
    second.at(group[0], kLatency, add, &c);
    first.at(group[0], kLatency, add, &a);
    first.at(group[0], kLatency, add, &b);
    group.run();
    EXPECT_EQ(text, "abc.");
    EXPECT_EQ(group.now(), kLatency);
  }
}

TEST(SimulationGroup, ThrowsTheFirstErrorAndGoesOn) {
  SimulationGroup group({.partitions = 4, .lookahead = kLatency, .threads = 4});
  group.share_every_window();
  int ran = 0;
  const auto fail = [&](std::size_t partition, Time when, const char* what) {
    group[partition].spawn("fails", [&group, partition, when, what] {
      group[partition].sleep(when);
      throw std::runtime_error(what);
    });
  };
  fail(3, 50_ns, "late");
  fail(2, 20_ns, "first");
  fail(1, 20_ns, "first of all");
  group[0].at(kLatency * 2, [](void* context) { ++*static_cast<int*>(context); }, &ran);
  try {
    group.run();
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first of all");
  }
  EXPECT_EQ(ran, 0);
  group.run();
  EXPECT_EQ(ran, 1);
}

TEST(SimulationGroup, NamesWhoWaitsForever) {
  SimulationGroup group({.partitions = 2, .lookahead = kLatency, .threads = 2});
  for (const std::size_t i : {0, 1}) {
    group[i].spawn("process " + std::to_string(i), [&group, i] {
      group[i].sleep(Time::from_ps(static_cast<std::int64_t>(i) * 1'000));
      group[i].suspend("nothing");
    });
  }
  group.run();
  const std::vector<BlockedProcess> blocked = group.blocked();
  ASSERT_EQ(blocked.size(), 2u);
  EXPECT_EQ(blocked[0].name, "process 0");
  EXPECT_EQ(blocked[1].waiting_for, "nothing");
}

TEST(SimulationGroup, RunsUntilALimitAndAllPartitionsAreThere) {
  SimulationGroup group({.partitions = 2, .lookahead = kLatency});
  int ran = 0;
  const auto count = [](void* context) { ++*static_cast<int*>(context); };
  group[0].at(30_ns, count, &ran);
  group[1].at(31_ns, count, &ran);
  group.run_until(30_ns);
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(group[0].now(), 30_ns);
  EXPECT_EQ(group[1].now(), 30_ns);
  group[0].at(30_ns, count, &ran);
  group.run();
  EXPECT_EQ(ran, 3);
  EXPECT_EQ(group[0].now(), 31_ns);
}

// A cancelled timer stays in its queue, behind the end of the window.
TEST(SimulationGroup, EventsMayFollowRightAfterARun) {
  SimulationGroup group({.partitions = 2, .lookahead = 1_us});
  Timer timer;
  int ran = 0;
  const auto count = [](void* context) { ++*static_cast<int*>(context); };
  timer.arm(group[0], 5_us, count, &ran);
  for (int i = 1; i <= 3; ++i) group[0].at(Time::from_ps(i * 250'000), count, &ran);
  group[0].at(100_ns, [](void* context) { static_cast<Timer*>(context)->cancel(); }, &timer);
  group.run_until(800_ns);
  for (int i = 0; i < 3; ++i) {
    const Time now = group.now();
    for (const std::size_t partition : {0, 1}) group[partition].after(1_ns, count, &ran);
    group.run();
    EXPECT_EQ(group.now(), now + 1_ns);
  }
  EXPECT_EQ(ran, 9);
}

TEST(SimulationGroup, RefusesWhatComesBeforeTheEndOfTheWindow) {
  SimulationGroup group({.partitions = 2, .lookahead = kLatency});
  struct Hasty {
    SimulationGroup& group;
    Crossing crossing{group[0]};
  } hasty{group};
  group[0].at(
      10_ns,
      [](void* context) {
        Hasty& all = *static_cast<Hasty*>(context);
        all.crossing.at(all.group[1], 20_ns, [](void*) {}, nullptr);
      },
      &hasty);
  EXPECT_THROW(group.run(), InvariantError);
}

TEST(SimulationGroup, PartitionsNeedALookahead) {
  EXPECT_THROW(SimulationGroup({.partitions = 2}), InvariantError);
}

}  // namespace
}  // namespace towpath::sim
