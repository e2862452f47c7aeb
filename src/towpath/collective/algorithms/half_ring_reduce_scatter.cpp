// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Half-ring reduce-scatter: R/2 steps one after the other, S (R-1)/R bytes on the wire per rank. S
// is the array before it is scattered. Sums of each part come to the rank that keeps it from both
// sides, each from half way round. Of an even number of ranks, what the farthest one has goes the
// channel's own way, so that with channels both ways round as much goes each way. tt-metal does the
// same on rings of chips (reduce_scatter_minimal_async, from its PR 41522 on).
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// How many ranks send a channel's part its own way, and against it.
std::uint32_t behind(std::uint32_t ranks) { return ranks / 2; }
std::uint32_t ahead(std::uint32_t ranks) { return (ranks - 1) / 2; }

// What passes the rank at position 0: parts of those that are `farthest` away, and nearer.
void add_passing(std::vector<Step>& steps, std::uint32_t farthest, auto part_at) {
  for (std::uint32_t distance = farthest; distance > 0; --distance) {
    const bool begins = distance == farthest;
    steps.push_back(
        step(begins ? StepType::send : StepType::receive_reduce_send, part_at(distance)));
  }
}

// A rank's thread blocks on a channel: one for its own way and, from three ranks on, one for the
// other way, which leaves its sum in scratch.
class ChannelBuilder {
 public:
  ChannelBuilder(Schedule& schedule, const AlgorithmOptions& options, int channel)
      : schedule_(schedule),
        ring_(ring_of(options, channel)),
        ranks_(static_cast<std::uint32_t>(ring_.size())),
        channel_(channel) {}

  void add() {
    const bool has_other_way = ahead(ranks_) > 0;
    const auto block = static_cast<std::uint32_t>(schedule_.ranks[0].blocks.size());
    const auto own_way = own_way_of_first(block + 1);
    const auto other_way = has_other_way ? other_way_of_first() : nullptr;
    for (std::uint32_t position = 0; position < ranks_; ++position) {
      const Rotation rotation{.row_shift = position,
                              .first_chunk = static_cast<std::uint32_t>(channel_)};
      add_ring_block(schedule_, ring_, position, channel_).steps = Steps(own_way, rotation);
      if (!has_other_way) continue;
      RankProgram& program = schedule_.ranks[static_cast<std::size_t>(ring_[position])];
      program.scratch_chunks = schedule_.channels;
      add_block(program, neighbour(position, 1), neighbour(position, ranks_ - 1), channel_).steps =
          Steps(other_way, rotation);
    }
  }

 private:
  int neighbour(std::uint32_t position, std::uint32_t distance) const {
    return ring_[(position + distance) % ranks_];
  }

  Chunk part_of(std::uint32_t position) const { return input(position * schedule_.channels); }

  std::shared_ptr<StepList> own_way_of_first(std::uint32_t other_block) const {
    std::shared_ptr<StepList> list = list_of_parts(ring_, schedule_.channels);
    add_passing(list->steps, behind(ranks_), [&](std::uint32_t far) { return part_of(far); });
    const Chunk sum = output(list->places());
    const Step add_own = step(StepType::receive_reduce_copy, part_of(0), sum);
    if (ahead(ranks_) == 0) {
      list->steps.push_back(add_own);
      return list;
    }
    // In one pass, as soon as both ways' sums are there.
    list->steps.push_back(after(other_block, ahead(ranks_), add_own));
    list->steps.push_back(step(StepType::reduce, scratch(list->places()), sum));
    return list;
  }

  std::shared_ptr<StepList> other_way_of_first() const {
    std::shared_ptr<StepList> list = list_of_parts(ring_, schedule_.channels);
    add_passing(list->steps, ahead(ranks_),
                [&](std::uint32_t far) { return part_of(ranks_ - far); });
    list->steps.push_back(publishing(step(StepType::receive, scratch(list->places()))));
    return list;
  }

  Schedule& schedule_;
  std::vector<int> ring_;
  std::uint32_t ranks_;
  int channel_;
};

Schedule make(const AlgorithmOptions& options) {
  Schedule schedule = schedule_without_blocks(
      "half_ring_reduce_scatter", Collective::reduce_scatter, options,
      static_cast<std::uint32_t>(options.ranks) * static_cast<std::uint32_t>(options.channels));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int channel = 0; channel < options.channels; ++channel) {
    ChannelBuilder(schedule, options, channel).add();
  }
  return schedule;
}

}  // namespace

constinit const Algorithm half_ring_reduce_scatter{
    .name = "half_ring_reduce_scatter",
    .collective = Collective::reduce_scatter,
    .make = make,
    .description = "sums of every part from both sides, each from half way round a ring",
    .cost = "R/2 steps, S(R-1)/R bytes",
};

}  // namespace towpath::collective
