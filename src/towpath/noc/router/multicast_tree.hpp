// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/noc/router/packet.hpp"
#include "towpath/noc/router/torus.hpp"

namespace towpath::noc {

// Tree of a multicast, and the state of its reservation. A packet follows the source's row to the
// first column with a destination, which may be the source's column, then that column, and from
// there each row with destinations: x is the major axis. Source: tt-isa-documentation,
// NoC/RoutingPaths.md; tt-metal requests this axis.
struct MulticastTree {
  // A router of the tree; outputs as in Port.
  struct Branch {
    int node = 0;
    std::uint8_t input = 0;
    std::uint8_t input_vc = 0;
    std::uint8_t outputs = 0;  // one bit per port
    int depth = 0;             // hops from the source
    std::int32_t parent = -1;
    std::array<std::int32_t, 3> child{-1, -1, -1};
    std::array<std::uint8_t, 3> output_vc{};
    bool is_reserved = false;
    int cancelled_attempt = 0;  // the last attempt whose refusal has passed here
  };
  enum class State : std::uint8_t { idle, probing, granted };

  std::vector<Branch> branches;  // the first is the source's router
  int source = 0;
  int destinations = 0;
  int buddy = 0;
  State state = State::idle;
  int attempt = 0;          // number of the current one
  bool is_refused = false;  // the current attempt
  int probes_left = 0;
  std::int64_t answer_at = 0;  // when the last answer to a probe is back at the source
  int tries = 0;
  bool reads_when_granted = false;  // the first packet's data, not before
  int packets_sent = 0;             // linked packets, in order of sending
  int packets_started = 0;          // linked packets that have won their VC at the NIU
  int copies_left = 0;              // copies still to be received, of all packets sent
};

// The tree from `source` to `destinations`, which may include the source. VCs are assigned later.
MulticastTree multicast_tree(const Torus& torus, int source, const std::vector<int>& destinations);

// The trees of all multicasts in flight. Linked multicasts of a source share one.
class MulticastTrees {
 public:
  explicit MulticastTrees(const Torus& torus)
      : torus_(torus), kept_(index(torus.nodes()) * 2, kNoTree) {}

  // The number of the tree of a multicast: the one that the previous packet of its source kept, or
  // a new one.
  std::int32_t open(const Packet& packet, const std::vector<int>& destinations);
  MulticastTree& operator[](std::int32_t number) { return trees_[index(number)]; }
  const MulticastTree& operator[](std::int32_t number) const { return trees_[index(number)]; }
  // Position of a copy of a multicast.
  const MulticastTree::Branch& branch_of(const Packet& packet) const {
    return trees_[index(packet.tree)].branches[index(packet.branch)];
  }
  // One copy of a multicast has been received.
  void end_copy(std::int32_t number);

 private:
  static constexpr std::int32_t kNoTree = -1;

  Torus torus_;
  std::vector<MulticastTree> trees_;
  std::vector<std::int32_t> free_;
  std::vector<std::int32_t> kept_;  // per source and buddy
};

}  // namespace towpath::noc
