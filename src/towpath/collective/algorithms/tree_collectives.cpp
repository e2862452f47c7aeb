// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/algorithms/trees.hpp"

namespace towpath::collective {

// Tree all-reduce: 2(log2(H) + G-1) + K sequential steps for H hosts of G GPUs and K chunks per
// channel. A rank sends S bytes to its parent and S to each child: 2 S (R-1)/R on average, 4 S at
// most. The tree is a chain within a host and binary between hosts. Odd channels use a second tree,
// in which inner hosts of the first tree are leaves. options.trees overrides both.
namespace {

// A channel's chain starts at the GPU of the channel's rail between hosts.
int parent_in_chain(int rank, int channel, const AlgorithmOptions& options) {
  const int gpus = options.gpus_per_host;
  const int host = rank / gpus;
  const int head = channel % gpus;
  if (rank % gpus != head) return host * gpus + (rank % gpus + gpus - 1) % gpus;
  const int parent = parent_of_host(host, options.ranks / gpus, channel % 2 == 1).host;
  return parent == kNone ? kNone : parent * gpus + head;
}

Schedule make_tree_all_reduce(const AlgorithmOptions& options) {
  check_options(options);
  if (!options.trees.empty()) {
    return all_reduce_by_trees("tree_all_reduce", options, options.trees);
  }
  std::vector<Parents> trees(static_cast<std::size_t>(options.channels));
  for (int channel = 0; channel < options.channels; ++channel) {
    for (int rank = 0; rank < options.ranks; ++rank) {
      trees[static_cast<std::size_t>(channel)].push_back(parent_in_chain(rank, channel, options));
    }
  }
  return all_reduce_by_trees("tree_all_reduce", options, trees);
}

}  // namespace

constinit const Algorithm tree_all_reduce{
    .name = "tree_all_reduce",
    .collective = Collective::all_reduce,
    .make = make_tree_all_reduce,
    .description = "sums up and results down a double binary tree of hosts, a chain inside each",
    .cost = "2(log2(H)+G-1)+K steps, 2S(R-1)/R bytes on average",
};

// Double binary tree all-reduce, as in NCCL (src/graph/trees.cc and connect.cc): 2(log2(H) + G-1) +
// K sequential steps for H hosts of G GPUs and K chunks per channel, 2 S (R-1)/R bytes on average.
// Within a host the tree is a chain that starts at the GPU of the channel's rail. The first half of
// the channels uses one tree of hosts, the second half the other. The chain's second GPU serves the
// host's left child, so that two NICs share the traffic of a host.
namespace {

int parent_by_side(int rank, int channel, const AlgorithmOptions& options) {
  const int gpus = options.gpus_per_host;
  const int host = rank / gpus;
  const int half = (options.channels + 1) / 2;
  const int head = channel % half % gpus;
  if (rank % gpus != head) return host * gpus + (rank % gpus + gpus - 1) % gpus;
  const HostParent parent = parent_of_host(host, options.ranks / gpus, channel >= half);
  if (parent.host == kNone) return kNone;
  return parent.host * gpus + (head + (parent.is_left ? 1 : 0)) % gpus;
}

Schedule make_double_binary_tree_all_reduce(const AlgorithmOptions& options) {
  check_options(options);
  std::vector<Parents> trees(static_cast<std::size_t>(options.channels));
  for (int channel = 0; channel < options.channels; ++channel) {
    for (int rank = 0; rank < options.ranks; ++rank) {
      trees[static_cast<std::size_t>(channel)].push_back(parent_by_side(rank, channel, options));
    }
  }
  return all_reduce_by_trees("double_binary_tree_all_reduce", options, trees);
}

}  // namespace

constinit const Algorithm double_binary_tree_all_reduce{
    .name = "double_binary_tree_all_reduce",
    .collective = Collective::all_reduce,
    .make = make_double_binary_tree_all_reduce,
    .description = "two binary trees of hosts as NCCL builds them, half of the channels on each",
    .cost = "2(log2(H)+G-1)+K steps, 2S(R-1)/R bytes on average",
};

// Tree broadcast: log2(H) + log2(G) + K sequential steps for H hosts of G GPUs and K chunks per
// channel. A rank sends S bytes to each child: S (R-1)/R on average, 3 S at most. A binary tree of
// hosts and one within each host, from the root down.
namespace {

// One thread block per child sends the root's array.
void add_root(Schedule& schedule, const TreeNode& node) {
  for (const int child : node.children) {
    ThreadBlock& block = add_block(node.program, kNone, child, node.channel);
    for (std::uint32_t i = 0; i < node.chunks; ++i) {
      block.steps.push_back(step(StepType::send, input(node.first_chunk + i)));
    }
  }
  add_root_copies(schedule, node.channel, node.first_chunk, node.chunks);
}

void add_broadcast_rank(Schedule& schedule, TreeNode& node) {
  if (node.parent == kNone) {
    add_root(schedule, node);
  } else {
    node.add_way_down();
  }
}

Schedule make_tree_broadcast(const AlgorithmOptions& options) {
  return along_trees_of_root("tree_broadcast", Collective::broadcast, options, add_broadcast_rank);
}

}  // namespace

constinit const Algorithm tree_broadcast{
    .name = "tree_broadcast",
    .collective = Collective::broadcast,
    .make = make_tree_broadcast,
    .description = "down a binary tree of hosts, and one inside each, from the root",
    .cost = "log2(H)+log2(G)+K steps, S(R-1)/R bytes on average",
};

// Tree reduce: log2(H) + log2(G) + K sequential steps for H hosts of G GPUs and K chunks per
// channel, S wire bytes per rank except the root. Sums go up a binary tree of hosts and one within
// each host. Ranks with several children accumulate in scratch.
namespace {

void add_reduce_rank(Schedule& schedule, TreeNode& node) {
  const bool is_root = node.parent == kNone;
  const bool gathers = !is_root && node.children.size() > 1;
  if (gathers) node.program.scratch_chunks = schedule.chunks;
  if (!is_root) node.result = gathers ? Buffer::scratch : Buffer::input;
  node.has_way_down = false;
  node.add_way_up();
}

Schedule make_tree_reduce(const AlgorithmOptions& options) {
  return along_trees_of_root("tree_reduce", Collective::reduce, options, add_reduce_rank);
}

}  // namespace

constinit const Algorithm tree_reduce{
    .name = "tree_reduce",
    .collective = Collective::reduce,
    .make = make_tree_reduce,
    .description = "sums up a binary tree of hosts, and one inside each, to the root",
    .cost = "log2(H)+log2(G)+K steps, S bytes",
};

}  // namespace towpath::collective
