// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "towpath/gpu_links/network.hpp"
#include "towpath/machine/machine.hpp"
#include "towpath/sim/random.hpp"

// What tests make random machines of GPUs from, and how they compare what links carried there.
namespace towpath {

template <typename T>
const T& one_of(sim::Random& random, const std::vector<T>& values) {
  return values[random.below(values.size())];
}

// Figures from few values, so that messages often meet at the same picosecond, or from many.
struct Figures {
  explicit Figures(sim::Random& seeded) : random(seeded), is_coarse(flip()) {}

  bool flip() { return random.below(2) == 0; }
  int between(int low, int high) {
    return low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  Rate rate() {
    using namespace literals;
    if (is_coarse) return one_of<Rate>(random, {25_GBps, 50_GBps, 100_GBps});
    return Rate::from_bytes_per_second(
        static_cast<std::int64_t>(10'000'000'000 + random.below(90'000'000'000)));
  }
  Time time(Time most) {
    if (is_coarse) return most * static_cast<std::int64_t>(random.below(3));
    return Time::from_ps(
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most.ps()) + 1)));
  }

  sim::Random& random;
  bool is_coarse;
};

inline machine::GpuCost random_cost(Figures& figures) {
  using namespace literals;
  machine::GpuCost cost;
  cost.launch = figures.time(3_us);
  for (machine::ProtocolCost& protocol : cost.protocol) {
    protocol.block_rate = figures.rate();
    protocol.send_overhead = figures.time(200_ns);
    protocol.receive_overhead = figures.time(300_ns);
    protocol.fences = figures.flip();
    if (figures.flip()) protocol.adapter_rate = figures.rate();
    protocol.adapter_overhead = figures.time(500_ns);
    if (figures.flip()) protocol.copy_rate = figures.rate();
    if (figures.flip()) protocol.forward_rate = figures.rate();
    protocol.start_overhead = figures.time(1_us);
    protocol.overlap = figures.time(100_ns);
  }
  cost.in_switch_stage = figures.time(2_us);
  if (figures.flip()) cost.in_switch_copy_rate = figures.rate();
  cost.direct_overhead = figures.time(300_ns);
  if (figures.flip()) cost.direct_rate = figures.rate();
  return cost;
}

// Both directions of a wire.
inline void join(machine::MachineBuilder& builder, int a, int b, machine::Link link) {
  link.from = a;
  link.to = b;
  builder.add_link(link);
  std::swap(link.from, link.to);
  builder.add_link(link);
}

inline void expect_equal_loads(const std::vector<gpu_links::LinkLoad>& found,
                               const std::vector<gpu_links::LinkLoad>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t link = 0; link < expected.size(); ++link) {
    EXPECT_EQ(found[link].bytes.count(), expected[link].bytes.count()) << "link " << link;
    EXPECT_EQ(found[link].busy.ps(), expected[link].busy.ps()) << "link " << link;
    EXPECT_EQ(found[link].messages, expected[link].messages) << "link " << link;
  }
}

}  // namespace towpath
