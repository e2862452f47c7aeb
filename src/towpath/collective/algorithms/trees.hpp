// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "towpath/collective/algorithms/building.hpp"
#include "towpath/collective/algorithms/building_tree.hpp"

// A tree per channel.

namespace towpath::collective {

// The parent of each rank; kNone for the root.
using Parents = std::vector<int>;

struct HostParent {
  int host = kNone;      // kNone: there is none, the host is the root
  bool is_left = false;  // whether the host is the left one of its parent's two children
};

// The parent of a host in one of two binary trees over hosts, in which hosts that have children in
// one are leaves in the other, but for one host if their number is odd.
HostParent parent_of_host(int host, int hosts, bool is_second);

// chunks_per_channel chunks go along each channel's tree with options.root as its root; `add` gives
// a rank its thread blocks. A channel has a binary tree of hosts, which joins the GPUs of one rail,
// and a binary tree inside each. Odd channels have a second tree of hosts, in which most that have
// children in the first one are leaves.
Schedule along_trees_of_root(std::string_view name, Collective collective,
                             const AlgorithmOptions& options,
                             void (*add)(Schedule& schedule, TreeNode& node));

// Sums go up the tree of each channel to its root, and results down, chunks_per_channel chunks one
// after the other.
Schedule all_reduce_by_trees(std::string_view name, const AlgorithmOptions& options,
                             const std::vector<Parents>& trees);

}  // namespace towpath::collective
