// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// NVLS tree all-reduce: 2 log2(H) + 2 steps for H hosts, and K - 1 more for K chunks per channel.
// In each host rank g of G loads the g-th part of the host's sum through the switch, the ranks g of
// all hosts sum it up and hand it down along a binary tree, and each stores the result to all of
// its host through the switch. S(1 + 1/G) bytes each way between a GPU and its switch; between
// hosts S/G to the parent and to each child.
#include "towpath/collective/algorithms/building_one_sided.hpp"
#include "towpath/collective/algorithms/building_tree.hpp"
#include "towpath/collective/algorithms/trees.hpp"

namespace towpath::collective {
namespace {

// Steps of the meeting that a thread block begins with.
constexpr std::uint32_t kMeetingSteps = 2;

// One rank's part of one channel.
struct Lane {
  Schedule& schedule;
  const AlgorithmOptions& options;
  int rank;
  int channel;

  int gpus() const { return options.gpus_per_host; }
  int hosts() const { return options.ranks / gpus(); }
  int host() const { return rank / gpus(); }
  int gpu() const { return rank % gpus(); }
  std::uint32_t chunks() const { return static_cast<std::uint32_t>(options.chunks_per_channel); }
  std::uint32_t first_chunk() const {
    return static_cast<std::uint32_t>(channel * gpus() + gpu()) * chunks();
  }
  // Sums and results are kept in scratch, so that the switch's store to the own output meets no one
  // who still sends them on.
  std::uint32_t first_scratch() const { return static_cast<std::uint32_t>(channel) * chunks(); }
  const std::vector<int>& members() const {
    return schedule.groups[static_cast<std::size_t>(host())];
  }
  RankProgram& program() const { return schedule.ranks[static_cast<std::size_t>(rank)]; }
  std::uint32_t last_block() const {
    return static_cast<std::uint32_t>(program().blocks.size() - 1);
  }

  void add() const {
    const std::uint32_t load = add_loads();
    if (hosts() == 1) return add_stores(load, kMeetingSteps);
    add_stores(add_tree(load), 0);
  }

  // What the host's ranks have together.
  std::uint32_t add_loads() const {
    ThreadBlock& block = add_block_to(schedule, rank);
    add_meeting(block, rank, members(), channel, true);
    for (std::uint32_t i = 0; i < chunks(); ++i) {
      Step& step = add_direct(block, {of_group(host(), input(first_chunk() + i))},
                              {own(scratch(first_scratch() + i))});
      step.publishes = true;
    }
    return last_block();
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

  // The results, which step first_step + i of a thread block has, to the host's ranks.
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

Schedule make_nvls_tree_all_reduce(const AlgorithmOptions& options) {
  check_one_sided(options, 2);
  const auto chunks = static_cast<std::uint32_t>(options.chunks_per_channel * options.channels);
  Schedule schedule =
      schedule_without_blocks("nvls_tree_all_reduce", Collective::all_reduce, options,
                              chunks * static_cast<std::uint32_t>(options.gpus_per_host));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  schedule.channels *= 2;
  const std::vector<int> ranks = all_ranks(schedule);
  for (auto first = ranks.begin(); first != ranks.end(); first += options.gpus_per_host) {
    schedule.groups.emplace_back(first, first + options.gpus_per_host);
  }
  for (const int rank : ranks) {
    schedule.ranks[static_cast<std::size_t>(rank)].scratch_chunks = chunks;
    for (int channel = 0; channel < options.channels; ++channel) {
      Lane{schedule, options, rank, channel}.add();
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm nvls_tree_all_reduce{
    .name = "nvls_tree_all_reduce",
    .collective = Collective::all_reduce,
    .make = make_nvls_tree_all_reduce,
    .description = "sums by each host's switch, up and down a tree of hosts, and out by the switch",
    .cost = "2log2(H)+K+1 steps, S(1+1/G) bytes each way",
    .reach = Reach::group_of_host,
};

}  // namespace towpath::collective
