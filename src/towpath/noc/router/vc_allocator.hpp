// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "towpath/noc/router/bits.hpp"
#include "towpath/noc/router/network_state.hpp"
#include "towpath/noc/router/output_units.hpp"

namespace towpath::noc {

// VC allocation: the assignment of output VCs to the front packets of input VCs. An output VC is
// granted to its contenders in rotation. A packet owns it from its header until vc_release_cycles
// after its last flit. The next packet of the same input VC may follow without that gap, if it is
// the only contender. A packet that may change its buddy bit takes the VC of its bit if that is
// free, otherwise the other buddy's.
class VcAllocator {
 public:
  VcAllocator(const machine::RouterParameters& parameters, NetworkState& state,
              const OutputUnits& outputs);

  // The front packet of input VC `place` requests an output VC.
  void request(Router& router, VcRef place, unsigned output_vc, bool keeps_buddy) {
    const unsigned number = place.number();
    router.in[number].output_vc = static_cast<std::uint8_t>(output_vc);
    router.flexible |= std::uint64_t{!keeps_buddy} << number;
    set_bit(router.contenders[output_vc], number);
    set_bit(router.wanted, output_vc);
    // While other packets own both candidate VCs, no decision is made.
    const std::uint64_t open = ~router.owned | router.draining;
    const std::uint64_t is_open = open >> output_vc | (keeps_buddy ? 0 : open >> (output_vc ^ 1));
    undecided_.add_if(place.with_number(output_vc), (is_open & 1) != 0);
  }
  // Grants output VCs, once per cycle. The VCs in `released` become free in this cycle, and packets
  // wait for them.
  void allocate(std::span<const VcRef> released);
  bool is_idle() const { return undecided_.empty(); }

  // The last flit of the front packet of input VC `number` has left.
  void release(Router& router, unsigned number, VcRef output_vc) {
    OutputVc& left = router.out[output_vc.number()];
    left.last_owner = static_cast<std::uint8_t>(number);  // not yet set for a multicast
    left.holder = kNobody;
    clear_bit(router.pooled[output_vc.number() / kVcsMax], number);
    clear_bit(router.blocked, number);
    router.free_at[output_vc.number()] = now_ + release_cycles_;
    set_bit(router.draining, output_vc.number());
    if (is_awaited(router, output_vc.number())) release_when_free(router, output_vc);
  }

  // True if no packet owns the output VC; a drained VC becomes free here.
  bool is_free(Router& router, unsigned output_vc) const {
    if ((router.owned >> output_vc & 1) == 0) return true;
    if ((router.draining >> output_vc & 1) == 0 || router.free_at[output_vc] > now_) return false;
    clear_bit(router.owned, output_vc);
    clear_bit(router.draining, output_vc);
    return true;
  }
  // A multicast's reservation takes a free output VC without contending for it, and may return it.
  static void reserve(Router& router, int output_vc) { set_bit(router.owned, output_vc); }
  void cancel(Router& router, int output_vc) {
    clear_bit(router.owned, output_vc);
    undecided_.add(VcRef(router.node, static_cast<unsigned>(output_vc)));
  }

 private:
  // True if packets wait for the output VC or, if they may change buddy, for the other buddy's
  // VC.
  static bool is_awaited(const Router& router, unsigned output_vc) {
    const std::uint64_t other = router.flexible != 0 ? router.wanted >> (output_vc ^ 1) : 0;
    return ((router.wanted >> output_vc | other) & 1) != 0;
  }
  // Packets that wait for a VC not yet released are examined again at its release.
  void release_when_free(const Router& router, VcRef output_vc) {
    links_.release_in(router.free_at[output_vc.number()] - now_, output_vc);
  }
  void grant(std::span<const VcRef> output_vcs);
  void grant_other_buddies(int node);
  inline bool grant(Router& router, std::uint64_t contenders, VcRef output_vc);

  const Cycle& now_;
  int release_cycles_;
  Routers routers_;
  NodeSet& active_routers_;
  LinkPipeline& links_;
  const OutputUnits& outputs_;
  BoundedList<VcRef> undecided_;  // output VCs that may have become free for a contender
  NodeSet flexible_;              // undecided routers with packets that may change buddy
};

}  // namespace towpath::noc
