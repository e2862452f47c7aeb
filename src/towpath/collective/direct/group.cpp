// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/direct/group.hpp"

#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "towpath/transport/live/connect.hpp"
#include "towpath/transport/symmetric_heap.hpp"

namespace towpath::collective::direct {

using transport::kNoPeer;
using transport::TransportError;
using Reason = TransportError::Kind;

namespace {

constexpr std::uint64_t kHeapUnit = 2 << 20;
constexpr std::uint32_t kElementBytesMax = 16;
// How often a thread that waits while another drives tries to drive itself.
constexpr std::chrono::milliseconds kRetryAfter{1};

std::uint64_t heap_bytes_for(int ranks) {
  const std::uint64_t needed = transport::Transport::reserved_bytes(ranks) +
                               2 * Channels::heap_bytes(ranks) + Board::kBytes +
                               8 * transport::SymmetricHeap::kAlignment;
  return (needed + kHeapUnit - 1) / kHeapUnit * kHeapUnit;
}

[[noreturn]] void refuse(const Request& request, const std::string& what) {
  throw std::invalid_argument(fmt::format("{}: {}", request.name, what));
}

void check_spans(const Request& request, std::size_t ranks) {
  const bool is_by_rank = request.kind == Kind::exchange || request.kind == Kind::reduce_scatter;
  const std::size_t inputs = is_by_rank ? ranks : (request.kind == Kind::receive ? 0 : 1);
  const std::size_t outputs =
      request.kind == Kind::exchange ? ranks : (request.kind == Kind::send ? 0 : 1);
  if (request.inputs.size() == inputs && request.outputs.size() == outputs) return;
  refuse(request, fmt::format("it has {} inputs and {} outputs; it needs {} and {}",
                              request.inputs.size(), request.outputs.size(), inputs, outputs));
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

DirectGroup::DirectGroup(std::string_view transport, transport::LiveOptions options)
    : transport_([&] {
        options.heap_bytes = heap_bytes_for(options.ranks);
        options.signals =
            transport::Transport::kReservedSignals + 2 * Channels::signals(options.ranks);
        options.on_look = [look = look_, rank = options.rank] {
          look->count.fetch_add(1, std::memory_order_relaxed);
          if (look->is_aborted.load(std::memory_order_acquire)) {
            throw TransportError(Reason::peer_died, rank, look->abort_reason);
          }
        };
        return transport::live::connect(transport, options);
      }()),
      rank_(options.rank),
      ranks_(options.ranks),
      collective_channels_(*transport_),
      message_channels_(*transport_),
      board_(*transport_),
      messages_(message_channels_, [this](const CallPointer& call) { end(call); }) {
  // A peer reads this rank's part of the board; it is there once all have come here.
  transport_->barrier(options.timeout);
  thread_ = std::thread([this] { run_thread(); });
}

DirectGroup::~DirectGroup() {
  leave();
  if (!fork_.is_forked()) return;
  // A forked child has neither the thread nor the rank.
  if (thread_.joinable()) thread_.detach();
  static_cast<void>(transport_.release());
  static_cast<void>(changed_.release());
}

void DirectGroup::leave() {
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
    if (!failure_) board_.leave();
    fail_all(TransportError(Reason::peer_died, rank_,
                            fmt::format("rank {} left the group before its calls ended", rank_)));
    transport_->leave();
  }
  call_back();
}

void DirectGroup::check(const Request& request) const {
  const bool is_any = request.kind == Kind::receive && request.peer == kNoPeer;
  if (!is_any && (request.peer < 0 || request.peer >= ranks_)) {
    refuse(request, fmt::format("rank {} is outside the range 0 to {}", request.peer, ranks_ - 1));
  }
  if (is_message(request) && request.peer == rank_) {
    refuse(request, "a rank cannot send to itself");
  }
  const std::uint32_t element = request.combination.element_bytes;
  if (!std::has_single_bit(element) || element > kElementBytesMax) {
    refuse(request, fmt::format("an element has {} bytes; 1, 2, 4, 8 and 16 are allowed", element));
  }
  check_spans(request, static_cast<std::size_t>(ranks_));
}

CallPointer DirectGroup::post(Request request) {
  if (fork_.is_forked()) {
    refuse(request, fmt::format("this process is forked from rank {}; a child is no rank", rank_));
  }
  check(request);
  auto call = std::make_shared<Call>();
  call->request = std::move(request);
  const Time now = transport_->now();
  const Time timeout = call->request.timeout;
  call->deadline = timeout > Time::max() - now ? Time::max() : now + timeout;
  unfinished_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (!is_message(call->request)) {
    call->sequence = sequence_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  posted_.push_back(call);
  has_posted_.store(true, std::memory_order_release);
  return call;
}

void DirectGroup::wake() {
  {
    const std::lock_guard lock(mutex_);
    is_woken_ = true;
  }
  changed_->notify_all();
}

bool DirectGroup::wait(const CallPointer& call, Time timeout) {
  if (call->has_ended()) return true;
  const Time now = transport_->now();
  const Time deadline = timeout > Time::max() - now ? Time::max() : now + timeout;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  while (!call->has_ended() && transport_->now() < deadline) {
    std::unique_lock driving(drive_mutex_, std::defer_lock);
    // The group's own thread stops driving as soon as it sees `waiting_`.
    if (is_thread_driving_.load(std::memory_order_relaxed)) {
      driving.lock();
    } else if (!driving.try_lock()) {
      std::unique_lock lock(mutex_);
      changed_->wait_for(lock, kRetryAfter, [&] { return call->has_ended(); });
      continue;
    }
    drive(call.get(), deadline);
    driving.unlock();
    call_back();
  }
  const bool is_last = waiting_.fetch_sub(1, std::memory_order_relaxed) == 1;
  if (unfinished_.load(std::memory_order_relaxed) > 0 && is_last) wake();
  return call->has_ended();
}

void DirectGroup::accept_posted() {
  if (!has_posted_.load(std::memory_order_acquire)) return;
  std::vector<CallPointer> accepted;
  {
    const std::lock_guard lock(mutex_);
    accepted.swap(posted_);
    has_posted_.store(false, std::memory_order_relaxed);
  }
  for (const CallPointer& call : accepted) {
    if (failure_) {
      call->error = failure_;
      end(call);
    } else if (is_message(call->request)) {
      messages_.post(call);
    } else {
      collectives_.push_back(call);
    }
  }
}

bool DirectGroup::advance() {
  accept_posted();
  bool any = false;
  if (!messages_.is_idle()) any |= messages_.advance();
  while (current_ != nullptr || !collectives_.empty()) {
    if (current_ == nullptr) {
      board_.begin(*collectives_.front());
      current_ = std::make_unique<CollectiveCall>(collective_channels_, collectives_.front());
      collectives_.pop_front();
    }
    any |= current_->advance();
    if (!current_->is_done()) break;
    board_.end();
    const CallPointer call = current_->call();
    current_.reset();
    end(call);
    any = true;
  }
  return any;
}

bool DirectGroup::is_idle() const {
  return current_ == nullptr && collectives_.empty() && messages_.is_idle() &&
         !has_posted_.load(std::memory_order_acquire);
}

bool DirectGroup::may_stop(const Call* awaited, Time deadline) {
  try {
    advance();
  } catch (const Mismatch& mismatch) {
    fail_collective(TransportError(
        Reason::disagreement, mismatch.peer,
        fmt::format("rank {} is in {}, but rank {} called something else, or with other sizes, "
                    "types or roots:{}",
                    rank_, titled(*current_->call()), mismatch.peer, board_.report())));
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

void DirectGroup::drive(const Call* awaited, Time deadline) {
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

std::string DirectGroup::describe_pending() const {
  if (current_ != nullptr) return titled(*current_->call());
  const std::vector<CallPointer> calls = messages_.pending();
  return calls.empty() ? "nothing in particular" : titled(*calls.front());
}

// A peer that left in good order, and for which the current collective waits, will not come back.
void DirectGroup::check_deadlines() {
  const Time now = transport_->now();
  if (current_ != nullptr && now >= current_->call()->deadline) {
    const int straggler = board_.straggler();
    fail_collective(TransportError(
        Reason::timeout, straggler,
        fmt::format("{} ended by a timeout after {:g} s on rank {}; the straggler first:{}",
                    titled(*current_->call()), current_->call()->request.timeout.seconds(), rank_,
                    board_.report())));
    return;
  }
  for (int peer = 0; peer < ranks_ && current_ != nullptr; ++peer) {
    if (!current_->awaits(peer) || !board_.has_left(peer)) continue;
    fail_collective(TransportError(Reason::peer_died, peer,
                                   fmt::format("rank {} left the group while rank {} was in {}",
                                               peer, rank_, titled(*current_->call()))));
  }
  for (const CallPointer& call : messages_.pending()) {
    if (failure_) return;
    const int peer = call->request.peer;
    if (peer != kNoPeer && board_.has_left(peer) && messages_.cancel(call)) {
      call->error.emplace(Reason::peer_died, peer,
                          fmt::format("rank {} left the group while rank {} was in {}", peer, rank_,
                                      titled(*call)));
      end(call);
    } else if (now >= call->deadline) {
      fail_overdue(call);
    }
  }
}

// One message less hurts no other. Half of one does: its rest would be taken for the next.
void DirectGroup::fail_overdue(const CallPointer& call) {
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
void DirectGroup::fail_collective(const TransportError& error) {
  const std::string said = error.what();
  transport_->abandon(fmt::format("gave up: {}", said.substr(0, said.find('\n'))));
  fail_all(error);
}

void DirectGroup::fail_all(const TransportError& error) {
  if (!failure_) {
    const std::lock_guard lock(mutex_);
    failure_ = error;
  }
  std::vector<CallPointer> calls = messages_.pending();
  if (current_ != nullptr) calls.push_back(current_->call());
  current_.reset();
  calls.insert(calls.end(), collectives_.begin(), collectives_.end());
  collectives_.clear();
  for (const CallPointer& call : calls) {
    if (call->has_ended()) continue;
    call->error = failure_;
    end(call);
  }
  accept_posted();
}

void DirectGroup::end(const CallPointer& call) {
  call->state.store(call->error ? State::failed : State::done, std::memory_order_release);
  unfinished_.fetch_sub(1, std::memory_order_relaxed);
  if (call->request.done == nullptr && waiting_.load(std::memory_order_relaxed) <= 1) return;
  const std::lock_guard lock(mutex_);
  if (call->request.done != nullptr) ended_.push_back(call);
  changed_->notify_all();
}

// Without a lock: what is called may post and wait.
void DirectGroup::call_back() {
  std::vector<CallPointer> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(ended_);
  }
  for (const CallPointer& call : calls) call->request.done(call->request.context);
}

void DirectGroup::run_thread() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_->wait(lock, [this] { return is_stopping_ || is_woken_; });
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

void DirectGroup::abort(const std::string& reason) {
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

std::optional<TransportError> DirectGroup::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace towpath::collective::direct
