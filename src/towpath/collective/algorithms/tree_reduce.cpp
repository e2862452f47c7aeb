// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Tree reduce: log2(H) + log2(G) + K steps one after the other for H hosts of G GPUs and K chunks
// per channel, S bytes on the wire per rank but the root. Sums go up a binary tree of hosts and one
// inside each; ranks with several children gather them in scratch.
#include "towpath/collective/algorithms/trees.hpp"

namespace towpath::collective {
namespace {

void add_rank(Schedule& schedule, TreeNode& node) {
  const bool is_root = node.parent == kNone;
  const bool gathers = !is_root && node.children.size() > 1;
  if (gathers) node.program.scratch_chunks = schedule.chunks;
  if (!is_root) node.result = gathers ? Buffer::scratch : Buffer::input;
  node.has_way_down = false;
  node.add_way_up();
}

Schedule make(const AlgorithmOptions& options) {
  return along_trees_of_root("tree_reduce", Collective::reduce, options, add_rank);
}

}  // namespace

constinit const Algorithm tree_reduce{
    .name = "tree_reduce",
    .collective = Collective::reduce,
    .make = make,
    .description = "sums up a binary tree of hosts, and one inside each, to the root",
    .cost = "log2(H)+log2(G)+K steps, S bytes",
};

}  // namespace towpath::collective
