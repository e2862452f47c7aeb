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

// An event's action: a plain function and its context, so that events allocate no memory.
using Action = void (*)(void* context);

// A scheduled action and its place in the total order (time, priority, sequence).
struct Event {
  std::uint64_t time_key;   // the time, mapped to preserve order as an unsigned integer
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
// Time only moves forward. An event is filed by the highest 6-bit digit in which its time differs
// from base_, a lower bound of all pending times: 11 levels of 64 buckets. If the front is empty,
// base_ advances to the start of the first occupied bucket. A bucket of at most one chunk is sorted
// and becomes the front, together with the small buckets that follow. A larger bucket is spread
// over the lower levels. An event therefore moves at most 11 times, usually two or three times, for
// any distribution of times. All moves read and append chunks of consecutive memory.
//
// The front is a sorted run, plus a heap for events that arrive within its span while the run is
// long. A crowded front returns to the buckets, except for the events of its first time.
//
// Wrong: pushing an event earlier than the last popped event, or earlier than a limit for which
// pop() has returned false. Its place in the order is lost. Simulation::at() checks this.
class EventQueue {
 public:
  static constexpr int kPriorityMin = -32768;
  static constexpr int kPriorityMax = 32767;

  EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;
  ~EventQueue() = default;

  std::size_t size() const { return size_; }

  // Lower priorities run first. Events with equal time and priority run in push() order.
  void push(Time time, int priority, Action action, void* context) {
    push_ordered(time, priority, sequence_++, action, context);
  }
  // Events with equal time and priority run by `order` (below 2^48), independent of push time.
  // Equal orders have no defined sequence, so each must be unique. push() uses other priorities.
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

  // Moves the first event into `event`. Returns false if there is no event up to `limit`.
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

  // Time::max() if the queue is empty.
  Time first_time() const;
  // Allows events at any time again, including times before the limits of earlier pop() calls.
  void rewind();

  // The event `distance` places after the next one; null if it is not sorted yet. A hint only, e.g.
  // for prefetching.
  const Event* upcoming(std::size_t distance) const {
    const std::size_t index = run_head_ + distance;
    return index < run_.size() ? &run_[index] : nullptr;
  }

  template <typename Predicate>
  void erase_if(Predicate is_dead);

 private:
  static constexpr int kDigitBits = 6;
  static constexpr int kLevels = 11;
  static constexpr int kDigits = 1 << kDigitBits;
  static constexpr std::size_t kChunkEvents = 31;  // makes a chunk 1 KiB
  static constexpr std::size_t kSlabChunks = 64;
  static constexpr std::size_t kHeapLimit = 64;

  struct Chunk {
    Chunk* next;
    Event events[kChunkEvents];
  };
  // A list of chunks. All but the last are full. Empty if first is null.
  struct Bucket {
    Chunk* first = nullptr;
    Chunk* last = nullptr;
    std::size_t used = 0;  // in the last chunk
  };

  // Files an event later than the front.
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

  std::uint64_t base_ = 0;       // lower bound of all events in the buckets
  std::uint64_t front_end_ = 0;  // at or after all events in the front, before all in the buckets
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
