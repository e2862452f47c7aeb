// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Tree broadcast: log2(H) + log2(G) + K steps one after the other for H hosts of G GPUs and K
// chunks per channel. A rank sends S bytes to each child: S (R-1)/R on average, 3 S at most. A
// binary tree of hosts and one inside each, from the root down.
#include "towpath/collective/algorithms/trees.hpp"

namespace towpath::collective {
namespace {

// One thread block for each child sends the root's own array.
void add_root(Schedule& schedule, const TreeNode& node) {
  for (const int child : node.children) {
    ThreadBlock& block = add_block(node.program, kNone, child, node.channel);
    for (std::uint32_t i = 0; i < node.chunks; ++i) {
      block.steps.push_back(step(StepType::send, input(node.first_chunk + i)));
    }
  }
  add_root_copies(schedule, node.channel, node.first_chunk, node.chunks);
}

void add_rank(Schedule& schedule, TreeNode& node) {
  if (node.parent == kNone) {
    add_root(schedule, node);
  } else {
    node.add_way_down();
  }
}

Schedule make(const AlgorithmOptions& options) {
  return along_trees_of_root("tree_broadcast", Collective::broadcast, options, add_rank);
}

}  // namespace

constinit const Algorithm tree_broadcast{
    .name = "tree_broadcast",
    .collective = Collective::broadcast,
    .make = make,
    .description = "down a binary tree of hosts, and one inside each, from the root",
    .cost = "log2(H)+log2(G)+K steps, S(R-1)/R bytes on average",
};

}  // namespace towpath::collective
