// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Simple ring all-reduce: 2(R-1) steps one after the other, 2 S bytes on the wire per rank but for
// the ends of the ring. Each channel's share of the array travels as one chunk: from the ring's
// first rank to its last to be summed, and round once more to be handed out. Only channels work
// side by side.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

Schedule make(const AlgorithmOptions& options) {
  Schedule schedule =
      schedule_without_blocks("simple_ring_all_reduce", Collective::all_reduce, options,
                              static_cast<std::uint32_t>(options.channels));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int channel = 0; channel < options.channels; ++channel) {
    const std::vector<int> ring = ring_of(options, channel);
    const auto chunk = static_cast<std::uint32_t>(channel);
    for (std::size_t position = 0; position < ring.size(); ++position) {
      Steps& steps = add_ring_block(schedule, ring, position, channel).steps;
      const bool is_first = position == 0;
      const bool is_last = position + 1 == ring.size();
      const bool is_end = position + 2 == ring.size();  // who is handed the result last
      if (is_last) {
        steps.push_back(step(StepType::receive_reduce_copy_send, input(chunk), output(chunk)));
      } else {
        steps.push_back(
            step(is_first ? StepType::send : StepType::receive_reduce_send, input(chunk)));
        steps.push_back(
            step(is_end ? StepType::receive : StepType::receive_copy_send, output(chunk)));
      }
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm simple_ring_all_reduce{
    .name = "simple_ring_all_reduce",
    .collective = Collective::all_reduce,
    .make = make,
    .description = "a whole array once along a ring to be summed, once more to be handed out",
    .cost = "2(R-1) steps, 2S bytes",
};

}  // namespace towpath::collective
