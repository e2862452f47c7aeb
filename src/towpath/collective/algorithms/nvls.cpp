// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/algorithms/building_one_sided.hpp"
#include "towpath/collective/algorithms/trees.hpp"

namespace towpath::collective {
namespace {

// NVLS all-reduce in one host: the array goes through multicast scratch in K pieces per channel.
// Three thread blocks per channel work on three pieces at once. One copies a piece into scratch,
// one loads its part of the sum through the switch and stores it to all ranks' scratch, one copies
// the sums out. K + 2 steps, S(1 + 1/R) bytes in each direction.

// One rank's thread blocks of one channel.
struct Lane {
  Schedule& schedule;
  int rank;
  int channel;
  int pieces;

  std::uint32_t parts() const { return schedule.rank_count(); }
  // The first chunk of a piece, which has one chunk per rank.
  std::uint32_t first(std::uint32_t piece) const { return (channel * pieces + piece) * parts(); }
  // Sums are signalled on separate channels.
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
    auto& blocks = program_of(schedule, rank).blocks;
    const auto copy_in = static_cast<std::uint32_t>(blocks.size());
    const std::uint32_t reduction = copy_in + 1;
    ThreadBlock& in = add_block_to(schedule, rank);
    for (std::uint32_t piece = 0; piece < index(pieces); ++piece) {
      in.steps.push_back(publishing(copy(Buffer::input, Buffer::scratch, piece)));
      add_signals(in, rank, ranks, channel);
    }
    ThreadBlock& sum = add_block_to(schedule, rank);
    for (std::uint32_t piece = 0; piece < index(pieces); ++piece) {
      const Chunk part = scratch(first(piece) + rank);
      add_waits(sum, rank, ranks, channel);
      Step& step = add_direct(sum, {of_group(0, part)}, {of_group(0, part)});
      step = publishing(after(copy_in, 2 * piece, step));
      add_signals(sum, rank, ranks, sum_channel());
    }
    ThreadBlock& out = add_block_to(schedule, rank);
    for (std::uint32_t piece = 0; piece < index(pieces); ++piece) {
      add_waits(out, rank, ranks, sum_channel());
      out.steps.push_back(
          after(reduction, 3 * piece + 1, copy(Buffer::scratch, Buffer::output, piece)));
    }
  }
};

void build_nvls_all_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  take_two_channels_each(schedule);
  schedule.has_switch_stages = true;
  schedule.groups = {all_ranks(schedule)};
  for (int rank = 0; rank < options.ranks; ++rank) {
    program_of(schedule, rank).scratch_chunks = schedule.chunks;
    for (int channel = 0; channel < options.channels; ++channel) {
      Lane{schedule, rank, channel, options.chunks_per_channel}.add();
    }
  }
}

// NVLS tree all-reduce: 2 log2(H) + 2 steps for H hosts, plus K - 1 for K chunks per channel. In
// each host, rank g of G loads the g-th part of the host's sum through the switch. The ranks g of
// all hosts sum it and distribute the result along a binary tree, and each stores the result to its
// whole host through the switch. S(1 + 1/G) bytes in each direction between a GPU and its switch;
// between hosts S/G to the parent and to each child.

// Steps of the barrier at the start of a thread block.
constexpr std::uint32_t kMeetingSteps = 2;

// One rank's share of one channel.
struct TreeLane {
  Schedule& schedule;
  const AlgorithmOptions& options;
  int rank;
  int channel;

  int gpus() const { return options.gpus_per_host; }
  int hosts() const { return options.ranks / gpus(); }
  int host() const { return rank / gpus(); }
  int gpu() const { return rank % gpus(); }
  std::uint32_t chunks() const { return options.chunks_per_channel; }
  std::uint32_t first_chunk() const { return (channel * gpus() + gpu()) * chunks(); }
  // Sums and results stay in scratch, so that a switch store to the output cannot overwrite data
  // that a rank still has to send.
  std::uint32_t first_scratch() const { return channel * chunks(); }
  const std::vector<int>& members() const { return schedule.groups[index(host())]; }
  RankProgram& program() const { return program_of(schedule, rank); }

  void add() const {
    const std::uint32_t load = add_loads();
    if (hosts() == 1) return add_stores(load, kMeetingSteps);
    add_stores(add_tree(load), 0);
  }

  // Loads the host's sums.
  std::uint32_t add_loads() const {
    ThreadBlock& block = add_block_to(schedule, rank);
    add_meeting(block, rank, members(), channel, true);
    for (std::uint32_t i = 0; i < chunks(); ++i) {
      Step& step = add_direct(block, {of_group(host(), input(first_chunk() + i))},
                              {own(scratch(first_scratch() + i))});
      step.publishes = true;
    }
    return last_block(program());
  }

  std::uint32_t add_tree(std::uint32_t load) const {
    const auto rank_in = [&](int other) { return other * gpus() + gpu(); };
    TreeNode node{program()};
    node.channel = channel;
    node.first_chunk = first_scratch();
    node.chunks = chunks();
    node.source = node.result = Buffer::scratch;
    node.source_block = static_cast<std::int32_t>(load);
    node.source_step = kMeetingSteps;
    node.publishes_result = true;
    const bool is_second = channel % 2 == 1;
    for (int other = 0; other < hosts(); ++other) {
      const int parent = parent_of_host(other, hosts(), is_second).host;
      if (other == host() && parent != kNone) node.parent = rank_in(parent);
      if (parent == host()) node.children.push_back(rank_in(other));
    }
    node.add_way_up();
    return node.add_way_down();
  }

