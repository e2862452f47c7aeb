// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "towpath/noc/chip_network.hpp"
#include "towpath/noc/memory/memory.hpp"
#include "towpath/pcie/host_link.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::tenstorrent {

// A host with chips in its slots, in the form of a driver: calls with a chip number that move real
// bytes and take simulated time. For programs that are not processes of a simulation.
//
//   HostCluster cluster(host, {blackhole}, {});
//   cluster.on_link(0, [&](auto& link) { return link.write_to_device(data, {1, 2}, 0x1000); });
//
// All throw std::invalid_argument like HostLink, and for a chip that does not exist.
class HostCluster {
 public:
  struct Options {
    std::uint64_t seed = 1;
    pcie::HostLink::Options link;
  };
  HostCluster(std::shared_ptr<const machine::Host> host,
              const std::vector<std::shared_ptr<const machine::Chip>>& chips,
              const Options& options);
  HostCluster(const HostCluster&) = delete;
  HostCluster& operator=(const HostCluster&) = delete;
  ~HostCluster();

  std::size_t chips() const { return slots_.size(); }
  const machine::Chip& chip(int chip) const { return link(chip).chip(); }
  // Tile of a chip's n-th core of a kind. If there is none, the error has the number of cores and
  // the harvested ones.
  machine::Coordinate core(int chip, machine::TileKind kind, int number) const;
  Time now() const { return simulation_.now(); }

  // Runs calls of a chip's link as a process of the host, and returns their result.
  template <typename Calls>
  auto on_link(int chip, Calls calls) {
    using Result = std::invoke_result_t<Calls, pcie::HostLink&>;
    pcie::HostLink& of = link(chip);
    if constexpr (std::is_void_v<Result>) {
      run([&of, calls = std::move(calls)] { calls(of); });
    } else {
      auto result = std::make_shared<Result>();
      run([&of, calls = std::move(calls), result] { *result = calls(of); });
      return std::move(*result);
    }
  }
  void free_tlb(int chip, pcie::WindowNumber window) { link(chip).free_tlb(window); }
  // A buffer accessible to the chip. Each chip has separate numbers.
  pcie::SysmemBuffer& sysmem_buffer(int chip, std::size_t buffer) {
    return link(chip).sysmem_buffer(buffer);
  }

  // The network of a chip, for kernels on it. After the first call the host's transfers are also
  // requests on that network, and compete with the kernels. Throws std::invalid_argument if limits
  // of the link are disabled.
  noc::ChipNetwork& share_noc(int chip);

  // Advances time without host activity.
  void wait(Time time) {
    run([this, time] { simulation_.sleep(time); });
  }
  // Completes all posted writes and runs kernels to their end.
  void flush() { simulation_.run(); }
  // The current memory of a tile.
  noc::Memory& memory(int chip, machine::Coordinate tile);

 private:
  struct Slot;

  pcie::HostLink& link(int chip) const;
  Slot& slot(int chip) const;
  void run(std::function<void()> body);

  std::vector<std::unique_ptr<Slot>> slots_;  // outlive processes, which simulation_ unwinds
  sim::Simulation simulation_;
};

}  // namespace towpath::tenstorrent
