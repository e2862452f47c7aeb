// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/router/link_pipeline.hpp"

#include <algorithm>
#include <bit>

namespace towpath::noc {

namespace {

std::size_t wheel_size(const machine::RouterParameters& parameters) {
  const int longest = std::max({parameters.hop_cycles, parameters.niu_to_router_cycles,
                                parameters.router_to_niu_cycles, parameters.credit_return_cycles,
                                parameters.vc_release_cycles});
  return std::bit_ceil(static_cast<std::size_t>(longest) + 1);
}

}  // namespace

LinkPipeline::LinkPipeline(const machine::RouterParameters& parameters, int nodes)
    : parameters_(parameters), wheel_(wheel_size(parameters)), mask_(wheel_.size() - 1) {
  for (Slot& slot : wheel_) {
    for (BoundedList<Arrival>& list : slot.to_routers.lists) list.make_room(index(nodes * kPorts));
    for (BoundedList<Arrival>& list : slot.to_nius.lists) list.make_room(index(nodes));
    slot.router_credits.make_room(index(nodes * kPorts));
    slot.niu_credits.make_room(index(nodes));
  }
}

void LinkPipeline::begin_cycle(Cycle now) {
  now_ = now;
  Arrivals& next_hop = slot_in(parameters_.hop_cycles).to_routers;
  flits_ = {&next_hop, &next_hop, &slot_in(parameters_.router_to_niu_cycles).to_nius};
  flits_of_nius_ = &slot_in(parameters_.niu_to_router_cycles).to_routers;
  Slot& back = slot_in(parameters_.credit_return_cycles);
  credits_ = {&back.router_credits, &back.router_credits, &back.niu_credits};
}

Cycle LinkPipeline::next_arrival(Cycle now) const {
  for (std::size_t ahead = 0; ahead < wheel_.size(); ++ahead) {
    if (!wheel_[(static_cast<std::size_t>(now) + ahead) & mask_].is_empty()) {
      return now + static_cast<Cycle>(ahead);
    }
  }
  return kNever;
}

}  // namespace towpath::noc
