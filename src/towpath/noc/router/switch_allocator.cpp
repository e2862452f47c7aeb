// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/router/switch_allocator.hpp"

#include <array>
#include <bit>

namespace towpath::noc {

namespace {

// Input port that wins an output, given the port with the highest priority and the set of
// requesting ports.
constexpr std::uint8_t kFirstInput[3][8] = {
    {0, 0, 1, 0, 2, 0, 1, 0}, {0, 0, 1, 1, 2, 2, 1, 1}, {0, 0, 1, 0, 2, 2, 2, 2}};
constexpr unsigned kAllInputs = (1u << kPorts) - 1;

}  // namespace

SwitchAllocator::SwitchAllocator(const machine::RouterParameters& parameters, NetworkState& state,
                                 const OutputUnits& outputs)
    : picks_vc_first_(parameters.picks_vc_first),
      routers_(state.routers),
      active_routers_(state.active_routers),
      outputs_(outputs),
      unicasts_(index(state.routers.count() * kPorts + 1)),
      copies_(index(state.routers.count() * kPorts)) {}

void SwitchAllocator::allocate() {
  unicasts_.clear();
  copies_.clear();
  active_routers_.filter([this](int node) { return allocate(node); });
}

// False if no VC can send in the next cycle unless a flit or a credit arrives, or one that is sent
// leaves others behind it.
bool SwitchAllocator::allocate(int node) {
  const Router& router = routers_[node];
  const std::uint64_t candidates = router.ready();
  if (candidates == 0) return false;
  if (!picks_vc_first_) return allocate_outputs_first(node, candidates);
  if ((candidates & router.multicast) != 0) return allocate_with_multicasts(node, candidates);
  if ((candidates & (candidates - 1)) != 0) return allocate_unicasts(node, candidates);
  unicasts_.add(VcRef(node, static_cast<unsigned>(std::countr_zero(candidates))));
  return false;
}

// Without branches, which would be unpredictable: a port without a candidate chooses a VC that
// no output grants.
bool SwitchAllocator::allocate_unicasts(int node, std::uint64_t candidates) {
  const Router& router = routers_[node];
  std::array<unsigned, kPorts> chosen;
  unsigned requests = 0;  // kPorts bits per output: the input ports that request it
  for (unsigned input = 0; input < kPorts; ++input) {
    const unsigned of_port = static_cast<unsigned>(candidates >> input * kVcsMax & 0xffff);
    const unsigned priority = router.input_priority[input];
    const unsigned first =
        static_cast<unsigned>(std::countr_zero(rotated(of_port, priority) | 1u << 16));
    const unsigned number = input * kVcsMax + ((first + priority) & (kVcsMax - 1));
    chosen[input] = number;
    requests |= unsigned{of_port != 0} << (router.in[number].output_vc / kVcsMax * kPorts + input);
  }
  for (unsigned output = 0; output < kPorts; ++output) {
    const unsigned inputs = requests >> output * kPorts & kAllInputs;
    const unsigned number = chosen[kFirstInput[router.output_priority[output]][inputs]];
    unicasts_.add_if(VcRef(node, number), inputs != 0);
  }
  return true;
}

// Outputs that the front flit of a ready VC could take in this cycle, one bit per port.
unsigned SwitchAllocator::possible_outputs(const Router& router, unsigned number) const {
  if ((router.multicast >> number & 1) == 0) return 1u << router.in[number].output_vc / kVcsMax;
  const Copies& copies = router.copies[number];
  unsigned possible = 0;
  for (unsigned outputs = copies.outputs; outputs != 0; outputs &= outputs - 1) {
    const unsigned output = static_cast<unsigned>(std::countr_zero(outputs));
    const unsigned vc = output * kVcsMax + copies.output_vc[output];
    if (outputs_.pool().has_room(router.out[vc].used, router.pool_used[output], vc)) {
      possible |= 1u << output;
    }
  }
  return possible;
}

// The same if a VC may request several outputs.
bool SwitchAllocator::allocate_with_multicasts(int node, std::uint64_t candidates) {
  const Router& router = routers_[node];
  std::array<unsigned, kPorts> chosen;
  unsigned requests = 0;
  for (unsigned input = 0; input < kPorts; ++input) {
    const unsigned of_port = static_cast<unsigned>(candidates >> input * kVcsMax & 0xffff);
    const unsigned priority = router.input_priority[input];
    for (unsigned rest = rotated(of_port, priority); rest != 0; rest &= rest - 1) {
      const unsigned vc =
          (static_cast<unsigned>(std::countr_zero(rest)) + priority) & (kVcsMax - 1);
      const unsigned number = input * kVcsMax + vc;
      const unsigned possible = possible_outputs(router, number);
      if (possible == 0) continue;
      chosen[input] = number;
      for (unsigned outputs = possible; outputs != 0; outputs &= outputs - 1) {
        requests |= 1u << (static_cast<unsigned>(std::countr_zero(outputs)) * kPorts + input);
      }
      break;
    }
  }
  const bool is_any = requests != 0;
  for (unsigned output = 0; requests != 0; ++output, requests >>= kPorts) {
    const unsigned inputs = requests & kAllInputs;
    if (inputs == 0) continue;
    const unsigned input = kFirstInput[router.output_priority[output]][inputs];
    add_winner(router, VcRef(node, chosen[input]), output);
  }
  return is_any;
}

void SwitchAllocator::add_winner(const Router& router, VcRef place, unsigned output) {
  if ((router.multicast >> place.number() & 1) != 0) {
    copies_.add({place, output});
  } else {
    unicasts_.add(place);
  }
}

// The VC of an input port, in rotation, that may send to the output. kNobody: none may.
unsigned SwitchAllocator::first_vc(const Router& router, std::uint64_t candidates, unsigned input,
                                   unsigned output) const {
  const unsigned of_port = static_cast<unsigned>(candidates >> input * kVcsMax & 0xffff);
  const unsigned priority = router.input_priority[input];
  for (unsigned rest = rotated(of_port, priority); rest != 0; rest &= rest - 1) {
    const unsigned vc = (static_cast<unsigned>(std::countr_zero(rest)) + priority) & (kVcsMax - 1);
    const unsigned number = input * kVcsMax + vc;
    if ((possible_outputs(router, number) >> output & 1) != 0) return number;
  }
  return kNobody;
}

// An input port sends from one VC in a cycle, of a multicast to several outputs.
bool SwitchAllocator::allocate_outputs_first(int node, std::uint64_t candidates) {
  const Router& router = routers_[node];
  std::array<unsigned, kPorts> chosen{kNobody, kNobody, kNobody};
  bool is_any = false;
  for (unsigned output = 0; output < kPorts; ++output) {
    for (unsigned turn = 0; turn < kPorts; ++turn) {
      const unsigned input = (router.output_priority[output] + turn) % kPorts;
      const std::uint64_t own =
          chosen[input] == kNobody ? candidates : std::uint64_t{1} << chosen[input];
      const unsigned number = first_vc(router, own, input, output);
      if (number == kNobody) continue;
      chosen[input] = number;
      add_winner(router, VcRef(node, number), output);
      is_any = true;
      break;
    }
  }
  return is_any;
}

}  // namespace towpath::noc
