// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/route_search.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "sentence.hpp"
#include "towpath/sim/random.hpp"

namespace towpath::machine {
namespace {
using namespace literals;

// Any devices, any links; equal latencies, so that routes have many ties.
std::shared_ptr<const Machine> random_machine(sim::Random& random) {
  MachineBuilder builder("random");
  const DeviceKind kinds[] = {DeviceKind::nvswitch, DeviceKind::nic, DeviceKind::network_switch,
                              DeviceKind::network_switch};
  const int gpus = 2 + static_cast<int>(random.below(8));
  const int others = 1 + static_cast<int>(random.below(12));
  for (int g = 0; g < gpus; ++g) {
    builder.add_device({fmt::format("gpu {}", g), DeviceKind::gpu, g, random.below(4) == 0});
  }
  for (int d = 0; d < others; ++d) {
    builder.add_device({fmt::format("other {}", d), kinds[random.below(4)], -1, true});
  }
  const auto devices = static_cast<std::uint64_t>(gpus + others);
  for (std::uint64_t l = 0; l < 4 * devices; ++l) {
    Link link{static_cast<int>(random.below(devices)),
              static_cast<int>(random.below(devices)),
              LinkKind::network,
              50_GBps,
              100_ns * static_cast<std::int64_t>(random.below(3)),
              {}};
    if (link.from != link.to) builder.add_link(link);
  }
  builder.set_hash_seed(random.below(1000));
  GpuCost cost;
  for (ProtocolCost& protocol : cost.protocol) protocol.block_rate = 50_GBps;
  builder.set_gpu_cost(cost);
  try {
    return std::move(builder).build();
  } catch (const std::invalid_argument&) {
    return nullptr;  // some GPU is out of reach
  }
}

TEST(RouteSearch, FindsTheRoutesOfTheMachineInAnyOrder) {
  int tried = 0;
  for (std::uint64_t seed = 0; tried < 300; ++seed) {
    sim::Random random(seed, "routes");
    const auto machine = random_machine(random);
    if (machine == nullptr) continue;
    ++tried;
    RouteSearch search(machine);
    const auto ranks = static_cast<std::uint64_t>(machine->ranks());
    for (std::uint64_t i = 0; i < 3 * ranks; ++i) {
      const int from = static_cast<int>(random.below(ranks));
      for (std::uint64_t j = 0; j < ranks; ++j) {
        const int to = static_cast<int>(random.below(ranks));
        std::vector<int> expected;
        try {
          expected = machine->route(from, to);
        } catch (const std::invalid_argument& error) {
          EXPECT_EQ(sentence_of<std::invalid_argument>([&] { search.route(from, to); }),
                    error.what());
          continue;
        }
        ASSERT_EQ(search.route(from, to), expected)
            << "seed " << seed << ": " << from << " > " << to;
      }
    }
  }
}

}  // namespace
}  // namespace towpath::machine
