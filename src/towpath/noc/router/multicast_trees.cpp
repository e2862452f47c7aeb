// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/router/multicast_trees.hpp"

#include <algorithm>

namespace towpath::noc {

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
