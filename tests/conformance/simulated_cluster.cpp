// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "conformance/simulated_cluster.hpp"

#include <memory>
#include <string>

#include "conformance/simulated_ranks.hpp"
#include "towpath/transport/simulated/gpu/gpu_ranks.hpp"

namespace towpath::conformance {
namespace {
using namespace literals;

// Three GPUs a host on a switch, hosts joined by a slower network, so that routes differ.
std::shared_ptr<const machine::Machine> small_cluster(int ranks) {
  machine::MachineBuilder builder("small cluster");
  const auto join = [&builder](int a, int b, machine::LinkKind kind, Rate rate, Time latency) {
    builder.add_link({a, b, kind, rate, latency, 0_ns});
    builder.add_link({b, a, kind, rate, latency, 0_ns});
  };
  const int network =
      builder.add_device({"network", machine::DeviceKind::network_switch, -1, true});
  int host_switch = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const int host = rank / 3;
    if (rank % 3 == 0) {
      host_switch = builder.add_device(
          {"switch" + std::to_string(host), machine::DeviceKind::nvswitch, host, true});
      join(host_switch, network, machine::LinkKind::network, 10_GBps, 2_us);
    }
    const int gpu =
        builder.add_device({"gpu" + std::to_string(rank), machine::DeviceKind::gpu, host, false});
    join(gpu, host_switch, machine::LinkKind::nvlink, 100_GBps, 300_ns);
  }
  machine::GpuCost cost;
  for (machine::ProtocolCost& protocol : cost.protocol)
    protocol = {40_GBps, 100_ns, 50_ns, false, {}};
  cost.protocol[static_cast<std::size_t>(Protocol::simple)].fences = true;
  builder.set_gpu_cost(cost);
  return std::move(builder).build();
}

}  // namespace

std::vector<std::string> run_simulated_cluster(int ranks, const Body& body, Time jitter_max) {
  sim::Simulation simulation(7);
  transport::simulated::GpuRanksOptions options;
  options.jitter_max = jitter_max;
  transport::simulated::GpuRanks all(simulation, small_cluster(ranks), options);
  return run_ranks(simulation, all, ranks, body, [&] { simulation.run(); });
}

}  // namespace towpath::conformance
