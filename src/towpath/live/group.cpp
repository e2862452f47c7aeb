// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/group.hpp"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>
#include <utility>

#include "towpath/live/connect.hpp"
#include "towpath/transport/symmetric_heap.hpp"

namespace towpath::live {

using transport::kNoPeer;
using transport::TransportError;
using Reason = TransportError::Kind;

namespace {

constexpr std::uint64_t kHeapUnit = 2 << 20;
// How often a thread that waits while another drives tries to drive itself.
constexpr std::chrono::milliseconds kRetryAfter{1};
// How often the group's own thread looks what peers want, where somebody must.
constexpr std::chrono::milliseconds kLookInterval{1};

std::uint64_t heap_bytes_for(int ranks) {
  const std::uint64_t needed = transport::Transport::reserved_bytes(ranks) +
                               2 * Channels::heap_bytes(ranks) + Board::kBytes +
                               SharedCollectives::heap_bytes(ranks) +
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
                          2 * Channels::signals(options.ranks) + Board::signals(options.ranks);
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
      collective_channels_(*transport_),
      message_channels_(*transport_),
      board_(*transport_),
      messages_(message_channels_, [this](const CallPointer& call) { end(call); }) {
  if (SharedCollectives::is_possible(*transport_)) shared_.emplace(*transport_);
  // Peers read this rank's memory; it is as they expect once all have come here.
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
    // Of a failed group the transport tells the others; that this rank then leaves is no news.
    if (!failure_) say_farewell();
    fail_all(TransportError(Reason::peer_died, rank_,
                            fmt::format("rank {} left the group before its calls ended", rank_)));
    transport_->leave();
  }
  call_back();
}

void Group::say_farewell() {
  try {
    board_.leave();
  } catch (const TransportError&) {
    // Others have failed, and know.
  }
}

CallPointer Group::post(Request request) {
  if (fork_.is_forked()) {
    refuse(request, fmt::format("this process is forked from rank {}; a child is no rank", rank_));
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

// Most calls end within microseconds: neither a clock nor a peer's health is looked at before.
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
    // The group's own thread stops driving as soon as it sees `waiting_`.
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
      collectives_.push_back(std::move(call));
    }
  }
  accepted_.clear();
}

bool Group::advance() {
  accept_posted();
  bool any = false;
  if (!messages_.is_idle()) any |= messages_.advance();
  while (current_ != nullptr || !collectives_.empty()) {
    if (current_ == nullptr) begin_collective();
    any |= advance_collective();
    if (!is_collective_done()) break;
    board_.end();
    const CallPointer call = std::move(current_);
    forget_collective();
    end(call);
    any = true;
  }
  return any;
}

void Group::begin_collective() {
  current_ = std::move(collectives_.front());
  collectives_.pop_front();
  board_.begin(current_->request, current_->sequence);
  if (shared_ && SharedCollectives::serves(current_->request.kind)) {
    shared_->begin(current_->request);
  } else {
    chunked_ = std::make_unique<CollectiveCall>(collective_channels_, current_);
  }
}

bool Group::advance_collective() {
  return chunked_ != nullptr ? chunked_->advance() : shared_->advance();
}

bool Group::is_collective_done() const {
  return chunked_ != nullptr ? chunked_->is_done() : shared_->is_done();
}

bool Group::awaits(int peer) {
  if (current_ == nullptr) return false;
  return chunked_ != nullptr ? chunked_->awaits(peer) : shared_->awaits(peer);
}

void Group::forget_collective() {
  current_.reset();
  chunked_.reset();
}

bool Group::is_idle() const {
  return current_ == nullptr && collectives_.empty() && messages_.is_idle() &&
         !has_posted_.load(std::memory_order_acquire);
}

bool Group::may_stop(const Call* awaited, Time deadline) {
  try {
    advance();
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
    difference = board_.hidden_difference(mismatch.peer);
    lines = board_.report().lines;
  } catch (const TransportError& error) {
    // Another rank has seen it, too, and was faster.
    fail_all(error);
    return;
  }
  fail_collective(TransportError(
      Reason::disagreement, mismatch.peer,
      fmt::format("rank {} is in {}, but rank {} called something else, or with other sizes, "
                  "types or roots{}:{}",
                  rank_, titled(*current_), mismatch.peer, difference, lines)));
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
  return calls.empty() ? "nothing in particular" : titled(*calls.front());
}

// A peer that left in good order, and for which the current collective waits, will not come back.
void Group::check_deadlines() {
  const Time now = transport_->now();
  if (current_ != nullptr && is_overdue(*current_, now)) {
    const Board::Report report = board_.report();
    fail_collective(TransportError(
        Reason::timeout, report.straggler,
        fmt::format("{} ended by a timeout after {:g} s on rank {}; the straggler first:{}",
                    titled(*current_), current_->request.timeout.seconds(), rank_, report.lines)));
    return;
  }
  for (int peer = 0; peer < ranks_ && current_ != nullptr; ++peer) {
    if (!awaits(peer) || !board_.has_left(peer)) continue;
    fail_collective(TransportError(Reason::peer_died, peer,
                                   fmt::format("rank {} left the group while rank {} was in {}",
                                               peer, rank_, titled(*current_))));
  }
  for (const CallPointer& call : messages_.pending()) {
    if (failure_) return;
    const int peer = call->request.peer;
    if (peer != kNoPeer && board_.has_left(peer) && messages_.cancel(call)) {
      call->error.emplace(Reason::peer_died, peer,
                          fmt::format("rank {} left the group while rank {} was in {}", peer, rank_,
                                      titled(*call)));
      end(call);
    } else if (is_overdue(*call, now)) {
      fail_overdue(call);
    }
  }
}

// A call's time begins when it is looked at first: most calls are over before, and read no clock.
bool Group::is_overdue(Call& call, Time now) {
  if (!call.deadline) {
    const Time timeout = call.request.timeout;
    call.deadline = timeout > Time::max() - now ? Time::max() : now + timeout;
  }
  return now >= *call.deadline;
}

// One message less hurts no other. Half of one does: its rest would be taken for the next.
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

// The others are told, and nothing can follow: chunks of this call may still be on their way.
void Group::fail_collective(const TransportError& error) {
  const std::string said = error.what();
  transport_->abandon(fmt::format("gave up: {}", said.substr(0, said.find('\n'))));
  fail_all(error);
}

void Group::fail_all(const TransportError& error) {
  if (!failure_) {
    const std::lock_guard lock(mutex_);
    failure_ = error;
  }
  std::vector<CallPointer> calls = messages_.pending();
  if (current_ != nullptr) calls.push_back(current_);
  if (shared_) shared_->cancel();
  forget_collective();
  calls.insert(calls.end(), collectives_.begin(), collectives_.end());
  collectives_.clear();
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
  // Otherwise it would only wake the group's own thread, on a core that a rank needs.
  if (is_awaited_elsewhere) changed_->notify_all();
}

// Without a lock: what is called may post and wait.
void Group::call_back() {
  std::vector<CallPointer> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(ended_);
  }
  for (const CallPointer& call : calls) call->request.done(call->request.context);
}

// What peers send and ask while this rank computes.
void Group::serve_peers() {
  const std::unique_lock driving(drive_mutex_, std::try_to_lock);
  if (!driving.owns_lock() || failure_) return;
  // Who comes to wait meanwhile finds the thread driving, which lets go at once.
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
  // A thread that drives meets the reason where it looks.
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
