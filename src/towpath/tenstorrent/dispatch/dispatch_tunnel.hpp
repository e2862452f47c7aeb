// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "towpath/tenstorrent/core/ethernet_core.hpp"
#include "towpath/tenstorrent/core/ethernet_tile.hpp"
#include "towpath/tenstorrent/dispatch/dispatch_ring.hpp"
#include "towpath/tenstorrent/dispatch/host_routes.hpp"

// The tunnel of fast dispatch carries commands and events between a chip on PCIe and another one,
// over the dispatcher's links. A kernel on either end of such a link, the tunneller, moves bytes
// from a queue in its L1 into the next one: over the link into the queue of the far end, or over
// the NoC into the next ring on its chip. A lane is a queue at either end of a link, for one
// direction and one chip. Source: tt-metal until 2025, impl/dispatch/kernels/vc_eth_tunneler.cpp,
// packet_queue.hpp.
//
// Bytes in a queue at the near end stay until the far end has forwarded them. Only then may the
// producer reuse their place. Over the link, counts are register writes that add to a counter, on
// the transmit queue of the bytes and after them.

namespace towpath::tenstorrent {

class Device;

// One end of a lane.
struct LaneEnd {
  int number = 0;  // on its link
  Ring queue;
  std::uint64_t count_word = 0;    // of bytes that arrived over the NoC
  std::uint64_t freed_word = 0;    // of the next queue, over the NoC
  std::uint64_t staging_word = 0;  // source of count writes
};

// The kernel at one end of a link.
class Tunneller {
 public:
  // `lanes_max` lanes share the L1 of the core, which has no other user.
  Tunneller(Device& device, EthernetTile& tile, int lanes_max);
  Tunneller(const Tunneller&) = delete;
  Tunneller& operator=(const Tunneller&) = delete;

  // The memory of a lane, the same at both ends of a link. Throws std::invalid_argument if L1 has
  // no room for a queue.
  LaneEnd lane_end(int number) const;
  EthernetTile& tile() const { return tile_; }

  // From now on it sends the bytes that the lane's queue receives over the NoC over its link. The
  // count of freed bytes is the word `freed` of the producer.
  void send_over_link(const LaneEnd& lane, const NocAddress& freed);
  // From now on it writes the bytes that the queue receives over its link to `next`.
  void send_over_noc(const LaneEnd& lane, const RingPlace& next);

 private:
  struct Lane {
    LaneEnd end;
    bool goes_over_link = false;
    NocAddress freed;                    // goes_over_link: the producer's word
    std::unique_ptr<RingWriter> writer;  // otherwise
    std::uint64_t sent_bytes = 0;
    std::uint64_t freed_bytes = 0;
  };
  void add(Lane lane);
  void run();
  bool step(Lane& lane);
  bool send(Lane& lane);
  bool free(Lane& lane);
  void notify(const Lane& lane, int counter, std::uint64_t bytes);
  std::uint64_t count(const Lane& lane, int counter);

  Device& device_;
  EthernetTile& tile_;
  EthernetCore core_;
  int lanes_max_;
  std::deque<Lane> lanes_;
};

// The tunnellers of a cluster, and the routes through them.
class DispatchTunnel {
 public:
  DispatchTunnel(const machine::ChipCluster& cluster,
                 const std::vector<std::unique_ptr<Device>>& devices, const HostRoutes& routes)
      : cluster_(cluster), devices_(devices), routes_(routes) {}

  // The ring that a producer writes for the consumer at the other end, and the word with the count
  // of freed bytes.
  struct Way {
    RingPlace first;
    NocAddress freed;
  };
  // A way over the route to `chip`, from the chip on PCIe or back: bytes arrive in `to`, and counts
  // of freed bytes in `freed`.
  Way way_to(int chip, const NocAddress& freed, const RingPlace& to);
  Way way_from(int chip, const NocAddress& freed, const RingPlace& to);
  // True if it uses the core of that end.
  bool has(machine::EthernetEnd end) const { return tunnellers_.contains(end); }

 private:
  struct Link {
    machine::EthernetEnd from;
    machine::EthernetEnd to;
  };
  Way way(const std::vector<Link>& links, NocAddress freed, const RingPlace& to);
  std::vector<Link> links_to(int chip) const;
  Tunneller& tunneller(machine::EthernetEnd end);
  int lanes_max(machine::EthernetEnd end) const;

  const machine::ChipCluster& cluster_;
  const std::vector<std::unique_ptr<Device>>& devices_;
  const HostRoutes& routes_;
  std::map<machine::EthernetEnd, std::unique_ptr<Tunneller>> tunnellers_;
  std::map<std::size_t, int> lanes_;  // by link
};

}  // namespace towpath::tenstorrent
