// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "towpath/noc/torus.hpp"

namespace towpath::noc {

// The way of a multicast: the routes of its copies laid over each other, along the row of the
// source first and down the columns from there, and the state of its reservation.
struct MulticastTree {
  // A router on the way; outputs as in Network::Port.
  struct Branch {
    int node = 0;
    std::uint8_t input = 0;
    std::uint8_t input_vc = 0;
    std::uint8_t outputs = 0;  // one bit per port
    int depth = 0;             // hops from the source
    std::array<std::int32_t, 3> child{-1, -1, -1};
    std::array<std::uint8_t, 3> output_vc{};
    bool is_reserved = false;
  };
  enum class State : std::uint8_t { idle, probing, granted };

  std::vector<Branch> branches;  // the first is the source's own router
  int source = 0;
  int destinations = 0;
  int buddy = 0;
  State state = State::idle;
  bool is_refused = false;
  int probes_left = 0;
  std::int64_t answer_at = 0;  // when the last answer to a probe is back at the source
  int tries = 0;
  int packets_sent = 0;     // linked ones, in the order of sending
  int packets_started = 0;  // of those, how many have had their VC at the NIU
  int copies_left = 0;  // still to be received, of all packets that were sent
};

// The tree from `source` to `destinations`, which may hold the source. VCs are not yet known.
MulticastTree multicast_tree(const Torus& torus, int source, const std::vector<int>& destinations);

}  // namespace towpath::noc
