// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Tree broadcast: log2(H) + log2(G) + K steps one after the other for H hosts of G GPUs and K
// chunks per channel. A rank sends S bytes to each child: S (R-1)/R on average, 3 S at most. A
// binary tree of hosts and one inside each, from the root down.
#include "towpath/collective/algorithms/building_tree.hpp"
#include "towpath/collective/algorithms/trees.hpp"

namespace towpath::collective {
namespace {

// One thread block for each child sends the root's own array.
void add_root(Schedule& schedule, const std::vector<int>& children, int channel,
              std::uint32_t first, std::uint32_t chunks) {
  RankProgram& root = schedule.ranks[static_cast<std::size_t>(schedule.root)];
  for (const int child : children) {
    ThreadBlock& block = add_block(root, kNone, child, channel);
    for (std::uint32_t chunk = first; chunk < first + chunks; ++chunk) {
      block.steps.push_back(step(StepType::send, input(chunk)));
    }
  }
  add_root_copies(schedule, channel, first, chunks);
}

Schedule make(const AlgorithmOptions& options) {
  const auto chunks = static_cast<std::uint32_t>(options.chunks_per_channel);
  Schedule schedule =
      schedule_without_blocks("tree_broadcast", Collective::broadcast, options,
                              chunks * static_cast<std::uint32_t>(options.channels));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  for (int channel = 0; channel < options.channels; ++channel) {
    const Parents parents = tree_from_root(options, channel);
    const std::vector<std::vector<int>> children = children_of(parents);
    const std::uint32_t first = static_cast<std::uint32_t>(channel) * chunks;
    for (std::size_t rank = 0; rank < parents.size(); ++rank) {
      if (parents[rank] == kNone) {
        add_root(schedule, children[rank], channel, first, chunks);
      } else {
        TreeNode{schedule.ranks[rank], parents[rank], children[rank], channel, first, chunks}
            .add_way_down();
      }
    }
  }
  return schedule;
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
