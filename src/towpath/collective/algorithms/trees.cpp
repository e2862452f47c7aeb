// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/algorithms/trees.hpp"

#include <utility>

namespace towpath::collective {
namespace {

// In a tree over 0 to nodes-1 whose levels are the lowest set bits; 0 is the root.
int parent_of_node(int node, int nodes) {
  if (node == 0) return kNone;
  const int bit = node & -node;
  const int parent = (node ^ bit) | (bit << 1);
  return parent < nodes ? parent : node ^ bit;
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
    return collective::add_block(program, receive_peer, send_peer, channel);
  }
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
      if (c > 0) next = after(last_block(node.program) - 1, i, next);
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
  const std::uint32_t source = last_block(node.program);
  for (std::size_t c = 1; c < node.children.size(); ++c) {
    ThreadBlock& block = node.add_block(kNone, node.children[c]);
    for (std::uint32_t i = 0; i < node.chunks; ++i) {
      block.steps.push_back(after(source, i, step(StepType::send, output(node.first_chunk + i))));
    }
  }
}

void add_tree(Schedule& schedule, const Parents& parents, int channel, std::uint32_t chunks) {
  std::vector<std::vector<int>> children(parents.size());
  for (std::size_t rank = 0; rank < parents.size(); ++rank) {
    if (parents[rank] == kNone) continue;
    children[static_cast<std::size_t>(parents[rank])].push_back(static_cast<int>(rank));
  }
  for (std::size_t rank = 0; rank < parents.size(); ++rank) {
    const Node node{schedule.ranks[rank],
                    parents[rank],
                    std::move(children[rank]),
                    channel,
                    static_cast<std::uint32_t>(channel) * chunks,
                    chunks};
    add_way_up(node);
    add_way_down(node);
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
