// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "towpath/base/units.hpp"

namespace towpath::sim {

// What an event does. A plain function and its context: nothing is allocated per event.
using Action = void (*)(void* context);

// A scheduled action and its place in the total order (time, priority, sequence).
struct Event {
  std::uint64_t time_key;   // the time, mapped so that unsigned order is the order of time
  std::uint64_t order_key;  // priority above sequence
  Action action;
  void* context;

  static constexpr std::uint64_t key_of(Time time) {
    return static_cast<std::uint64_t>(time.ps()) ^ (std::uint64_t{1} << 63);
  }
  Time time() const {
    return Time::from_ps(static_cast<std::int64_t>(time_key ^ (std::uint64_t{1} << 63)));
  }
  bool operator<(const Event& other) const { return key() < other.key(); }

 private:
  unsigned __int128 key() const {
    return static_cast<unsigned __int128>(time_key) << 64 | order_key;
  }
};
static_assert(sizeof(Event) == 32 && std::is_trivially_copyable_v<Event>);

// The pending events: a radix heap with a sorted front.
//
// Time only goes forward, so an event is filed by the highest 6-bit digit in which its time differs
// from base_, a time not after any pending one: 11 levels of 64 buckets. When the front runs out,
// base_ moves to the start of the first occupied bucket. A bucket of at most one chunk is sorted
// and becomes the front, with small ones that follow it; a larger one is spread over the levels
// below. An event therefore moves at most 11 times, two or three times usually, whatever the
// distribution of times, and always by appending to, and reading through, chunks of consecutive
// memory.
//
// The front is a sorted run, and a heap for what arrives within its span when the run is long.
// A front that becomes crowded goes back into the buckets, but for the events of its first time.
//
// Wrong: pushing an event earlier than the last one popped, or than a limit at which pop() has
// already found nothing. Its place in the order is gone. Simulation::at() checks this.
class EventQueue {
 public:
  static constexpr int kPriorityMin = -32768;
  static constexpr int kPriorityMax = 32767;

  EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;
  ~EventQueue() = default;

  std::size_t size() const { return size_; }

  // Lower priorities come first; events of equal time and priority come in the order of push().
  void push(Time time, int priority, Action action, void* context) {
    push_ordered(time, priority, sequence_++, action, context);
  }
  // Events of equal time and priority come by `order`, which is below 2^48, whenever they are
  // pushed. Of equal ones either may be first, so each has its own; push() has other priorities.
  void push_ordered(Time time, int priority, std::uint64_t order, Action action, void* context) {
    const std::uint64_t above = static_cast<std::uint64_t>(priority - kPriorityMin) << 48;
    const Event event{Event::key_of(time), above | order, action, context};
    ++size_;
    if (event.time_key > front_end_) {
      append(event);
    } else {
      push_front(event);
    }
  }

  // Takes the first event into `event` unless it is later than `limit`; false when there is none.
  bool pop(Time limit, Event& event) {
    const std::uint64_t limit_key = Event::key_of(limit);
    if (run_head_ == run_.size() && heap_.empty() && !refill(limit_key)) return false;
    if (!heap_.empty()) return pop_run_or_heap(limit_key, event);
    event = run_[run_head_];
    if (event.time_key > limit_key) return false;
    ++run_head_;
    --size_;
    return true;
  }

  // The time of the first event; Time::max() when there is none.
  Time first_time() const;
  // After this, events may be pushed at any time, whatever limits pop() has found nothing at.
  void rewind();

  // An event that comes soon, `distance` after the next one; null when it is not sorted yet. Only
  // good for a guess, such as what to prefetch.
  const Event* upcoming(std::size_t distance) const {
    const std::size_t index = run_head_ + distance;
    return index < run_.size() ? &run_[index] : nullptr;
  }

  // Removes all events for which `is_dead(event)` holds.
  template <typename Predicate>
  void erase_if(Predicate is_dead);

