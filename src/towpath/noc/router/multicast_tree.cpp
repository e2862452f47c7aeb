// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/router/multicast_tree.hpp"

#include <algorithm>

namespace towpath::noc {

namespace {

constexpr std::uint8_t kToX = 0;
constexpr std::uint8_t kToY = 1;
constexpr std::uint8_t kToNiu = 2;
constexpr std::uint8_t kInputFromNiu = 2;

// The axes in the order in which a multicast uses them: the chip's x axis is the major one on both
// NoCs. It is the axis that NoC 1 uses second for all other packets.
struct Axes {
  std::uint8_t major = kToX;
  std::uint8_t minor = kToY;
};

Axes axes_of(const Torus& torus) {
  return torus.exchanges_axes() ? Axes{kToY, kToX} : Axes{kToX, kToY};
}

int hops_along(const Torus& torus, std::uint8_t axis, int from, int to) {
  return axis == kToX ? torus.hops_x(from, to) : torus.hops_y(from, to);
}

// Hops to the first destination's position on the major axis, at which the packet turns.
// None if one has the source's position.
int hops_to_turn(const Torus& torus, std::uint8_t major, int source,
                 const std::vector<int>& destinations) {
  int hops = torus.nodes();
  for (const int destination : destinations) {
    hops = std::min(hops, hops_along(torus, major, source, destination));
  }
  return hops;
}

// Extends the tree by a number of hops from branch `at`. Returns the last branch.
std::int32_t go(const Torus& torus, std::uint8_t axis, int hops, std::int32_t at,
                MulticastTree& tree) {
  for (int i = 0; i < hops; ++i) {
    MulticastTree::Branch& branch = tree.branches[static_cast<std::size_t>(at)];
    branch.outputs = static_cast<std::uint8_t>(branch.outputs | 1u << axis);
    if (branch.child[axis] >= 0) {
      at = branch.child[axis];
      continue;
    }
    MulticastTree::Branch child;
    child.node = axis == kToX ? torus.right_of(branch.node) : torus.below(branch.node);
    child.input = axis;
    child.depth = branch.depth + 1;
    child.parent = at;
    at = branch.child[axis] = static_cast<std::int32_t>(tree.branches.size());
    tree.branches.push_back(child);
  }
  return at;
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
  const auto [major, minor] = axes_of(torus);
  const int before_turn = hops_to_turn(torus, major, source, destinations);
  for (const int destination : destinations) {
    const int along_major = hops_along(torus, major, source, destination);
    std::int32_t at = go(torus, major, before_turn, 0, tree);
    at = go(torus, minor, hops_along(torus, minor, source, destination), at, tree);
    at = go(torus, major, along_major - before_turn, at, tree);
    MulticastTree::Branch& last = tree.branches[static_cast<std::size_t>(at)];
    last.outputs = static_cast<std::uint8_t>(last.outputs | 1u << kToNiu);
  }
  return tree;
}

std::int32_t MulticastTrees::open(const Packet& packet, const std::vector<int>& destinations) {
  std::int32_t& kept = kept_[index(packet.source) * 2 + packet.buddy];
  std::int32_t number = kept;
  if (number == kNoTree) {
    if (free_.empty()) {
      number = static_cast<std::int32_t>(trees_.size());
      trees_.emplace_back();
    } else {
      number = free_.back();
      free_.pop_back();
    }
    trees_[index(number)] = multicast_tree(torus_, packet.source, destinations);
    trees_[index(number)].buddy = packet.buddy;
  }
  kept = packet.keeps_path ? number : kNoTree;
  trees_[index(number)].copies_left += trees_[index(number)].destinations;
  return number;
}

void MulticastTrees::end_copy(std::int32_t number) {
  if (--trees_[index(number)].copies_left > 0) return;
  if (std::ranges::find(kept_, number) == kept_.end()) free_.push_back(number);
}

}  // namespace towpath::noc
