// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/noc/router/input_units.hpp"
#include "towpath/noc/router/output_units.hpp"
#include "towpath/noc/router/switch_allocator.hpp"
#include "towpath/noc/router/vc_allocator.hpp"

namespace towpath::noc {

// Switch traversal: the flits that won leave their input VCs for the links, and credits for their
// slots return to the senders.
class Crossbar {
 public:
  Crossbar(NetworkState& state, InputUnits& inputs, const OutputUnits& outputs,
           VcAllocator& allocator)
      : routers_(state.routers),
        active_routers_(state.active_routers),
        packets_(state.packets),
        trees_(state.trees),
        links_(state.links),
        inputs_(inputs),
        outputs_(outputs),
        allocator_(allocator) {}

  void traverse(const SwitchAllocator& winners);

 private:
  inline void put_on_link(Router& router, unsigned output_vc, PacketId packet, bool is_header);
  inline void free_slot(Router& router, unsigned number);
  inline void send(Router& router, VcRef place);
  void send_copy(VcRef place, unsigned output);
  PacketId branch_off(PacketId id, unsigned output);

  Routers routers_;
  NodeSet& active_routers_;
  PacketTable& packets_;
  const MulticastTrees& trees_;
  LinkPipeline& links_;
  InputUnits& inputs_;
  const OutputUnits& outputs_;
  VcAllocator& allocator_;
};

}  // namespace towpath::noc
