// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Line reduce-scatter: R-1 steps one after the other, at most S (R-1)/R bytes each way on the wire
// per rank. S is the array before it is scattered. Sums of each part come to the rank that keeps it
// from both ends of the line, for machines on which the ends are not joined. The order of a
// channel's ranks is that of its ring.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// What goes towards the end of the line: the farthest keeper's part first.
void pass_on(ThreadBlock& block, const std::vector<int>& line, std::uint32_t position,
             std::uint32_t channels, std::uint32_t own) {
  for (auto keeper = static_cast<std::uint32_t>(line.size()); --keeper > position;) {
    const Chunk part = input(static_cast<std::uint32_t>(line[keeper]) * channels + own);
    block.steps.push_back(
        step(position == 0 ? StepType::send : StepType::receive_reduce_send, part));
  }
}

}  // namespace

Schedule line_reduce_scatter(const AlgorithmOptions& options) {
  check_quadratic(options);
  const auto ranks = static_cast<std::uint32_t>(options.ranks);
  const auto channels = static_cast<std::uint32_t>(options.channels);
  Schedule schedule = schedule_without_blocks("line_reduce_scatter", Collective::reduce_scatter,
                                              options, ranks * channels);
  if (ranks == 1) return local_copy(std::move(schedule));
  for (int channel = 0; channel < options.channels; ++channel) {
    const auto own = static_cast<std::uint32_t>(channel);
    const std::vector<int> up = line_of(options, channel, true);
    const std::vector<int> down = line_of(options, channel, false);
    for (std::uint32_t position = 0; position < ranks; ++position) {
      const Chunk kept = input(static_cast<std::uint32_t>(up[position]) * channels + own);
      ThreadBlock& from_below = add_line_block(schedule, up, position, channel);
      pass_on(from_below, up, position, channels, own);
      if (position > 0) {
        const Step last = step(StepType::receive_reduce_copy, kept, output(own));
        from_below.steps.push_back(position + 1 < ranks ? publishing(last) : last);
      }
      auto& blocks = schedule.ranks[static_cast<std::size_t>(up[position])].blocks;
      const auto below = static_cast<std::uint32_t>(blocks.size() - 1);
      const auto summed = static_cast<std::uint32_t>(blocks.back().steps.size() - 1);
      ThreadBlock& from_above = add_line_block(schedule, down, ranks - 1 - position, channel);
      pass_on(from_above, down, ranks - 1 - position, channels, own);
      if (position + 1 == ranks) continue;
      if (position == 0) {
        from_above.steps.push_back(step(StepType::receive_reduce_copy, kept, output(own)));
      } else {
        from_above.steps.push_back(
            after(below, summed, step(StepType::receive_reduce_copy, output(own), output(own))));
      }
    }
  }
  return schedule;
}

}  // namespace towpath::collective
