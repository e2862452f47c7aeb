// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/simulate/mailbox_run.hpp"

#include <utility>

namespace towpath::simulate {

MailboxRun::MailboxRun(std::shared_ptr<const machine::MailboxCluster> cluster,
                       std::shared_ptr<const collective::Plan> plan, bool carries_data,
                       std::uint64_t seed)
    : simulation_(seed),
      ranks_(simulation_, machine::without_interruptions(*cluster),
             {.ranks = plan->schedule->rank_count(), .carries_data = carries_data}),
      executors_(simulation_, std::move(plan)) {
  for (int rank = 0; rank < ranks_.ranks(); ++rank) executors_.add(ranks_.transport(rank));
}

Time MailboxRun::invoke(const std::vector<collective::Buffers>& buffers) {
  const Time called = simulation_.now();
  executors_.begin();
  for (std::size_t rank = 0; rank < executors_.size(); ++rank) {
    executors_[rank].start(buffers.empty() ? collective::Buffers{} : buffers.at(rank));
  }
  simulation_.run();
  return executors_.end() - called;
}

}  // namespace towpath::simulate
