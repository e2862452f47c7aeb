// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "towpath/base/invariant.hpp"

namespace towpath::gpu {

namespace {

// Registers are allocated to a warp in units of 256, and shared memory to a block in units of 128
// bytes. The system keeps 1 KiB of it for each block (CUDA programming guide, since sm_80).
constexpr int kRegisterUnit = 256;
constexpr std::uint64_t kSharedUnit = 128;
constexpr std::uint64_t kSharedReserve = 1024;

std::uint64_t divided_up(std::uint64_t value, std::uint64_t by) { return (value + by - 1) / by; }

Time waited(const Accesses& loads, Time latency, int in_flight) {
  const std::uint64_t groups =
      divided_up(loads.most_of_thread, static_cast<std::uint64_t>(in_flight));
  return latency * static_cast<std::int64_t>(groups);
}

// Accesses of a warp's threads are issued together if all threads have the same number of them.
std::uint64_t warp_accesses(const Accesses& accesses) {
  const std::uint64_t together = divided_up(accesses.count, kWarpThreads);
  return std::max(together, accesses.most_of_thread);
}

}  // namespace

Time duration(const Work& work, const Residency& residency, const machine::KernelCost& cost) {
  const Time loading = waited(work.loads, cost.memory_latency, cost.loads_in_flight) +
                       waited(work.peer_loads, cost.peer_latency, cost.loads_in_flight);
  const auto sharing = static_cast<std::uint64_t>(residency.blocks_on_multiprocessor);
  const auto all = sharing * static_cast<std::uint64_t>(residency.busy_multiprocessors);

  const std::uint64_t accesses =
      warp_accesses(work.loads) + warp_accesses(work.stores) + warp_accesses(work.peer_loads) +
      warp_accesses(work.peer_stores) +
      work.shared_accesses * static_cast<std::uint64_t>(warps_of(work.threads));
  const Time issuing = cost.warp_access * static_cast<std::int64_t>(accesses * sharing);

  // Loads and stores can be in flight at the same time, but the memory serves one or the other.
  const std::uint64_t in = work.loads.bytes + work.peer_loads.bytes;
  const std::uint64_t out = work.stores.bytes + work.peer_stores.bytes;
  const std::uint64_t own = work.loads.bytes + work.stores.bytes;
  Time moving;
  if (in + out > 0) {
    moving = transfer_time(Bytes(std::max(in, out) * sharing), cost.multiprocessor_rate);
  }
  if (own > 0) moving = std::max(moving, transfer_time(Bytes(own * all), cost.memory_rate));
  const std::uint64_t crossing = std::max(work.peer_loads.bytes, work.peer_stores.bytes);
  if (crossing > 0 && residency.peer_rate != Rate()) {
    moving = std::max(moving, transfer_time(Bytes(crossing * all), residency.peer_rate));
  }
  return std::max({loading, issuing, moving}) +
         cost.barrier * static_cast<std::int64_t>(work.barriers);
}

const machine::KernelCost& kernel_cost(const machine::Machine& machine) {
  if (machine.gpu().kernel) return *machine.gpu().kernel;
  throw std::invalid_argument(
      fmt::format("machine '{}' has no costs of kernels; add the block 'kernel' to its gpu_cost",
                  machine.name()));
}

int resident_blocks(const BlockShape& shape, const machine::KernelCost& cost) {
  TOWPATH_CHECK(shape.threads > 0, "a block has {} threads; it needs at least one", shape.threads);
  const int warps = warps_of(shape.threads);
  int blocks = std::min(cost.blocks_per_multiprocessor,
                        cost.threads_per_multiprocessor / (warps * kWarpThreads));
  const std::uint64_t registers =
      divided_up(static_cast<std::uint64_t>(shape.registers_per_thread * kWarpThreads),
                 kRegisterUnit) *
      kRegisterUnit * static_cast<std::uint64_t>(warps);
  if (registers > 0) {
    blocks = std::min(
        blocks, static_cast<int>(static_cast<std::uint64_t>(cost.registers_per_multiprocessor) /
                                 registers));
  }
  const std::uint64_t shared =
      divided_up(shape.shared_bytes + kSharedReserve, kSharedUnit) * kSharedUnit;
  const std::uint64_t all_shared = static_cast<std::uint64_t>(cost.shared_memory_kib) * 1024;
  return std::min(blocks, static_cast<int>(all_shared / shared));
}

}  // namespace towpath::gpu
