// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/run/mailbox_run.hpp"

#include <algorithm>
#include <utility>

#include "towpath/collective/deadlock.hpp"

namespace towpath::run {

MailboxRun::MailboxRun(std::shared_ptr<const machine::MailboxCluster> cluster,
                       std::shared_ptr<const collective::Plan> plan, bool carries_data,
                       std::uint64_t seed)
    : plan_(std::move(plan)),
      simulation_(seed),
      ranks_(simulation_, machine::without_interruptions(*cluster),
             {.ranks = plan_->schedule->rank_count(), .carries_data = carries_data}) {
  for (int rank = 0; rank < ranks_.ranks(); ++rank) {
    executors_.push_back(std::make_unique<collective::Executor>(ranks_.transport(rank), plan_));
    executors_.back()->on_finished = [this] {
      finished_ = std::max(finished_, simulation_.now());
      --running_;
    };
  }
}

Time MailboxRun::invoke(const std::vector<collective::Buffers>& buffers) {
  const Time called = simulation_.now();
  running_ = executors_.size();
  finished_ = called;
  for (std::size_t rank = 0; rank < executors_.size(); ++rank) {
    executors_[rank]->start(buffers.empty() ? collective::Buffers{} : buffers.at(rank));
  }
  simulation_.run();
  if (running_ == 0) return finished_ - called;
  std::vector<collective::Blocked> blocked;
  for (const auto& executor : executors_) {
    const std::vector<collective::Blocked> more = executor->blocked();
    blocked.insert(blocked.end(), more.begin(), more.end());
  }
  throw transport::TransportError(transport::TransportError::Kind::deadlock, transport::kNoPeer,
                                  collective::describe_deadlock(*plan_->schedule, blocked));
}

}  // namespace towpath::run
