// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "towpath/noc/router/network_state.hpp"
#include "towpath/noc/router/output_units.hpp"

namespace towpath::noc {

// Switch allocation: the flits that cross each router in a cycle. VC before port: every input port
// picks one VC, in rotation, that could send. Every output port then picks one requesting input
// port, in rotation. An input port that is not picked sends no flit in this cycle, even if another
// of its VCs could have. With picks_vc_first off, an output port picks among all VCs of the input
// ports that no output before it has picked.
class SwitchAllocator {
 public:
  // A copy of a multicast's front flit.
  struct Copy {
    VcRef from;
    unsigned output;
  };

  SwitchAllocator(const machine::RouterParameters& parameters, NetworkState& state,
                  const OutputUnits& outputs);

  void allocate();
  // The winners: VCs whose front unicast flit leaves in this cycle, and copies that leave in it.
  std::span<const VcRef> unicasts() const { return unicasts_.all(); }
  std::span<const Copy> copies() const { return copies_.all(); }
  // The winner of an input and an output port has sent its flit, so the others come first.
  static void rotate(Router& router, unsigned number, unsigned output) {
    const unsigned input = number / kVcsMax;
    router.input_priority[input] = static_cast<std::uint8_t>((number + 1) & (kVcsMax - 1));
    router.output_priority[output] = static_cast<std::uint8_t>(input == kPorts - 1 ? 0 : input + 1);
  }

 private:
  inline bool allocate(int node);
  inline bool allocate_unicasts(int node, std::uint64_t candidates);
  bool allocate_with_multicasts(int node, std::uint64_t candidates);
  bool allocate_outputs_first(int node, std::uint64_t candidates);
  unsigned first_vc(const Router& router, std::uint64_t candidates, unsigned input,
                    unsigned output) const;
  void add_winner(const Router& router, VcRef place, unsigned output);
  unsigned possible_outputs(const Router& router, unsigned number) const;

  bool picks_vc_first_;
  Routers routers_;
  NodeSet& active_routers_;
  const OutputUnits& outputs_;
  BoundedList<VcRef> unicasts_;
  BoundedList<Copy> copies_;
};

}  // namespace towpath::noc
