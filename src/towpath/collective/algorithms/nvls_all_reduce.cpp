// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// NVLS all-reduce in one host: the array goes through scratch that a switch reaches, in K pieces
// per channel, and three thread blocks per channel work on three pieces at once. One copies a piece
// into scratch, one loads its part of the sum through the switch and stores it to the scratch of
// all, one copies the sums out. K + 2 steps, S(1 + 1/R) bytes each way.
#include "towpath/collective/algorithms/building_one_sided.hpp"

namespace towpath::collective {
namespace {

// One rank's thread blocks of one channel.
struct Lane {
  Schedule& schedule;
  int rank;
  int channel;
  std::uint32_t pieces;

  std::uint32_t parts() const { return static_cast<std::uint32_t>(schedule.rank_count()); }
  // The first chunk of a piece; it has one for each rank.
  std::uint32_t first(std::uint32_t piece) const {
    return (static_cast<std::uint32_t>(channel) * pieces + piece) * parts();
  }
  // Sums are announced on a channel of their own.
  int sum_channel() const { return channel + static_cast<int>(schedule.channels / 2); }

  Step copy(Buffer from, Buffer to, std::uint32_t piece) const {
    Step step;
    step.type = StepType::copy;
    step.source = from;
    step.destination = to;
    step.source_chunk = step.destination_chunk = first(piece);
    step.count = parts();
    return step;
  }

  void add() const {
    const std::vector<int> ranks = all_ranks(schedule);
    auto& blocks = schedule.ranks[static_cast<std::size_t>(rank)].blocks;
    const auto copy_in = static_cast<std::uint32_t>(blocks.size());
    const std::uint32_t reduction = copy_in + 1;
    ThreadBlock& in = add_block_to(schedule, rank);
    for (std::uint32_t piece = 0; piece < pieces; ++piece) {
      in.steps.push_back(publishing(copy(Buffer::input, Buffer::scratch, piece)));
      add_signals(in, rank, ranks, channel);
    }
    ThreadBlock& sum = add_block_to(schedule, rank);
    for (std::uint32_t piece = 0; piece < pieces; ++piece) {
      const Chunk part = scratch(first(piece) + static_cast<std::uint32_t>(rank));
      add_waits(sum, rank, ranks, channel);
      Step& step = add_direct(sum, {of_group(0, part)}, {of_group(0, part)});
      step = publishing(after(copy_in, 2 * piece, step));
      add_signals(sum, rank, ranks, sum_channel());
    }
    ThreadBlock& out = add_block_to(schedule, rank);
    for (std::uint32_t piece = 0; piece < pieces; ++piece) {
      add_waits(out, rank, ranks, sum_channel());
      out.steps.push_back(
          after(reduction, 3 * piece + 1, copy(Buffer::scratch, Buffer::output, piece)));
    }
  }
};

Schedule make_nvls_all_reduce(const AlgorithmOptions& options) {
  check_one_sided(options, 2);
  const auto pieces = static_cast<std::uint32_t>(options.chunks_per_channel);
  const auto channels = static_cast<std::uint32_t>(options.channels);
  const auto ranks = static_cast<std::uint32_t>(options.ranks);
  Schedule schedule = schedule_without_blocks("nvls_all_reduce", Collective::all_reduce, options,
                                              channels * pieces * ranks);
  if (ranks == 1) return local_copy(std::move(schedule));
  schedule.channels = 2 * channels;
  schedule.groups = {all_ranks(schedule)};
  for (int rank = 0; rank < options.ranks; ++rank) {
    schedule.ranks[static_cast<std::size_t>(rank)].scratch_chunks = schedule.chunks;
    for (int channel = 0; channel < options.channels; ++channel) {
      Lane{schedule, rank, channel, pieces}.add();
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm nvls_all_reduce{
    .name = "nvls_all_reduce",
    .collective = Collective::all_reduce,
    .make = make_nvls_all_reduce,
    .description = "pieces copied in, summed and stored to all by the switch, and copied out",
    .cost = "K+2 steps, S(1+1/R) bytes each way",
    .reach = Reach::group,
};

}  // namespace towpath::collective
