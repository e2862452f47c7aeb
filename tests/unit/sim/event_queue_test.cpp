// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/event_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "towpath/sim/random.hpp"

namespace towpath::sim {
namespace {
using namespace literals;

void* context_of(std::uintptr_t number) { return reinterpret_cast<void*>(number); }
std::uintptr_t number_of(const Event& event) {
  return reinterpret_cast<std::uintptr_t>(event.context);
}

std::vector<std::uintptr_t> drained(EventQueue& queue) {
  std::vector<std::uintptr_t> numbers;
  Event event{};
  while (queue.pop(Time::max(), event)) numbers.push_back(number_of(event));
  return numbers;
}

TEST(EventQueue, OrdersByTimeThenPriorityThenInsertion) {
  EventQueue queue;
  queue.push(2_ps, 0, nullptr, context_of(5));
  queue.push(1_ps, 1, nullptr, context_of(4));
  queue.push(1_ps, 0, nullptr, context_of(2));
  queue.push(1_ps, 0, nullptr, context_of(3));
  queue.push(1_ps, EventQueue::kPriorityMin, nullptr, context_of(1));
  queue.push(2_ps, EventQueue::kPriorityMax, nullptr, context_of(6));
  EXPECT_EQ(drained(queue), (std::vector<std::uintptr_t>{1, 2, 3, 4, 5, 6}));
}

TEST(EventQueue, TakesAGivenOrderWhateverWasInsertedFirst) {
  EventQueue queue;
  for (const std::uint64_t order : {7u, 2u, 9u, 4u}) {
    queue.push_ordered(5_ps, 1, order, nullptr, context_of(order));
  }
  queue.push(5_ps, 0, nullptr, context_of(1));
  EXPECT_EQ(drained(queue), (std::vector<std::uintptr_t>{1, 2, 4, 7, 9}));
}

TEST(EventQueue, GivesNothingAfterTheLimit) {
  EventQueue queue;
  queue.push(10_ps, 0, nullptr, nullptr);
  Event event{};
  EXPECT_FALSE(queue.pop(9_ps, event));
  EXPECT_TRUE(queue.pop(10_ps, event));
  EXPECT_EQ(event.time(), 10_ps);
  EXPECT_FALSE(queue.pop(Time::max(), event));
}

TEST(EventQueue, TakesAnEarlierEventAfterAFruitlessPop) {
  EventQueue queue;
  queue.push(1_s, 0, nullptr, context_of(2));
  Event event{};
  EXPECT_FALSE(queue.pop(5_ns, event));
  queue.push(5_ns, 0, nullptr, context_of(1));
  EXPECT_EQ(drained(queue), (std::vector<std::uintptr_t>{1, 2}));
}

// The fruitless pop finds the event at 1 s alone in its bucket; what comes then must still be filed
// by a time that is not after it.
TEST(EventQueue, TakesManyEarlierEventsAfterAFruitlessPop) {
  EventQueue queue;
  queue.push(1_s, 0, nullptr, nullptr);
  for (int i = 0; i < 100; ++i) queue.push(Time::from_ps(i), 0, nullptr, nullptr);
  Event event{};
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(queue.pop(5_ns, event));
  EXPECT_FALSE(queue.pop(5_ns, event));
  Random random(1, "earlier");
  for (int i = 0; i < 1'000; ++i) {
    queue.push(Time::from_ps(random.between(5'000, 1'000'000'000'000)), 0, nullptr, nullptr);
  }
  Event previous{};
  for (int i = 0; i <= 1'000; ++i) {
    ASSERT_TRUE(queue.pop(Time::max(), event));
    ASSERT_LT(previous, event);
    previous = event;
  }
}

TEST(EventQueue, HoldsTheExtremesOfTime) {
  EventQueue queue;
  queue.push(Time::max(), 0, nullptr, context_of(4));
  queue.push(Time::from_ps(INT64_MIN), 0, nullptr, context_of(1));
  queue.push(Time::from_ps(-1), 0, nullptr, context_of(2));
  queue.push(Time(), 0, nullptr, context_of(3));
  EXPECT_EQ(drained(queue), (std::vector<std::uintptr_t>{1, 2, 3, 4}));
}

TEST(EventQueue, ErasesFromEveryPartOfItself) {
  EventQueue queue;
  std::vector<std::uintptr_t> expected;
  for (std::uintptr_t i = 0; i < 1000; ++i) {
    queue.push(Time::from_ps(static_cast<std::int64_t>(i * i)), 0, nullptr, context_of(i));
    if (i >= 10 && i % 3 != 0) expected.push_back(i);
  }
  Event event{};
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(queue.pop(Time::max(), event));
  queue.erase_if([](const Event& e) { return number_of(e) % 3 == 0; });
  EXPECT_EQ(queue.size(), expected.size());
  EXPECT_EQ(drained(queue), expected);
}

// A distribution gives the distance of a new event from now.
struct Distribution {
  std::string name;
  std::function<std::int64_t(Random&)> distance_ps;
};

class EventQueueProperty : public testing::TestWithParam<Distribution> {};

// The reference: an ordered map from (time, priority, sequence) to the event's number.
class Reference {
 public:
  void push(Time time, int priority, std::uintptr_t number) {
    events_.emplace(std::tuple(time.ps(), priority, sequence_++), number);
  }
  bool pop(Time limit, Time& time, std::uintptr_t& number) {
    if (events_.empty() || std::get<0>(events_.begin()->first) > limit.ps()) return false;
    time = Time::from_ps(std::get<0>(events_.begin()->first));
    number = events_.begin()->second;
    events_.erase(events_.begin());
    return true;
  }
  void erase_multiples_of_three() {
    std::erase_if(events_, [](const auto& entry) { return entry.second % 3 == 0; });
  }
  std::size_t size() const { return events_.size(); }

 private:
  std::map<std::tuple<std::int64_t, int, std::uint64_t>, std::uintptr_t> events_;
  std::uint64_t sequence_ = 0;
};

// Drives the queue and the reference alike. Phases that grow alternate with phases that shrink, so
// that the queue is full, small and empty in turn.
class Driver {
 public:
  Driver(const Distribution& distribution) : distribution_(distribution) {}

  void push() {
    const std::int64_t distance = distribution_.distance_ps(random_);
    const bool fits = distance <= INT64_MAX - now_.ps();
    const Time time = fits ? now_ + Time::from_ps(distance) : Time::max();
    const int priority = random_.below(4) == 0 ? static_cast<int>(random_.between(-2, 2)) : 0;
    queue_.push(time, priority, nullptr, context_of(number_));
    reference_.push(time, priority, number_++);
  }

  void pop(Time limit) {
    Event event{};
    Time time;
    std::uintptr_t number = 0;
    const bool expected = reference_.pop(limit, time, number);
    ASSERT_EQ(queue_.pop(limit, event), expected);
    if (expected) {
      ASSERT_EQ(event.time(), time);
      ASSERT_EQ(number_of(event), number);
      now_ = time;
    } else if (limit != Time::max()) {
      now_ = limit;
    }
    ASSERT_EQ(queue_.size(), reference_.size());
  }

  void pop_until_just_ahead() {
    const std::int64_t ahead = std::min<std::int64_t>(
        static_cast<std::int64_t>(random_.below(2000)), INT64_MAX - now_.ps());
    pop(now_ + Time::from_ps(ahead));
  }

  void run(int operations) {
    std::uint64_t growth = 70;
    for (int i = 0; i < operations; ++i) {
      if (random_.below(500) == 0) growth = random_.below(2) == 0 ? 30 : 70;
      const std::uint64_t draw = random_.below(100);
      if (draw < growth)
        push();
      else if (draw < 98)
        pop(Time::max());
      else
        pop_until_just_ahead();
      if (random_.below(5000) == 0) {
        queue_.erase_if([](const Event& event) { return number_of(event) % 3 == 0; });
        reference_.erase_multiples_of_three();
      }
      if (testing::Test::HasFatalFailure()) return;
    }
    while (reference_.size() > 0 && !testing::Test::HasFatalFailure()) pop(Time::max());
  }

 private:
  const Distribution& distribution_;
  Random random_{7, "event queue property"};
  EventQueue queue_;
  Reference reference_;
  Time now_;
  std::uintptr_t number_ = 1;
};

TEST_P(EventQueueProperty, PopsInTheOrderOfAnOrderedMap) {
  Driver driver(GetParam());
  driver.run(60'000);
}

std::int64_t power_of_two_ps(Random& random) {
  return static_cast<std::int64_t>(random.bits() >> 1 >> random.below(63));
}

INSTANTIATE_TEST_SUITE_P(
    Distributions, EventQueueProperty,
    testing::Values(
        Distribution{"AllAtOnce", [](Random&) { return 0; }},
        Distribution{"NextPicosecond",
                     [](Random& r) { return static_cast<std::int64_t>(r.below(2)); }},
        Distribution{"Exponential",
                     [](Random& r) { return r.exponential(Time::from_ps(100'000)).ps(); }},
        Distribution{"EveryPowerOfTwo", power_of_two_ps},
        Distribution{"FarTimersAmongNanoseconds",
                     [](Random& r) {
                       return static_cast<std::int64_t>(
                           r.below(3) == 0 ? 1'000'000'000'000 + r.below(5) : r.below(3000));
                     }},
        Distribution{
            "OneFarOthersNow",
            [](Random& r) { return r.below(1000) == 0 ? INT64_MAX / 2 : std::int64_t{0}; }},
        Distribution{"EndOfTime", [](Random& r) { return INT64_MAX - power_of_two_ps(r); }},
        Distribution{"Bursts",
                     [](Random& r) {
                       return static_cast<std::int64_t>(r.below(4)) * 1'000'000 +
                              static_cast<std::int64_t>(r.below(10) == 0);
                     }}),
    [](const auto& info) { return info.param.name; });

// Each of these took time quadratic in the number of events in some well-known queue; at 300,000
// events that would be minutes.
TEST(EventQueue, TakesManyEventsOfOneTimeWithFallingPriorities) {
  EventQueue queue;
  Event event{};
  queue.push(5_ps, 0, nullptr, nullptr);
  ASSERT_TRUE(queue.pop(Time::max(), event));
  constexpr int kEvents = 300'000;
  for (int i = 0; i < kEvents; ++i) queue.push(5_ps, 30'000 - i / 10, nullptr, nullptr);
  std::uint64_t previous = 0;
  for (int i = 0; i < kEvents; ++i) {
    ASSERT_TRUE(queue.pop(Time::max(), event));
    ASSERT_GT(event.order_key, previous);
    previous = event.order_key;
  }
}

TEST(EventQueue, TakesManyFallingTimesBelowTheFirstEvent) {
  EventQueue queue;
  Event event{};
  for (const Time time : {1_ps, 1_s}) queue.push(time, 0, nullptr, nullptr);
  ASSERT_TRUE(queue.pop(Time::max(), event));
  constexpr int kEvents = 300'000;
  for (int i = kEvents; i > 0; --i) queue.push(Time::from_ps(2 + i), 0, nullptr, nullptr);
  for (int i = 1; i <= kEvents; ++i) {
    ASSERT_TRUE(queue.pop(Time::max(), event));
    ASSERT_EQ(event.time(), Time::from_ps(2 + i));
  }
  EXPECT_EQ(queue.size(), 1u);
}

TEST(EventQueue, TakesACrowdWithinTheSpanOfItsFront) {
  EventQueue queue;
  Event event{};
  for (const Time time : {1_us, 2_us, 20_us}) queue.push(time, 0, nullptr, nullptr);
  ASSERT_TRUE(queue.pop(Time::max(), event));
  constexpr int kEvents = 300'000;
  Random random(1, "crowd");
  for (int i = 0; i < kEvents; ++i) {
    queue.push(event.time() + Time::from_ps(random.between(0, 18'000'000)), 0, nullptr, nullptr);
  }
  Event previous = event;
  for (int i = 0; i < kEvents + 2; ++i) {
    ASSERT_TRUE(queue.pop(Time::max(), event));
    ASSERT_LT(previous, event);
    previous = event;
  }
  EXPECT_EQ(event.time(), 20_us);
}

TEST(EventQueue, StaysOrderedWhileEachEventMakesTheNextAtTheSameTime) {
  EventQueue queue;
  Event event{};
  for (std::uintptr_t i = 0; i < 3; ++i) queue.push(1_ps, 0, nullptr, context_of(i));
  for (std::uintptr_t i = 0; i < 300'000; ++i) {
    ASSERT_TRUE(queue.pop(Time::max(), event));
    ASSERT_EQ(number_of(event), i);
    queue.push(1_ps, 0, nullptr, context_of(i + 3));
  }
}

}  // namespace
}  // namespace towpath::sim
