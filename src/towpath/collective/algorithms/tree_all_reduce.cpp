// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Tree all-reduce: 2(log2(H) + G-1) + K steps one after the other for H hosts of G GPUs and K
// chunks per channel. A rank sends S bytes to its parent and S to each child: 2 S (R-1)/R on
// average, 4 S at most. Inside a host the tree is a chain, between hosts a binary tree. Odd
// channels use a second tree, in which hosts that have children in the first one are leaves. With
// options.trees, those are taken instead.
#include "towpath/collective/algorithms/trees.hpp"

namespace towpath::collective {
namespace {

// A channel's chain starts at the GPU whose rail the channel uses between hosts.
int parent_of_rank(int rank, int channel, const AlgorithmOptions& options) {
  const int gpus = options.gpus_per_host;
  const int host = rank / gpus;
  const int head = channel % gpus;
  if (rank % gpus != head) return host * gpus + (rank % gpus + gpus - 1) % gpus;
  const int parent = parent_of_host(host, options.ranks / gpus, channel % 2 == 1).host;
  return parent == kNone ? kNone : parent * gpus + head;
}

Schedule make(const AlgorithmOptions& options) {
  check_options(options);
  if (!options.trees.empty()) {
    return all_reduce_by_trees("tree_all_reduce", options, options.trees);
  }
  std::vector<Parents> trees(static_cast<std::size_t>(options.channels));
  for (int channel = 0; channel < options.channels; ++channel) {
    for (int rank = 0; rank < options.ranks; ++rank) {
      trees[static_cast<std::size_t>(channel)].push_back(parent_of_rank(rank, channel, options));
    }
  }
  return all_reduce_by_trees("tree_all_reduce", options, trees);
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
