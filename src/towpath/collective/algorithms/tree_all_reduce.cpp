// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Tree all-reduce: 2(log2(H) + G-1) + K steps one after the other for H hosts of G GPUs and K
// chunks per channel. A rank sends S bytes to its parent and S to each child: 2 S (R-1)/R on
// average, 4 S at most. Inside a host the tree is a chain, between hosts a binary tree. Odd
// channels use a second tree, in which hosts that have children in the first one are leaves.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// In a tree over 0 to nodes-1 whose levels are the lowest set bits; 0 is the root.
int parent_of_node(int node, int nodes) {
  if (node == 0) return kNone;
  const int bit = node & -node;
  const int parent = (node ^ bit) | (bit << 1);
  return parent < nodes ? parent : node ^ bit;
}

// The second tree is the first one mirrored, or shifted by one where mirroring would keep the
// middle node in its place.
int parent_of_host(int host, int hosts, bool is_second) {
  if (!is_second) return parent_of_node(host, hosts);
  const bool is_shifted = hosts % 2 == 1;
  const int node = is_shifted ? (host + hosts - 1) % hosts : hosts - 1 - host;
  const int parent = parent_of_node(node, hosts);
  if (parent == kNone) return kNone;
  return is_shifted ? (parent + 1) % hosts : hosts - 1 - parent;
}

// A channel's chain starts at the GPU whose rail the channel uses between hosts.
int parent_of_rank(int rank, int channel, const AlgorithmOptions& options) {
  const int gpus = options.gpus_per_host;
  const int host = rank / gpus;
  const int head = channel % gpus;
  if (rank % gpus != head) return host * gpus + (rank % gpus + gpus - 1) % gpus;
  const int parent = parent_of_host(host, options.ranks / gpus, channel % 2 == 1);
  return parent == kNone ? kNone : parent * gpus + head;
}

// One rank's place in one channel's tree, and the thread blocks that it becomes.
struct Node {
  RankProgram& program;
  int parent;
  std::vector<int> children;
  int channel;
  std::uint32_t first_chunk;
  std::uint32_t chunks;

  ThreadBlock& add_block(int receive_peer, int send_peer) const {
    ThreadBlock& block = program.blocks.emplace_back();
    block.receive_peer = receive_peer;
    block.send_peer = send_peer;
    block.channel = channel;
    return block;
  }
  std::uint32_t last_block() const { return static_cast<std::uint32_t>(program.blocks.size() - 1); }
};

// One thread block per child adds what it sends to the sum of those before; the last of them hands
// on to the parent, or, at the root, already the result to the first child.
void add_way_up(const Node& node) {
  if (node.children.empty()) {
    ThreadBlock& block = node.add_block(kNone, node.parent);
    for (std::uint32_t i = 0; i < node.chunks; ++i) {
      block.steps.push_back(step(StepType::send, input(node.first_chunk + i)));
    }
    return;
  }
  const bool is_root = node.parent == kNone;
  for (std::size_t c = 0; c < node.children.size(); ++c) {
    const bool is_last = c + 1 == node.children.size();
    const int target = is_root ? node.children.front() : node.parent;
    ThreadBlock& block = node.add_block(node.children[c], is_last ? target : kNone);
    const StepType type = !is_last  ? StepType::receive_reduce_copy
                          : is_root ? StepType::receive_reduce_copy_send
                                    : StepType::receive_reduce_send;
    for (std::uint32_t i = 0; i < node.chunks; ++i) {
      const std::uint32_t chunk = node.first_chunk + i;
      Step next = step(type, c == 0 ? input(chunk) : output(chunk), output(chunk));
      if (c > 0) next = after(node.last_block() - 1, i, next);
      next.publishes = !is_last || (is_root && node.children.size() > 1);
      block.steps.push_back(next);
    }
  }
}

// The result comes from the parent and goes on to the first child in one step; one thread block for
// each further child sends it from the output.
void add_way_down(const Node& node) {
  const bool is_root = node.parent == kNone;
  if (!is_root) {
    const bool is_leaf = node.children.empty();
    ThreadBlock& block = node.add_block(node.parent, is_leaf ? kNone : node.children.front());
    for (std::uint32_t i = 0; i < node.chunks; ++i) {
      block.steps.push_back(step(is_leaf ? StepType::receive : StepType::receive_copy_send,
                                 output(node.first_chunk + i)));
      block.steps.back().publishes = node.children.size() > 1;
    }
  }
  const std::uint32_t source = node.last_block();
  for (std::size_t c = 1; c < node.children.size(); ++c) {
    ThreadBlock& block = node.add_block(kNone, node.children[c]);
    for (std::uint32_t i = 0; i < node.chunks; ++i) {
      block.steps.push_back(after(source, i, step(StepType::send, output(node.first_chunk + i))));
    }
  }
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
      const Node node{schedule.ranks[index],
                      parent_of_rank(rank, channel, options),
                      std::move(children[index]),
                      channel,
                      static_cast<std::uint32_t>(channel) * per_channel,
                      per_channel};
      add_way_up(node);
      add_way_down(node);
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
