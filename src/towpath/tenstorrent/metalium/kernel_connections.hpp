// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "towpath/tenstorrent/metalium/kernel_fabric.hpp"
#include "towpath/tenstorrent/metalium/kernel_memory.hpp"

namespace towpath::tenstorrent::metalium {

// Connections of a kernel in source form to fabric routers, identified by the router's Ethernet
// channel.
class KernelConnections {
 public:
  // `fabric` is null if there is none.
  KernelConnections(DataMovementCore& core, KernelClock& clock, KernelMemory& memory,
                    const KernelFabric* fabric)
      : core_(core), clock_(clock), memory_(memory), fabric_(fabric) {}
  ~KernelConnections();

  void open(std::uint32_t channel);
  void close(std::uint32_t channel);
  bool has_slot(std::uint32_t channel);
  void wait_for_slot(std::uint32_t channel);
  void write_payload(std::uint32_t channel, std::uint32_t from, std::uint32_t size_bytes);
  void send(std::uint32_t channel, const TowpathPacket& packet);
  std::uint32_t direction(std::uint32_t channel) const;
  std::uint32_t direction_to(std::uint32_t chip) const;

 private:
  struct Connection {
    fabric::RouterPort port;
    std::unique_ptr<fabric::Connection> worker{};
    std::uint64_t headers = 0;
    std::uint32_t packets = 0;
  };
  const KernelFabric& fabric() const;
  int chip() const;
  Connection& at(std::uint32_t channel);
  // Runs an action that the fabric may reject.
  template <typename Action>
  decltype(auto) named(Action action) const;

  DataMovementCore& core_;
  KernelClock& clock_;
  KernelMemory& memory_;
  const KernelFabric* fabric_;
  std::map<std::uint32_t, Connection> connections_;
};

}  // namespace towpath::tenstorrent::metalium
