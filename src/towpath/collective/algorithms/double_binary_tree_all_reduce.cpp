// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Double binary tree all-reduce, as NCCL builds it (src/graph/trees.cc and connect.cc): 2(log2(H) +
// G-1) + K steps one after the other for H hosts of G GPUs and K chunks per channel, 2 S (R-1)/R
// bytes on average. Inside a host the tree is a chain, whose head is the GPU of the channel's rail.
// The first half of the channels takes one tree of hosts and the second half the other. The chain's
// second GPU serves the host's left child, so that two NICs share the traffic of a host.
#include "towpath/collective/algorithms/trees.hpp"

namespace towpath::collective {
namespace {

int parent_of_rank(int rank, int channel, const AlgorithmOptions& options) {
  const int gpus = options.gpus_per_host;
  const int host = rank / gpus;
  const int half = (options.channels + 1) / 2;
  const int head = channel % half % gpus;
  if (rank % gpus != head) return host * gpus + (rank % gpus + gpus - 1) % gpus;
  const HostParent parent = parent_of_host(host, options.ranks / gpus, channel >= half);
  if (parent.host == kNone) return kNone;
  return parent.host * gpus + (head + (parent.is_left ? 1 : 0)) % gpus;
}

Schedule make(const AlgorithmOptions& options) {
  check_options(options);
  std::vector<Parents> trees(static_cast<std::size_t>(options.channels));
  for (int channel = 0; channel < options.channels; ++channel) {
    for (int rank = 0; rank < options.ranks; ++rank) {
      trees[static_cast<std::size_t>(channel)].push_back(parent_of_rank(rank, channel, options));
    }
  }
  return all_reduce_by_trees("double_binary_tree_all_reduce", options, trees);
}

}  // namespace

constinit const Algorithm double_binary_tree_all_reduce{
    .name = "double_binary_tree_all_reduce",
    .collective = Collective::all_reduce,
    .make = make,
    .description = "two binary trees of hosts as NCCL builds them, half of the channels on each",
    .cost = "2(log2(H)+G-1)+K steps, 2S(R-1)/R bytes on average",
};

}  // namespace towpath::collective
