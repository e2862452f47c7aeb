// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <queue>
#include <vector>

#include "towpath/sim/clock.hpp"
#include "towpath/sim/event_queue.hpp"
#include "towpath/sim/random.hpp"
#include "towpath/sim/simulation.hpp"
#include "towpath/sim/timer.hpp"

// The hold model: n events are pending; take the first, schedule another at a random distance.

namespace towpath::sim {
namespace {

constexpr std::size_t kIncrements = 1 << 16;

// Distances are drawn beforehand, so that the generator is not measured.
std::vector<Time> increments(Random random, Time mean) {
  std::vector<Time> result(kIncrements);
  for (Time& increment : result) increment = random.exponential(mean);
  return result;
}

constexpr Time kMean = Time::from_ps(1'000'000'000);

void event_queue_hold(benchmark::State& state) {
  const std::vector<Time> distances = increments(Random(1, "hold"), kMean);
  EventQueue queue;
  std::size_t next = 0;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    queue.push(distances[next++ % kIncrements], 0, nullptr, nullptr);
  }
  Event event{};
  for (auto _ : state) {
    queue.pop(Time::max(), event);
    queue.push(event.time() + distances[next++ % kIncrements], 0, nullptr, nullptr);
  }
  state.SetItemsProcessed(state.iterations());
}

void priority_queue_hold(benchmark::State& state) {
  const std::vector<Time> distances = increments(Random(1, "hold"), kMean);
  const auto is_later = [](const Event& left, const Event& right) { return right < left; };
  std::priority_queue<Event, std::vector<Event>, decltype(is_later)> queue(is_later);
  std::size_t next = 0;
  std::uint64_t sequence = 0;
  const auto push = [&](Time time) {
    queue.push({Event::key_of(time), sequence++, nullptr, nullptr});
  };
  for (std::int64_t i = 0; i < state.range(0); ++i) push(distances[next++ % kIncrements]);
  for (auto _ : state) {
    const Event event = queue.top();
    queue.pop();
    push(event.time() + distances[next++ % kIncrements]);
  }
  state.SetItemsProcessed(state.iterations());
}

// Distances that are hard on one queue or another, with 100,000 events pending.
enum Skew : std::int64_t { all_at_once, powers_of_two, far_timers, bursts };
constexpr const char* kSkewNames[] = {"all at once", "powers of two", "far timers", "bursts"};

Time skewed(Skew skew, Random& random) {
  const auto ps = [](std::uint64_t count) {
    return Time::from_ps(static_cast<std::int64_t>(count));
  };
  switch (skew) {
    case all_at_once: return Time();
    case powers_of_two: return ps(std::uint64_t{1} << random.below(40));
    case far_timers: return ps(random.below(10) == 0 ? 1'000'000'000'000 : random.below(3'000));
    case bursts: return ps(random.below(4) * 1'000'000);
  }
  return Time();
}

void event_queue_skewed(benchmark::State& state) {
  const Skew skew{state.range(0)};
  state.SetLabel(kSkewNames[skew]);
  Random random(1, "skew");
  std::vector<Time> distances(kIncrements);
  for (Time& distance : distances) distance = skewed(skew, random);
  EventQueue queue;
  std::size_t next = 0;
  for (int i = 0; i < 100'000; ++i) {
    queue.push(distances[next++ % kIncrements], 0, nullptr, nullptr);
  }
  Event event{};
  for (auto _ : state) {
    queue.pop(Time::max(), event);
    queue.push(event.time() + distances[next++ % kIncrements], 0, nullptr, nullptr);
  }
  state.SetItemsProcessed(state.iterations());
}

struct Holder {
  Simulation simulation;
  std::vector<Time> distances;
  std::size_t next = 0;

  static void act(void* context) {
    Holder& self = *static_cast<Holder*>(context);
    self.simulation.after(self.distances[self.next++ % kIncrements], &act, context);
  }
};

void simulation_hold(benchmark::State& state) {
  Holder holder;
  holder.distances = increments(Random(1, "hold"), kMean);
  for (std::int64_t i = 0; i < state.range(0); ++i) Holder::act(&holder);
  for (auto _ : state) holder.simulation.step();
  state.SetItemsProcessed(state.iterations());
}

void counts(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t count : {10, 1'000, 100'000, 1'000'000}) benchmark->Arg(count);
}
BENCHMARK(event_queue_hold)->Apply(counts);
BENCHMARK(priority_queue_hold)->Apply(counts);
BENCHMARK(simulation_hold)->Apply(counts);
BENCHMARK(event_queue_skewed)->DenseRange(all_at_once, bursts);

// Processes that sleep random times in a loop, over a background of events in the far future.
void process_sleep(benchmark::State& state) {
  const std::vector<Time> distances = increments(Random(1, "sleep"), kMean);
  Simulation simulation;
  std::size_t next = 0;
  for (std::int64_t i = 0; i < state.range(1); ++i) {
    simulation.at(
        Time::from_seconds(1e4) + distances[next++ % kIncrements] * 1'000, [](void*) {}, nullptr);
  }
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    simulation.spawn(
        "sleeper",
        [&] {
          for (;;) simulation.sleep(distances[next++ % kIncrements]);
        },
        16 << 10);
  }
  simulation.run_until(Time::from_ps(1));
  for (auto _ : state) simulation.step();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(process_sleep)
    ->Args({10, 0})
    ->Args({1'000, 0})
    ->Args({10'000, 0})
    ->Args({100'000, 0})
    ->Args({1'000, 1'000'000});

// A timeout that is armed for each of many messages and hardly ever fires.
void timer_arm_and_cancel(benchmark::State& state) {
  Simulation simulation;
  std::vector<Timer> timers(static_cast<std::size_t>(state.range(0)));
  std::size_t next = 0;
  std::int64_t time_ps = 0;
  for (auto _ : state) {
    timers[next].arm(simulation, Time::from_ps(1'000'000 + time_ps++), [](void*) {}, nullptr);
    if (++next == timers.size()) next = 0;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(timer_arm_and_cancel)->Arg(1)->Arg(1'000);

void process_spawn_and_finish(benchmark::State& state) {
  Simulation simulation;
  for (auto _ : state) {
    simulation.spawn("short", [] {});
    simulation.run();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(process_spawn_and_finish);

void clock_next_edge(benchmark::State& state) {
  const Clock clock(Frequency::from_hz(state.range(0)));
  Time time;
  for (auto _ : state) {
    time = clock.next_edge(time + Time::from_ps(1));
    benchmark::DoNotOptimize(time);
  }
}
BENCHMARK(clock_next_edge)->Arg(1'000'000'000)->Arg(1'350'000'000);

}  // namespace
}  // namespace towpath::sim
