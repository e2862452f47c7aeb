// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// All-gather by multicast: 1 step over the wire, S/R bytes sent by each rank, copied on their way,
// S (R-1)/R bytes received. S is the gathered array. All ranks meet at the beginning, when all
// outputs may be stored to; a signal behind its bytes says that a rank's part is there.
#include "towpath/collective/algorithms/building_one_sided.hpp"

namespace towpath::collective {
namespace {

void add_block(Schedule& schedule, int rank, int channel) {
  const auto channels = schedule.channels;
  const std::vector<int>& ranks = schedule.groups.front();
  const auto own_chunk = static_cast<std::uint32_t>(channel);
  ThreadBlock& block = add_block_to(schedule, rank);
  add_meeting(block, rank, ranks, channel, true);
  add_direct(block, {own(input(own_chunk))},
             {of_group(0, output(static_cast<std::uint32_t>(rank) * channels + own_chunk))});
  Access& access = block.accesses.back();
  access.signals = true;
  access.ends = block.accesses.front().ends;
  add_waits(block, rank, ranks, channel);
}

Schedule make(const AlgorithmOptions& options) {
  check_one_sided(options);
  Schedule schedule = schedule_without_blocks(
      "multicast_all_gather", Collective::all_gather, options,
      static_cast<std::uint32_t>(options.channels) * static_cast<std::uint32_t>(options.ranks));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  schedule.groups = {all_ranks(schedule)};
  for (int rank = 0; rank < options.ranks; ++rank) {
    for (int channel = 0; channel < options.channels; ++channel) add_block(schedule, rank, channel);
  }
  return schedule;
}

}  // namespace

constinit const Algorithm multicast_all_gather{
    .name = "multicast_all_gather",
    .collective = Collective::all_gather,
    .make = make,
    .description = "every rank sends its part to all at once",
    .cost = "1 step, S/R bytes, copied on their way",
    .reach = Reach::multicast,
};

}  // namespace towpath::collective
