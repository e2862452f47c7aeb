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

machine::KernelCost kernel_cost() {
  machine::KernelCost cost;
  cost.multiprocessors = cost.blocks_per_multiprocessor = 16;
  cost.threads_per_multiprocessor = 1024;
  cost.registers_per_multiprocessor = 65536;
  cost.shared_memory_kib = 100;
  cost.memory_latency = 300_ns;
  cost.peer_latency = 1500_ns;
  cost.memory_rate = 1000_GBps;
  cost.multiprocessor_rate = 50_GBps;
  cost.loads_in_flight = cost.put_loads_in_flight = 2;
  cost.thread_put_overhead = cost.warp_put_overhead = cost.block_put_overhead = 200_ns;
  cost.signal = cost.fence = 100_ns;
  cost.poll = 50_ns;
  cost.gpu_initiated_adapters = true;
  cost.initiation_overhead = 1_us;
  cost.queue_pairs = 3;
  cost.queue_pair_rate = 5_GBps;
  cost.queue_pair_message = 250_ns;
  return cost;
}

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
  cost.kernel = kernel_cost();
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
