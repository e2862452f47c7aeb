// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// PAT all-gather (parallel aggregated trees, NCCL's for one GPU per host): log2(R) steps over the
// wire one after the other, rounded up, S (R-1)/R bytes on the wire per rank. S is the gathered
// array. Each part goes down a binomial tree from its rank; what goes far goes first, while there
// is least of it. A part is sent on as soon as it is there.
#include <bit>
#include <map>
#include <utility>

#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// A rank's parts by their offset: how many ranks before this one a part's own rank is. In the round
// of a distance, a rank has the parts whose offset is a multiple of twice the distance.
void add_rank(Schedule& schedule, int rank, int channel) {
  const int ranks = schedule.rank_count();
  const auto channels = static_cast<int>(schedule.channels);
  RankProgram& program = schedule.ranks[static_cast<std::size_t>(rank)];
  const auto gathered = [&](int offset) {
    const int part = (rank + ranks - offset) % ranks;
    return output(static_cast<std::uint32_t>(part * channels + channel));
  };
  std::map<int, std::uint32_t> receiving;  // by distance
  const auto farthest = static_cast<int>(std::bit_ceil(static_cast<std::uint32_t>(ranks)) / 2);
  for (int distance = farthest; distance > 0; distance /= 2) {
    std::vector<Step> sends;
    std::vector<Step> receives;
    for (int offset = 0; offset + distance < ranks; offset += 2 * distance) {
      if (offset == 0) {
        sends.push_back(step(StepType::send, input(static_cast<std::uint32_t>(channel))));
      } else {
        const int from = offset & -offset;
        sends.push_back(after(receiving[from],
                              static_cast<std::uint32_t>((offset - from) / (2 * from)),
                              step(StepType::send, gathered(offset))));
      }
      const int arriving = offset + distance;
      receives.push_back(step(StepType::receive, gathered(arriving)));
      receives.back().publishes = distance > 1 && arriving + 1 < ranks;
    }
    add_block(program, kNone, (rank + distance) % ranks, channel).steps = std::move(sends);
    add_block(program, (rank + ranks - distance) % ranks, kNone, channel).steps =
        std::move(receives);
    receiving[distance] = last_block(program);
  }
}

Schedule make(const AlgorithmOptions& options) {
  check_quadratic(options);
  Schedule schedule = schedule_without_blocks(
      "pat_all_gather", Collective::all_gather, options,
      static_cast<std::uint32_t>(options.ranks) * static_cast<std::uint32_t>(options.channels));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int rank = 0; rank < options.ranks; ++rank) {
    for (int channel = 0; channel < options.channels; ++channel) add_rank(schedule, rank, channel);
  }
  add_own_copies(schedule);
  return schedule;
}

}  // namespace

constinit const Algorithm pat_all_gather{
    .name = "pat_all_gather",
    .collective = Collective::all_gather,
    .make = make,
    .description = "every part down a binomial tree of its own, to far ranks first",
    .cost = "log2(R) steps, S(R-1)/R bytes",
};

}  // namespace towpath::collective
