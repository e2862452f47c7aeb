// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/group.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "towpath/live/connect.hpp"
#include "towpath/transport/symmetric_heap.hpp"

namespace towpath::live {

using transport::kNoPeer;
using transport::TransportError;
using Reason = TransportError::Kind;

namespace {

constexpr std::uint64_t kHeapUnit = 2 << 20;
// The interval at which a waiting thread tries to drive while another one does.
constexpr std::chrono::milliseconds kRetryAfter{1};
// The interval at which the thread of the group serves peers, if the transport needs it.
constexpr std::chrono::milliseconds kLookInterval{1};

std::uint64_t heap_bytes_for(int ranks) {
  const std::uint64_t needed = transport::Transport::reserved_bytes(ranks) +
                               Channels::heap_bytes(ranks) + Collectives::heap_bytes(ranks) +
                               8 * transport::SymmetricHeap::kAlignment;
  return (needed + kHeapUnit - 1) / kHeapUnit * kHeapUnit;
}

std::string titled(const Call& call) {
  const Request& request = call.request;
  if (request.kind == Kind::send) {
    return fmt::format("{} of {} bytes to rank {} with tag {}", request.name, size_of(request),
                       request.peer, request.tag);
  }
  if (request.kind == Kind::receive) {
    const std::string from =
        request.peer == kNoPeer ? "any rank" : fmt::format("rank {}", request.peer);
    return fmt::format("{} of {} bytes from {} with tag {}", request.name, size_of(request), from,
                       request.tag);
  }
  return fmt::format("{} number {} of {} bytes", request.name, call.sequence, size_of(request));
}

}  // namespace

Group::Group(std::string_view transport, transport::LiveOptions options)
    : transport_([&] {
        options.heap_bytes = heap_bytes_for(options.ranks);
        options.signals = transport::Transport::kReservedSignals +
                          Channels::signals(options.ranks) + Collectives::signals(options.ranks);
        options.on_look = [look = look_, rank = options.rank] {
          look->count.fetch_add(1, std::memory_order_relaxed);
          if (look->is_aborted.load(std::memory_order_acquire)) {
            throw TransportError(Reason::peer_died, rank, look->abort_reason);
          }
        };
        return live::connect(transport, options);
      }()),
      rank_(options.rank),
      ranks_(options.ranks),
      message_channels_(*transport_),
      collectives_(*transport_, true),
      messages_(message_channels_, [this](const CallPointer& call) { end(call); }) {
  // Peers read this rank's memory, which is initialized when all ranks have reached the barrier.
  transport_->barrier(options.timeout);
  thread_ = std::thread([this] { run_thread(); });
}

Group::~Group() {
  leave();
  if (!fork_.is_forked()) return;
  // A forked child has neither the thread nor the rank.
  if (thread_.joinable()) thread_.detach();
  static_cast<void>(transport_.release());
  static_cast<void>(changed_.release());
}

void Group::leave() {
  if (!thread_.joinable() || fork_.is_forked()) return;
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_->notify_all();
  waiting_.fetch_add(1, std::memory_order_relaxed);  // ends its driving
  thread_.join();
  {
    const std::lock_guard driving(drive_mutex_);
    // The transport has notified the others of a failure.
    if (!failure_) announce_leaving();
    fail_all(TransportError(Reason::peer_died, rank_,
                            fmt::format("rank {} left the group before its calls ended", rank_)));
    transport_->leave();
  }
  call_back();
}

void Group::announce_leaving() {
  try {
    collectives_.status().leave();
  } catch (const TransportError&) {
    // The others have failed, and need no notification.
  }
}

CallPointer Group::post(Request request) {
  if (fork_.is_forked()) {
    refuse(request, fmt::format("this process is forked from rank {} and is not a rank", rank_));
  }
  check_request(request, rank_, ranks_);
  auto call = std::make_shared<Call>();
  call->request = std::move(request);
  unfinished_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (!is_message(call->request)) {
    call->sequence = sequence_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  posted_.push_back(call);
  has_posted_.store(true, std::memory_order_release);
  return call;
}

void Group::wake() {
  {
    const std::lock_guard lock(mutex_);
    is_woken_ = true;
  }
  changed_->notify_all();
}

bool Group::wait(const CallPointer& call, Time timeout) {
  if (call->has_ended()) return true;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  drive_at_once(*call);
  call_back();
  if (!call->has_ended()) {
    const Time now = transport_->now();
    wait_until(*call, timeout > Time::max() - now ? Time::max() : now + timeout);
  }
  const bool is_last = waiting_.fetch_sub(1, std::memory_order_relaxed) == 1;
  if (unfinished_.load(std::memory_order_relaxed) > 0 && is_last) wake();
  return call->has_ended();
}

// Most calls end within microseconds, before any check of a clock or of a peer's health.
void Group::drive_at_once(const Call& call) {
  constexpr int kTurns = 40;
  const std::unique_lock driving(drive_mutex_, std::try_to_lock);
  if (!driving.owns_lock() || failure_) return;
  transport_->note_activity();
  try {
    for (int turn = 0; turn < kTurns && !call.has_ended(); ++turn) {
      if (!advance()) transport_->relax();
    }
  } catch (const Mismatch& mismatch) {
    fail_mismatch(mismatch);
  } catch (const TransportError& error) {
    fail_all(error);
  }
}

void Group::wait_until(const Call& call, Time deadline) {
  while (!call.has_ended() && transport_->now() < deadline) {
    std::unique_lock driving(drive_mutex_, std::defer_lock);
    // The thread of the group stops driving as soon as it sees `waiting_`.
    if (is_thread_driving_.load(std::memory_order_relaxed)) {
      driving.lock();
    } else if (!driving.try_lock()) {
      std::unique_lock lock(mutex_);
      changed_->wait_for(lock, kRetryAfter, [&] { return call.has_ended(); });
      continue;
    }
    drive(&call, deadline);
    driving.unlock();
    call_back();
  }
}

void Group::accept_posted() {
  if (!has_posted_.load(std::memory_order_acquire)) return;
  {
    const std::lock_guard lock(mutex_);
    accepted_.swap(posted_);
    has_posted_.store(false, std::memory_order_relaxed);
  }
  for (CallPointer& call : accepted_) {
    if (failure_) {
      call->error = failure_;
      end(call);
    } else if (is_message(call->request)) {
      messages_.post(call);
    } else {
      queue_.push_back(std::move(call));
    }
  }
  accepted_.clear();
}

bool Group::advance() {
  accept_posted();
  const bool any = !messages_.is_idle() && messages_.advance();
  return advance_collectives() || any;
}

bool Group::advance_collectives() {
  bool any = false;
  while (current_ != nullptr || !queue_.empty()) {
    if (current_ == nullptr) {
      current_ = std::move(queue_.front());
      queue_.pop_front();
      collectives_.begin(current_->request);
    }
    any |= collectives_.advance();
    if (!collectives_.is_done()) break;
    end(std::exchange(current_, nullptr));
    any = true;
  }
  return any;
}

bool Group::is_idle() const {
  return current_ == nullptr && queue_.empty() && messages_.is_idle() &&
         !has_posted_.load(std::memory_order_acquire);
}

bool Group::may_stop(const Call* awaited, Time deadline) {
  try {
    advance();
    collectives_.check_peers();
  } catch (const Mismatch& mismatch) {
    fail_mismatch(mismatch);
  }
  if (look_->count.load(std::memory_order_relaxed) != looked_) {
    looked_ = look_->count.load(std::memory_order_relaxed);
    check_deadlines();
    if (awaited != nullptr && transport_->now() >= deadline) return true;
  }
  if (failure_) return true;
  if (awaited != nullptr) return awaited->has_ended();
  return is_idle() || waiting_.load(std::memory_order_relaxed) > 0;
}

void Group::fail_mismatch(const Mismatch& mismatch) {
  std::string difference;
  std::string lines;
  try {
    difference = collectives_.status().difference(mismatch.peer);
    lines = collectives_.status().report().lines;
  } catch (const TransportError& error) {
    // Another rank detected the mismatch first.
    fail_all(error);
    return;
  }
  fail_collective(TransportError(Reason::disagreement, mismatch.peer,
                                 fmt::format("rank {} is in {}, but rank {} made a different call, "
                                             "or used other sizes, types or roots{}{}:{}",
                                             rank_, titled(*current_), mismatch.peer,
                                             difference.empty() ? "" : "; ", difference, lines)));
}

void Group::drive(const Call* awaited, Time deadline) {
  if (failure_) {
    accept_posted();
    return;
  }
  try {
    transport_->block_until([&] { return may_stop(awaited, deadline); }, Time::max(), kNoPeer,
                            [this] { return describe_pending(); });
  } catch (const TransportError& error) {
    fail_all(error);
  } catch (const std::exception& error) {
    fail_all(
        TransportError(Reason::peer_died, rank_, fmt::format("rank {}: {}", rank_, error.what())));
  }
}

std::string Group::describe_pending() const {
  if (current_ != nullptr) return titled(*current_);
  const std::vector<CallPointer> calls = messages_.pending();
  return calls.empty() ? "" : titled(*calls.front());
}

std::string Group::describe_difference() {
  for (int peer = 0; peer < ranks_; ++peer) {
    std::string difference = peer == rank_ ? "" : collectives_.status().difference(peer);
    if (!difference.empty()) return difference;
  }
  return "no rank is behind";
}

// A peer that has left normally, and that the current collective depends on, will not come back.
void Group::check_deadlines() {
  const Time now = transport_->now();
  const StatusPage& status = collectives_.status();
  if (current_ != nullptr && is_overdue(*current_, now)) {
    const StatusPage::Report report = status.report();
    const std::string cause = report.straggler == kNoPeer
                                  ? describe_difference()
                                  : fmt::format("rank {} is the straggler", report.straggler);
    fail_collective(TransportError(
        Reason::timeout, report.straggler,
        fmt::format("{} ended by a timeout after {:g} s on rank {}; {}:{}", titled(*current_),
                    current_->request.timeout.seconds(), rank_, cause, report.lines)));
    return;
  }
  for (int peer = 0; peer < ranks_ && current_ != nullptr; ++peer) {
    if (!collectives_.awaits(peer) || !status.has_left(peer)) continue;
    fail_collective(TransportError(Reason::peer_died, peer,
                                   fmt::format("rank {} left the group while rank {} was in {}",
                                               peer, rank_, titled(*current_))));
  }
  for (const CallPointer& call : messages_.pending()) {
    if (failure_) return;
    const int peer = call->request.peer;
    if (peer != kNoPeer && status.has_left(peer) && messages_.cancel(call)) {
      call->error.emplace(Reason::peer_died, peer,
                          fmt::format("rank {} left the group while rank {} was in {}", peer, rank_,
                                      titled(*call)));
      end(call);
    } else if (is_overdue(*call, now)) {
      fail_overdue(call);
    }
  }
}

// The time of a call starts at its first check. Most calls end before that, and read no clock.
bool Group::is_overdue(Call& call, Time now) {
  if (!call.deadline) {
    const Time timeout = call.request.timeout;
    call.deadline = timeout > Time::max() - now ? Time::max() : now + timeout;
  }
  return now >= *call.deadline;
}

// A message that has not started can be dropped. The rest of a started message would be mistaken
// for the next message.
void Group::fail_overdue(const CallPointer& call) {
  const TransportError error(Reason::timeout, call->request.peer,
                             fmt::format("{} ended by a timeout after {:g} s on rank {}",
                                         titled(*call), call->request.timeout.seconds(), rank_));
  if (messages_.cancel(call)) {
    call->error = error;
    end(call);
  } else {
    fail_collective(error);
  }
}

// Notifies the other ranks. No call can follow, because chunks of this call may still be in flight.
void Group::fail_collective(const TransportError& error) {
  const std::string_view said = error.what();
  // The first line without the colon before a list.
  const std::string_view sentence = said.substr(0, said.find(":\n"));
  transport_->abandon(fmt::format("gave up: {}", sentence.substr(0, sentence.find('\n'))));
  fail_all(error);
}

void Group::fail_all(const TransportError& error) {
  if (!failure_) {
    const std::lock_guard lock(mutex_);
    failure_ = error;
  }
  std::vector<CallPointer> calls = messages_.pending();
  if (current_ != nullptr) calls.push_back(current_);
  collectives_.cancel();
  current_.reset();
  calls.insert(calls.end(), queue_.begin(), queue_.end());
  queue_.clear();
  for (const CallPointer& call : calls) {
    if (call->has_ended()) continue;
    call->error = failure_;
    end(call);
  }
  accept_posted();
}

void Group::end(const CallPointer& call) {
  call->state.store(call->error ? State::failed : State::done, std::memory_order_release);
  unfinished_.fetch_sub(1, std::memory_order_relaxed);
  const bool is_awaited_elsewhere = waiting_.load(std::memory_order_relaxed) > 1;
  if (call->request.done == nullptr && !is_awaited_elsewhere) return;
  const std::lock_guard lock(mutex_);
  if (call->request.done != nullptr) ended_.push_back(call);
  // Otherwise the notification would only wake the thread of the group, on a core that a rank
  // needs.
  if (is_awaited_elsewhere) changed_->notify_all();
}

// Without a lock, because the callbacks may post and wait.
void Group::call_back() {
  std::vector<CallPointer> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(ended_);
  }
  for (const CallPointer& call : calls) call->request.done(call->request.context);
}

// Serves the messages and requests of peers while this rank computes.
void Group::serve_peers() {
  const std::unique_lock driving(drive_mutex_, std::try_to_lock);
  if (!driving.owns_lock() || failure_) return;
  // A thread that waits in the meantime makes this one stop immediately.
  is_thread_driving_.store(true, std::memory_order_relaxed);
  try {
    while (waiting_.load(std::memory_order_relaxed) == 0 && transport_->progress()) {
    }
  } catch (const TransportError& error) {
    fail_all(error);
  }
  is_thread_driving_.store(false, std::memory_order_relaxed);
}

void Group::run_thread() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto is_called = [this] { return is_stopping_ || is_woken_; };
    if (!transport_->needs_progress()) {
      changed_->wait(lock, is_called);
    } else if (!changed_->wait_for(lock, kLookInterval, is_called)) {
      lock.unlock();
      serve_peers();
      lock.lock();
      continue;
    }
    if (is_stopping_) return;
    is_woken_ = false;
    lock.unlock();
    {
      const std::lock_guard driving(drive_mutex_);
      is_thread_driving_.store(true, std::memory_order_relaxed);
      drive(nullptr, Time::max());
      is_thread_driving_.store(false, std::memory_order_relaxed);
    }
    call_back();
    lock.lock();
  }
}

void Group::abort(const std::string& reason) {
  // A thread that drives throws the reason at its next check.
  std::call_once(look_->abort, [&] {
    look_->abort_reason = fmt::format("rank {} {}", rank_, reason);
    look_->is_aborted.store(true, std::memory_order_release);
  });
  {
    const std::lock_guard driving(drive_mutex_);
    transport_->abandon(reason);
    fail_all(TransportError(Reason::peer_died, rank_, look_->abort_reason));
  }
  call_back();
}

std::optional<TransportError> Group::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace towpath::live
