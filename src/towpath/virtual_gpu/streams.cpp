// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/streams.hpp"

#include <algorithm>
#include <thread>

#include "towpath/virtual_gpu/device/clock.hpp"
#include "towpath/virtual_gpu/device/library.hpp"
#include "towpath/virtual_gpu/device/settings.hpp"
#include "towpath/virtual_gpu/device/times.hpp"
#include "towpath/virtual_gpu/device/workers.hpp"
#include "towpath/virtual_gpu/place.hpp"
#include "towpath/virtual_gpu/system.hpp"

namespace towpath::virtual_gpu {
namespace {

bool is_default(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

constexpr int kWorkersMax = 32;

int worker_count() {
  // Processes of a launcher share the processors.
  const int processors =
      static_cast<int>(std::thread::hardware_concurrency()) / place_of_process().size;
  return setting("TOWPATH_VIRTUAL_GPU_WORKERS", 1, kWorkersMax,
                 std::clamp(processors, 1, kWorkersMax));
}

// The limits of a grid of all GPUs (CUDA C++ Programming Guide, "Technical Specifications per
// Compute Capability").
bool is_valid(const abi::Configuration& configuration) {
  const abi::Index3& block = configuration.block;
  const abi::Index3& grid = configuration.grid;
  const auto is_count = [](unsigned count, unsigned most) { return count > 0 && count <= most; };
  return is_count(block.x, 1024) && is_count(block.y, 1024) && is_count(block.z, 64) &&
         std::uint64_t{block.x} * block.y * block.z <= abi::kThreadsPerBlockMax &&
         is_count(grid.x, 0x7fff'ffff) && is_count(grid.y, 65'535) && is_count(grid.z, 65'535);
}

// The earliest time at which the next work of a stream can begin.
std::int64_t begin_of(const Stream& stream) {
  const Work& work = stream.queue.front();
  std::int64_t begin_ns = std::max(work.given_ns, stream.free_ns);
  if (work.awaited != nullptr) begin_ns = std::max(begin_ns, work.awaited->when_ns);
  for (const auto& [other, count] : work.after) begin_ns = std::max(begin_ns, other->free_ns);
  return begin_ns;
}

// The end of work that takes no simulated time.
std::int64_t end_of(std::int64_t begin_ns) { return is_time_simulated() ? begin_ns : now_ns(); }

}  // namespace

Streams& streams() {
  // Never destroyed: other threads of the program may call until the process ends.
  static Streams* const only = new Streams(static_cast<int>(system().machine().devices().size()));
  return *only;
}

Streams::Streams(int devices) {
  for (int device = 0; device < devices; ++device) {
    default_.push_back(std::make_shared<Stream>(Stream{1, device, true}));
    streams_.push_back(default_.back());
  }
}

Streams::~Streams() = default;

Workers& Streams::workers() {
  if (workers_ == nullptr) workers_ = std::make_unique<Workers>(worker_count());
  return *workers_;
}

cudaStream_t Streams::create(int device, bool is_blocking) {
  const Lock lock(mutex_);
  auto state = std::make_shared<Stream>(Stream{++last_id_, device, is_blocking});
  streams_.push_back(state);
  return new towpath_stream{std::move(state)};
}

bool Streams::destroy(cudaStream_t stream) {
  if (is_default(stream)) return false;
  const Lock lock(mutex_);
  const std::shared_ptr<Stream> state = stream->state;
  state->is_destroyed = true;
  // Its work continues.
  if (state->queue.empty()) std::erase(streams_, state);
  delete stream;
  return true;
}

std::shared_ptr<Stream> Streams::find(cudaStream_t stream, int device) {
  return is_default(stream) ? default_[static_cast<std::size_t>(device)] : stream->state;
}

void Streams::add(cudaStream_t stream, int device, Work work) {
  Lock lock(mutex_);
  add_locked(lock, find(stream, device), std::move(work));
}

void Streams::add_locked(Lock& lock, const std::shared_ptr<Stream>& stream, Work work) {
  const std::shared_ptr<Stream>& common = default_[static_cast<std::size_t>(stream->device)];
  if (stream == common) {
    for (const auto& other : streams_) {
      if (other == common || !other->is_blocking || other->device != stream->device) continue;
      if (other->done < other->added) work.after.emplace_back(other, other->added);
    }
  } else if (stream->is_blocking && common->done < common->added) {
    work.after.emplace_back(common, common->added);
  }
  work.given_ns = now_ns();
  stream->queue.push_back(std::move(work));
  ++stream->added;
  advance(lock);
}

bool Streams::can_start(const Stream& stream) const {
  if (stream.is_busy || stream.queue.empty()) return false;
  const Work& next = stream.queue.front();
  if (next.awaited != nullptr && next.awaited->completed < next.generation) return false;
  return std::all_of(next.after.begin(), next.after.end(),
                     [](const auto& each) { return each.first->done >= each.second; });
}

// Work is done without the lock, in this thread unless it is a kernel's or may wait.
void Streams::start(Lock& lock, const std::shared_ptr<Stream>& stream) {
  Work& work = stream->queue.front();
  stream->is_busy = true;
  const std::int64_t begin_ns = begin_of(*stream);
  if (work.grid != nullptr) return start_grid(lock, stream, begin_ns);
  if (work.host_task) {
    host_tasks_.emplace_back(stream, std::move(work.host_task));
    if (!has_host_thread_) std::thread([this] { run_host_tasks(); }).detach();
    has_host_thread_ = true;
    changed_.notify_all();
    return;
  }
  if (work.task) {
    const std::function<void()> task = std::move(work.task);
    lock.unlock();
    task();
    lock.lock();
  }
  if (work.recorded != nullptr) {
    work.recorded->completed = std::max(work.recorded->completed, work.generation);
    work.recorded->when_ns = end_of(begin_ns);
  }
  finish(lock, stream, end_of(begin_ns));
}

void Streams::start_grid(Lock& lock, const std::shared_ptr<Stream>& stream, std::int64_t begin_ns) {
  Grid* const grid = stream->queue.front().grid;
  const std::vector<Call> calls = std::move(grid->calls);
  grid->finished = [this, stream, calls, begin_ns] {
    const std::int64_t end_ns = end_calls(calls, end_of(begin_ns));
    set_state(calls, CallState::ended);
    Lock again(mutex_);
    finish(again, stream, end_ns);
    advance(again);
  };
  Workers& all = workers();
  lock.unlock();
  set_state(calls, CallState::running);
  begin_calls(calls, begin_ns);
  all.start(grid);
  lock.lock();
}

void Streams::finish(Lock&, const std::shared_ptr<Stream>& stream, std::int64_t end_ns) {
  stream->free_ns = end_ns;
  stream->queue.pop_front();
  ++stream->done;
  stream->is_busy = false;
  if (stream->is_destroyed && stream->queue.empty()) std::erase(streams_, stream);
  changed_.notify_all();
}

void Streams::advance(Lock& lock) {
  for (bool has_started = true; has_started;) {
    has_started = false;
    const std::vector<std::shared_ptr<Stream>> all = streams_;
    for (const auto& stream : all) {
      while (can_start(*stream)) {
        start(lock, stream);
        has_started = true;
      }
    }
  }
}

void Streams::run_host_tasks() {
  read_real_time();
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !host_tasks_.empty(); });
    const auto [stream, task] = std::move(host_tasks_.front());
    host_tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
    finish(lock, stream, end_of(begin_of(*stream)));
    advance(lock);
  }
}

