// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cuda_runtime.h"
#include "towpath/virtual_gpu/device/kernels.hpp"

namespace towpath::virtual_gpu {

class Workers;

// The state of an event. Work that waits for it may outlive the event.
struct EventState {
  std::uint64_t recorded = 0, completed = 0;  // how often
  std::int64_t when_ns = 0;
};

struct Stream;

// Something that a stream does.
struct Work {
  std::function<void()> task{};       // in the thread that finds the stream ready
  std::function<void()> host_task{};  // in a thread of its own, because it may wait
  Grid* grid = nullptr;
  std::shared_ptr<EventState> recorded{}, awaited{};
  std::uint64_t generation = 0;  // of the event
  // Streams that must first have done this much.
  std::vector<std::pair<std::shared_ptr<Stream>, std::uint64_t>> after{};
  std::int64_t given_ns = 0;  // the program's time when it was given
};

struct Stream {
  unsigned long long id;
  int device;
  bool is_blocking;  // waits for the default stream, and the default stream for it
  bool is_destroyed = false;
  bool is_busy = false;
  std::deque<Work> queue{};
  std::uint64_t added = 0, done = 0;
  std::int64_t free_ns = 0;  // the end of the last work that is done
};

// The streams of all GPUs: queues of work. A stream's work is done in order.
class Streams {
 public:
  explicit Streams(int devices);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  cudaStream_t create(int device, bool is_blocking);
  bool destroy(cudaStream_t stream);
  // Returns at once. The work is done when all earlier work of the stream is.
  void add(cudaStream_t stream, int device, Work work);
  cudaError_t launch(const abi::Launch& launch, int device);
  // Wait until everything that was given before is done.
  cudaError_t synchronize(cudaStream_t stream);
  void synchronize_device(int device);
  void synchronize_event(const EventState& event);
  bool is_idle(cudaStream_t stream);
  bool has_happened(const EventState& event);
  void record(cudaStream_t stream, int device, const std::shared_ptr<EventState>& event);
  void await(cudaStream_t stream, int device, const std::shared_ptr<EventState>& event);
  double elapsed_ms(const EventState& from, const EventState& to);

 private:
  using Lock = std::unique_lock<std::mutex>;
  std::shared_ptr<Stream> find(cudaStream_t stream, int device);
  void add_locked(Lock& lock, const std::shared_ptr<Stream>& stream, Work work);
  bool can_start(const Stream& stream) const;
  void start(Lock& lock, const std::shared_ptr<Stream>& stream);
  void start_grid(Lock& lock, const std::shared_ptr<Stream>& stream, std::int64_t begin_ns);
  void finish(Lock& lock, const std::shared_ptr<Stream>& stream, std::int64_t end_ns);
  void advance(Lock& lock);
  Workers& workers();
  [[noreturn]] void run_host_tasks();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Stream>> default_;  // by device
  std::vector<std::shared_ptr<Stream>> streams_;
  unsigned long long last_id_ = 2;  // of the two streams that always exist
  std::unique_ptr<Workers> workers_;
  std::deque<std::pair<std::shared_ptr<Stream>, std::function<void()>>> host_tasks_;
  bool has_host_thread_ = false;
};

Streams& streams();

}  // namespace towpath::virtual_gpu

struct towpath_stream {
  std::shared_ptr<towpath::virtual_gpu::Stream> state;
};
struct towpath_event {
  std::shared_ptr<towpath::virtual_gpu::EventState> state;
};
