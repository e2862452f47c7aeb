// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/noc/router/routing.hpp"

// State of the routers, which input units, allocators and output units share. VC v of a router's
// port p has number p * kVcsMax + v, which is also its bit in each set of VCs.

namespace towpath::noc {

inline constexpr std::uint8_t kNobody = 63;  // an unused bit
// Far from a power of two, so that the reads of a pass over all routers are spread over the
// processor's cache.
inline constexpr std::uint32_t kRouterBytes = 34 * 64;

// A VC of a node's port, packed into a word: the start of the node's router in bytes, and the VC's
// number in the bits below a router's alignment.
class VcRef {
 public:
  VcRef() = default;
  VcRef(int node, unsigned number)
      : word_(static_cast<std::uint32_t>(node) * kRouterBytes | number) {}
  std::size_t node() const { return word_ / kRouterBytes; }
  std::size_t router_begin() const { return word_ & ~kNumberMask; }
  // The VC's index among all of its node, and among those of its port.
  unsigned number() const { return word_ & kNumberMask; }
  unsigned vc() const { return word_ & (kVcsMax - 1); }
  // The same port with another VC, valid on VC 0.
  VcRef with_vc(unsigned vc) const { return VcRef(word_ | vc); }
  // Another VC of the same node.
  VcRef with_number(unsigned number) const { return VcRef((word_ & ~kNumberMask) | number); }

 private:
  static constexpr std::uint32_t kNumberMask = 63;
  static_assert(kVcsMax == 16 && (kPorts + 1) * kVcsMax == kNumberMask + 1);
  explicit VcRef(std::uint32_t word) : word_(word) {}
  std::uint32_t word_ = 0;
};

// Buffer of a VC at the receiving end of a link.
struct InputVc {
  PacketId packet = kNoPacket;   // packet whose flits are in front, if any is
  std::uint16_t flits_left = 0;  // flits of `packet` still to leave from here
  std::uint8_t flits = 0;        // flits in the buffer
  std::uint8_t output_vc = 0;    // unicast: requested, then owned
};
// Linked list of the packets of a VC behind the front packet, if there are any.
struct Followers {
  PacketId first = kNoPacket;
  PacketId last = kNoPacket;
};
// VC buffers of the input ports, as sets.
struct InputSets {
  std::uint64_t occupied = 0;   // VCs that hold flits
  std::uint64_t allocated = 0;  // VCs whose packet owns its output VC
  std::uint64_t begun = 0;      // VCs with a packet in front
  std::uint64_t followed = 0;   // VCs with others behind that one
};
// For a multicast at the front of a VC: ports that still need the front flit, ports that need each
// flit, and their VCs.
struct Copies {
  std::uint8_t outputs = 0;
  std::uint8_t all_outputs = 0;
  std::array<std::uint8_t, kPorts> output_vc{};
};
// Output VC of a router: its view of the buffer at the other end, and its owner.
struct OutputVc {
  std::uint8_t used = 0;          // flits at the other end, the first in a reserved slot
  std::uint8_t holder = kNobody;  // input VC whose unicast owns it, or kNobody
  std::uint8_t last_owner = 0;    // input VC whose packet owns or owned it
  std::uint8_t priority = 0;      // input VC with the highest priority
};
// Links of a router's port, and the flits that have left on its outgoing link.
struct Links {
  VcRef target;    // where flits arrive, with VC 0
  VcRef upstream;  // link that feeds the input, with VC 0
  std::int64_t flits = 0;
};

// Members that are used together share a cache line.
struct alignas(64) Router {
  InputSets input;
  std::uint64_t blocked = 0;    // VCs that have no room at the other end
  std::uint64_t multicast = 0;  // VCs with a multicast in front
  std::uint64_t header = 0;     // VCs whose flit in front is a header
  // By input port, the VC, and by output port, the input port with the highest priority.
  std::array<std::uint8_t, kPorts> input_priority{};
  std::array<std::uint8_t, kPorts> output_priority{};
  std::int16_t node = 0;

  std::uint64_t owned = 0;     // output VCs that a packet owns, or that drain
  std::uint64_t draining = 0;  // owned VCs whose last flit has left
  std::uint64_t wanted = 0;    // output VCs with contenders
  std::uint64_t flexible = 0;  // VCs that wait for an output VC and may take the other buddy's
  std::array<std::uint64_t, kPorts> pooled{};  // by output: VCs that need a slot of its pool
  std::array<std::uint8_t, kPorts> pool_used{};
  std::uint8_t crosses_dateline = 0;  // outputs whose link wraps around
  std::int16_t x = 0;
  std::int16_t y = 0;

  std::array<Links, kPorts> links;
  std::array<InputVc, kPorts * kVcsMax> in;
  std::array<OutputVc, kPorts * kVcsMax> out;
  // By output VC: input VCs whose packets request it.
  std::array<std::uint64_t, kPorts * kVcsMax> contenders{};
  std::array<Cycle, kPorts * kVcsMax> free_at{};  // by output VC, valid while draining
  std::array<Followers, kPorts * kVcsMax> followers;
  std::array<Copies, kPorts * kVcsMax> copies;

  // VCs whose packet may send a flit. Multicasts have further conditions.
  std::uint64_t ready() const { return input.occupied & input.allocated & ~blocked; }
  bool crosses(int output) const { return (crosses_dateline >> output & 1) != 0; }
};

// The routers of a network. A copy is a view of the same routers, so loops can keep one in
// registers.
class Routers {
 public:
  Routers(Router* first, int count) : first_(first), count_(count) {}

  int count() const { return count_; }
  Router& operator[](int node) const { return first_[index(node)]; }
  // Avoids a multiplication, which would be a large part of the cost of a visit.
  Router& operator[](VcRef place) const {
    static_assert(sizeof(Router) == kRouterBytes);
    return *reinterpret_cast<Router*>(reinterpret_cast<std::byte*>(first_) + place.router_begin());
  }

 private:
  Router* first_;
  int count_;
};

// Routers connected as a torus.
std::vector<Router> joined_routers(const Routing& routing);

}  // namespace towpath::noc
