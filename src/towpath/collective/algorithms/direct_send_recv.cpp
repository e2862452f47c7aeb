// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Direct send and receive: K steps one after the other for K chunks per channel, S bytes on the
// wire per rank. The pattern says who sends to whom; without one, each rank sends to the next.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

Schedule make(const AlgorithmOptions& options) {
  const auto ranks = static_cast<std::uint32_t>(options.ranks);
  const auto per_channel = static_cast<std::uint32_t>(options.chunks_per_channel);
  Schedule schedule =
      schedule_without_blocks("direct_send_recv", Collective::send_recv, options,
                              per_channel * static_cast<std::uint32_t>(options.channels));
  schedule.pattern = options.pattern;
  for (std::uint32_t rank = 0; options.pattern.empty() && rank < ranks; ++rank) {
    schedule.pattern.push_back((rank + 1) % ranks);
  }
  check_structure(schedule);
  for (int channel = 0; channel < options.channels; ++channel) {
    const std::uint32_t first = static_cast<std::uint32_t>(channel) * per_channel;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      add_block(schedule.ranks[rank], kNone, kNone, channel);
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t target = schedule.pattern[rank];
      ThreadBlock& block = schedule.ranks[rank].blocks.back();
      if (target != rank) {
        block.send_peer = static_cast<int>(target);
        schedule.ranks[target].blocks.back().receive_peer = static_cast<int>(rank);
      }
      for (std::uint32_t chunk = first; chunk < first + per_channel; ++chunk) {
        if (target == rank) {
          block.steps.push_back(step(StepType::copy, input(chunk), output(chunk)));
        } else {
          // In place both are the same memory, which is sent before it is overwritten.
          block.steps.push_back(step(StepType::send, input(chunk)));
          block.steps.push_back(step(StepType::receive, output(chunk)));
        }
      }
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm direct_send_recv{
    .name = "direct_send_recv",
    .collective = Collective::send_recv,
    .make = make,
    .description = "every rank sends its array to one rank and receives another one's",
    .cost = "K steps, S bytes",
};

}  // namespace towpath::collective
