// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "joined_chips.hpp"

#include "chips.hpp"

namespace towpath::machine {

std::shared_ptr<const ChipCluster> joined_chips(const JoinedChips& shape) {
  Chip description = drawn_chip({"eeee", "wwww", "wwww"});
  description.ethernet.training_time = shape.training_time;
  description.ethernet.resend_timeout = Time::from_us(20);
  const auto chip = build_chip(description);
  ChipCluster cluster;
  cluster.name = "joined";
  for (int i = 0; i < shape.chips; ++i) cluster.chips.push_back({.chip = chip, .x = i});
  const int neighbours = shape.is_ring ? shape.chips : shape.chips - 1;
  for (int i = 0; i < neighbours; ++i) {
    for (int link = 0; link < shape.links; ++link) {
      cluster.links.push_back({{{{i, link}, {(i + 1) % shape.chips, 2 + link}}}});
    }
  }
  return build_chip_cluster(cluster);
}

}  // namespace towpath::machine
