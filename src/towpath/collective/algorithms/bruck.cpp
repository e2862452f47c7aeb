// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// Bruck's all-gather: ceil(log2(R)) sequential network steps, S (R-1)/R wire bytes per rank. S is
// the gathered array. In each round, a rank sends all its data to a rank twice as far away. A round
// takes one or two transfers with one channel, otherwise one per part.

// A range of parts that may wrap around.
struct Parts {
  int first;
  int count;
};

void add_parts(Steps& steps, StepType type, Parts parts, const Schedule& schedule, int channel) {
  auto [first, count] = parts;
  const int ranks = schedule.rank_count();
  const int channels = static_cast<int>(schedule.channels);
  while (count > 0) {
    const int together =
        channels > 1 ? 1 : std::min({count, ranks - first, static_cast<int>(kSegmentChunks)});
    steps.push_back(step(type, output(first * channels + channel), together));
    count -= together;
    first = (first + together) % ranks;
  }
}

void add_rank(Schedule& schedule, int rank, int channel) {
  const int ranks = schedule.rank_count();
  const auto channels = static_cast<int>(schedule.channels);
  RankProgram& program = program_of(schedule, rank);
  add_block(program, kNone, kNone, channel)
      .steps.push_back(
          publishing(step(StepType::copy, input(channel), output(rank * channels + channel))));
  std::vector<std::uint32_t> before = {last_block(program)};  // added in the last round
  for (int distance = 1; distance < ranks; distance *= 2) {
    const int parts = std::min(distance, ranks - distance);
    const int sender = (rank + ranks - distance) % ranks;
    ThreadBlock& sending = add_block(program, kNone, (rank + distance) % ranks, channel);
    for (std::size_t i = 0; i + 1 < before.size(); ++i) sending.steps.push_back(Step{});
    add_parts(sending.steps, StepType::send, {(rank + ranks - parts + 1) % ranks, parts}, schedule,
              channel);
    for (std::size_t i = 0; i < before.size(); ++i) {
      Steps& awaited = program.blocks[before[i]].steps;
      awaited.back().publishes = true;
      sending.steps[i] = after(before[i], awaited.size() - 1, sending.steps[i]);
    }
    before = {last_block(program)};
    ThreadBlock& receiving = add_block(program, sender, kNone, channel);
    add_parts(receiving.steps, StepType::receive, {(sender + ranks - parts + 1) % ranks, parts},
              schedule, channel);
    before.push_back(last_block(program));
  }
}

void build_bruck_all_gather(Schedule& schedule, const AlgorithmOptions& options) {
  for (int rank = 0; rank < options.ranks; ++rank) {
    for (int channel = 0; channel < options.channels; ++channel) add_rank(schedule, rank, channel);
  }
}

// Bruck's all-to-all: ceil(log2(R)) sequential network steps, about S log2(R)/2 wire bytes per
// rank. A part for the rank `offset` further takes one hop for each bit of the offset, so a rank
// has only log2(R) peers.

// Arrival of a part after a hop: its chunk and the receiving step.
struct Arrival {
  std::uint32_t block;
  std::uint32_t index;
  std::uint32_t chunk;  // in scratch
};

class RankBuilder {
 public:
  RankBuilder(Schedule& schedule, int rank, int channel)
      : program_(program_of(schedule, rank)),
        rank_(rank),
        ranks_(schedule.rank_count()),
        channels_(static_cast<int>(schedule.channels)),
        channel_(channel),
        last_(index(ranks_)),
        first_send_(index(ranks_)) {}

  void add() {
    for (int distance = 1; distance < ranks_; distance *= 2) add_round(distance);
    add_copies();
  }

 private:
  std::uint32_t part(int offset) const {
    return static_cast<std::uint32_t>((rank_ + ranks_ + offset) % ranks_ * channels_ + channel_);
  }

  void add_round(int distance) {
    std::vector<Step> sends;
    std::vector<Step> receives;
    const auto sending = static_cast<std::uint32_t>(program_.blocks.size());
    for (int offset = distance; offset < ranks_; ++offset) {
      if ((offset & distance) == 0) continue;
      const auto number = static_cast<std::uint32_t>(sends.size());
      std::optional<Arrival>& last = last_[index(offset)];
      if (last) {
        sends.push_back(
            after(last->block, last->index, step(StepType::send, scratch(last->chunk))));
      } else {
        first_send_[index(offset)] = {sending, number, 0};
        sends.push_back(publishing(step(StepType::send, input(part(offset)))));
      }
      last = Arrival{sending + 1, number, program_.scratch_chunks++};
      receives.push_back(publishing(step(StepType::receive, scratch(last->chunk))));
    }
    add_block(program_, kNone, (rank_ + distance) % ranks_, channel_).steps = std::move(sends);
    add_block(program_, (rank_ + ranks_ - distance) % ranks_, kNone, channel_).steps =
        std::move(receives);
  }

  // In place, a part of the output overlaps a part of the input, which must be sent first.
  void add_copies() {
    ThreadBlock& block = add_block(program_, kNone, kNone, channel_);
    block.steps.push_back(step(StepType::copy, input(part(0)), output(part(0))));
    for (int offset = 1; offset < ranks_; ++offset) {
      const Arrival& sent = first_send_[index(ranks_ - offset)];
      const Arrival& came = *last_[index(offset)];
      block.steps.push_back(after(sent.block, sent.index, Step{}));
      block.steps.push_back(
          after(came.block, came.index,
                step(StepType::copy, scratch(came.chunk), output(part(-offset)))));
    }
  }

  RankProgram& program_;
  int rank_;
  int ranks_;
  int channels_;
  int channel_;
  std::vector<std::optional<Arrival>> last_;  // by offset
  std::vector<Arrival> first_send_;           // by offset
};

void build_bruck_all_to_all(Schedule& schedule, const AlgorithmOptions& options) {
  for (int rank = 0; rank < options.ranks; ++rank) {
    for (int channel = 0; channel < options.channels; ++channel) {
      RankBuilder(schedule, rank, channel).add();
    }
  }
}

}  // namespace

constinit const Algorithm bruck_all_gather{
    .name = "bruck_all_gather",
    .collective = Collective::all_gather,
    .build = build_bruck_all_gather,
    .description = "all that a rank has, to ever farther ranks",
    .cost = "log2(R) steps, S(R-1)/R bytes",
    .is_quadratic = true,
};

constinit const Algorithm bruck_all_to_all{
    .name = "bruck_all_to_all",
    .collective = Collective::all_to_all,
    .build = build_bruck_all_to_all,
    .description = "parts in log2(R) rounds by the bits of the way they have to go",
    .cost = "log2(R) steps, S log2(R)/2 bytes",
    .is_quadratic = true,
};

}  // namespace towpath::collective
