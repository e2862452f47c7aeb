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

#include "towpath/live/call.hpp"
#include "towpath/live/channels.hpp"
#include "towpath/live/collectives.hpp"
#include "towpath/live/messages.hpp"
#include "towpath/os/process.hpp"
#include "towpath/transport/live_transport.hpp"

// Collectives and messages among live ranks without a plan: any size, type and number of calls. An
// Executor runs a schedule that was chosen and verified for one size. A Group is for programs whose
// sizes change from call to call.
//
// Results are the same bits on every rank and in every run. Collectives of a group run one after
// the other, in the order of their posts, which is the same on every rank. Messages proceed in
// parallel.
//
//   Group group(options);
//   group.wait(group.post(request), Time::max());
//
// Any thread may call post() and wait(). A thread that waits drives the whole group. While no
// thread waits, the thread of the group does.

namespace towpath::live {

class Group {
 public:
  // Joins the ranks. Blocks as live::connect does. The group sets heap_bytes, signals and on_look
  // of the options.
  Group(std::string_view transport, transport::LiveOptions options);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // Starts a call, without blocking. Throws std::invalid_argument for a request that is invalid by
  // itself, or in a forked child, which is not the rank. The memory of the request must exist until
  // the call has ended.
  CallPointer post(Request request);
  // Makes the thread of the group run the posted calls, without wait().
  void wake();
  // Returns true if the call ended within the time.
  bool wait(const CallPointer& call, Time timeout);
  // The number of posted collectives.
  std::uint64_t sequence() const { return sequence_.load(std::memory_order_relaxed); }

  // Ends all calls with an error and leaves the ranks normally. No call may follow. The destructor
  // does the same. Must not be called by a `done`.
  void leave();
  // Ends all calls with an error that gives the reason, here and at the other ranks.
  void abort(const std::string& reason);
  // The error that ended the group. Empty while calls can follow.
  std::optional<transport::TransportError> failure();

 private:
  // Shared by the group and on_look, which the transport keeps.
  struct Look {
    std::atomic<std::uint64_t> count{0};
    std::once_flag abort;
    std::string abort_reason;  // written before is_aborted, and constant afterwards
    std::atomic<bool> is_aborted{false};
  };

  void accept_posted();
  bool advance();
  bool advance_collectives();
  void fail_mismatch(const Mismatch& mismatch);
  void drive_at_once(const Call& call);
  void wait_until(const Call& call, Time deadline);
  static bool is_overdue(Call& call, Time now);
  // Drives until the call has ended, another thread waits, or no call is left. Holds drive_mutex_.
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
  void announce_leaving();
  bool is_idle() const;
  // The first call that differs between this rank and another rank.
  std::string describe_difference();
  std::string describe_pending() const;

  std::shared_ptr<Look> look_ = std::make_shared<Look>();
  std::unique_ptr<transport::LiveTransport> transport_;
  int rank_;
  int ranks_;
  os::ForkMark fork_;

  // For the thread that drives.
  std::mutex drive_mutex_;
  Channels message_channels_;
  Collectives collectives_;
  Messages messages_;
  std::deque<CallPointer> queue_;  // collectives after the current one
  CallPointer current_;            // collective
  std::uint64_t looked_ = 0;
  std::vector<CallPointer> accepted_;

  // Between threads.
  std::mutex mutex_;
  // Only the thread that drives writes it, under both mutexes. Others read it under mutex_.
  std::optional<transport::TransportError> failure_;
  // Not destroyed in a forked child: the destructor would wait for a thread that does not exist.
  std::unique_ptr<std::condition_variable> changed_ = std::make_unique<std::condition_variable>();
  std::vector<CallPointer> posted_;
  std::vector<CallPointer> ended_;  // calls with a `done` that has not run yet
  std::atomic<bool> has_posted_{false};
  std::atomic<std::uint64_t> sequence_{0};
  std::atomic<int> waiting_{0};     // threads
  std::atomic<int> unfinished_{0};  // calls
  std::atomic<bool> is_thread_driving_{false};
  bool is_stopping_ = false;
  bool is_woken_ = false;
  std::thread thread_;
};

}  // namespace towpath::live
