// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/router/pace.hpp"
#include "towpath/noc/router/torus.hpp"

// One network on chip: what goes in and comes out. There are two models of it: FlitNetwork, which
// is exact, and PacketNetwork, which is coarser and many times as fast. The meaning of packets is
// defined in chip_network.hpp.

namespace towpath::noc {

using Cycle = std::int64_t;
inline constexpr Cycle kNever = std::numeric_limits<Cycle>::max();
using PacketId = std::uint32_t;
inline constexpr PacketId kNoPacket = ~PacketId{0};

// Class of a packet. A VC number is (dateline bit, class, buddy bit).
enum class PacketClass : std::uint8_t { request_a, request_b, broadcast, response };

struct Packet {
  int source = 0;       // node of this network
  int destination = 0;  // meaningless in a multicast
  int flits = 1;        // header included
  std::uint8_t packet_class = 0;
  std::uint8_t buddy = 0;
  bool keeps_buddy = true;  // static VC; otherwise the buddy bit may change at each hop
  bool keeps_class = true;  // otherwise the NIU may choose the other request class
  std::uint8_t lane = 0;    // packets of one lane of a NIU leave in order
  bool is_counted = false;  // by its NIU, see Network::watch_counted_flits
  // Multicast only: the tree, and the branch of it at which this copy is.
  bool keeps_path = false;  // linked: the tree stays reserved after this packet
  std::int32_t tree = -1;
  std::int32_t branch = 0;
  // The header may leave the NIU at `header_at`, data flit i (from 1) at data_at + i x interval.
  Cycle header_at = 0;
  PaceTime data_at = 0;
  PaceTime data_interval = 0;
  std::uint64_t tag = 0;  // free for the sender's use
};

// The sender and receiver of packets. It is called while a cycle is being simulated and may send.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  // The packet has won its VC: all packets before it on its lane have left the NIU, and so has the
  // previous owner of the VC.
  virtual void packet_started(const Packet& packet, Cycle now) = 0;
  // The last flit leaves the NIU.
  virtual void packet_sent(const Packet& packet, Cycle now) = 0;
  // The NIU of `node` has taken the last flit, which arrived on `vc`; a multicast calls once per
  // node.
  virtual void packet_received(const Packet& packet, int node, int vc, Cycle now) = 0;
  // A flit of this packet leaves its NIU, where now as many flits of counted packets are left as
  // Network::watch_counted_flits named.
  virtual void counted_flits_fell(const Packet&, Cycle) {}
  // The first cycle in which the next flit may be taken; called only for nodes of
  // pace_by_endpoint() and hold_up_by_endpoint().
  virtual Cycle flit_received(const Packet& packet, int node, Cycle now) = 0;
};

class Network {
 public:
  // Ports of a router: inputs come from the left, from above and from the NIU; outputs lead to the
  // right, downwards and to the NIU, all in the network's own coordinates (torus.hpp).
  enum Port : std::uint8_t { kX, kY, kNiu, kPorts, kFromNiu = kPorts };
  static constexpr int kVcsMax = 16;
  static constexpr int kLanes = 8;  // per NIU

  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  virtual ~Network() = default;

  const Torus& torus() const { return torus_; }
  // The cycle that the next step() simulates.
  Cycle now() const { return now_; }

  // Queues a packet at its source's NIU, behind earlier packets of the same lane.
  virtual void send(const Packet& packet) = 0;

  // Queues a multicast to `destinations`. The path is reserved first, unless the previous packet
  // from this source kept it (`Packet::keeps_path`); the destinations must then be the same.
  virtual void send_multicast(const Packet& packet, const std::vector<int>& destinations) = 0;

  // Makes the NIU of `node` take nothing from `vc` until cycle `until`; if that is kNever, until
  // release() says when.
  virtual void hold(int node, int vc, Cycle until) = 0;
  virtual void release(int node, int vc, Cycle at) = 0;
  // Lets the endpoint decide when the NIU of `node` may take the next flit: instead of the NIU's
  // own rate, or beside it.
  virtual void pace_by_endpoint(int node) = 0;
  virtual void hold_up_by_endpoint(int node) = 0;

