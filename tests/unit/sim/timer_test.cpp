// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/timer.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "towpath/sim/simulation.hpp"

namespace towpath::sim {
namespace {
using namespace literals;

void increment(void* context) { ++*static_cast<int*>(context); }

TEST(Timer, FiresOnceAndIsThenDisarmed) {
  Simulation simulation;
  Timer timer;
  int count = 0;
  timer.arm(simulation, 5_ns, &increment, &count);
  EXPECT_TRUE(timer.is_armed());
  simulation.run();
  EXPECT_EQ(count, 1);
  EXPECT_FALSE(timer.is_armed());
  EXPECT_EQ(simulation.events(), 1u);
}

TEST(Timer, DoesNotFireWhenCancelled) {
  Simulation simulation;
  Timer timer;
  int count = 0;
  timer.arm(simulation, 5_ns, &increment, &count);
  timer.cancel();
  timer.cancel();
  EXPECT_FALSE(timer.is_armed());
  simulation.run();
  EXPECT_EQ(count, 0);
}

TEST(Timer, LetsNoTimePassWhenCancelled) {
  Simulation simulation;
  Timer timer;
  int count = 0;
  timer.arm(simulation, 5_s, &increment, &count);
  timer.cancel();
  simulation.at(1_ns, &increment, &count);
  simulation.run();
  EXPECT_EQ(simulation.now(), 1_ns);
  EXPECT_EQ(simulation.events(), 1u);
  simulation.at(2_ns, &increment, &count);
  simulation.run();
  EXPECT_EQ(simulation.now(), 2_ns);
  EXPECT_EQ(count, 2);
}

TEST(Timer, FiresOnlyAtTheLastTimeItWasArmedFor) {
  Simulation simulation;
  Timer timer;
  std::vector<Time> fired;
  struct Context {
    Simulation& simulation;
    std::vector<Time>& fired;
  } context{simulation, fired};
  const Action record = [](void* self) {
    auto& to = *static_cast<Context*>(self);
    to.fired.push_back(to.simulation.now());
  };
  timer.arm(simulation, 5_ns, record, &context);
  timer.arm(simulation, 9_ns, record, &context);
  timer.arm(simulation, 7_ns, record, &context);
  simulation.run();
  EXPECT_EQ(fired, std::vector<Time>{7_ns});
}

TEST(Timer, IsCancelledByItsDestruction) {
  Simulation simulation;
  int count = 0;
  {
    Timer timer;
    timer.arm(simulation, 5_ns, &increment, &count);
  }
  simulation.run();
  EXPECT_EQ(count, 0);
}

TEST(Timer, MayOutliveItsSimulation) {
  Timer timer;
  int count = 0;
  {
    Simulation simulation;
    timer.arm(simulation, 5_ns, &increment, &count);
  }
  EXPECT_FALSE(timer.is_armed());
  Simulation another;
  timer.arm(another, 1_ns, &increment, &count);
  another.run();
  EXPECT_EQ(count, 1);
}

TEST(Timer, MayBeArmedAgainByItsOwnAction) {
  struct Ticker {
    Simulation simulation;
    Timer timer;
    int ticks = 0;
    static void tick(void* context) {
      auto& self = *static_cast<Ticker*>(context);
      if (++self.ticks < 10) {
        self.timer.arm(self.simulation, self.simulation.now() + 2_ns, &tick, context);
      }
    }
  } ticker;
  ticker.timer.arm(ticker.simulation, 2_ns, &Ticker::tick, &ticker);
  ticker.simulation.run();
  EXPECT_EQ(ticker.ticks, 10);
  EXPECT_EQ(ticker.simulation.now(), 20_ns);
}

TEST(Timer, MayBeDestroyedByItsOwnAction) {
  Simulation simulation;
  auto timer = std::make_unique<Timer>();
  timer->arm(
      simulation, 1_ns, [](void* self) { static_cast<std::unique_ptr<Timer>*>(self)->reset(); },
      &timer);
  simulation.run();
  EXPECT_EQ(timer, nullptr);
}

TEST(Timer, CanBeCancelledByAnEventOfTheSameTime) {
  Simulation simulation;
  Timer earlier, later;
  int count = 0;
  earlier.arm(simulation, 5_ns, &increment, &count);
  simulation.at(5_ns, [](void* timer) { static_cast<Timer*>(timer)->cancel(); }, &earlier);
  simulation.at(5_ns, [](void* timer) { static_cast<Timer*>(timer)->cancel(); }, &later);
  later.arm(simulation, 5_ns, &increment, &count);
  simulation.run();
  EXPECT_EQ(count, 1);
}

TEST(Timer, DoesNotArmInThePast) {
  Simulation simulation;
  simulation.run_until(5_ns);
  Timer timer;
  int count = 0;
  EXPECT_THROW(timer.arm(simulation, 4_ns, &increment, &count), InvariantError);
  EXPECT_FALSE(timer.is_armed());
}

TEST(Timer, DoesNotFillTheQueueWhenArmedAndCancelledInALoop) {
  Simulation simulation;
  Timer timer;
  int count = 0;
  std::size_t pending_max = 0;
  for (int i = 0; i < 100'000; ++i) {
    timer.arm(simulation, Time::from_ps(1'000'000 - i), &increment, &count);
    pending_max = std::max(pending_max, simulation.pending_events());
  }
  EXPECT_LE(pending_max, 65u);
  simulation.run();
  EXPECT_EQ(count, 1);
}

TEST(Timer, KeepsTheOthersWhenManyAreCancelled) {
  Simulation simulation;
  int count = 0;
  std::vector<std::unique_ptr<Timer>> timers;
  for (int i = 0; i < 10'000; ++i) {
    timers.push_back(std::make_unique<Timer>());
    timers.back()->arm(simulation, Time::from_ps(1 + i * 7919 % 10'000'000), &increment, &count);
  }
  for (std::size_t i = 0; i < timers.size(); ++i) {
    if (i % 10 != 0) timers[i].reset();
  }
  EXPECT_LT(simulation.pending_events(), 2'100u);
  simulation.run();
  EXPECT_EQ(count, 1'000);
  EXPECT_EQ(simulation.events(), 1'000u);
}

// --- in the background ---------------------------------------------------------------------------

TEST(Timer, InTheBackgroundKeepsNoRunGoing) {
  Simulation simulation;
  Timer timer;
  int background = 0;
  int count = 0;
  timer.arm_in_background(simulation, 5_ns, &increment, &background);
  simulation.at(3_ns, &increment, &count);
  simulation.run();
  EXPECT_EQ(simulation.now(), 3_ns);
  EXPECT_EQ(background, 0);
  EXPECT_TRUE(timer.is_armed());

  simulation.at(8_ns, &increment, &count);
  simulation.run();
  EXPECT_EQ(simulation.now(), 8_ns);
  EXPECT_EQ(background, 1);
  EXPECT_EQ(count, 2);
}

TEST(Timer, InTheBackgroundFiresAtItsTimeWhenTimeIsTold) {
  Simulation simulation;
  Timer timer;
  int background = 0;
  timer.arm_in_background(simulation, 5_ns, &increment, &background);
  simulation.run_until(5_ns - 1_ps);
  EXPECT_EQ(background, 0);
  simulation.run_until(5_ns);
  EXPECT_EQ(background, 1);
}

TEST(Timer, InTheBackgroundCanBeCancelledAndArmedAgainInTheForeground) {
  Simulation simulation;
  Timer timer;
  int count = 0;
  timer.arm_in_background(simulation, 5_ns, &increment, &count);
  timer.cancel();
  timer.arm_in_background(simulation, 6_ns, &increment, &count);
  timer.arm(simulation, 7_ns, &increment, &count);
  simulation.run();
  EXPECT_EQ(simulation.now(), 7_ns);
  EXPECT_EQ(count, 1);
  timer.arm(simulation, 9_ns, &increment, &count);
  timer.arm_in_background(simulation, 8_ns, &increment, &count);
  simulation.run();
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace towpath::sim
