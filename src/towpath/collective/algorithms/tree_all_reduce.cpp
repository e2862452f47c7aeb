// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Tree all-reduce: 2(log2(H) + G-1) + K steps one after the other for H hosts of G GPUs and K
// chunks per channel. A rank sends S bytes to its parent and S to each child: 2 S (R-1)/R on
// average, 4 S at most. Inside a host the tree is a chain, between hosts a binary tree. Odd
// channels use a second tree, in which hosts that have children in the first one are leaves.
#include "towpath/collective/algorithms/building_tree.hpp"

namespace towpath::collective {
namespace {

// A channel's chain starts at the GPU whose rail the channel uses between hosts.
int parent_of_rank(int rank, int channel, const AlgorithmOptions& options) {
  const int gpus = options.gpus_per_host;
  const int host = rank / gpus;
  const int head = channel % gpus;
  if (rank % gpus != head) return host * gpus + (rank % gpus + gpus - 1) % gpus;
  const int parent = parent_of_host(host, options.ranks / gpus, channel % 2 == 1);
  return parent == kNone ? kNone : parent * gpus + head;
}

Schedule make(const AlgorithmOptions& options) {
  const auto per_channel = static_cast<std::uint32_t>(options.chunks_per_channel);
  Schedule schedule =
      schedule_without_blocks("tree_all_reduce", Collective::all_reduce, options,
                              per_channel * static_cast<std::uint32_t>(options.channels));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int channel = 0; channel < options.channels; ++channel) {
    std::vector<std::vector<int>> children(schedule.ranks.size());
    for (int rank = 0; rank < options.ranks; ++rank) {
      const int parent = parent_of_rank(rank, channel, options);
      if (parent != kNone) children[static_cast<std::size_t>(parent)].push_back(rank);
    }
    for (int rank = 0; rank < options.ranks; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      const TreeNode node{schedule.ranks[index],
                          parent_of_rank(rank, channel, options),
                          std::move(children[index]),
                          channel,
                          static_cast<std::uint32_t>(channel) * per_channel,
                          per_channel};
      node.add_way_up();
      node.add_way_down();
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm tree_all_reduce{
    .name = "tree_all_reduce",
    .collective = Collective::all_reduce,
    .make = make,
    .description = "sums up and results down a double binary tree of hosts, a chain inside each",
    .cost = "2(log2(H)+G-1)+K steps, 2S(R-1)/R bytes on average",
};

}  // namespace towpath::collective
