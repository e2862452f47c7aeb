// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chips.hpp"
#include "towpath/noc/chip_network.hpp"

// A chip's networks and memories without kernels, for tests of what requests do. Requests come from
// core (1, 1) of the tiny chip and go to kTarget unless a test says otherwise.

namespace towpath::noc {

using machine::Coordinate;

inline constexpr Coordinate kCore{1, 1};
inline constexpr Coordinate kFar{3, 2};
inline constexpr Coordinate kDram{0, 0};
inline constexpr Coordinate kSameDram{0, 1};  // of the same group
inline constexpr std::uint64_t kTarget = 0x10000;

using Data = std::vector<std::byte>;

Data pattern(std::uint64_t size_bytes, std::uint64_t seed);

struct Bench {
  explicit Bench(ChipNetwork::Options options = {}, std::uint64_t seed = 1,
                 std::shared_ptr<const machine::Chip> chip = machine::tiny_chip())
      : simulation(seed), network(simulation, std::move(chip), options) {}

  void put(Coordinate tile, std::uint64_t offset, const Data& data) {
    network.memory(tile).write(offset, data);
  }
  Data get(Coordinate tile, std::uint64_t offset, std::uint64_t size_bytes) {
    Data data(size_bytes);
    network.memory(tile).read(offset, data);
    return data;
  }
  std::uint32_t word(Coordinate tile, std::uint64_t offset) {
    return network.memory(tile).load_word(offset);
  }
  void run(const Request& request) {
    network.issue(request);
    simulation.run();
  }
  // Cycles before `cycle` are over.
  void run_to(Cycle cycle) {
    simulation.run_until(network.clock().edge(Cycles(cycle)) - Time::from_ps(1));
  }
  // A process that issues each request once its initiator is ready.
  void issue_all(std::vector<Request> requests);
  const NiuCounters& counters(Coordinate core = kCore, int noc = 0) const {
    return network.counters(noc, core);
  }

  sim::Simulation simulation;
  ChipNetwork network;
};

Request write(Coordinate to, std::uint64_t size_bytes, int noc = 0);
Request read(Coordinate from, std::uint64_t size_bytes, int noc = 0);
Request word_request(RequestKind kind, Coordinate to, std::uint32_t value, int noc = 0);
// To the workers between these corners, of the least and of the greatest coordinates.
Request multicast(Coordinate least, Coordinate most, std::uint64_t size_bytes, int noc = 0);

}  // namespace towpath::noc