  // Stores the results of step first_step + i of a thread block to the host's ranks.
  void add_stores(std::uint32_t result, std::uint32_t first_step) const {
    const int stores_channel = channel + options.channels;
    ThreadBlock& block = add_block_to(schedule, rank);
    for (std::uint32_t i = 0; i < chunks(); ++i) {
      Step& step = add_direct(block, {own(scratch(first_scratch() + i))},
                              {of_group(host(), output(first_chunk() + i))});
      step = after(result, first_step + i, step);
    }
    add_meeting(block, rank, members(), stores_channel);
  }
};

void build_nvls_tree_all_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  take_two_channels_each(schedule);
  const std::vector<int> ranks = all_ranks(schedule);
  for (auto first = ranks.begin(); first != ranks.end(); first += options.gpus_per_host) {
    schedule.groups.emplace_back(first, first + options.gpus_per_host);
  }
  for (const int rank : ranks) {
    program_of(schedule, rank).scratch_chunks = options.channels * options.chunks_per_channel;
    for (int channel = 0; channel < options.channels; ++channel) {
      TreeLane{schedule, options, rank, channel}.add();
    }
  }
}

// Collectives through a switch that combines and multicasts, directly between the ranks' buffers,
// as in kernels with multimem instructions on symmetric memory. A barrier at the start ensures that
// all inputs are complete. A barrier at the end ensures that all loads and stores are done.
//   one-shot all-reduce  every rank loads the whole sum; 1 step, S R bytes up, S down. Other ranks
//                        read the input until the end, so it does not run in place.
//   two-shot all-reduce  every rank loads the sum of one part and stores it to all; 1 step,
//                        S(1 + 1/R) bytes in each direction.
//   all-gather           every rank stores its part to all; 1 step, S/R bytes up, S down.
//   reduce-scatter       every rank loads the sum of its part; 1 step, S bytes up, S/R down.

// An operand of the step for `chunk` of the array, which is `own_chunk` of the rank's part.
Operand inputs(std::int64_t chunk, std::int64_t) { return of_group(0, input(chunk)); }
Operand outputs(std::int64_t chunk, std::int64_t) { return of_group(0, output(chunk)); }
Operand own_input(std::int64_t, std::int64_t own_chunk) { return own(input(own_chunk)); }
Operand own_output(std::int64_t, std::int64_t own_chunk) { return own(output(own_chunk)); }

template <auto source, auto destination>
void build_multimem(Schedule& schedule, const AlgorithmOptions& options) {
  const bool is_whole = schedule.chunks == schedule.channels;  // not one part per rank
  schedule.in_place = !is_whole;
  const std::vector<int> ranks = all_ranks(schedule);
  schedule.groups = {ranks};
  for (const int rank : ranks) {
    for (int channel = 0; channel < options.channels; ++channel) {
      const int chunk = (is_whole ? 0 : rank) * options.channels + channel;
      ThreadBlock& block = add_block_to(schedule, rank);
      add_meeting(block, rank, ranks, channel, true);
      add_direct(block, {source(chunk, channel)}, {destination(chunk, channel)});
      add_meeting(block, rank, ranks, channel);
    }
  }
}

}  // namespace

constinit const Algorithm nvls_all_reduce{
    .name = "nvls_all_reduce",
    .collective = Collective::all_reduce,
    .build = build_nvls_all_reduce,
    .description = "pieces copied in, summed and stored to all by the switch, and copied out",
    .cost = "K+2 steps, S(1+1/R) bytes each way",
    .chunks =
        [](const AlgorithmOptions& options) { return pipeline_chunks(options) * options.ranks; },
    .is_quadratic = true,
    .reach = Reach::group,
};

constinit const Algorithm nvls_tree_all_reduce{
    .name = "nvls_tree_all_reduce",
    .collective = Collective::all_reduce,
    .build = build_nvls_tree_all_reduce,
    .description = "sums by each host's switch, up and down a tree of hosts, and out by the switch",
    .cost = "2log2(H)+K+1 steps, S(1+1/G) bytes each way",
    .chunks =
        [](const AlgorithmOptions& options) {
          return pipeline_chunks(options) * options.gpus_per_host;
        },
    .is_quadratic = true,
    .reach = Reach::group_of_host,
};

constinit const Algorithm one_shot_multimem_all_reduce{
    .name = "one_shot_multimem_all_reduce",
    .collective = Collective::all_reduce,
    .build = build_multimem<inputs, own_output>,
    .description = "every rank loads the whole sum, which the switch makes",
    .cost = "1 step, SR bytes up, S down",
    .chunks = chunk_per_channel,
    .is_quadratic = true,
    .reach = Reach::group,
};

constinit const Algorithm two_shot_multimem_all_reduce{
    .name = "two_shot_multimem_all_reduce",
    .collective = Collective::all_reduce,
    .build = build_multimem<inputs, outputs>,
    .description = "every rank loads the sum of one part and stores it to all, both by the switch",
    .cost = "1 step, S(1+1/R) bytes each way",
    .is_quadratic = true,
    .reach = Reach::group,
};

constinit const Algorithm nvls_all_gather{
    .name = "nvls_all_gather",
    .collective = Collective::all_gather,
    .build = build_multimem<own_input, outputs>,
    .description = "every rank stores its part to all by the switch",
    .cost = "1 step, S/R bytes up, S down",
    .is_quadratic = true,
    .reach = Reach::group,
};

constinit const Algorithm nvls_reduce_scatter{
    .name = "nvls_reduce_scatter",
    .collective = Collective::reduce_scatter,
    .build = build_multimem<inputs, own_output>,
    .description = "every rank loads the sum of its part, which the switch makes",
    .cost = "1 step, S bytes up, S/R down",
    .is_quadratic = true,
    .reach = Reach::group,
};

}  // namespace towpath::collective
