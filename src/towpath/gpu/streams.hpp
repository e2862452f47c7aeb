// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "towpath/base/units.hpp"

// The streams of a PE: ordered work, and events. The default stream synchronizes with all others
// except nonblocking ones.

namespace towpath::sim {
class Simulation;
}

namespace towpath::gpu {

// One piece of work of a stream.
struct StreamWork {
  std::function<void()> begin;  // must lead to Streams::finish()
  Time not_before{};
  int waits_for = 0;
  bool has_finished = false;
  Time finished_at{};
  std::vector<std::shared_ptr<StreamWork>> followers;
};
using StreamWorkPointer = std::shared_ptr<StreamWork>;

class Streams {
 public:
  // `changed` is called after each finished work item.
  Streams(sim::Simulation& simulation, std::function<void()> changed, std::function<Time()> clock);

  void* new_stream(bool is_blocking);
  void free_stream(void* stream);
  void* new_event();
  void free_event(void* event);

  // Calls `begin` once all earlier work is finished, not before `not_before`.
  StreamWorkPointer add(void* stream, Time not_before,
                        std::function<void(StreamWorkPointer)> begin);
  void finish(const StreamWorkPointer& work);
  bool is_idle(void* stream) const;
  bool is_idle() const;

  void record(void* event, void* stream);
  void wait(void* stream, void* event);
  bool has_happened(void* event) const;
  // Time from one event to another, in milliseconds. Negative if one has not happened.
  double elapsed_ms(void* from, void* to) const;

 private:
  struct Stream {
    bool is_blocking = true;
    StreamWorkPointer last;
  };
  struct Event {
    StreamWorkPointer work;
  };
  Stream& stream_of(void* stream) { return streams_.at(stream); }
  static void follow(const StreamWorkPointer& work, const StreamWorkPointer& before);
  void begin(const StreamWorkPointer& work);

  sim::Simulation& simulation_;
  std::function<void()> changed_;
  std::function<Time()> clock_;
  std::map<void*, Stream> streams_;  // null is the default stream
  std::map<void*, std::unique_ptr<Event>> events_;
  std::uintptr_t next_handle_ = 0x1000;
};

}  // namespace towpath::gpu
