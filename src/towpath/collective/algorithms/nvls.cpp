// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/algorithms/building_one_sided.hpp"
#include "towpath/collective/algorithms/trees.hpp"

namespace towpath::collective {
namespace {

// All-reduces through scratch with a multicast address, in K pieces per channel. Thread blocks work
// on several pieces at once: one copies a piece into scratch, and one copies its sums out.

// One rank's thread blocks of one channel.
struct Lane {
  Schedule& schedule;
  int rank;
  int channel;
  int pieces;
  int group;  // of this rank

  const std::vector<int>& members() const { return schedule.groups[index(group)]; }
  std::uint32_t parts() const { return static_cast<std::uint32_t>(members().size()); }
  // The first chunk of a piece, which has one chunk per member.
  std::uint32_t first(std::uint32_t piece) const { return (channel * pieces + piece) * parts(); }
  // This rank's part of a piece.
  Chunk part(std::uint32_t piece) const {
    return scratch(first(piece) + (rank - members().front()));
  }
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

  // Returns the thread block whose step 2 i has copied piece i.
  std::uint32_t add_copies_in() const {
    ThreadBlock& block = add_block_to(schedule, rank);
    for (std::uint32_t piece = 0; piece < index(pieces); ++piece) {
      block.steps.push_back(publishing(copy(Buffer::input, Buffer::scratch, piece)));
      add_signals(block, rank, members(), channel);
    }
    return last_block(program_of(schedule, rank));
  }

  // Step first_step + i * stride of a thread block has stored this rank's sums of piece i.
  void add_copies_out(std::uint32_t stores, std::uint32_t first_step, std::uint32_t stride) const {
    ThreadBlock& block = add_block_to(schedule, rank);
    for (std::uint32_t piece = 0; piece < index(pieces); ++piece) {
      add_waits(block, rank, members(), sum_channel());
      block.steps.push_back(
          after(stores, first_step + stride * piece, copy(Buffer::scratch, Buffer::output, piece)));
    }
  }
};

// NVLS all-reduce in one host: each rank loads its part of the sum through the switch and stores it
// to all ranks' scratch. K + 2 steps, S(1 + 1/R) bytes in each direction.
void add_nvls(const Lane& lane) {
  const std::uint32_t copies = lane.add_copies_in();
  ThreadBlock& block = add_block_to(lane.schedule, lane.rank);
  for (std::uint32_t piece = 0; piece < index(lane.pieces); ++piece) {
    add_waits(block, lane.rank, lane.members(), lane.channel);
    const Operand part = of_group(lane.group, lane.part(piece));
    Step& step = add_direct(block, {part}, {part});
    step = publishing(after(copies, 2 * piece, step));
    add_signals(block, lane.rank, lane.members(), lane.sum_channel());
  }
  lane.add_copies_out(copies + 1, 1, 3);
}

void build_nvls_all_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  take_two_channels_each(schedule);
  schedule.has_switch_stages = true;
  schedule.groups = {all_ranks(schedule)};
  for (int rank = 0; rank < options.ranks; ++rank) {
    program_of(schedule, rank).scratch_chunks = schedule.chunks;
    for (int channel = 0; channel < options.channels; ++channel) {
      add_nvls({schedule, rank, channel, options.chunks_per_channel, 0});
    }
  }
}

// NVLS tree all-reduce: 2 log2(H) + 4 steps for H hosts, plus K - 1 for K pieces per channel. In
// each host, rank g of G loads the g-th part of the host's sum through the switch. The ranks g of
// all hosts sum it and distribute the result along a binary tree, and each stores the result to its
// whole host through the switch. S(1 + 1/G) bytes in each direction between a GPU and its switch;
// between hosts S/G to the parent and to each child.
struct TreeLane {
  Lane lane;
  const AlgorithmOptions& options;

  int gpus() const { return options.gpus_per_host; }
  int hosts() const { return options.ranks / gpus(); }
  int host() const { return lane.rank / gpus(); }
  std::uint32_t pieces() const { return static_cast<std::uint32_t>(lane.pieces); }
  // The sum of the host and then of all hosts, after the copies.
  std::uint32_t first_sum() const { return lane.schedule.chunks + lane.channel * pieces(); }
  RankProgram& program() const { return program_of(lane.schedule, lane.rank); }

  void add() const {
    const std::uint32_t loads = add_loads(lane.add_copies_in());
    const std::uint32_t stores =
        hosts() == 1 ? add_stores(loads, 1, 2) : add_stores(add_tree(loads), 0, 1);
    lane.add_copies_out(stores, 0, 2);
  }

  // Step 2 i + 1 loads the host's sums of piece i.
  std::uint32_t add_loads(std::uint32_t copies) const {
    ThreadBlock& block = add_block_to(lane.schedule, lane.rank);
    for (std::uint32_t piece = 0; piece < pieces(); ++piece) {
      add_waits(block, lane.rank, lane.members(), lane.channel);
      Step& step = add_direct(block, {of_group(lane.group, lane.part(piece))},
                              {own(scratch(first_sum() + piece))});
      step = publishing(after(copies, 2 * piece, step));
    }
    return last_block(program());
  }

  std::uint32_t add_tree(std::uint32_t loads) const {
    const auto rank_in = [&](int other) { return other * gpus() + lane.rank % gpus(); };
    TreeNode node{program()};
    node.channel = lane.channel;
    node.first_chunk = first_sum();
    node.chunks = pieces();
    node.source = node.result = Buffer::scratch;
    node.source_block = static_cast<std::int32_t>(loads);
    node.source_step = 1;
    node.source_stride = 2;
    node.publishes_result = true;
    const bool is_second = lane.channel % 2 == 1;
    for (int other = 0; other < hosts(); ++other) {
      const int parent = parent_of_host(other, hosts(), is_second).host;
      if (other == host() && parent != kNone) node.parent = rank_in(parent);
      if (parent == host()) node.children.push_back(rank_in(other));
    }
    node.add_way_up();
    return node.add_way_down();
  }

  // Step 2 i stores the result of piece i to the host's ranks, after step first_step + i * stride
  // of a thread block has it.
  std::uint32_t add_stores(std::uint32_t results, std::uint32_t first_step,
                           std::uint32_t stride) const {
    ThreadBlock& block = add_block_to(lane.schedule, lane.rank);
    for (std::uint32_t piece = 0; piece < pieces(); ++piece) {
      Step& step = add_direct(block, {own(scratch(first_sum() + piece))},
                              {of_group(lane.group, lane.part(piece))});
      step = publishing(after(results, first_step + stride * piece, step));
      add_signals(block, lane.rank, lane.members(), lane.sum_channel());
    }
    return last_block(program());
  }
};

void build_nvls_tree_all_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  take_two_channels_each(schedule);
  schedule.has_switch_stages = true;
  const std::vector<int> ranks = all_ranks(schedule);
  for (auto first = ranks.begin(); first != ranks.end(); first += options.gpus_per_host) {
    schedule.groups.emplace_back(first, first + options.gpus_per_host);
  }
  for (const int rank : ranks) {
    program_of(schedule, rank).scratch_chunks =
        schedule.chunks + options.channels * options.chunks_per_channel;
    for (int channel = 0; channel < options.channels; ++channel) {
      const int host = rank / options.gpus_per_host;
      TreeLane{{schedule, rank, channel, options.chunks_per_channel, host}, options}.add();
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
    .cost = "2log2(H)+K+3 steps, S(1+1/G) bytes each way",
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
