// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

#include "towpath/sim/event_queue.hpp"
#include "towpath/sim/random.hpp"
#include "towpath/sim/simulation.hpp"

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

// A millisecond for a million events, as for a thousand: what matters is the number pending.
constexpr Time kMean = Time::from_ps(1'000'000);

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

// Processes that sleep random times in a loop, over a background of events in the far future.
void process_sleep(benchmark::State& state) {
  const std::vector<Time> distances = increments(Random(1, "sleep"), kMean);
  Simulation simulation;
  std::size_t next = 0;
  for (std::int64_t i = 0; i < state.range(1); ++i) {
    simulation.at(Time::from_seconds(1e4) + distances[next++ % kIncrements] * 1'000,
                  [](void*) {}, nullptr);
  }
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    simulation.spawn("sleeper", [&] {
      for (;;) simulation.sleep(distances[next++ % kIncrements]);
    }, 16 << 10);
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

}  // namespace
}  // namespace towpath::sim
