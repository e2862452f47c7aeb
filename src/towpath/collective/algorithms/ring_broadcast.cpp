// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Ring broadcast: R-2+K steps one after the other for K chunks per channel, S bytes on the wire per
// rank but the last. A chain along the ring from the root; the chunks go through it as a pipeline.
#include <algorithm>

#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

Schedule make(const AlgorithmOptions& options) {
  const auto per_channel = static_cast<std::uint32_t>(options.chunks_per_channel);
  Schedule schedule =
      schedule_without_blocks("ring_broadcast", Collective::broadcast, options,
                              per_channel * static_cast<std::uint32_t>(options.channels));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int channel = 0; channel < options.channels; ++channel) {
    std::vector<int> chain = ring_of(options, channel);
    std::rotate(chain.begin(), std::find(chain.begin(), chain.end(), options.root), chain.end());
    const std::uint32_t first = static_cast<std::uint32_t>(channel) * per_channel;
    for (std::size_t position = 0; position < chain.size(); ++position) {
      const bool is_root = position == 0;
      const bool is_last = position + 1 == chain.size();
      ThreadBlock& block = add_ring_block(schedule, chain, position, channel);
      if (is_root) block.receive_peer = kNone;
      if (is_last) block.send_peer = kNone;
      const StepType type = is_root   ? StepType::send
                            : is_last ? StepType::receive
                                      : StepType::receive_copy_send;
      for (std::uint32_t chunk = first; chunk < first + per_channel; ++chunk) {
        block.steps.push_back(step(type, is_root ? input(chunk) : output(chunk)));
      }
    }
    add_root_copies(schedule, channel, first, per_channel);
  }
  return schedule;
}

}  // namespace

constinit const Algorithm ring_broadcast{
    .name = "ring_broadcast",
    .collective = Collective::broadcast,
    .make = make,
    .description = "a pipelined chain along a ring from the root",
    .cost = "R-2+K steps, S bytes",
};

}  // namespace towpath::collective
