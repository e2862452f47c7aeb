// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <bit>
#include <map>
#include <tuple>

#include "towpath/base/index.hpp"
#include "towpath/noc/flit_network.hpp"
#include "towpath/noc/router/bits.hpp"

namespace towpath::noc {

// Searches for a cycle in the wait-for graph of the VC buffers, starting from each buffer that
// cannot move.
class DeadlockSearch {
 public:
  explicit DeadlockSearch(const FlitNetwork& network) : network_(network) {}

  // Names of the packets of the first cycle found.
  std::vector<std::string> find() const {
    for (int node = 0; node < network_.torus_.nodes(); ++node) {
      for (int input = 0; input < FlitNetwork::kPorts; ++input) {
        for (int vc = 0; vc < FlitNetwork::kVcsMax; ++vc) {
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

  static FlitNetwork::Wire wire(const Place& place) {
    const auto& [node, input, vc] = place;
    return FlitNetwork::Wire(node, static_cast<unsigned>(input * FlitNetwork::kVcsMax + vc));
  }

  const FlitNetwork::InputVc& buffer(const Place& place) const {
    return network_.routers_[wire(place).node()].in[wire(place).number()];
  }

  bool has_packet(const Place& place) const {
    const FlitNetwork::Wire at = wire(place);
    return (network_.routers_[at.node()].input.begun >> at.number() & 1) != 0;
  }

  // The buffer that this buffer's packet waits for: at the far end of the link for room, or in this
  // router for the VC that another packet owns. Node -1 if it waits for neither.
  Place waits_for(const Place& place) const {
    const FlitNetwork::Wire at = wire(place);
    const FlitNetwork::Router& router = network_.routers_[at.node()];
    if ((router.input.allocated >> at.number() & 1) == 0) {
      return owner(std::get<0>(place), network_.routers_[at.node()].in[at.number()].way);
    }
    std::uint64_t ways = output_vcs(at, network_.routers_[at.node()].copies[at.number()].outputs);
    for (; ways != 0; ways &= ways - 1) {
      const int way = std::countr_zero(ways);
      const int output = way / FlitNetwork::kVcsMax;
      const FlitNetwork::Wire output_vc = at.with_number(static_cast<unsigned>(way));
      if (output != FlitNetwork::kNiu &&
          !network_.has_room(router.out[output_vc.number()].used, router.pool_used[index(output)],
                             output_vc.number())) {
        const FlitNetwork::Wire target = router.links[index(output)].target;
        return {static_cast<int>(target.node()), output, way % FlitNetwork::kVcsMax};
      }
    }
    return {-1, 0, 0};
  }

  // Output VCs of an allocated VC's packet; for a multicast, only those of the given outputs.
  std::uint64_t output_vcs(FlitNetwork::Wire at, unsigned outputs) const {
    if ((network_.routers_[at.node()].multicast >> at.number() & 1) == 0) {
      return std::uint64_t{1} << network_.routers_[at.node()].in[at.number()].way;
    }
    std::uint64_t output_vcs = 0;
    for (; outputs != 0; outputs &= outputs - 1) {
      const int output = std::countr_zero(outputs);
      const int vc = network_.routers_[at.node()].copies[at.number()].output_vc[index(output)];
      set_bit(output_vcs, output * FlitNetwork::kVcsMax + vc);
    }
    return output_vcs;
  }

  // The buffer whose packet owns an output VC.
  Place owner(int node, int way) const {
    std::uint64_t rest = network_.routers_[index(node)].input.allocated;
    for (; rest != 0; rest &= rest - 1) {
      const int number = std::countr_zero(rest);
      const FlitNetwork::Wire at(node, static_cast<unsigned>(number));
      const unsigned outputs = network_.routers_[at.node()].copies[at.number()].all_outputs;
      if ((output_vcs(at, outputs) >> way & 1) != 0) {
        return {node, number / FlitNetwork::kVcsMax, number % FlitNetwork::kVcsMax};
      }
    }
    return {-1, 0, 0};
  }

  std::vector<std::string> cycle_from(const Place& start) const {
    std::map<Place, int> order;
    std::vector<Place> way;
    Place at = start;
    while (std::get<0>(at) >= 0 && has_packet(at)) {
      const auto [known, is_new] = order.emplace(at, static_cast<int>(way.size()));
      if (!is_new) return names_of({way.begin() + known->second, way.end()});
      way.push_back(at);
      at = waits_for(at);
    }
    return {};
  }

  std::string name(const Place& place) const {
    const auto& [node, input, vc] = place;
    const machine::Coordinate here = network_.torus_.coordinate_of(node);
    const Packet& packet = network_.packets_[buffer(place).packet];
    const machine::Coordinate from = network_.torus_.coordinate_of(packet.source);
    const machine::Coordinate to = network_.torus_.coordinate_of(packet.destination);
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

  const FlitNetwork& network_;
};

std::vector<std::string> FlitNetwork::deadlock_cycle() const {
  return DeadlockSearch(*this).find();
}

}  // namespace towpath::noc
