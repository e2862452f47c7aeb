// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "towpath/noc/niu/ejector.hpp"
#include "towpath/noc/niu/injector.hpp"
#include "towpath/noc/niu/network.hpp"
#include "towpath/noc/niu/path_reservation.hpp"
#include "towpath/noc/router/crossbar.hpp"
#include "towpath/noc/router/input_units.hpp"
#include "towpath/noc/router/network_state.hpp"
#include "towpath/noc/router/output_units.hpp"
#include "towpath/noc/router/switch_allocator.hpp"
#include "towpath/noc/router/vc_allocator.hpp"

// One network on chip, flit by flit. README.md has the path of a packet through its units.
//
// A flit that leaves a router in cycle t may leave the next one in cycle t + hop_cycles, and the
// buffer slot it leaves is known to be free one credit_return later. In each cycle
//   1. flits and credits that were under way arrive,
//   2. each NIU takes at most one flit out of its receive buffers,
//   3. each NIU puts at most one flit on the link to its router,
//   4. each router allocates output VCs to waiting header flits, then its switch to flits, which
//      leave.
// Routers only meet through links that take several cycles, so their order within a cycle is free.
// Only routers with flits that can move cost computing time.

namespace towpath::noc {

class FlitNetwork final : public Network {
 public:
  // `noc` is 0 or 1. The endpoint outlives the network.
  FlitNetwork(const machine::Chip& chip, int noc, Endpoint& endpoint, std::uint64_t seed);

  void send(const Packet& packet) override;
  void send_multicast(const Packet& packet, const std::vector<int>& destinations) override;
  void hold(int node, int vc, Cycle until) override { ejector_.hold(node, vc, until); }
  void release(int node, int vc, Cycle at) override { ejector_.release(node, vc, at); }
  void pace_by_endpoint(int node) override { ejector_.pace_by_endpoint(node); }
  void hold_up_by_endpoint(int node) override { ejector_.hold_up_by_endpoint(node); }
  void watch_counted_flits(int flits) override { injector_.watch_counted_flits(flits); }
  int counted_flits(int node) const override { return injector_.counted_flits(node); }
  void step() override;
  Cycle next_work() const override;
  std::int64_t packets_in_flight() const override { return injector_.sent() - ejector_.received(); }
  std::int64_t link_flits(int node, int port) const override {
    return port == kFromNiu ? injector_.link_flits(node)
                            : state_.routers[node].links[index(port)].flits;
  }
  std::vector<std::string> deadlock_cycle() const override;

 private:
  NetworkState state_;
  OutputUnits outputs_;
  VcAllocator vc_allocator_;
  InputUnits inputs_;
  SwitchAllocator switch_allocator_;
  Crossbar crossbar_;
  PathReservation reservation_;
  Injector injector_;
  Ejector ejector_;
};

}  // namespace towpath::noc
