// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "work.hpp"

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <regex>
#include <string>
#include <thread>
#include <utility>

namespace towpath_torch {

namespace {

constexpr double kForEver = 1e9;

// "rank 0" of a group whose first rank is global rank 2 becomes "global rank 2". Groups with all
// ranks keep their sentences.
std::string with_global_ranks(const std::string& sentence,
                              const std::vector<int64_t>& global_ranks) {
  const auto count = static_cast<int64_t>(global_ranks.size());
  bool is_whole = true;
  for (int64_t rank = 0; rank < count; ++rank) {
    is_whole = is_whole && global_ranks[static_cast<size_t>(rank)] == rank;
  }
  if (is_whole) return sentence;
  static const std::regex numbers(R"(\b(ranks? )(\d+(?:, \d+)*))");
  static const std::regex number(R"(\d+)");
  std::string result;
  auto rest = sentence.begin();
  for (std::sregex_iterator match(sentence.begin(), sentence.end(), numbers), end; match != end;
       ++match) {
    result.append(rest, (*match)[0].first);
    result += "global " + (*match)[1].str();
    auto at = (*match)[2].first;
    for (std::sregex_iterator each(at, (*match)[2].second, number); each != end; ++each) {
      result.append(at, (*each)[0].first);
      const int64_t rank = std::stoll((*each)[0].str());
      result += std::to_string(rank < count ? global_ranks[static_cast<size_t>(rank)] : rank);
      at = (*each)[0].second;
    }
    rest = (*match)[0].second;
  }
  return result.append(rest, sentence.end());
}

}  // namespace

void raise(const towpath_error& error, const std::vector<int64_t>& global_ranks) {
  const std::string sentence = with_global_ranks(error.sentence, global_ranks);
  if (error.kind == TOWPATH_WRONG) C10_THROW_ERROR(ValueError, sentence);
  C10_THROW_ERROR(DistBackendError, sentence);
}

bool is_profiled() {
  return at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE).has_value();
}

// Without a timeout there is no clock to read.
Remaining::Remaining(std::chrono::milliseconds timeout) : timeout_(timeout) {
  if (timeout != kNoTimeout) end_ = std::chrono::steady_clock::now() + timeout;
}

std::chrono::milliseconds Remaining::time() const {
  if (timeout_ == kNoTimeout) return kNoTimeout;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      end_ - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

void Group::run(const towpath_request& request) const {
  towpath_error error;
  towpath_call* const call = api.post(group, &request, &error);
  if (call == nullptr) raise(error, global_ranks);
  api.wait(group, call, kForEver);
  const int ended = api.result(call, &error);
  api.release(call);
  if (ended != TOWPATH_OK) raise(error, global_ranks);
}

GroupWork::GroupWork(std::shared_ptr<Group> group, int rank, c10d::OpType type, const char* title,
                     const std::vector<at::Tensor>& inputs)
    : Work(rank, type, title, inputs), group_(std::move(group)) {}

GroupWork::~GroupWork() {
  for (towpath_call* call : calls_) group_->api.release(call);
}

void GroupWork::begin(Requests& requests, bool wakes) {
  unfinished_.store(requests.size() + 1, std::memory_order_relaxed);
  for (towpath_request& request : requests) {
    request.context = this;
    request.done = [](void* context) {
      // Taken over from begin().
      const auto self = c10::intrusive_ptr<GroupWork>::reclaim(static_cast<GroupWork*>(context));
      self->call_ended();
    };
    towpath_error error;
    c10::raw::intrusive_ptr::incref(this);
    towpath_call* const call = group_->api.post(group_->group, &request, &error);
    if (call == nullptr) {
      c10::raw::intrusive_ptr::decref(this);
      unfinished_.fetch_sub(1);
      raise(error, group_->global_ranks);
    }
    calls_.push_back(call);
  }
  if (wakes) group_->api.wake(group_->group);
  call_ended();  // what was counted for this function
}

void GroupWork::call_ended() {
  if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  std::exception_ptr error = error_of_calls();
  if (!error) {
    try {
      const at::NoGradGuard without_gradients;
      for (const auto& step : steps_) step();
    } catch (...) {
      error = std::current_exception();
    }
  }
  steps_.clear();
  kept_.clear();
  finish(error);
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(mutex_);
    is_future_due_ = true;
    future = future_;
  }
  if (!future) return;
  // The callbacks of a future may wait for another call, which this thread has to advance.
  std::thread([self = c10::intrusive_ptr<GroupWork>::reclaim_copy(this), future] {
    self->complete(*future);
  }).detach();
}

std::exception_ptr GroupWork::error_of_calls() const {
  towpath_error error;
  for (const towpath_call* call : calls_) {
    if (group_->api.result(call, &error) == TOWPATH_OK) continue;
    try {
      raise(error, group_->global_ranks);
    } catch (...) {
      return std::current_exception();
    }
  }
  return nullptr;
}

void GroupWork::complete(c10::ivalue::Future& future) const {
  if (exception_) {
    future.setError(exception_);
  } else {
    future.markCompleted(c10::IValue(results_));
  }
}

c10::intrusive_ptr<c10::ivalue::Future> GroupWork::getFuture() {
  if (timeline_) timeline_->note(Event::Kind::future, timeline_number_);
  bool is_due = false;
  {
    const std::lock_guard lock(mutex_);
    if (future_) return future_;
    future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors());
    is_due = is_future_due_;
  }
  if (is_due) complete(*future_);
  return future_;
}

bool GroupWork::wait(std::chrono::milliseconds timeout) {
  if (timeline_) timeline_->note(Event::Kind::wait, timeline_number_);
  const Remaining remaining(timeout);
  for (towpath_call* call : calls_) {
    const auto left = remaining.time();
    const double seconds = left == kNoTimeout ? kForEver : static_cast<double>(left.count()) / 1e3;
    group_->api.wait(group_->group, call, seconds);
  }
  // Another thread may still be at work on what follows the calls.
  return Work::wait(remaining.time());
}

uint64_t GroupWork::getSequencenumber() const {
  return calls_.empty() ? 0 : group_->api.sequence_of(calls_.front());
}

int GroupWork::sourceRank() const {
  return calls_.empty() ? -1 : group_->api.source(calls_.front());
}

void GroupWork::abort() { group_->api.abort(group_->group, "aborted its work"); }

}  // namespace towpath_torch
