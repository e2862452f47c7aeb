// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/util/SmallVector.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "combination.hpp"
#include "group_api.h"
#include "timeline.hpp"

namespace towpath_torch {

// A group and its memory, which works need for longer than the backend that leaves it.
struct Group {
  const towpath_group_api& api;
  towpath_group* group;
  std::vector<int64_t> global_ranks;
  Combinations combinations;

  Group(const towpath_group_api& api, towpath_group* group, std::vector<int64_t> global_ranks)
      : api(api),
        group(group),
        global_ranks(std::move(global_ranks)),
        combinations(api, static_cast<int64_t>(this->global_ranks.size())) {}
  ~Group() { api.destroy(group); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // Posts a request and waits until it has ended. Throws what it ended with.
  void run(const towpath_request& request) const;
};

using Requests = c10::SmallVector<towpath_request, 1>;

// Whether somebody listens to what calls are named and when they end.
bool is_profiled();

// One call of torch: one call of the group, or several where they are coalesced. Small calls take
// microseconds, of which each allocation is a hundredth.
class GroupWork final : public c10d::Work {
 public:
  // The title and the inputs are what a profiler shows.
  GroupWork(std::shared_ptr<Group> group, int rank, c10d::OpType type, const char* title = nullptr,
            const std::vector<at::Tensor>& inputs = {});
  ~GroupWork() override;

  // --- before it begins ---------------------------------------------------------------------
  void keep(const at::Tensor& tensor) { kept_.push_back(tensor); }
  void set_results(std::vector<at::Tensor> results) { results_ = std::move(results); }
  // What is done once all calls are done, by the thread that notices.
  void then(std::function<void()> step) { steps_.push_back(std::move(step)); }

  // Posts the requests; their `done` and `context` are set here.
  void begin(Requests& requests, bool wakes);
  void follow(std::shared_ptr<Timeline> timeline, uint64_t number) {
    timeline_ = std::move(timeline);
    timeline_number_ = number;
  }

  // --- c10d -----------------------------------------------------------------------------------
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  std::vector<at::Tensor> result() override { return results_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override;
  int sourceRank() const override;
  void abort() override;

 private:
  void call_ended();
  std::exception_ptr error_of_calls() const;
  void complete(c10::ivalue::Future& future) const;

  std::shared_ptr<Group> group_;
  c10::SmallVector<towpath_call*, 1> calls_;
  std::atomic<std::size_t> unfinished_{0};
  c10::SmallVector<at::Tensor, 2> kept_;
  std::vector<at::Tensor> results_;
  std::vector<std::function<void()>> steps_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  bool is_future_due_ = false;  // set once, so that one of two threads completes the future
  std::shared_ptr<Timeline> timeline_;
  uint64_t timeline_number_ = 0;
};

// Throws torch's error. Its sentence has the global numbers of the ranks of a group.
[[noreturn]] void raise(const towpath_error& error, const std::vector<int64_t>& global_ranks);

// What is left of a timeout that several waits share; kNoTimeout stays.
class Remaining {
 public:
  explicit Remaining(std::chrono::milliseconds timeout);
  // At least 1 ms: 0 stands for no timeout.
  std::chrono::milliseconds time() const;

 private:
  std::chrono::milliseconds timeout_;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace towpath_torch
