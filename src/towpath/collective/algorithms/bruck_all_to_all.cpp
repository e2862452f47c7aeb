// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Bruck's all-to-all: log2(R) steps over the wire one after the other, rounded up, about S
// log2(R)/2 bytes on the wire per rank. A part that has to go `offset` ranks on takes one hop for
// each bit of the offset, so that a rank has log2(R) peers only.
#include <optional>
#include <utility>

#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// How a part of an offset comes by: where each of its hops arrives, and by which step.
struct Arrival {
  std::uint32_t block;
  std::uint32_t index;
  std::uint32_t chunk;  // of scratch
};

class RankBuilder {
 public:
  RankBuilder(Schedule& schedule, int rank, int channel)
      : program_(schedule.ranks[static_cast<std::size_t>(rank)]),
        rank_(rank),
        ranks_(schedule.rank_count()),
        channels_(static_cast<int>(schedule.channels)),
        channel_(channel),
        last_(static_cast<std::size_t>(ranks_)),
        first_send_(static_cast<std::size_t>(ranks_)) {}

  void add() {
    for (int distance = 1; distance < ranks_; distance *= 2) add_round(distance);
    add_copies();
  }

 private:
  static std::size_t index(int offset) { return static_cast<std::size_t>(offset); }

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

  // In place, a part of the output is the memory of one of the input, which has to be sent before.
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

Schedule make(const AlgorithmOptions& options) {
  check_quadratic(options);
  Schedule schedule = schedule_without_blocks(
      "bruck_all_to_all", Collective::all_to_all, options,
      static_cast<std::uint32_t>(options.ranks) * static_cast<std::uint32_t>(options.channels));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int rank = 0; rank < options.ranks; ++rank) {
    for (int channel = 0; channel < options.channels; ++channel) {
      RankBuilder(schedule, rank, channel).add();
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm bruck_all_to_all{
    .name = "bruck_all_to_all",
    .collective = Collective::all_to_all,
    .make = make,
    .description = "parts in log2(R) rounds by the bits of the way they have to go",
    .cost = "log2(R) steps, S log2(R)/2 bytes",
};

}  // namespace towpath::collective
