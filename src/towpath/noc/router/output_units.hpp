// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "towpath/noc/router/bits.hpp"
#include "towpath/noc/router/network_state.hpp"

namespace towpath::noc {

// Slots of a buffer at the far end of a link: one for each VC, and a pool that the VCs share.
class BufferPool {
 public:
  // Responses may use some slots that other packets may not.
  explicit BufferPool(const machine::RouterParameters& parameters)
      : without_(index(parameters.pool_flits) + 1, ~std::uint64_t{0}),
        per_vc_max_(parameters.pool_flits_per_vc_max) {
    std::uint64_t response_vcs = 0;
    for (int number = 0; number < kPorts * kVcsMax; ++number) {
      const int packet_class = (number % kVcsMax >> 1) % parameters.classes;
      if (packet_class == static_cast<int>(PacketClass::response)) set_bit(response_vcs, number);
    }
    const int limit = parameters.pool_flits - parameters.pool_flits_reserved;
    for (int used = 0; used < limit; ++used) without_[index(used)] = 0;
    for (int used = limit; used < limit + parameters.pool_flits_for_responses; ++used) {
      without_[index(used)] = ~response_vcs;
    }
  }

  std::int64_t per_vc_max() const { return per_vc_max_; }
  // The VCs without a slot in a pool, with one bit for each VC of all ports.
  std::uint64_t without(unsigned pool_used) const { return without_[pool_used]; }
  bool has_room(unsigned used, unsigned pool_used, unsigned vc) const {
    return used == 0 ||
           ((without_[pool_used] >> vc & 1) == 0 && used <= static_cast<unsigned>(per_vc_max_));
  }

 private:
  std::vector<std::uint64_t> without_;
  std::int64_t per_vc_max_;
};

// The outputs of all routers: the room at the other ends of their links, derived from flits sent
// and credits returned. It is stored as sets of input VCs, so that VCs that cannot send are not
// examined.
class OutputUnits {
 public:
  OutputUnits(const machine::RouterParameters& parameters, NetworkState& state)
      : pool_(parameters), routers_(state.routers), active_routers_(state.active_routers) {}

  const BufferPool& pool() const { return pool_; }
  void credits_arrive(std::span<const VcRef> credits) {
    const Routers routers = routers_;
    for (const VcRef credit : credits) credit_arrives(routers[credit], credit.number());
  }
  // A flit leaves on an output VC, and takes a slot at the other end.
  void take_slot(Router& router, unsigned output_vc) const {
    const unsigned output = output_vc / kVcsMax;
    OutputVc& vc = router.out[output_vc];
    router.pool_used[output] =
        static_cast<std::uint8_t>(router.pool_used[output] + (vc.used != 0 ? 1 : 0));
    update_room(router, vc.holder, output, ++vc.used);
  }
  // Input VC `number` owns an output VC with `used` flits at the other end. The pool of the output
  // may also have changed.
  void update_room(Router& router, unsigned number, unsigned output, unsigned used) const;

 private:
  // Frees a slot: the VC's slot if the VC has no flits there any more, otherwise one of the pool.
  void credit_arrives(Router& router, unsigned output_vc) {
    OutputVc& vc = router.out[output_vc];
    const unsigned output = output_vc / kVcsMax;
    const unsigned used = --vc.used;
    router.pool_used[output] =
        static_cast<std::uint8_t>(router.pool_used[output] - (used != 0 ? 1 : 0));
    update_room(router, vc.holder, output, used);
    active_routers_.insert_if(router.node, router.ready() != 0 ? 1 : 0);
  }

  BufferPool pool_;
  Routers routers_;
  NodeSet& active_routers_;
};

inline void OutputUnits::update_room(Router& router, unsigned number, unsigned output,
                                     unsigned used) const {
  // All ones if true. Avoids a branch and a shift, both of which are already frequent here.
  const auto is_below = [](std::int64_t one, std::int64_t other) {
    return static_cast<std::uint64_t>((one - other) >> 63);
  };
  const std::int64_t max = pool_.per_vc_max();
  const std::uint64_t self = std::uint64_t{1} << number;
  const std::uint64_t full = self & is_below(max, used);
  const std::uint64_t pooled = (router.pooled[output] & ~self) | (self & is_below(used - 1, max));
  const std::uint64_t without = pool_.without(router.pool_used[output]);
  router.pooled[output] = pooled;
  router.blocked = (router.blocked & ~(self | pooled)) | (pooled & without) | full;
}

}  // namespace towpath::noc
