// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/router/deadlock_search.hpp"

#include <fmt/format.h>

#include <bit>
#include <map>
#include <tuple>

namespace towpath::noc {

namespace {

// Follows the packets from each buffer that cannot move.
class DeadlockSearch {
 public:
  DeadlockSearch(const NetworkState& state, const BufferPool& pool) : state_(state), pool_(pool) {}

  // Names of the packets of the first cycle found.
  std::vector<std::string> find() const {
    for (int node = 0; node < state_.routers.count(); ++node) {
      for (int input = 0; input < kPorts; ++input) {
        for (int vc = 0; vc < kVcsMax; ++vc) {
          if (buffer({node, input, vc}).flits == 0) continue;
          const std::vector<std::string> cycle = cycle_from({node, input, vc});
          if (!cycle.empty()) return cycle;
        }
      }
    }
    return {};
  }

 private:
  using Place = std::tuple<int, int, int>;  // node, input port, VC

  static VcRef vc_of(const Place& place) {
    const auto& [node, input, vc] = place;
    return VcRef(node, static_cast<unsigned>(input * kVcsMax + vc));
  }
  const Router& router_of(const Place& place) const { return state_.routers[std::get<0>(place)]; }

  const InputVc& buffer(const Place& place) const {
    return router_of(place).in[vc_of(place).number()];
  }

  bool has_packet(const Place& place) const {
    return (router_of(place).input.begun >> vc_of(place).number() & 1) != 0;
  }

  // The buffer that this buffer's packet waits for: at the far end of the link for room, or in this
  // router for the VC that another packet owns. Node -1 if it waits for neither.
  Place waits_for(const Place& place) const {
    const unsigned number = vc_of(place).number();
    const Router& router = router_of(place);
    if ((router.input.allocated >> number & 1) == 0) {
      return owner(std::get<0>(place), router.in[number].output_vc);
    }
    std::uint64_t rest = output_vcs(router, number, router.copies[number].outputs);
    for (; rest != 0; rest &= rest - 1) {
      const auto output_vc = static_cast<unsigned>(std::countr_zero(rest));
      const unsigned output = output_vc / kVcsMax;
      if (output != kNiu &&
          !pool_.has_room(router.out[output_vc].used, router.pool_used[output], output_vc)) {
        const VcRef target = router.links[output].target;
        return {static_cast<int>(target.node()), static_cast<int>(output),
                static_cast<int>(output_vc % kVcsMax)};
      }
    }
    return {-1, 0, 0};
  }

  // Output VCs of an allocated VC's packet; for a multicast, only at the given outputs.
  static std::uint64_t output_vcs(const Router& router, unsigned number, unsigned outputs) {
    if ((router.multicast >> number & 1) == 0) {
      return std::uint64_t{1} << router.in[number].output_vc;
    }
    std::uint64_t output_vcs = 0;
    for (; outputs != 0; outputs &= outputs - 1) {
      const int output = std::countr_zero(outputs);
      set_bit(output_vcs, output * kVcsMax + router.copies[number].output_vc[index(output)]);
    }
    return output_vcs;
  }

  // The buffer whose packet owns an output VC.
  Place owner(int node, unsigned output_vc) const {
    const Router& router = state_.routers[node];
    std::uint64_t rest = router.input.allocated;
    for (; rest != 0; rest &= rest - 1) {
      const auto number = static_cast<unsigned>(std::countr_zero(rest));
      const unsigned outputs = router.copies[number].all_outputs;
      if ((output_vcs(router, number, outputs) >> output_vc & 1) != 0) {
        return {node, static_cast<int>(number / kVcsMax), static_cast<int>(number % kVcsMax)};
      }
    }
    return {-1, 0, 0};
  }

  std::vector<std::string> cycle_from(const Place& start) const {
    std::map<Place, int> order;
    std::vector<Place> path;
    Place at = start;
    while (std::get<0>(at) >= 0 && has_packet(at)) {
      const auto [known, is_new] = order.emplace(at, static_cast<int>(path.size()));
      if (!is_new) return names_of({path.begin() + known->second, path.end()});
      path.push_back(at);
      at = waits_for(at);
    }
    return {};
  }

  std::string name(const Place& place) const {
    const auto& [node, input, vc] = place;
    const machine::Coordinate here = state_.routing.torus().coordinate_of(node);
    const Packet& packet = state_.packets[buffer(place).packet];
    const machine::Coordinate from = state_.routing.torus().coordinate_of(packet.source);
    const machine::Coordinate to = state_.routing.torus().coordinate_of(packet.destination);
    return fmt::format("the packet from ({}, {}) to ({}, {}) on VC {} at ({}, {})", from.x, from.y,
                       to.x, to.y, vc, here.x, here.y);
  }

  // A packet may occupy several consecutive buffers of the cycle; it is named once.
  std::vector<std::string> names_of(const std::vector<Place>& cycle) const {
    std::vector<Place> packets;
    for (const Place& place : cycle) {
      const bool is_known = !packets.empty() && is_same_packet(packets.back(), place);
      if (!is_known) packets.push_back(place);
    }
    if (packets.size() > 1 && is_same_packet(packets.front(), packets.back())) packets.pop_back();
    std::vector<std::string> names;
    for (const Place& place : packets) names.push_back(name(place));
    return names;
  }

  bool is_same_packet(const Place& left, const Place& right) const {
    return buffer(left).packet == buffer(right).packet;
  }

  const NetworkState& state_;
  const BufferPool& pool_;
};

}  // namespace

std::vector<std::string> deadlock_cycle(const NetworkState& state, const BufferPool& pool) {
  return DeadlockSearch(state, pool).find();
}

}  // namespace towpath::noc
