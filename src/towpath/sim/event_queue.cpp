// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/event_queue.hpp"

#include <algorithm>

namespace towpath::sim {

namespace {

// Heap order: the earliest event is first.
bool is_later(const Event& left, const Event& right) { return right < left; }

}  // namespace

EventQueue::EventQueue() {
  run_.reserve(kSlabChunks);
  heap_.reserve(2 * kHeapLimit);
}

void EventQueue::allocate_slab() {
  slabs_.push_back(std::make_unique_for_overwrite<Chunk[]>(kSlabChunks));
  for (std::size_t i = kSlabChunks; i-- > 0;) {
    Chunk& chunk = slabs_.back()[i];
    chunk.next = free_chunks_;
    free_chunks_ = &chunk;
  }
}

void EventQueue::extend(Bucket& bucket) {
  if (free_chunks_ == nullptr) allocate_slab();
  Chunk* const chunk = free_chunks_;
  free_chunks_ = chunk->next;
  chunk->next = nullptr;
  (bucket.first == nullptr ? bucket.first : bucket.last->next) = chunk;
  bucket.last = chunk;
  bucket.used = 0;
}

EventQueue::Bucket EventQueue::take(int level, std::uint64_t digit) {
  const auto row = static_cast<std::size_t>(level);
  Bucket& bucket = buckets_[row * kDigits + digit];
  const Bucket taken = bucket;
  bucket = Bucket{};
  occupied_digits_[row] &= ~(std::uint64_t{1} << digit);
  if (occupied_digits_[row] == 0) occupied_levels_ &= ~(1u << level);
  return taken;
}

// Moves the first occupied bucket to the front. A bucket that starts after the limit stays, so
// base_ never passes a time at which events may still be pushed.
bool EventQueue::refill(std::uint64_t limit_key) {
  for (;;) {
    if (occupied_levels_ == 0) {
      base_ = 0;
      front_end_ = 0;
      return false;
    }
    const int level = __builtin_ctz(occupied_levels_);
    const auto digit = static_cast<std::uint64_t>(
        __builtin_ctzll(occupied_digits_[static_cast<std::size_t>(level)]));
    const int shift = level * kDigitBits;
    const std::uint64_t below_next_level =
        (std::uint64_t{2} << std::min(shift + kDigitBits - 1, 63)) - 1;
    const std::uint64_t start = (base_ & ~below_next_level) | digit << shift;
    if (start > limit_key) return false;
    base_ = start;
    const Bucket bucket = take(level, digit);
    if (level == 0 || bucket.first == bucket.last) {
      load_front(bucket, level);
      return true;
    }
    spread(bucket);
  }
}

void EventQueue::spread(Bucket bucket) {
  drain(bucket, [this](const Event& event) { append(event); });
}

Time EventQueue::first_time() const {
  const Event* first = run_head_ < run_.size() ? &run_[run_head_] : nullptr;
  if (!heap_.empty() && (first == nullptr || heap_.front() < *first)) first = &heap_.front();
  if (first != nullptr) return first->time();
  if (occupied_levels_ == 0) return Time::max();
  const auto level = static_cast<std::size_t>(__builtin_ctz(occupied_levels_));
  const auto digit = static_cast<std::size_t>(__builtin_ctzll(occupied_digits_[level]));
  const Bucket& bucket = buckets_[level * kDigits + digit];
  std::uint64_t first_key = ~std::uint64_t{0};
  for (const Chunk* chunk = bucket.first; chunk != nullptr; chunk = chunk->next) {
    const std::size_t count = chunk == bucket.last ? bucket.used : kChunkEvents;
    for (std::size_t i = 0; i < count; ++i) {
      first_key = std::min(first_key, chunk->events[i].time_key);
    }
  }
  return Event{first_key, 0, nullptr, nullptr}.time();
}

void EventQueue::rewind() {
  std::vector<Event> events(run_.begin() + static_cast<std::ptrdiff_t>(run_head_), run_.end());
  events.insert(events.end(), heap_.begin(), heap_.end());
  run_.clear();
  run_head_ = 0;
  heap_.clear();
  for (int level = 0; level < kLevels; ++level) {
    std::uint64_t digits = occupied_digits_[static_cast<std::size_t>(level)];
    for (; digits != 0; digits &= digits - 1) {
      drain(take(level, static_cast<std::uint64_t>(__builtin_ctzll(digits))),
            [&](const Event& event) { events.push_back(event); });
    }
  }
  base_ = 0;
  front_end_ = 0;
  for (const Event& event : events) append(event);
}

// Also takes small buckets that follow. A longer run saves refills.
void EventQueue::load_front(Bucket bucket, int level) {
  const auto row = static_cast<std::size_t>(level);
  run_.clear();
  run_head_ = 0;
  heap_limit_ = kHeapLimit;
  append_to_run(bucket);
  while (occupied_digits_[row] != 0) {
    const auto digit = static_cast<std::uint64_t>(__builtin_ctzll(occupied_digits_[row]));
    const Bucket& next = buckets_[row * kDigits + digit];
    if (next.first != next.last || run_.size() + next.used > kChunkEvents) break;
    append_to_run(take(level, digit));
  }
  front_end_ = run_.back().time_key;
}

// Events with equal times were filed in order, so there is usually no need to sort.
void EventQueue::append_to_run(Bucket bucket) {
  const auto begin = static_cast<std::ptrdiff_t>(run_.size());
  drain(bucket, [this](const Event& event) {
    __builtin_prefetch(event.context);
    run_.push_back(event);
  });
  if (!std::is_sorted(run_.begin() + begin, run_.end())) {
    std::sort(run_.begin() + begin, run_.end());
  }
}

// Inserts an event within the front's span. It is usually last. A short run accepts it at any
// position.
void EventQueue::push_front(const Event& event) {
  const std::size_t length = run_.size() - run_head_;
  if (length >= kChunkEvents && event < run_.back()) {
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), is_later);
    if (heap_.size() > heap_limit_) spill_front();
    return;
  }
  reserve_run();
  run_.push_back(event);
  std::size_t place = run_.size() - 1;
  for (; place > run_head_ && event < run_[place - 1]; --place) run_[place] = run_[place - 1];
  run_[place] = event;
}

