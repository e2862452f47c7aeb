// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/noc/router/multicast_tree.hpp"
#include "towpath/noc/router/packet.hpp"

namespace towpath::noc {

// The trees of all multicasts under way. Linked multicasts of a source share one.
class MulticastTrees {
 public:
  explicit MulticastTrees(const Torus& torus)
      : torus_(torus), kept_(index(torus.nodes()) * 2, kNoTree) {}

  // The number of the tree of a multicast: the one that the previous packet of its source kept, or
  // a new one.
  std::int32_t open(const Packet& packet, const std::vector<int>& destinations);
  MulticastTree& operator[](std::int32_t number) { return trees_[index(number)]; }
  const MulticastTree& operator[](std::int32_t number) const { return trees_[index(number)]; }
  // Where a copy of a multicast is.
  const MulticastTree::Branch& branch_of(const Packet& packet) const {
    return trees_[index(packet.tree)].branches[index(packet.branch)];
  }
  // One copy of a multicast has been received.
  void end_copy(std::int32_t number);

 private:
  static constexpr std::int32_t kNoTree = -1;

  Torus torus_;
  std::vector<MulticastTree> trees_;
  std::vector<std::int32_t> free_;
  std::vector<std::int32_t> kept_;  // per source and buddy
};

}  // namespace towpath::noc
