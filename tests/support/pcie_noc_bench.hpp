// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pcie_bench.hpp"
#include "towpath/pcie/network_memory.hpp"
#include "towpath/tenstorrent/core/data_movement_core.hpp"

// The host link of pcie_bench.hpp over its chip's network, with kernels beside it.

namespace towpath::pcie {

struct SharedBench {
  explicit SharedBench(const machine::Host& host = link_host(),
                       const machine::Chip& chip = link_chip(), bool shares_noc = true)
      : network(simulation, machine::build_chip(chip), {.records_requests = true}),
        memory(network),
        link(simulation, machine::build_host(host), machine::build_chip(chip), memory, {}) {
    if (shares_noc) link.share_noc(network);
  }

  void run(const std::function<void()>& body) {
    simulation.spawn("host", body);
    simulation.run();
  }
  // A kernel that writes packets of 8 KiB; `over` becomes when it ended.
  void flood(Coordinate from, Coordinate to, int packets, Time* over = nullptr, int noc = 0) {
    tenstorrent::run_kernel(network, {.core = from, .name = "flood", .noc_index = noc},
                            [=, this](tenstorrent::DataMovementCore& core) {
                              for (int i = 0; i < packets; ++i) {
                                core.noc_async_write(0, {to, 0x40000}, 8192);
                              }
                              core.noc_async_write_barrier();
                              if (over != nullptr) *over = simulation.now();
                            });
  }
  void kernel(Coordinate on, const tenstorrent::Kernel& body, int noc = 0) {
    tenstorrent::run_kernel(network, {.core = on, .name = "mover", .noc_index = noc}, body);
  }
  // A buffer of the host, mapped before the kernels that the caller starts then.
  SysmemBuffer& buffer(std::uint64_t size_bytes) {
    std::size_t number = 0;
    run([&] { number = link.allocate_sysmem_buffer(size_bytes); });
    return link.sysmem_buffer(number);
  }
  void put(Coordinate tile, std::uint64_t address, const std::vector<std::byte>& bytes) {
    network.memory(tile).write(address, bytes);
  }
  std::vector<std::byte> at(Coordinate tile, std::uint64_t address, std::size_t size_bytes) {
    std::vector<std::byte> bytes(size_bytes);
    network.memory(tile).read(address, bytes);
    return bytes;
  }

  sim::Simulation simulation;
  noc::ChipNetwork network;
  NetworkMemory memory;
  HostLink link;
};

}  // namespace towpath::pcie
