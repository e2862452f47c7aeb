// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// Ring all-reduce: 2(R-1) sequential steps, 2 S (R-1)/R wire bytes per rank. Each of a channel's R
// chunks goes around the ring once for the sum and once for the distribution.

// Steps of the rank at position 0 of a ring. Other ranks rotate the chunks.
std::shared_ptr<StepList> all_reduce_steps(std::uint32_t ranks) {
  auto list = std::make_shared<StepList>();
  list->rows = ranks;
  const auto chunk = [ranks](std::uint32_t back) { return (2 * ranks - back) % ranks; };
  std::vector<Step>& steps = list->steps;
  steps.reserve(2 * ranks - 1);
  steps.push_back(step(StepType::send, input(chunk(1))));
  for (std::uint32_t back = 2; back < ranks; ++back) {
    steps.push_back(step(StepType::receive_reduce_send, input(chunk(back))));
  }
  steps.push_back(
      step(StepType::receive_reduce_copy_send, input(chunk(ranks)), output(chunk(ranks))));
  for (std::uint32_t back = ranks + 1; back < 2 * ranks - 1; ++back) {
    steps.push_back(step(StepType::receive_copy_send, output(chunk(back))));
  }
  steps.push_back(step(StepType::receive, output(chunk(2 * ranks - 1))));
  return list;
}

void build_ring_all_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  const std::uint32_t ranks = options.ranks;
  const std::shared_ptr<StepList> steps = all_reduce_steps(ranks);
  for (int channel = 0; channel < options.channels; ++channel) {
    const std::vector<int> ring = ring_of(options, channel);
    const std::uint32_t first = channel * ranks;
    for (std::uint32_t position = 0; position < ranks; ++position) {
      add_ring_block(schedule, ring, position, channel).steps =
          Steps(steps, {.row_shift = position, .first_chunk = first});
    }
  }
}

// Simple ring all-reduce: 2(R-1) sequential steps, 2 S wire bytes per rank except at the ends of
// the ring. Each channel's share of the array is one chunk. It is summed from the ring's first rank
// to its last, then distributed around the ring. Only channels run in parallel.
void build_simple_ring_all_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  for (int channel = 0; channel < options.channels; ++channel) {
    const std::vector<int> ring = ring_of(options, channel);
    for (std::size_t position = 0; position < ring.size(); ++position) {
      Steps& steps = add_ring_block(schedule, ring, position, channel).steps;
      const bool is_first = position == 0;
      const bool is_last = position + 1 == ring.size();
      const bool is_end = position + 2 == ring.size();  // last to receive the result
      if (is_last) {
        steps.push_back(step(StepType::receive_reduce_copy_send, input(channel), output(channel)));
      } else {
        steps.push_back(
            step(is_first ? StepType::send : StepType::receive_reduce_send, input(channel)));
        steps.push_back(
            step(is_end ? StepType::receive : StepType::receive_copy_send, output(channel)));
      }
    }
  }
}

// Ring all-gather: R-1 sequential steps, S (R-1)/R wire bytes per rank. S is the gathered array.
// Every part goes around the ring once, with one chunk per channel.

// Steps of the rank at position 0 of a ring. Parts are rows of one chunk per channel.
std::shared_ptr<StepList> all_gather_steps(const std::vector<int>& ring, std::uint32_t channels) {
  const auto ranks = static_cast<std::uint32_t>(ring.size());
  std::shared_ptr<StepList> list = list_of_parts(ring, channels);
  const auto gathered = [&](std::uint32_t back) { return output((ranks - back) * channels); };
  std::vector<Step>& steps = list->steps;
  steps.reserve(ranks);
  steps.push_back(step(StepType::send, input(list->places())));
  for (std::uint32_t back = 1; back < ranks - 1; ++back) {
    steps.push_back(step(StepType::receive_copy_send, gathered(back)));
  }
  steps.push_back(step(StepType::receive, gathered(ranks - 1)));
  return list;
}

void build_ring_all_gather(Schedule& schedule, const AlgorithmOptions& options) {
  add_rings_of_parts(schedule, options, all_gather_steps);
  add_own_copies(schedule);
}

// Ring reduce-scatter: R-1 sequential steps, S (R-1)/R wire bytes per rank. S is the array before
// scattering. Each part ends its path at its owner.

// Steps of the rank at position 0 of a ring. Parts are rows of one chunk per channel.
std::shared_ptr<StepList> reduce_scatter_steps(const std::vector<int>& ring,
                                               std::uint32_t channels) {
  const auto ranks = static_cast<std::uint32_t>(ring.size());
  std::shared_ptr<StepList> list = list_of_parts(ring, channels);
  const auto part = [&](std::uint32_t back) { return input((ranks - back) % ranks * channels); };
  std::vector<Step>& steps = list->steps;
  steps.reserve(ranks);
  steps.push_back(step(StepType::send, part(1)));
  for (std::uint32_t back = 2; back < ranks; ++back) {
    steps.push_back(step(StepType::receive_reduce_send, part(back)));
  }
  steps.push_back(step(StepType::receive_reduce_copy, part(0), output(list->places())));
  return list;
}

void build_ring_reduce_scatter(Schedule& schedule, const AlgorithmOptions& options) {
  add_rings_of_parts(schedule, options, reduce_scatter_steps);
}

// Half-ring reduce-scatter: R/2 sequential steps, S (R-1)/R wire bytes per rank. S is the array
// before scattering. Partial sums reach the owner of a part from both sides, each over half the
// ring. If the number of ranks is even, the farthest rank's data takes the channel's forward
// direction, so that channels in both directions balance the load.
// Source: tt-metal, reduce_scatter_minimal_async, since PR 41522.

