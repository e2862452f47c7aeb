// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "towpath/collective/schedule/plan.hpp"
#include "towpath/gpu_links/network.hpp"
#include "towpath/machine/machine.hpp"

// Ranks that do the same at the same time need not all be simulated. Where plan and machine are
// unchanged when the ranks are rotated by some number of them, a *period*, the first so many ranks
// stand for all: what one of them sends to a rank beyond arrives at the rank that stands for that,
// as what its mirror image sends does. Each link stands for those that it is rotated to.

namespace towpath::simulate {

struct Fold {
  int period = 0;  // ranks to simulate; 0: all
  // One per link of the machine. Null without a period.
  std::shared_ptr<const std::vector<gpu_links::FoldedLink>> links;
  std::string refusal;  // why all ranks are simulated, in words; empty if not all are

  explicit operator bool() const { return period > 0; }
  // The loads of all links, from those of the links that stand for them.
  std::vector<gpu_links::LinkLoad> unfolded(std::vector<gpu_links::LinkLoad> loads) const;
};

// The fold with the fewest ranks of a plan without data, `places` being the GPU of each rank.
Fold find_fold(const machine::Machine& machine, const collective::Plan& plan,
               const std::vector<int>& places);

}  // namespace towpath::simulate
