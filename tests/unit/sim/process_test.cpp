// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/process.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

#include "towpath/sim/simulation.hpp"

namespace towpath::sim {
namespace {
using namespace literals;

// The sanitizer gives functions larger frames and finds an overflow before the guard page does.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kHasAddressSanitizer = true;
#else
constexpr bool kHasAddressSanitizer = false;
#endif
#if defined(__SANITIZE_THREAD__)
constexpr bool kHasThreadSanitizer = true;
#else
constexpr bool kHasThreadSanitizer = false;
#endif

struct Destroyed {
  int& count;
  ~Destroyed() { ++count; }
};

TEST(Process, SleepsForATimeAndUntilATime) {
  Simulation simulation;
  std::vector<Time> times;
  simulation.spawn("sleeper", [&] {
    times.push_back(simulation.now());
    simulation.sleep(3_ns);
    times.push_back(simulation.now());
    simulation.sleep_until(10_ns);
    times.push_back(simulation.now());
    simulation.sleep(0_ns);
    times.push_back(simulation.now());
  });
  simulation.run();
  EXPECT_EQ(times, (std::vector<Time>{0_ns, 3_ns, 10_ns, 10_ns}));
}

TEST(Process, StartsInAnEventNotInSpawn) {
  Simulation simulation;
  bool has_started = false;
  simulation.spawn("later", [&] { has_started = true; });
  EXPECT_FALSE(has_started);
  simulation.run();
  EXPECT_TRUE(has_started);
}

TEST(Process, IsCurrentOnlyWhileItRuns) {
  Simulation simulation;
  Process* seen = nullptr;
  Process& process = simulation.spawn("self", [&] {
    seen = simulation.current();
    simulation.sleep(1_ns);
  });
  simulation.step();
  EXPECT_EQ(seen, &process);
  EXPECT_EQ(simulation.current(), nullptr);
}

TEST(Process, StaysSuspendedUntilItIsWoken) {
  Simulation simulation;
  Time woken;
  Process& waiter = simulation.spawn("waiter", [&] {
    simulation.suspend();
    woken = simulation.now();
  });
  simulation.spawn("waker", [&] {
    simulation.sleep(8_ns);
    simulation.wake(waiter);
  });
  simulation.run();
  EXPECT_EQ(woken, 8_ns);
}

TEST(Process, ResumesOnceWhenWokenTwiceBeforeItRan) {
  Simulation simulation;
  int resumed = 0;
  Process& waiter = simulation.spawn("waiter", [&] {
    for (;;) {
      simulation.suspend();
      ++resumed;
    }
  });
  simulation.run();
  simulation.wake(waiter);
  simulation.wake(waiter);
  simulation.run();
  EXPECT_EQ(resumed, 1);
  simulation.wake(waiter);
  simulation.run();
  EXPECT_EQ(resumed, 2);
}

TEST(Process, IsNotWokenFromItsSleep) {
  Simulation simulation;
  Time end;
  Process& sleeper = simulation.spawn("sleeper", [&] {
    simulation.sleep(9_ns);
    end = simulation.now();
  });
  simulation.run_until(1_ns);
  simulation.wake(sleeper);
  simulation.run();
  EXPECT_EQ(end, 9_ns);
}

TEST(Process, MayWakeItselfInVain) {
  Simulation simulation;
  simulation.spawn("self", [&] {
    simulation.wake(*simulation.current());
    simulation.suspend("nobody");
  });
  simulation.run();
  EXPECT_EQ(simulation.blocked().size(), 1u);
}

TEST(Process, IsNamedWhenItWaitsForEver) {
  Simulation simulation;
  simulation.spawn("finished", [] {});
  simulation.spawn("rank 1", [&] { simulation.suspend("slot 3 from rank 0"); });
  simulation.spawn("rank 2", [&] { simulation.suspend(); });
  simulation.run();
  const std::vector<BlockedProcess> blocked = simulation.blocked();
  ASSERT_EQ(blocked.size(), 2u);
  EXPECT_EQ(blocked[0].name, "rank 1");
  EXPECT_EQ(blocked[0].waiting_for, "slot 3 from rank 0");
  EXPECT_EQ(blocked[1].name, "rank 2");
  EXPECT_EQ(blocked[1].waiting_for, "");
}

TEST(Process, MaySpawnAnother) {
  Simulation simulation;
  std::string order;
  simulation.spawn("parent", [&] {
    order += 'a';
    simulation.spawn("child", [&] { order += 'c'; });
    order += 'b';
    simulation.sleep(1_ps);
    order += 'd';
  });
  simulation.run();
  EXPECT_EQ(order, "abcd");
}

TEST(Process, LetsItsExceptionOutOfRun) {
  Simulation simulation;
  simulation.spawn("faulty", [&] {
    simulation.sleep(2_ns);
    throw std::out_of_range("address 4096");
  });
  int count = 0;
  simulation.spawn("other", [&] {
    simulation.sleep(3_ns);
    ++count;
  });
  EXPECT_THROW(simulation.run(), std::out_of_range);
  EXPECT_EQ(simulation.now(), 2_ns);
  EXPECT_EQ(simulation.current(), nullptr);
  simulation.run();
  EXPECT_EQ(count, 1);
}

TEST(Process, MayWaitInsideAnExceptionHandler) {
  Simulation simulation;
  std::string seen;
  const auto body = [&](const char* text, Time pause) {
    try {
      throw std::runtime_error(text);
    } catch (...) {
      simulation.sleep(pause);
      try {
        throw;
      } catch (const std::runtime_error& error) {
        seen += error.what();
      }
    }
  };
  // The first to throw is the first to leave its handler: not the order of one stack.
  simulation.spawn("a", [&] { body("a", 1_ns); });
  simulation.spawn("b", [&] { body("b", 2_ns); });
  simulation.run();
  EXPECT_EQ(seen, "ab");
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_EQ(std::current_exception(), nullptr);
}

TEST(Process, IsUnwoundWhenItsSimulationEnds) {
  int destroyed = 0;
  {
    Simulation simulation;
    for (int i = 0; i < 3; ++i) {
      simulation.spawn("suspended", [&] {
        const Destroyed local{destroyed};
        simulation.suspend();
      });
    }
    simulation.spawn("asleep", [&] {
      const Destroyed local{destroyed};
      simulation.sleep(1_s);
    });
    simulation.spawn("in a handler", [&] {
      const Destroyed local{destroyed};
      try {
        throw 1;
      } catch (int) {
        simulation.suspend();
      }
    });
    simulation.run_until(1_ns);
    simulation.spawn("not started", [&] { ++destroyed; });
    EXPECT_EQ(destroyed, 0);
  }
  EXPECT_EQ(destroyed, 5);
}

TEST(Process, IsUnwoundWhileAnExceptionDestroysItsSimulation) {
  int destroyed = 0;
  try {
    Simulation simulation;
    simulation.spawn("suspended", [&] {
      const Destroyed local{destroyed};
      simulation.suspend();
    });
    simulation.run();
    throw std::runtime_error("deadlock");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(destroyed, 1);
}

TEST(Process, MayHoldATimerWhenItIsUnwound) {
  int fired = 0;
  {
    Simulation simulation;
    simulation.spawn("with timeout", [&] {
      Timer timeout;
      timeout.arm(simulation, 1_s, [](void* count) { ++*static_cast<int*>(count); }, &fired);
      simulation.suspend();
    });
    simulation.run_until(1_ns);
  }
  EXPECT_EQ(fired, 0);
}

TEST(Process, RefusesToWaitOutsideOfAProcess) {
  Simulation simulation;
  EXPECT_THROW(simulation.sleep(1_ns), InvariantError);
  EXPECT_THROW(simulation.suspend(), InvariantError);
}

// Recurses until about `size_bytes` of stack are used and returns the number of frames. The empty
// statement keeps the compiler from making a loop of it.
[[gnu::noinline]] std::size_t use_stack(std::size_t size_bytes) {
  constexpr std::size_t kFrameBytes = 1024;
  char frame[kFrameBytes - 256];
  asm volatile("" : : "r"(frame) : "memory");
  if (size_bytes < kFrameBytes) return 1;
  return use_stack(size_bytes - kFrameBytes) + 1;
}

TEST(Process, MayUseAllOfItsStack) {
  if (kHasAddressSanitizer) GTEST_SKIP() << "the sanitizer's frames are larger";
  Simulation simulation;
  std::size_t frames = 0, more_frames = 0;
  simulation.spawn("deep", [&] { frames = use_stack(60 << 10); });
  simulation.spawn("deeper", [&] { more_frames = use_stack(1000 << 10); }, 1 << 20);
  simulation.run();
  EXPECT_EQ(frames, 61u);
  EXPECT_EQ(more_frames, 1001u);
}

TEST(ProcessDeathTest, EndsTheProgramWhenItOverflowsItsStack) {
  if (kHasAddressSanitizer || kHasThreadSanitizer) {
    GTEST_SKIP() << "the sanitizer reports it itself";
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Simulation simulation;
        for (int i = 0; i < 4; ++i) {
          simulation.spawn("bottomless", [&] { use_stack(1 << 20); });
        }
        simulation.run();
      },
      testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace towpath::sim
