// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/simulation.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "towpath/sim/trace.hpp"

namespace towpath::sim {
namespace {
using namespace literals;

void increment(void* context) { ++*static_cast<int*>(context); }

TEST(Simulation, RunsEventsOfOneTimeByPriorityThenInsertion) {
  Simulation simulation;
  std::string order;
  struct Letter {
    std::string& order;
    char letter;
  };
  const Action append = [](void* context) {
    const Letter& self = *static_cast<Letter*>(context);
    self.order += self.letter;
  };
  Letter a{order, 'a'}, b{order, 'b'}, c{order, 'c'}, d{order, 'd'};
  simulation.at(7_ns, append, &d, 1);
  simulation.at(7_ns, append, &b);
  simulation.at(7_ns, append, &c);
  simulation.at(7_ns, append, &a, -1);
  simulation.run();
  EXPECT_EQ(order, "abcd");
  EXPECT_EQ(simulation.now(), 7_ns);
  EXPECT_EQ(simulation.events(), 4u);
}

TEST(Simulation, RefusesAnEventInThePast) {
  Simulation simulation;
  simulation.run_until(5_ns);
  int count = 0;
  EXPECT_THROW(simulation.at(Time::from_ps(4'999), &increment, &count), InvariantError);
  simulation.at(5_ns, &increment, &count);
  simulation.run();
  EXPECT_EQ(count, 1);
}

TEST(Simulation, RefusesAPriorityOutOfRange) {
  Simulation simulation;
  int count = 0;
  EXPECT_THROW(simulation.at(1_ns, &increment, &count, 32'768), InvariantError);
  EXPECT_THROW(simulation.at(1_ns, &increment, &count, -32'769), InvariantError);
}

TEST(Simulation, RefusesToRunInsideItself) {
  Simulation simulation;
  simulation.at(1_ns, [](void* self) { static_cast<Simulation*>(self)->run(); }, &simulation);
  EXPECT_THROW(simulation.run(), InvariantError);
}

TEST(Simulation, RunUntilRunsEventsAtTheLimitAndStopsThere) {
  Simulation simulation;
  int count = 0;
  simulation.at(10_ns, &increment, &count);
  simulation.at(Time::from_ps(10'001), &increment, &count);
  simulation.run_until(10_ns);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(simulation.now(), 10_ns);
  simulation.run_until(1_us);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(simulation.now(), 1_us);
}

TEST(Simulation, DoesNotOverflowAtTheEndOfTime) {
  Simulation simulation;
  simulation.run_until(5_ns);
  EXPECT_EQ(simulation.from_now(2_ns), 7_ns);
  EXPECT_EQ(simulation.from_now(Time::max()), Time::max());
  int count = 0;
  simulation.after(Time::max(), &increment, &count);
  EXPECT_THROW(simulation.after(Time::from_ps(-1), &increment, &count), InvariantError);
  simulation.run();
  EXPECT_EQ(count, 1);
  EXPECT_EQ(simulation.now(), Time::max());
}

TEST(Simulation, StepRunsOneEvent) {
  Simulation simulation;
  int count = 0;
  simulation.at(1_ns, &increment, &count);
  simulation.at(1_ns, &increment, &count);
  EXPECT_TRUE(simulation.step());
  EXPECT_EQ(count, 1);
  EXPECT_TRUE(simulation.step());
  EXPECT_FALSE(simulation.step());
}

TEST(Simulation, LetsAnActionsExceptionOutAndCanGoOn) {
  Simulation simulation;
  int count = 0;
  simulation.at(1_ns, [](void*) { throw std::runtime_error("link 3 is down"); }, nullptr);
  simulation.at(2_ns, &increment, &count);
  try {
    simulation.run();
    FAIL() << "run() returned";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "link 3 is down");
  }
  EXPECT_EQ(simulation.now(), 1_ns);
  simulation.run();
  EXPECT_EQ(count, 1);
}

// Some processes that draw random times and tell what they do.
struct Model {
  Simulation simulation;
  Trace trace;

  explicit Model(std::uint64_t seed) : simulation(seed) {
    simulation.set_trace(&trace);
    for (int i = 0; i < 5; ++i) {
      simulation.spawn("core " + std::to_string(i), [this, i] {
        const std::string name = "core " + std::to_string(i);
        Random random = simulation.random(name);
        const TrackId track = simulation.trace()->track(name);
        const NameId work = simulation.trace()->name("work");
        for (int step = 0; step < 50; ++step) {
          const Time begin = simulation.now();
          simulation.sleep(random.exponential(10_ns));
          simulation.trace()->span(track, work, begin, simulation.now(), step);
        }
      });
    }
  }
};

std::uint64_t hash_of_run(std::uint64_t seed) {
  Model model(seed);
  model.simulation.run();
  return model.trace.hash();
}

TEST(Simulation, GivesTheSameTraceForTheSameSeed) { EXPECT_EQ(hash_of_run(3), hash_of_run(3)); }

TEST(Simulation, GivesAnotherTraceForAnotherSeed) { EXPECT_NE(hash_of_run(3), hash_of_run(4)); }

TEST(Simulation, GivesTheSameTraceStepByStepAndInSlices) {
  Model stepped(3);
  while (stepped.simulation.step()) {
  }
  EXPECT_EQ(stepped.trace.hash(), hash_of_run(3));
  Model sliced(3);
  for (int i = 1; i < 200; ++i) sliced.simulation.run_until(Time::from_ps(i * 777));
  EXPECT_GT(sliced.simulation.pending_events(), 0u);
  sliced.simulation.run();
  EXPECT_EQ(sliced.trace.hash(), hash_of_run(3));
}

TEST(Simulation, LivesBesideAnotherInOneThread) {
  Model first(3), second(4);
  bool is_first_going = true, is_second_going = true;
  while (is_first_going || is_second_going) {
    is_first_going = first.simulation.step();
    is_second_going = second.simulation.step();
  }
  EXPECT_EQ(first.trace.hash(), hash_of_run(3));
  EXPECT_EQ(second.trace.hash(), hash_of_run(4));
}

TEST(Simulation, LivesBesideAnotherInAnotherThread) {
  std::uint64_t in_thread = 0;
  std::thread thread([&] { in_thread = hash_of_run(3); });
  const std::uint64_t here = hash_of_run(4);
  thread.join();
  EXPECT_EQ(in_thread, hash_of_run(3));
  EXPECT_EQ(here, hash_of_run(4));
}

TEST(Simulation, CanRunASimulationInsideAProcess) {
  Simulation outer;
  std::uint64_t inner = 0;
  outer.spawn("what if", [&] {
    outer.sleep(1_ns);
    inner = hash_of_run(3);
    outer.sleep(1_ns);
  });
  outer.run();
  EXPECT_EQ(inner, hash_of_run(3));
  EXPECT_EQ(outer.now(), 2_ns);
}

}  // namespace
}  // namespace towpath::sim