cudaError_t Streams::launch(const abi::Launch& launch, int device) {
  if (!is_valid(launch.configuration)) {
    if (launch.destroy != nullptr) launch.destroy(launch.closure);
    return cudaErrorInvalidConfiguration;
  }
  auto* const made = new Grid;
  made->launch = launch;
  made->device = device;
  if (is_of_library(launch.name)) {
    made->calls = take_calls(device, static_cast<cudaStream_t>(launch.configuration.stream));
    set_state(made->calls, CallState::queued);
  }
  add(static_cast<cudaStream_t>(launch.configuration.stream), device, {.grid = made});
  return cudaSuccess;
}

cudaError_t Streams::synchronize(cudaStream_t stream) {
  Lock lock(mutex_);
  const std::shared_ptr<Stream> state = find(stream, current_device());
  // Work of the default stream waits for all blocking streams.
  if (is_default(stream)) add_locked(lock, state, {});
  const std::uint64_t last = state->added;
  changed_.wait(lock, [&] { return state->done >= last; });
  reach(state->free_ns);
  return cudaSuccess;
}

void Streams::synchronize_device(int device) {
  Lock lock(mutex_);
  std::vector<std::pair<std::shared_ptr<Stream>, std::uint64_t>> last;
  for (const auto& stream : streams_) {
    if (stream->device == device) last.emplace_back(stream, stream->added);
  }
  changed_.wait(lock, [&] {
    return std::all_of(last.begin(), last.end(),
                       [](const auto& each) { return each.first->done >= each.second; });
  });
  for (const auto& [stream, count] : last) reach(stream->free_ns);
}

bool Streams::is_idle(cudaStream_t stream) {
  const Lock lock(mutex_);
  const std::shared_ptr<Stream> state = find(stream, current_device());
  if (state->done < state->added) {
    note_poll();
    return false;
  }
  reach(state->free_ns);
  return true;
}

void Streams::record(cudaStream_t stream, int device, const std::shared_ptr<EventState>& event) {
  Lock lock(mutex_);
  const std::uint64_t generation = ++event->recorded;
  add_locked(lock, find(stream, device), {.recorded = event, .generation = generation});
}

void Streams::await(cudaStream_t stream, int device, const std::shared_ptr<EventState>& event) {
  Lock lock(mutex_);
  const std::uint64_t generation = event->recorded;
  add_locked(lock, find(stream, device), {.awaited = event, .generation = generation});
}

bool Streams::has_happened(const EventState& event) {
  const Lock lock(mutex_);
  if (event.completed < event.recorded) {
    note_poll();
    return false;
  }
  reach(event.when_ns);
  return true;
}

void Streams::synchronize_event(const EventState& event) {
  Lock lock(mutex_);
  const std::uint64_t last = event.recorded;
  changed_.wait(lock, [&] { return event.completed >= last; });
  reach(event.when_ns);
}

double Streams::elapsed_ms(const EventState& from, const EventState& to) {
  const Lock lock(mutex_);
  return static_cast<double>(to.when_ns - from.when_ns) / 1e6;
}

}  // namespace towpath::virtual_gpu
