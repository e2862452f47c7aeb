// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/algorithms/trees.hpp"

#include <bit>
#include <utility>

namespace towpath::collective {
namespace {

// Parent in a tree over 0 to nodes-1 with the lowest set bits as levels; 0 is the root.
int parent_of_node(int node, int nodes) {
  if (node == 0) return kNone;
  const int bit = node & -node;
  const int parent = (node ^ bit) | (bit << 1);
  return parent < nodes ? parent : node ^ bit;
}

// By rank.
std::vector<std::vector<int>> children_of(const Parents& parents) {
  std::vector<std::vector<int>> children(parents.size());
  for (std::size_t rank = 0; rank < parents.size(); ++rank) {
    if (parents[rank] == kNone) continue;
    children[static_cast<std::size_t>(parents[rank])].push_back(static_cast<int>(rank));
  }
  return children;
}

void add_tree(Schedule& schedule, const Parents& parents, int channel, std::uint32_t chunks) {
  std::vector<std::vector<int>> children = children_of(parents);
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

// The second tree is the mirrored first one, or shifted by one if mirroring would fix the middle
// node.
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

namespace {

// Cyclic numbers 0 to count-1 starting at `first`. Number 0 is the root.
struct Circle {
  int first = 0;
  int count = 1;
  int number_of(int item) const { return (item + count - first) % count; }
  int item_of(int number) const { return (number + first) % count; }
};

// The parent of a host in the first or second tree, with hosts numbered from the root's host.
int parent_of_host_number(int number, int hosts, bool is_second) {
  if (!is_second || number == 0 || hosts < 3) return parent_of_node(number, hosts);
  const bool is_mirrored = hosts % 2 == 1;  // turns leaves, the odd numbers, into even ones
  const int node = is_mirrored ? hosts - number : 1 + number % (hosts - 1);
  const int parent = parent_of_node(node, hosts);
  if (parent == 0) return 0;
  return is_mirrored ? hosts - parent : 1 + (parent + hosts - 3) % (hosts - 1);
}

// The tree of a channel.
Parents tree_from_root(const AlgorithmOptions& options, int channel) {
  const int gpus = options.gpus_per_host;
  const Circle hosts{options.root / gpus, options.ranks / gpus};
  const Circle places{options.root % gpus, gpus};
  const int head = channel % gpus;  // position of the channel's rail, counted from the root
  // In the root's host the tree starts at the root, with the head as its child. In other hosts it
  // starts at the head.
  const int top = gpus < 3 ? gpus - 1 : static_cast<int>(std::bit_floor(unsigned(gpus - 1)));
  const Circle from_head{head, gpus};
  const auto node_of = [&](int place, bool is_root_host) {
    if (!is_root_host) return from_head.number_of(place);
    if (place == 0 || head == 0) return place;
    return 1 + (place - head + top - 1 + gpus - 1) % (gpus - 1);
  };
  const auto place_of = [&](int node, bool is_root_host) {
    if (!is_root_host) return from_head.item_of(node);
    if (node == 0 || head == 0) return node;
    return 1 + (node - top + head - 1 + gpus - 1) % (gpus - 1);
  };
  Parents parents;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const int host = hosts.number_of(rank / gpus);
    const int node = node_of(places.number_of(rank % gpus), host == 0);
    int parent_host = host;
    int parent_place = head;
    if (const int parent = parent_of_node(node, gpus); parent != kNone) {
      parent_place = place_of(parent, host == 0);
    } else if (host == 0) {
      parents.push_back(kNone);
      continue;
    } else {
      parent_host = parent_of_host_number(host, hosts.count, channel % 2 == 1);
    }
    parents.push_back(hosts.item_of(parent_host) * gpus + places.item_of(parent_place));
  }
  return parents;
}

}  // namespace

Schedule along_trees_of_root(std::string_view name, Collective collective,
                             const AlgorithmOptions& options,
                             void (*add)(Schedule& schedule, TreeNode& node)) {
  const auto chunks = static_cast<std::uint32_t>(options.chunks_per_channel);
  Schedule schedule = schedule_without_blocks(
      name, collective, options, chunks * static_cast<std::uint32_t>(options.channels));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int channel = 0; channel < options.channels; ++channel) {
    const Parents parents = tree_from_root(options, channel);
    std::vector<std::vector<int>> children = children_of(parents);
    const std::uint32_t first = static_cast<std::uint32_t>(channel) * chunks;
    for (std::size_t rank = 0; rank < parents.size(); ++rank) {
      TreeNode node{
          schedule.ranks[rank], parents[rank], std::move(children[rank]), channel, first, chunks};
      add(schedule, node);
    }
  }
  return schedule;
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