// Number of ranks that send a part forward, and backward.
std::uint32_t behind(std::uint32_t ranks) { return ranks / 2; }
std::uint32_t ahead(std::uint32_t ranks) { return (ranks - 1) / 2; }

// Data in transit at position 0: parts for ranks up to `farthest` away, the farthest first.
void add_passing(std::vector<Step>& steps, std::uint32_t farthest, auto part_at) {
  for (std::uint32_t distance = farthest; distance > 0; --distance) {
    const bool begins = distance == farthest;
    steps.push_back(
        step(begins ? StepType::send : StepType::receive_reduce_send, part_at(distance)));
  }
}

// A rank's thread blocks on a channel: one for the forward direction and, from three ranks, one for
// the backward direction, which leaves its sum in scratch.
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
      RankProgram& program = program_of(schedule_, ring_[position]);
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
    // In one pass, as soon as the sums of both directions are ready.
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

void build_half_ring_reduce_scatter(Schedule& schedule, const AlgorithmOptions& options) {
  for (int channel = 0; channel < options.channels; ++channel) {
    ChannelBuilder(schedule, options, channel).add();
  }
}

// A channel's ring as a chain that begins with the root, or that ends with it.
std::vector<int> chain_of(const AlgorithmOptions& options, int channel, bool begins) {
  std::vector<int> chain = ring_of(options, channel);
  const auto root = std::find(chain.begin(), chain.end(), options.root);
  std::rotate(chain.begin(), begins ? root : root + 1, chain.end());
  return chain;
}

// Ring broadcast: R-2+K sequential steps for K chunks per channel, S wire bytes per rank except the
// last. A chain along the ring from the root, with the chunks as a pipeline.
void build_ring_broadcast(Schedule& schedule, const AlgorithmOptions& options) {
  const int per_channel = options.chunks_per_channel;
  for (int channel = 0; channel < options.channels; ++channel) {
    const std::vector<int> chain = chain_of(options, channel, true);
    const int first = channel * per_channel;
    for (std::size_t position = 0; position < chain.size(); ++position) {
      ThreadBlock& block = add_line_block(schedule, chain, position, channel);
      const bool is_root = position == 0;
      const StepType type = is_root                    ? StepType::send
                            : block.send_peer == kNone ? StepType::receive
                                                       : StepType::receive_copy_send;
      for (int chunk = first; chunk < first + per_channel; ++chunk) {
        block.steps.push_back(step(type, is_root ? input(chunk) : output(chunk)));
      }
    }
    add_root_copies(schedule, channel, first, per_channel);
  }
}

// Ring reduce: R-2+K sequential steps for K chunks per channel, S wire bytes per rank except the
// root. A chain along the ring to the root, with the chunks as a pipeline.
void build_ring_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  const int per_channel = options.chunks_per_channel;
  for (int channel = 0; channel < options.channels; ++channel) {
    const std::vector<int> chain = chain_of(options, channel, false);
    for (std::size_t position = 0; position < chain.size(); ++position) {
      ThreadBlock& block = add_line_block(schedule, chain, position, channel);
      const bool is_root = block.send_peer == kNone;
      const StepType type = position == 0 ? StepType::send
                            : is_root     ? StepType::receive_reduce_copy
                                          : StepType::receive_reduce_send;
      for (int chunk = channel * per_channel; chunk < (channel + 1) * per_channel; ++chunk) {
        block.steps.push_back(step(type, input(chunk), is_root ? output(chunk) : input(chunk)));
      }
    }
  }
}

}  // namespace

constinit const Algorithm ring_all_reduce{
    .name = "ring_all_reduce",
    .collective = Collective::all_reduce,
    .build = build_ring_all_reduce,
    .description = "every chunk once round a ring to be summed, once more to be handed out",
    .cost = "2(R-1) steps, 2S(R-1)/R bytes",
};

constinit const Algorithm simple_ring_all_reduce{
    .name = "simple_ring_all_reduce",
    .collective = Collective::all_reduce,
    .build = build_simple_ring_all_reduce,
    .description = "a whole array once along a ring to be summed, once more to be handed out",
    .cost = "2(R-1) steps, 2S bytes",
    .chunks = chunk_per_channel,
};

constinit const Algorithm ring_all_gather{
    .name = "ring_all_gather",
    .collective = Collective::all_gather,
    .build = build_ring_all_gather,
    .description = "every part once round a ring",
    .cost = "R-1 steps, S(R-1)/R bytes",
};

constinit const Algorithm ring_reduce_scatter{
    .name = "ring_reduce_scatter",
    .collective = Collective::reduce_scatter,
    .build = build_ring_reduce_scatter,
    .description = "every part once round a ring, ending where it is kept",
    .cost = "R-1 steps, S(R-1)/R bytes",
};

constinit const Algorithm half_ring_reduce_scatter{
    .name = "half_ring_reduce_scatter",
    .collective = Collective::reduce_scatter,
    .build = build_half_ring_reduce_scatter,
    .description = "sums of every part from both sides, each from half way round a ring",
    .cost = "R/2 steps, S(R-1)/R bytes",
};

constinit const Algorithm ring_broadcast{
    .name = "ring_broadcast",
    .collective = Collective::broadcast,
    .build = build_ring_broadcast,
    .description = "a pipelined chain along a ring from the root",
    .cost = "R-2+K steps, S bytes",
    .chunks = pipeline_chunks,
};

constinit const Algorithm ring_reduce{
    .name = "ring_reduce",
    .collective = Collective::reduce,
    .build = build_ring_reduce,
    .description = "a pipelined chain along a ring to the root",
    .cost = "R-2+K steps, S bytes",
    .chunks = pipeline_chunks,
};

}  // namespace towpath::collective
