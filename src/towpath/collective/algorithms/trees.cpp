// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/algorithms/trees.hpp"

#include <utility>

#include "towpath/collective/algorithms/building_tree.hpp"

namespace towpath::collective {
namespace {

// In a tree over 0 to nodes-1 whose levels are the lowest set bits; 0 is the root.
int parent_of_node(int node, int nodes) {
  if (node == 0) return kNone;
  const int bit = node & -node;
  const int parent = (node ^ bit) | (bit << 1);
  return parent < nodes ? parent : node ^ bit;
}

void add_tree(Schedule& schedule, const Parents& parents, int channel, std::uint32_t chunks) {
  std::vector<std::vector<int>> children(parents.size());
  for (std::size_t rank = 0; rank < parents.size(); ++rank) {
    if (parents[rank] == kNone) continue;
    children[static_cast<std::size_t>(parents[rank])].push_back(static_cast<int>(rank));
  }
  for (std::size_t rank = 0; rank < parents.size(); ++rank) {
    const TreeNode node{schedule.ranks[rank],
                        parents[rank],
                        std::move(children[rank]),
                        channel,
                        static_cast<std::uint32_t>(channel) * chunks,
                        chunks};
    node.add_way_up();
    node.add_way_down();
  }
}

}  // namespace

// The second tree is the first one mirrored, or shifted by one where mirroring would keep the
// middle node in its place.
HostParent parent_of_host(int host, int hosts, bool is_second) {
  const bool is_shifted = is_second && hosts % 2 == 1;
  const bool is_mirrored = is_second && !is_shifted;
  const int node = is_shifted ? (host + hosts - 1) % hosts : is_mirrored ? hosts - 1 - host : host;
  const int parent = parent_of_node(node, hosts);
  if (parent == kNone) return {};
  const int parent_host = is_shifted    ? (parent + 1) % hosts
                          : is_mirrored ? hosts - 1 - parent
                                        : parent;
  return {parent_host, node < parent};
}

Schedule all_reduce_by_trees(std::string_view name, const AlgorithmOptions& options,
                             const std::vector<Parents>& trees) {
  const auto per_channel = static_cast<std::uint32_t>(options.chunks_per_channel);
  Schedule schedule =
      schedule_without_blocks(name, Collective::all_reduce, options,
                              per_channel * static_cast<std::uint32_t>(options.channels));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int channel = 0; channel < options.channels; ++channel) {
    add_tree(schedule, trees[static_cast<std::size_t>(channel)], channel, per_channel);
  }
  return schedule;
}

}  // namespace towpath::collective
