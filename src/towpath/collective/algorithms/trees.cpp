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

// The parent of each rank; kNone for the root.
using Parents = std::vector<int>;

// By rank.
std::vector<std::vector<int>> children_of(const Parents& parents) {
  std::vector<std::vector<int>> children(parents.size());
  for (std::size_t rank = 0; rank < parents.size(); ++rank) {
    if (parents[rank] == kNone) continue;
    children[index(parents[rank])].push_back(static_cast<int>(rank));
  }
  return children;
}

}  // namespace

Step TreeNode::when_there(std::uint32_t i, Step step) const {
  if (source_block == kNone) return step;
  return after(source_block, source_step + i * source_stride, step);
}

StepType TreeNode::type_on_way_up(bool is_last) const {
  if (!is_last) return StepType::receive_reduce_copy;
  if (is_turn()) return StepType::receive_reduce_copy_send;
  return parent == kNone ? StepType::receive_reduce_copy : StepType::receive_reduce_send;
}

void TreeNode::add_way_up() const {
  if (children.empty()) {
    ThreadBlock& block = add_block(kNone, parent);
    for (std::uint32_t i = 0; i < chunks; ++i) {
      block.steps.push_back(when_there(i, step(StepType::send, Chunk{source, first_chunk + i})));
    }
    return;
  }
  for (std::size_t c = 0; c < children.size(); ++c) {
    const bool is_last = c + 1 == children.size();
    const int target = is_turn() ? children.front() : parent;
    ThreadBlock& block = add_block(children[c], is_last ? target : kNone);
    const StepType type = type_on_way_up(is_last);
    for (std::uint32_t i = 0; i < chunks; ++i) {
      const std::uint32_t chunk = first_chunk + i;
      const Chunk addend = c == 0 ? Chunk{source, chunk} : result_chunk(chunk);
      Step next = step(type, addend, result_chunk(chunk));
      next = c == 0 ? when_there(i, next) : after(last_block() - 1, i, next);
      next.publishes = !is_last || (is_turn() && (children.size() > 1 || publishes_result));
      block.steps.push_back(next);
    }
  }
}

std::uint32_t TreeNode::add_way_down() const {
  const bool is_root = parent == kNone;
  if (!is_root) {
    const bool is_leaf = children.empty();
    ThreadBlock& block = add_block(parent, is_leaf ? kNone : children.front());
    for (std::uint32_t i = 0; i < chunks; ++i) {
      block.steps.push_back(step(is_leaf ? StepType::receive : StepType::receive_copy_send,
                                 result_chunk(first_chunk + i)));
      block.steps.back().publishes = children.size() > 1 || publishes_result;
    }
  }
  const std::uint32_t block_with_result = last_block();
  for (std::size_t c = 1; c < children.size(); ++c) {
    ThreadBlock& block = add_block(kNone, children[c]);
    for (std::uint32_t i = 0; i < chunks; ++i) {
      block.steps.push_back(
          after(block_with_result, i, step(StepType::send, result_chunk(first_chunk + i))));
    }
  }
  return block_with_result;
}

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

// The tree of a channel from options.root: a binary tree of hosts over the GPUs of one rail, and a
// binary tree within each host. Odd channels use a second tree of hosts, in which most inner hosts
// of the first are leaves.
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

// Sends chunks_per_channel chunks along the tree of each channel. `add` creates a rank's thread
// blocks.
void along_trees(Schedule& schedule, const AlgorithmOptions& options,
                 Parents (*tree_of)(const AlgorithmOptions& options, int channel),
                 void (*add)(Schedule& schedule, TreeNode& node)) {
  const std::uint32_t chunks = options.chunks_per_channel;
  for (int channel = 0; channel < options.channels; ++channel) {
    const Parents parents = tree_of(options, channel);
    std::vector<std::vector<int>> children = children_of(parents);
    for (std::size_t rank = 0; rank < parents.size(); ++rank) {
      TreeNode node{schedule.ranks[rank], parents[rank], std::move(children[rank]), channel,
                    channel * chunks,     chunks};
      add(schedule, node);
    }
  }
}

// Tree all-reduce: 2(log2(H) + G-1) + K sequential steps for H hosts of G GPUs and K chunks per
// channel. A rank sends S bytes to its parent and S to each child: 2 S (R-1)/R on average, 4 S at
// most. The tree is a chain within a host and binary between hosts. Odd channels use a second tree,
// in which inner hosts of the first tree are leaves. options.trees overrides both.

