// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "towpath/collective/algorithms/building.hpp"
#include "towpath/collective/algorithms/building_tree.hpp"

// One tree per channel.

namespace towpath::collective {

// The parent of each rank; kNone for the root.
using Parents = std::vector<int>;

struct HostParent {
  int host = kNone;      // kNone: the host is the root
  bool is_left = false;  // left child of its parent
};

// The parent of a host in one of two binary trees. Inner hosts of one tree are leaves in the other,
// except for one host if their number is odd.
HostParent parent_of_host(int host, int hosts, bool is_second);

// Sends chunks_per_channel chunks along each channel's tree, rooted at options.root. `add` creates
// a rank's thread blocks. A channel has a binary tree of hosts over the GPUs of one rail, and a
// binary tree within each host. Odd channels use a second tree of hosts, in which most inner hosts
// of the first are leaves.
Schedule along_trees_of_root(std::string_view name, Collective collective,
                             const AlgorithmOptions& options,
                             void (*add)(Schedule& schedule, TreeNode& node));

// Sums go up the tree of each channel to its root, and results down, as a pipeline of
// chunks_per_channel chunks.
Schedule all_reduce_by_trees(std::string_view name, const AlgorithmOptions& options,
                             const std::vector<Parents>& trees);

}  // namespace towpath::collective
