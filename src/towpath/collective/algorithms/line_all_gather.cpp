// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Line all-gather: R-1 steps one after the other, at most S (R-1)/R bytes each way on the wire per
// rank. S is the gathered array. Every part goes both ways from its rank to the ends of the line,
// for machines on which the ends are not joined. The order of a channel's ranks is that of its
// ring.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {

Schedule line_all_gather(const AlgorithmOptions& options) {
  check_quadratic(options);
  const auto ranks = static_cast<std::uint32_t>(options.ranks);
  const auto channels = static_cast<std::uint32_t>(options.channels);
  Schedule schedule =
      schedule_without_blocks("line_all_gather", Collective::all_gather, options, ranks * channels);
  if (ranks == 1) return local_copy(std::move(schedule));
  for (int channel = 0; channel < options.channels; ++channel) {
    const auto own = static_cast<std::uint32_t>(channel);
    for (const bool is_upwards : {true, false}) {
      const std::vector<int> line = line_of(options, channel, is_upwards);
      for (std::uint32_t position = 0; position < ranks; ++position) {
        ThreadBlock& block = add_line_block(schedule, line, position, channel);
        const auto gathered = [&](std::uint32_t back) {
          return output(static_cast<std::uint32_t>(line[position - back]) * channels + own);
        };
        const bool is_last = position + 1 == ranks;
        if (!is_last) block.steps.push_back(step(StepType::send, input(own)));
        for (std::uint32_t back = 1; back <= position; ++back) {
          block.steps.push_back(
              step(is_last ? StepType::receive : StepType::receive_copy_send, gathered(back)));
        }
      }
    }
  }
  add_own_copies(schedule);
  return schedule;
}

}  // namespace towpath::collective