// A channel's chain starts at the GPU of the channel's rail between hosts.
int parent_in_chain(int rank, int channel, const AlgorithmOptions& options) {
  const int gpus = options.gpus_per_host;
  const int host = rank / gpus;
  const int head = channel % gpus;
  if (rank % gpus != head) return host * gpus + (rank % gpus + gpus - 1) % gpus;
  const int parent = parent_of_host(host, options.ranks / gpus, channel % 2 == 1).host;
  return parent == kNone ? kNone : parent * gpus + head;
}

Parents tree_of_chains(const AlgorithmOptions& options, int channel) {
  if (!options.trees.empty()) return options.trees[index(channel)];
  Parents parents;
  for (int rank = 0; rank < options.ranks; ++rank) {
    parents.push_back(parent_in_chain(rank, channel, options));
  }
  return parents;
}

void add_all_reduce_rank(Schedule&, TreeNode& node) {
  node.add_way_up();
  node.add_way_down();
}

void build_tree_all_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  along_trees(schedule, options, tree_of_chains, add_all_reduce_rank);
}

// Double binary tree all-reduce, as in NCCL (src/graph/trees.cc and connect.cc): 2(log2(H) + G-1) +
// K sequential steps for H hosts of G GPUs and K chunks per channel, 2 S (R-1)/R bytes on average.
// Within a host the tree is a chain that starts at the GPU of the channel's rail. The first half of
// the channels uses one tree of hosts, the second half the other. The chain's second GPU serves the
// host's left child, so that two NICs share the traffic of a host.
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

Parents tree_of_sides(const AlgorithmOptions& options, int channel) {
  Parents parents;
  for (int rank = 0; rank < options.ranks; ++rank) {
    parents.push_back(parent_by_side(rank, channel, options));
  }
  return parents;
}

void build_double_binary_tree_all_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  along_trees(schedule, options, tree_of_sides, add_all_reduce_rank);
}

// Tree broadcast: log2(H) + log2(G) + K sequential steps for H hosts of G GPUs and K chunks per
// channel. A rank sends S bytes to each child: S (R-1)/R on average, 3 S at most. A binary tree of
// hosts and one within each host, from the root down.

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

void build_tree_broadcast(Schedule& schedule, const AlgorithmOptions& options) {
  along_trees(schedule, options, tree_from_root, add_broadcast_rank);
}

// Tree reduce: log2(H) + log2(G) + K sequential steps for H hosts of G GPUs and K chunks per
// channel, S wire bytes per rank except the root. Sums go up a binary tree of hosts and one within
// each host. Ranks with several children accumulate in scratch.
void add_reduce_rank(Schedule& schedule, TreeNode& node) {
  const bool is_root = node.parent == kNone;
  const bool gathers = !is_root && node.children.size() > 1;
  if (gathers) node.program.scratch_chunks = schedule.chunks;
  if (!is_root) node.result = gathers ? Buffer::scratch : Buffer::input;
  node.has_way_down = false;
  node.add_way_up();
}

void build_tree_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  along_trees(schedule, options, tree_from_root, add_reduce_rank);
}

}  // namespace

constinit const Algorithm tree_all_reduce{
    .name = "tree_all_reduce",
    .collective = Collective::all_reduce,
    .build = build_tree_all_reduce,
    .description = "sums up and results down a double binary tree of hosts, a chain inside each",
    .cost = "2(log2(H)+G-1)+K steps, 2S(R-1)/R bytes on average",
    .chunks = pipeline_chunks,
};

constinit const Algorithm double_binary_tree_all_reduce{
    .name = "double_binary_tree_all_reduce",
    .collective = Collective::all_reduce,
    .build = build_double_binary_tree_all_reduce,
    .description = "two binary trees of hosts as NCCL builds them, half of the channels on each",
    .cost = "2(log2(H)+G-1)+K steps, 2S(R-1)/R bytes on average",
    .chunks = pipeline_chunks,
};

constinit const Algorithm tree_broadcast{
    .name = "tree_broadcast",
    .collective = Collective::broadcast,
    .build = build_tree_broadcast,
    .description = "down a binary tree of hosts, and one inside each, from the root",
    .cost = "log2(H)+log2(G)+K steps, S(R-1)/R bytes on average",
    .chunks = pipeline_chunks,
};

constinit const Algorithm tree_reduce{
    .name = "tree_reduce",
    .collective = Collective::reduce,
    .build = build_tree_reduce,
    .description = "sums up a binary tree of hosts, and one inside each, to the root",
    .cost = "log2(H)+log2(G)+K steps, S bytes",
    .chunks = pipeline_chunks,
};

}  // namespace towpath::collective
