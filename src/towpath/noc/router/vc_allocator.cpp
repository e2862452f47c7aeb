// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/router/vc_allocator.hpp"

#include <bit>
#include <utility>

namespace towpath::noc {

// In a cycle, a reservation returns an output VC or leaves it for the other buddy, at most once
// each, and a port receives one header and sends one last flit.
VcAllocator::VcAllocator(const machine::RouterParameters& parameters, NetworkState& state,
                         const OutputUnits& outputs)
    : now_(state.now),
      release_cycles_(parameters.vc_release_cycles),
      routers_(state.routers),
      active_routers_(state.active_routers),
      links_(state.links),
      outputs_(outputs),
      undecided_(index(state.routers.count() * kPorts * (2 * kVcsMax + 2) + 1)),
      flexible_(state.routers.count()) {}

void VcAllocator::allocate(std::span<const VcRef> released) {
  grant(undecided_.all());
  grant(released);
  undecided_.clear();
  flexible_.filter([this](int node) {
    grant_other_buddies(node);
    return false;
  });
}

void VcAllocator::grant(std::span<const VcRef> output_vcs) {
  for (const VcRef output_vc : output_vcs) {
    Router& router = routers_[output_vc];
    const std::uint64_t contenders = router.contenders[output_vc.number()];
    if (contenders != 0) grant(router, contenders, output_vc);
    if (router.flexible != 0) flexible_.insert(router.node);
  }
}

void VcAllocator::grant_other_buddies(int node) {
  Router& router = routers_[node];
  for (std::uint64_t rest = router.wanted; rest != 0; rest &= rest - 1) {
    const unsigned wanted = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint64_t left = router.contenders[wanted] & router.flexible;
    if (left == 0 || !grant(router, left, VcRef(node, wanted ^ 1))) continue;
    // Contenders that lost may now be the only ones for the VC they want.
    undecided_.add(VcRef(node, wanted));
  }
}

// Grants the VC to one of the contenders, if it is free. Until its release, a VC may only go to the
// next packet of the same buffer, and only if no other packet waits for it.
bool VcAllocator::grant(Router& router, std::uint64_t contenders, VcRef place) {
  const unsigned output_vc = place.number();
  OutputVc& granted = router.out[output_vc];
  unsigned number =
      (static_cast<unsigned>(std::countr_zero(std::rotr(contenders, granted.priority))) +
       granted.priority) &
      63;
  if (!is_free(router, output_vc)) {
    if ((router.draining >> output_vc & 1) == 0) return false;
    number = granted.last_owner;
    if (contenders != std::uint64_t{1} << number) {
      release_when_free(router, place);
      return false;
    }
    clear_bit(router.draining, output_vc);
  }
  granted.priority = static_cast<std::uint8_t>(number + 1);
  granted.last_owner = granted.holder = static_cast<std::uint8_t>(number);
  set_bit(router.owned, output_vc);
  outputs_.update_room(router, number, output_vc / kVcsMax, granted.used);
  const unsigned wanted =
      std::exchange(router.in[number].output_vc, static_cast<std::uint8_t>(output_vc));
  const std::uint64_t others = router.contenders[wanted] & ~(std::uint64_t{1} << number);
  router.contenders[wanted] = others;
  router.wanted &= ~(std::uint64_t{others == 0} << wanted);
  clear_bit(router.flexible, number);
  set_bit(router.input.allocated, number);
  active_routers_.insert(router.node);
  return true;
}

}  // namespace towpath::noc
