// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <map>
#include <utility>

#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// PAT all-gather (parallel aggregated trees, NCCL's for one GPU per host): ceil(log2(R)) sequential
// network steps, S (R-1)/R wire bytes per rank. S is the gathered array. Each part goes down a
// binomial tree from its rank. Long distances come first, while there is little data. A part is
// forwarded on arrival.

// Parts are identified by offset: the distance back to their owner. In the round of a distance, a
// rank has the parts with offsets divisible by twice the distance.
void add_all_gather_rank(Schedule& schedule, int rank, int channel) {
  const int ranks = schedule.rank_count();
  const auto channels = static_cast<int>(schedule.channels);
  RankProgram& program = program_of(schedule, rank);
  const auto gathered = [&](int offset) {
    return output((rank + ranks - offset) % ranks * channels + channel);
  };
  std::map<int, std::uint32_t> receiving;  // by distance
  const auto farthest = static_cast<int>(std::bit_ceil(static_cast<std::uint32_t>(ranks)) / 2);
  for (int distance = farthest; distance > 0; distance /= 2) {
    std::vector<Step> sends;
    std::vector<Step> receives;
    for (int offset = 0; offset + distance < ranks; offset += 2 * distance) {
      if (offset == 0) {
        sends.push_back(step(StepType::send, input(channel)));
      } else {
        const int from = offset & -offset;
        sends.push_back(after(receiving[from], (offset - from) / (2 * from),
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

void build_pat_all_gather(Schedule& schedule, const AlgorithmOptions& options) {
  for (int rank = 0; rank < options.ranks; ++rank) {
    for (int channel = 0; channel < options.channels; ++channel)
      add_all_gather_rank(schedule, rank, channel);
  }
  add_own_copies(schedule);
}

// PAT reduce-scatter (parallel aggregated trees, NCCL's for one GPU per host): ceil(log2(R))
// sequential network steps, S (R-1)/R wire bytes per rank. Each part goes up a binomial tree to its
// rank, in the reverse order of the all-gather: long distances come last, when most of the data is
// summed.

// Parts are identified by offset: the distance back to their owner. In the round of a distance, a
// rank sends the parts with the distance as their offset's lowest bit.
class SumBuilder {
 public:
  SumBuilder(Schedule& schedule, int rank, int channel)
      : program_(program_of(schedule, rank)),
        rank_(rank),
        ranks_(schedule.rank_count()),
        channels_(static_cast<int>(schedule.channels)),
        channel_(channel) {}

  void add() {
    for (int distance = 1; distance < ranks_; distance *= 2) {
      std::vector<Step> sends;
      std::vector<Step> receives;
      for (int offset = 0; offset + distance < ranks_; offset += 2 * distance) {
        sends.push_back(send(offset + distance, distance));
        receives.push_back(receive(offset, distance));
      }
      add_block(program_, kNone, (rank_ + ranks_ - distance) % ranks_, channel_).steps =
          std::move(sends);
      add_block(program_, (rank_ + distance) % ranks_, kNone, channel_).steps = std::move(receives);
      receiving_[distance] = last_block(program_);
    }
  }

 private:
  Chunk contribution(int offset) const {
    return input((rank_ + ranks_ - offset) % ranks_ * channels_ + channel_);
  }
  // The rank's part is summed in the output, all others in scratch.
  Chunk sum(int offset) const {
    return offset == 0 ? output(channel_) : scratch(offset / 2 * channels_ + channel_);
  }
  Step after_receipt(int offset, int distance, Step step) const {
    return after(receiving_.at(distance), offset / (2 * distance), step);
  }

  Step send(int offset, int distance) const {
    int last = distance / 2;  // the round that completed the sum
    while (last > 0 && offset + last >= ranks_) last /= 2;
    if (last == 0) return step(StepType::send, contribution(offset));
    return after_receipt(offset, last, step(StepType::send, sum(offset)));
  }

  Step receive(int offset, int distance) const {
    const bool is_first = distance == 1;
    Step next = step(StepType::receive_reduce_copy, is_first ? contribution(offset) : sum(offset),
                     sum(offset));
    if (!is_first) next = after_receipt(offset, distance / 2, next);
    next.publishes = offset != 0 || 2 * distance < ranks_;
    return next;
  }

  RankProgram& program_;
  int rank_;
  int ranks_;
  int channels_;
  int channel_;
  std::map<int, std::uint32_t> receiving_;  // thread block of a round, by its distance
};

void build_pat_reduce_scatter(Schedule& schedule, const AlgorithmOptions& options) {
  for (int rank = 0; rank < options.ranks; ++rank) {
    program_of(schedule, rank).scratch_chunks = (options.ranks + 1) / 2 * options.channels;
    for (int channel = 0; channel < options.channels; ++channel) {
      SumBuilder(schedule, rank, channel).add();
    }
  }
}

}  // namespace

constinit const Algorithm pat_all_gather{
    .name = "pat_all_gather",
    .collective = Collective::all_gather,
    .build = build_pat_all_gather,
    .description = "every part down a binomial tree of its own, to far ranks first",
    .cost = "log2(R) steps, S(R-1)/R bytes",
    .is_quadratic = true,
};

constinit const Algorithm pat_reduce_scatter{
    .name = "pat_reduce_scatter",
    .collective = Collective::reduce_scatter,
    .build = build_pat_reduce_scatter,
    .description = "every part up a binomial tree of its own, from near ranks first",
    .cost = "log2(R) steps, S(R-1)/R bytes",
    .is_quadratic = true,
};

}  // namespace towpath::collective