  // Number of flits at which Endpoint::counted_flits_fell is called.
  void watch_counted_flits(int flits) { watched_flits_ = flits; }
  // Flits of packets with Packet::is_counted that are queued and have yet to leave the NIU.
  virtual int counted_flits(int node) const = 0;

  // Simulates cycle now(). Cycles before next_work() may be skipped.
  virtual void step() = 0;
  virtual Cycle next_work() const = 0;
  void skip_to(Cycle cycle);

  // Packets that are sent and not yet received everywhere. If some remain and next_work() is
  // kNever, the network is deadlocked.
  std::int64_t packets_in_flight() const { return packets_in_flight_; }
  // Total flits that have passed a router.
  std::int64_t flit_hops() const;
  // Total flits that have left on a link: `port` kX, kY, kNiu, or kFromNiu for the NIU-to-router
  // link.
  virtual std::int64_t link_flits(int node, int port) const = 0;

  // The packets that wait for each other, each for the next and the last for the first; empty if
  // there are none.
  virtual std::vector<std::string> deadlock_cycle() const { return {}; }
  // One sentence with the cycle of packets that wait for each other; empty if there is none.
  std::string describe_deadlock() const;

 protected:
  Network(const machine::Chip& chip, int noc, Endpoint& endpoint);

  // Programming errors.
  void check(const Packet& packet) const;
  void check_multicast(const Packet& packet, const std::vector<int>& destinations) const;

  // VCs by their numbers: (dateline bit, class, buddy bit).
  int vc_of(int dateline, int packet_class, int buddy) const {
    return (dateline * classes_ + packet_class) << 1 | buddy;
  }
  int dateline_of(int vc) const { return (vc >> 1) >= classes_ ? 1 : 0; }
  // VC on which a packet leaves a router: of the same class and buddy bit.
  int next_vc(int input, int vc, int output, bool crosses_dateline) const {
    const int dateline = dateline_of(vc);
    const int keeps = input == output || output == kNiu ? 1 : 0;
    const int next = (crosses_dateline ? 1 : 0) | (dateline & keeps);
    return vc + 2 * classes_ * (next - dateline);
  }
  bool crosses_dateline(int node, int output) const {
    if (!figures_.has_dateline || output == kNiu) return false;
    return output == kX ? torus_.x_of(node) + 1 == torus_.width()
                        : torus_.y_of(node) + 1 == torus_.height();
  }
  // Time from one flit of a packet to the next at the NIU that sends it.
  PaceTime source_interval(const Packet& packet) const {
    return packet.tree >= 0 ? multicast_interval_ : port_interval_;
  }
  // Output of a packet at (x, y). Arithmetic instead of branches, which would be unpredictable.
  static int output_to(int x, int y, int destination_x, int destination_y) {
    static_assert(kX == 0 && kY == 1 && kNiu == 2);
    const int is_x = destination_x == x ? 1 : 0;
    const int is_y = destination_y == y ? 1 : 0;
    return is_x << is_y;
  }

  Torus torus_;
  Endpoint& endpoint_;
  machine::RouterParameters figures_;
  int classes_;
  int path_link_cycles_;
  PaceTime port_interval_;
  PaceTime multicast_interval_;
  // VCs whose packets a NIU takes side by side. Multicasts require it: each waits for all of its
  // receivers.
  std::uint16_t interleaved_vcs_ = 0;
  Cycle now_ = 0;
  int watched_flits_ = 0;
  std::int64_t packets_in_flight_ = 0;
};

// How the networks of a chip are simulated.
enum class NetworkModel : std::uint8_t { flits, packets };
std::unique_ptr<Network> make_network(NetworkModel model, const machine::Chip& chip, int noc,
                                      Endpoint& endpoint, std::uint64_t seed);

}  // namespace towpath::noc