 private:
  static constexpr int kDigitBits = 6;
  static constexpr int kLevels = 11;
  static constexpr int kDigits = 1 << kDigitBits;
  static constexpr std::size_t kChunkEvents = 31;  // a chunk is then 1 KiB
  static constexpr std::size_t kSlabChunks = 64;
  static constexpr std::size_t kHeapLimit = 64;

  struct Chunk {
    Chunk* next;
    Event events[kChunkEvents];
  };
  // A list of chunks, all full but the last; empty when first is null.
  struct Bucket {
    Chunk* first = nullptr;
    Chunk* last = nullptr;
    std::size_t used = 0;  // events in the last chunk
  };

  // Files an event that is later than the front.
  void append(const Event& event) {
    const std::uint64_t difference = event.time_key ^ base_;
    const int level = (63 - __builtin_clzll(difference | 1)) / kDigitBits;
    const std::uint64_t digit = (event.time_key >> (level * kDigitBits)) % kDigits;
    Bucket& bucket = buckets_[static_cast<std::size_t>(level) * kDigits + digit];
    if (bucket.first == nullptr || bucket.used == kChunkEvents) {
      extend(bucket);
      occupied_levels_ |= 1u << level;
      occupied_digits_[static_cast<std::size_t>(level)] |= std::uint64_t{1} << digit;
    }
    bucket.last->events[bucket.used++] = event;
  }
  void extend(Bucket& bucket);
  void push_front(const Event& event);
  bool pop_run_or_heap(std::uint64_t limit_key, Event& event);
  bool refill(std::uint64_t limit_key);
  void load_front(Bucket bucket, int level);
  void append_to_run(Bucket bucket);
  void spread(Bucket bucket);
  void spill_front();
  void reserve_run();
  void rebuild_heap();
  Bucket take(int level, std::uint64_t digit);
  template <typename Visitor>
  void drain(Bucket bucket, Visitor visit);
  void allocate_slab();

  std::uint64_t base_ = 0;       // not after any event in the buckets
  std::uint64_t front_end_ = 0;  // not before any event of the front, before any of the buckets
  std::uint64_t sequence_ = 0;   // 48 bits: 200 days of 15 million events per second
  std::size_t size_ = 0;
  std::vector<Event> run_;
  std::size_t run_head_ = 0;
  std::vector<Event> heap_;
  std::size_t heap_limit_ = kHeapLimit;

  std::uint32_t occupied_levels_ = 0;
  std::array<std::uint64_t, kLevels> occupied_digits_{};
  std::array<Bucket, std::size_t{kLevels} * kDigits> buckets_{};
  Chunk* free_chunks_ = nullptr;
  std::vector<std::unique_ptr<Chunk[]>> slabs_;
};

template <typename Visitor>
void EventQueue::drain(Bucket bucket, Visitor visit) {
  for (Chunk* chunk = bucket.first; chunk != nullptr;) {
    const std::size_t count = chunk == bucket.last ? bucket.used : kChunkEvents;
    Chunk* const next = chunk->next;
    for (std::size_t i = 0; i < count; ++i) visit(chunk->events[i]);
    chunk->next = free_chunks_;
    free_chunks_ = chunk;
    chunk = next;
  }
}

template <typename Predicate>
void EventQueue::erase_if(Predicate is_dead) {
  size_ = 0;
  run_.erase(run_.begin(), run_.begin() + static_cast<std::ptrdiff_t>(run_head_));
  run_head_ = 0;
  std::erase_if(run_, is_dead);
  std::erase_if(heap_, is_dead);
  rebuild_heap();
  size_ = run_.size() + heap_.size();
  for (int level = 0; level < kLevels; ++level) {
    std::uint64_t digits = occupied_digits_[static_cast<std::size_t>(level)];
    for (; digits != 0; digits &= digits - 1) {
      drain(take(level, static_cast<std::uint64_t>(__builtin_ctzll(digits))), [&](const Event& e) {
        if (is_dead(e)) return;
        append(e);
        ++size_;
      });
    }
  }
}

}  // namespace towpath::sim
