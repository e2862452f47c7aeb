// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/multicast_tree.hpp"

namespace towpath::noc {

namespace {

constexpr std::uint8_t kToX = 0;
constexpr std::uint8_t kToY = 1;
constexpr std::uint8_t kToNiu = 2;
constexpr std::uint8_t kInputFromNiu = 2;

// Follows one copy's route and adds the branches that the tree lacks.
void add_route(const Torus& torus, int destination, MulticastTree& tree) {
  std::int32_t at = 0;
  while (true) {
    MulticastTree::Branch& branch = tree.branches[static_cast<std::size_t>(at)];
    const std::uint8_t port = torus.hops_x(branch.node, destination) != 0   ? kToX
                              : torus.hops_y(branch.node, destination) != 0 ? kToY
                                                                            : kToNiu;
    branch.outputs = static_cast<std::uint8_t>(branch.outputs | 1u << port);
    if (port == kToNiu) return;
    if (branch.child[port] < 0) {
      MulticastTree::Branch child;
      child.node = port == kToX ? torus.right_of(branch.node) : torus.below(branch.node);
      child.input = port;
      child.depth = branch.depth + 1;
      child.parent = at;
      branch.child[port] = static_cast<std::int32_t>(tree.branches.size());
      at = branch.child[port];
      tree.branches.push_back(child);
    } else {
      at = branch.child[port];
    }
  }
}

}  // namespace

MulticastTree multicast_tree(const Torus& torus, int source, const std::vector<int>& destinations) {
  MulticastTree tree;
  tree.source = source;
  tree.destinations = static_cast<int>(destinations.size());
  MulticastTree::Branch root;
  root.node = source;
  root.input = kInputFromNiu;
  tree.branches.push_back(root);
  for (const int destination : destinations) add_route(torus, destination, tree);
  return tree;
}

}  // namespace towpath::noc
