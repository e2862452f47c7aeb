// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <tuple>

#include "towpath/noc/bits.hpp"
#include "towpath/noc/network.hpp"

namespace towpath::noc {

// Follows who waits for whom among the VC buffers, from each that cannot move, until a buffer comes
// up again.
class DeadlockSearch {
 public:
  explicit DeadlockSearch(const Network& network) : network_(network) {}

  std::string describe() const {
    for (int node = 0; node < network_.torus_.nodes(); ++node) {
      for (int input = 0; input < Network::kPorts; ++input) {
        for (int vc = 0; vc < Network::kVcsMax; ++vc) {
          if (buffer({node, input, vc}).flits == 0) continue;
          const std::string cycle = cycle_from({node, input, vc});
          if (!cycle.empty()) return cycle;
        }
      }
    }
    return "";
  }

 private:
  using Place = std::tuple<int, int, int>;  // node, input port, VC

  const Network::InputVc& buffer(const Place& place) const {
    const auto& [node, input, vc] = place;
    return network_.routers_[index(node)].input.vc[index(input * Network::kVcsMax + vc)];
  }

  // Where the buffer's packet waits: at the far end of the link for room, or here for the VC that
  // another packet has. A place that holds nothing if it waits for neither.
  Place waits_for(const Place& place) const {
    const auto& [node, input, vc] = place;
    const Network::Router& router = network_.routers_[index(node)];
    const Network::InputVc& waiting = buffer(place);
    if (waiting.outputs == 0) {
      return owner(node, waiting.wanted / Network::kVcsMax, waiting.wanted % Network::kVcsMax);
    }
    for (int output = 0; output < Network::kPorts; ++output) {
      if ((waiting.outputs >> output & 1) == 0) continue;
      const int wanted = waiting.output_vc[index(output)];
      const Network::OutputLink& link = router.output[index(output)];
      if ((link.sendable(network_.pool_limit_) >> wanted & 1) == 0 && output != Network::kNiu) {
        return {static_cast<int>(link.target >> 6), output, wanted};
      }
    }
    return {-1, 0, 0};
  }

  Place owner(int node, int output, int wanted) const {
    for (int input = 0; input < Network::kPorts; ++input) {
      for (int vc = 0; vc < Network::kVcsMax; ++vc) {
        const Network::InputVc& holder = buffer({node, input, vc});
        if ((holder.all_outputs >> output & 1) != 0 && holder.packet != kNoPacket &&
            holder.outputs != 0 && holder.output_vc[index(output)] == wanted) {
          return {node, input, vc};
        }
      }
    }
    return {-1, 0, 0};
  }

  std::string cycle_from(const Place& start) const {
    std::map<Place, int> order;
    std::vector<Place> way;
    Place at = start;
    while (std::get<0>(at) >= 0 && buffer(at).packet != kNoPacket) {
      const auto [known, is_new] = order.emplace(at, static_cast<int>(way.size()));
      if (!is_new) return sentence({way.begin() + known->second, way.end()});
      way.push_back(at);
      at = waits_for(at);
    }
    return "";
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

  // A packet may stand in several buffers of the cycle, one behind the other; it is named once.
  std::string sentence(const std::vector<Place>& cycle) const {
    std::vector<Place> packets;
    for (const Place& place : cycle) {
      const bool is_known = !packets.empty() && is_same_packet(packets.back(), place);
      if (!is_known) packets.push_back(place);
    }
    if (packets.size() > 1 && is_same_packet(packets.front(), packets.back())) packets.pop_back();
    std::string text = fmt::format("deadlock of {} packets: ", packets.size());
    for (const Place& place : packets) text += name(place) + " waits for ";
    return text + "the first";
  }

  bool is_same_packet(const Place& left, const Place& right) const {
    return buffer(left).packet == buffer(right).packet;
  }

  const Network& network_;
};

std::string Network::describe_deadlock() const { return DeadlockSearch(*this).describe(); }

}  // namespace towpath::noc