// Reuses the space of popped events before the run grows.
void EventQueue::reserve_run() {
  if (run_.size() < run_.capacity() || run_head_ < run_.size() / 2) return;
  run_.erase(run_.begin(), run_.begin() + static_cast<std::ptrdiff_t>(run_head_));
  run_head_ = 0;
}

// Keeps only the events of the first time in a crowded front.
void EventQueue::spill_front() {
  std::uint64_t first_time = heap_.front().time_key;
  if (run_head_ < run_.size()) first_time = std::min(first_time, run_[run_head_].time_key);
  front_end_ = first_time;
  const auto spill = [this](std::vector<Event>& events) {
    std::erase_if(events, [this](const Event& event) {
      if (event.time_key == front_end_) return false;
      append(event);
      return true;
    });
  };
  run_.erase(run_.begin(), run_.begin() + static_cast<std::ptrdiff_t>(run_head_));
  run_head_ = 0;
  spill(run_);
  spill(heap_);
  rebuild_heap();
  heap_limit_ = std::max(kHeapLimit, 2 * heap_.size());
}

void EventQueue::rebuild_heap() { std::make_heap(heap_.begin(), heap_.end(), is_later); }

bool EventQueue::pop_run_or_heap(std::uint64_t limit_key, Event& event) {
  const bool from_run = run_head_ < run_.size() && run_[run_head_] < heap_.front();
  event = from_run ? run_[run_head_] : heap_.front();
  if (event.time_key > limit_key) return false;
  if (from_run) {
    ++run_head_;
  } else {
    std::pop_heap(heap_.begin(), heap_.end(), is_later);
    heap_.pop_back();
  }
  --size_;
  return true;
}

}  // namespace towpath::sim
