// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Tree reduce: log2(H) + log2(G) + K steps one after the other for H hosts of G GPUs and K chunks
// per channel, S bytes on the wire per rank but the root. Sums go up a binary tree of hosts and one
// inside each; ranks with several children gather them in scratch.
#include "towpath/collective/algorithms/building_tree.hpp"
#include "towpath/collective/algorithms/trees.hpp"

namespace towpath::collective {
namespace {

Schedule make(const AlgorithmOptions& options) {
  const auto chunks = static_cast<std::uint32_t>(options.chunks_per_channel);
  Schedule schedule =
      schedule_without_blocks("tree_reduce", Collective::reduce, options,
                              chunks * static_cast<std::uint32_t>(options.channels));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int channel = 0; channel < options.channels; ++channel) {
    const Parents parents = tree_from_root(options, channel);
    const std::vector<std::vector<int>> children = children_of(parents);
    const std::uint32_t first = static_cast<std::uint32_t>(channel) * chunks;
    for (std::size_t rank = 0; rank < parents.size(); ++rank) {
      const bool gathers = parents[rank] != kNone && children[rank].size() > 1;
      if (gathers) schedule.ranks[rank].scratch_chunks = schedule.chunks;
      TreeNode node{schedule.ranks[rank], parents[rank], children[rank], channel, first, chunks};
      if (parents[rank] != kNone) node.result = gathers ? Buffer::scratch : Buffer::input;
      node.has_way_down = false;
      node.add_way_up();
    }
  }
  return schedule;
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
