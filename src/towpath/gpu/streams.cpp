// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/streams.hpp"

#include <algorithm>
#include <utility>

#include "towpath/sim/simulation.hpp"

namespace towpath::gpu {

Streams::Streams(sim::Simulation& simulation, std::function<void()> changed,
                 std::function<Time()> clock)
    : simulation_(simulation), changed_(std::move(changed)), clock_(std::move(clock)) {
  streams_.emplace(nullptr, Stream{});
}

void* Streams::new_stream(bool is_blocking) {
  void* const handle = reinterpret_cast<void*>(next_handle_++);
  streams_[handle].is_blocking = is_blocking;
  return handle;
}

// Its work continues, but no more work can be added.
void Streams::free_stream(void* stream) {
  if (stream != nullptr) streams_.erase(stream);
}

void* Streams::new_event() {
  auto event = std::make_unique<Event>();
  void* const handle = event.get();
  events_.emplace(handle, std::move(event));
  return handle;
}

void Streams::free_event(void* event) { events_.erase(event); }

void Streams::follow(const StreamWorkPointer& work, const StreamWorkPointer& before) {
  if (before == nullptr || before->has_finished) return;
  before->followers.push_back(work);
  ++work->waits_for;
}

StreamWorkPointer Streams::add(void* stream, Time not_before,
                               std::function<void(StreamWorkPointer)> begin) {
  auto work = std::make_shared<StreamWork>();
  work->not_before = not_before;
  work->begin = [begin = std::move(begin), weak = std::weak_ptr(work)] { begin(weak.lock()); };
  Stream& own = stream_of(stream);
  follow(work, own.last);
  if (stream == nullptr) {
    for (const auto& [handle, other] : streams_) {
      if (handle != nullptr && other.is_blocking) follow(work, other.last);
    }
  } else if (own.is_blocking) {
    follow(work, streams_.at(nullptr).last);
  }
  own.last = work;
  if (work->waits_for == 0) this->begin(work);
  return work;
}

void Streams::begin(const StreamWorkPointer& work) {
  if (work->not_before <= simulation_.now()) {
    work->begin();
    return;
  }
  simulation_.at(
      work->not_before,
      [](void* context) {
        const std::unique_ptr<StreamWorkPointer> held(static_cast<StreamWorkPointer*>(context));
        (*held)->begin();
      },
      new StreamWorkPointer(work));
}

void Streams::finish(const StreamWorkPointer& work) {
  work->has_finished = true;
  work->finished_at = clock_();
  const std::vector<StreamWorkPointer> followers = std::move(work->followers);
  for (const StreamWorkPointer& follower : followers) {
    if (--follower->waits_for == 0) begin(follower);
  }
  changed_();
}

bool Streams::is_idle(void* stream) const {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return true;
  return found->second.last == nullptr || found->second.last->has_finished;
}

bool Streams::is_idle() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const auto& each) {
    return each.second.last == nullptr || each.second.last->has_finished;
  });
}

void Streams::record(void* event, void* stream) {
  static_cast<Event*>(event)->work =
      add(stream, Time(), [this](const StreamWorkPointer& work) { finish(work); });
}

void Streams::wait(void* stream, void* event) {
  const StreamWorkPointer awaited = static_cast<Event*>(event)->work;
  if (awaited == nullptr || awaited->has_finished) return;
  // Work that starts when both the stream and the event are ready.
  auto work = std::make_shared<StreamWork>();
  work->begin = [this, weak = std::weak_ptr(work)] { finish(weak.lock()); };
  Stream& own = stream_of(stream);
  follow(work, own.last);
  follow(work, awaited);
  own.last = work;
}

bool Streams::has_happened(void* event) const {
  const StreamWorkPointer work = static_cast<Event*>(event)->work;
  return work == nullptr || work->has_finished;
}

double Streams::elapsed_ms(void* from, void* to) const {
  const StreamWorkPointer first = static_cast<Event*>(from)->work;
  const StreamWorkPointer last = static_cast<Event*>(to)->work;
  if (first == nullptr || last == nullptr || !first->has_finished || !last->has_finished) return -1;
  return static_cast<double>((last->finished_at - first->finished_at).ps()) / 1e9;
}

}  // namespace towpath::gpu
