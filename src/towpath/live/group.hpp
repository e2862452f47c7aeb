// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "towpath/live/board.hpp"
#include "towpath/live/call.hpp"
#include "towpath/live/channels.hpp"
#include "towpath/live/collective_call.hpp"
#include "towpath/live/messages.hpp"
#include "towpath/live/shared_collectives.hpp"
#include "towpath/os/fork_mark.hpp"
#include "towpath/transport/live_transport.hpp"

// Collectives and messages among live ranks without a plan: any size, type and number of calls, at
// the cost of nothing but the call. An Executor runs a schedule that was chosen and verified for
// one size; a Group is for programs whose sizes change from call to call.
//
// Results are the same bits on every rank and in every run. Collectives of a group are carried out
// one after the other, in the order in which they are posted, which is the same on every rank.
// Messages go on beside them.
//
//   Group group(options);
//   group.wait(group.post(request), Time::max());
//
// post() and wait() may be called from any thread. A thread that waits drives the whole group;
// while no thread waits, the group's own does.

namespace towpath::live {

class Group {
 public:
  // Joins the ranks; blocks as live::connect does. heap_bytes, signals and on_look of the options
  // are the group's own.
  Group(std::string_view transport, transport::LiveOptions options);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // Begins a call; never blocks. Throws std::invalid_argument for a request that is wrong in
  // itself, or in a forked child, which is not the rank. The memory that it names stays until the
  // call has ended.
  CallPointer post(Request request);
  // Lets the group's own thread carry on with what was posted; wait() does without.
  void wake();
  // Returns whether the call ended within the time.
  bool wait(const CallPointer& call, Time timeout);
  // How many collectives were posted.
  std::uint64_t sequence() const { return sequence_.load(std::memory_order_relaxed); }

  // Ends all calls with an error and leaves the ranks in good order; nothing follows. The
  // destructor does it otherwise; not to be called by a `done`.
  void leave();
  // Ends all calls with an error that gives the reason, here and at the other ranks.
  void abort(const std::string& reason);
  // What ended the group; nothing while calls can follow.
  std::optional<transport::TransportError> failure();

 private:
  // What on_look, which the transport keeps, shares with the group.
  struct Look {
    std::atomic<std::uint64_t> count{0};
    std::once_flag abort;
    std::string abort_reason;  // written before is_aborted, and then no more
    std::atomic<bool> is_aborted{false};
  };

  void accept_posted();
  bool advance();
  void begin_collective();
  bool advance_collective();
  bool is_collective_done() const;
  bool awaits(int peer);
  void forget_collective();
  void fail_mismatch(const Mismatch& mismatch);
  void drive_at_once(const Call& call);
  void wait_until(const Call& call, Time deadline);
  static bool is_overdue(Call& call, Time now);
  // Drives until the call has ended, another thread asks, or nothing is left. Holds drive_mutex_.
  void drive(const Call* awaited, Time deadline);
  bool may_stop(const Call* awaited, Time deadline);
  void check_deadlines();
  void fail_overdue(const CallPointer& call);
  void fail_collective(const transport::TransportError& error);
  void fail_all(const transport::TransportError& error);
  void end(const CallPointer& call);
  void call_back();
  void run_thread();
  void serve_peers();
  void say_farewell();
  bool is_idle() const;
  std::string describe_pending() const;

  std::shared_ptr<Look> look_ = std::make_shared<Look>();
  std::unique_ptr<transport::LiveTransport> transport_;
  int rank_;
  int ranks_;
  os::ForkMark fork_;

  // For the thread that drives.
  std::mutex drive_mutex_;
  Channels collective_channels_;
  Channels message_channels_;
  Board board_;
  Messages messages_;
  std::deque<CallPointer> collectives_;  // behind the current one
  // The current one, and who carries it: `shared_`, unless `chunked_` is there.
  CallPointer current_;
  std::unique_ptr<CollectiveCall> chunked_;
  std::optional<SharedCollectives> shared_;  // where ranks map each other's memory
  std::uint64_t looked_ = 0;
  std::vector<CallPointer> accepted_;

  // Between threads.
  std::mutex mutex_;
  // Only the thread that drives writes it, under both mutexes; others read it under mutex_.
  std::optional<transport::TransportError> failure_;
  // Not destroyed in a forked child, where its waiting thread does not exist and is waited for.
  std::unique_ptr<std::condition_variable> changed_ = std::make_unique<std::condition_variable>();
  std::vector<CallPointer> posted_;
  std::vector<CallPointer> ended_;  // whose `done` is to be called
  std::atomic<bool> has_posted_{false};
  std::atomic<std::uint64_t> sequence_{0};
  std::atomic<int> waiting_{0};     // threads that want to drive
  std::atomic<int> unfinished_{0};  // calls
  std::atomic<bool> is_thread_driving_{false};
  bool is_stopping_ = false;
  bool is_woken_ = false;
  std::thread thread_;
};

}  // namespace towpath::live
