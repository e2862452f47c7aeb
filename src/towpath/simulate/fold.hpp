// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "towpath/collective/schedule/plan.hpp"
#include "towpath/gpu_links/network.hpp"
#include "towpath/machine/machine.hpp"

// Equivalent ranks are simulated once. If plan and machine are unchanged by a rotation of the ranks
// by a *period*, the ranks below the period represent all. A message to a rank beyond the period
// arrives at that rank's representative, like the message of the sender's image. Each link
// represents its rotations.

namespace towpath::simulate {

struct Fold {
  int period = 0;  // ranks to simulate, or 0 for all
  // One per link of the machine. Null without a period.
  std::shared_ptr<const std::vector<gpu_links::FoldedLink>> links;
  std::string refusal;  // the reason for no fold, in words, or empty

  explicit operator bool() const { return period > 0; }
  // The loads of all links, from the loads of their representatives.
  std::vector<gpu_links::LinkLoad> unfolded(std::vector<gpu_links::LinkLoad> loads) const;
};

// The fold with the fewest ranks for a plan without data. `places` is the GPU of each rank.
Fold find_fold(const machine::Machine& machine, const collective::Plan& plan,
               const std::vector<int>& places);

}  // namespace towpath::simulate
