// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "data_mover_worker.hpp"
#include "program_generator.hpp"

// Building blocks of generated programs. Each kernel can make the mistake that its plan asks for.

namespace towpath::tenstorrent::kernels {

// What kernels report about a run.
struct RunLog {
  int messages = 0;  // of the link with a mistake, altogether
  int received = 0;  // of those
  Time half_time;
  bool is_data_right = true;
};

// A channel that a worker serves, and a place in its L1 to put a message.
struct WorkerTask {
  ChannelPlan plan;
  DataMoverWorker channel;
  std::uint64_t staging = 0;
  bool is_counted = false;  // its link has a mistake
};
void send_messages(DataMovementCore& core, const WorkerTask& task);
void receive_messages(DataMovementCore& core, const WorkerTask& task, RunLog& log);
// Writes into the buffer of a channel that serves another worker.
void send_uncalled(DataMovementCore& core, const WorkerTask& task);

// The channels of a link without data mover, as one end sees them. A message ends where its buffer
// ends; the sync word of channel i is behind it, or is i + 1 of erisc_info.
struct BareLink {
  LinkPlan plan;
  bool is_first_end = true;
  std::vector<std::uint64_t> ends{};
  std::vector<std::uint64_t> far_ends{};
};
void send_bare(EthernetCore& core, const BareLink& link);
void receive_bare(EthernetCore& core, const BareLink& link, RunLog& log);

}  // namespace towpath::tenstorrent::kernels
