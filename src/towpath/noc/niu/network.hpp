// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/niu/endpoint.hpp"
#include "towpath/noc/router/routing.hpp"

// Interface of one network on chip. It has two models: FlitNetwork, which is exact, and
// PacketNetwork, which is coarser and many times as fast. The meaning of packets is defined in
// chip_network.hpp.

namespace towpath::noc {

class Network {
 public:
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  virtual ~Network() = default;

  const Torus& torus() const { return routing_.torus(); }
  // The cycle that the next step() simulates.
  Cycle now() const { return now_; }

  // Queues a packet at its source's NIU, behind earlier packets of the same lane.
  virtual void send(const Packet& packet) = 0;

  // Queues a multicast to `destinations`. The path is reserved first, unless the previous packet
  // from this source kept it (`Packet::keeps_path`); the destinations must then be the same.
  virtual void send_multicast(const Packet& packet, const std::vector<int>& destinations) = 0;

  // Makes the NIU of `node` take nothing from `vc` until cycle `until`. If that is kNever,
  // release() sets the end.
  virtual void hold(int node, int vc, Cycle until) = 0;
  virtual void release(int node, int vc, Cycle at) = 0;
  // Lets the endpoint decide when the NIU of `node` may take the next flit: instead of the NIU's
  // rate, or in addition to it.
  virtual void pace_by_endpoint(int node) = 0;
  virtual void hold_up_by_endpoint(int node) = 0;

  // Number of flits at which Endpoint::counted_flits_fell is called.
  virtual void watch_counted_flits(int flits) = 0;
  // Flits of packets with Packet::is_counted that are queued and have not left the NIU.
  virtual int counted_flits(int node) const = 0;

  // Simulates cycle now(). Cycles before next_work() may be skipped.
  virtual void step() = 0;
  virtual Cycle next_work() const = 0;
  void skip_to(Cycle cycle);

  // Packets that were sent and not yet received everywhere. If some remain and next_work() is
  // kNever, the network is deadlocked.
  virtual std::int64_t packets_in_flight() const = 0;
  // Total number of flits that have passed a router.
  std::int64_t flit_hops() const;
  // Total number of flits that have left on a link: `port` kX, kY, kNiu, or kFromNiu for the
  // NIU-to-router link.
  virtual std::int64_t link_flits(int node, int port) const = 0;

  // The packets that wait for each other, each for the next and the last for the first. Empty if
  // there are none.
  virtual std::vector<std::string> deadlock_cycle() const { return {}; }
  // One sentence with the cycle of packets that wait for each other. Empty if there is none.
  std::string describe_deadlock() const;

 protected:
  Network(const machine::Chip& chip, int noc) : routing_(chip, noc), parameters_(chip.router) {}

  // Programming errors.
  void check(const Packet& packet) const;
  void check_multicast(const Packet& packet, const std::vector<int>& destinations) const;

  Routing routing_;
  machine::RouterParameters parameters_;
  Cycle now_ = 0;
};

}  // namespace towpath::noc
