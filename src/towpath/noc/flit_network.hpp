// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "towpath/noc/network.hpp"
#include "towpath/noc/router/multicast_tree.hpp"
#include "towpath/sim/random.hpp"

// One network on chip, flit by flit: routers, links, buffers, credits, and the NIU ends that inject
// and eject packets. The meaning of packets is defined in chip_network.hpp.
//
// A flit that leaves a router in cycle t may leave the next one in cycle t + hop_cycles, and the
// buffer slot it leaves is known to be free one credit_return later. A packet owns its output VC
// from its header until vc_release_cycles after its last flit; the next packet of the same input VC
// may follow without that gap when no other packet waits. In each cycle
//   1. flits and credits that were under way arrive,
//   2. each NIU takes at most one flit out of its receive buffers: unicast requests one after
//      the other, multicasts and responses in turn,
//   3. each NIU puts at most one flit on the link to its router,
//   4. each router gives output VCs to waiting header flits, then moves flits: every input port
//      picks one VC, in turn, among those that could send; every output port picks one input port,
//      in turn, among those that want it. An input port that is not picked sends nothing in this
//      cycle, even if another of its VCs could have: VCs are chosen before ports.
// Routers only meet through links that take several cycles, so their order within a cycle is free.
// Only routers with flits that can move cost computing time.

namespace towpath::noc {

class FlitNetwork final : public Network {
 public:
  // `noc` is 0 or 1. The endpoint outlives the network.
  FlitNetwork(const machine::Chip& chip, int noc, Endpoint& endpoint, std::uint64_t seed);

  void send(const Packet& packet) override;
  void send_multicast(const Packet& packet, const std::vector<int>& destinations) override;
  void hold(int node, int vc, Cycle until) override;
  void release(int node, int vc, Cycle at) override;
  void pace_by_endpoint(int node) override;
  void hold_up_by_endpoint(int node) override;
  int counted_flits(int node) const override;
  void step() override;
  Cycle next_work() const override;
  std::int64_t link_flits(int node, int port) const override;
  std::vector<std::string> deadlock_cycle() const override;

 private:
  friend class DeadlockSearch;

  // VC v of a router's port p has number p * kVcsMax + v, which is also its bit in each set.
  static constexpr std::uint8_t kNobody = 63;  // a bit that nothing reads
  // Far from a power of two: what a pass reads of all routers is spread over the processor's cache.
  static constexpr std::uint32_t kRouterBytes = 34 * 64;

  // A VC of a node's port, packed into a word: where the node's router begins, in bytes, and the
  // VC's number in the bits that a router's alignment leaves.
  class Wire {
   public:
    Wire() = default;
    Wire(int node, unsigned number)
        : word_(static_cast<std::uint32_t>(node) * kRouterBytes | number) {}
    std::size_t node() const { return word_ / kRouterBytes; }
    std::size_t router_begin() const { return word_ & ~kNumberMask; }
    // The VC among all of its node, and among those of its port.
    unsigned number() const { return word_ & kNumberMask; }
    unsigned vc() const { return word_ & (kVcsMax - 1); }
    // The same port with another VC; valid on a wire of VC 0.
    Wire with_vc(unsigned vc) const { return Wire(word_ | vc); }
    // Another VC of the same node.
    Wire with_number(unsigned number) const { return Wire((word_ & ~kNumberMask) | number); }

   private:
    static constexpr std::uint32_t kNumberMask = 63;
    static_assert(kVcsMax == 16 && (kPorts + 1) * kVcsMax == kNumberMask + 1);
    explicit Wire(std::uint32_t word) : word_(word) {}
    std::uint32_t word_ = 0;
  };

  // Buffer of a VC at the receiving end of a link.
  struct InputVc {
    PacketId packet = kNoPacket;   // packet whose flits are in front, if any is
    std::uint16_t flits_left = 0;  // flits of `packet` still to leave from here
    std::uint8_t flits = 0;        // flits in the buffer
    std::uint8_t way = 0;          // unicast: the output VC that it asks for, then owns
  };
  // Linked list of the packets of a VC behind the one in front, if there are any.
  struct Followers {
    PacketId first = kNoPacket;
    PacketId last = kNoPacket;
  };
  // VC buffers of the input ports, as sets.
  struct Inputs {
    std::uint64_t occupied = 0;   // VCs that hold flits
    std::uint64_t allocated = 0;  // VCs whose packet owns its output VC
    std::uint64_t begun = 0;      // VCs with a packet in front
    std::uint64_t followed = 0;   // VCs with others behind that one
  };
  // Multicast in front of a VC: ports that still need the front flit, ports that need each flit,
  // and their VCs.
  struct Copies {
    std::uint8_t outputs = 0;
    std::uint8_t all_outputs = 0;
    std::array<std::uint8_t, kPorts> output_vc{};
  };
  // Output VC of a router: its view of the buffer at the other end, and who owns it.
  struct OutputVc {
    std::uint8_t used = 0;          // flits at the other end; the first has a slot of its own
    std::uint8_t holder = kNobody;  // input VC whose unicast owns it, or kNobody
    std::uint8_t last_owner = 0;    // input VC whose packet owns or owned it
    std::uint8_t turn = 0;          // input VC with the highest priority
  };
  // Links of a router's port, and the flits that have left on the one that it sends on.
  struct Links {
    Wire target;    // where flits arrive, with VC 0
    Wire upstream;  // link that feeds the input, with VC 0
    std::int64_t flits = 0;
  };
  // What is used together shares a cache line.
  struct alignas(64) Router {
    Inputs input;
    std::uint64_t blocked = 0;    // VCs that have no room at the other end
    std::uint64_t multicast = 0;  // VCs with a multicast in front
    std::uint64_t header = 0;     // VCs whose flit in front is a header
    std::array<std::uint8_t, kPorts> input_turn{};
    std::array<std::uint8_t, kPorts> output_turn{};
    std::int16_t node = 0;

    std::uint64_t owned = 0;     // output VCs that a packet owns, or that drain
    std::uint64_t draining = 0;  // owned VCs whose last flit has left
    std::uint64_t wanted = 0;    // output VCs with contenders
    std::uint64_t flexible = 0;  // VCs that wait for an output VC and may take the other buddy's
    std::array<std::uint64_t, kPorts> pooled{};  // by output: VCs that need a slot of its pool
    std::array<std::uint8_t, kPorts> pool_used{};
    std::uint8_t crosses_dateline = 0;  // outputs whose link wraps around
    std::int16_t x = 0;
    std::int16_t y = 0;

    std::array<Links, kPorts> links;
    std::array<InputVc, kPorts * kVcsMax> in;
    std::array<OutputVc, kPorts * kVcsMax> out;
    // By output VC: input VCs whose packets ask for it.
    std::array<std::uint64_t, kPorts * kVcsMax> contenders{};
    std::array<Cycle, kPorts * kVcsMax> free_at{};  // by output VC; valid while draining
    std::array<Followers, kPorts * kVcsMax> followers;
    std::array<Copies, kPorts * kVcsMax> copies;

    // VCs whose packet may send a flit; multicasts have further conditions.
    std::uint64_t ready() const { return input.occupied & input.allocated & ~blocked; }
  };
  // Sending end of a NIU's link to its router.
  struct SourceLink {
    std::array<std::uint8_t, kVcsMax> used{};  // as in OutputVc
    std::uint8_t pool_used = 0;
    Wire target;
    std::int64_t flits = 0;
  };
  struct Source {
    SourceLink link;
    std::uint16_t owned = 0;   // VCs that a packet owns
    std::uint8_t sending = 0;  // lanes whose front packet has its VC
    std::uint8_t waiting = 0;  // lanes whose front packet waits for one
    std::uint8_t turn = 0;
    int counted_flits = 0;
    Pace pace;
    struct Lane {
      PacketId packet = kNoPacket;  // in front
      PacketId next = kNoPacket;    // linked list of packets behind it
      PacketId last = kNoPacket;
      int flits_sent = 0;  // flits of the front packet
      int vc = 0;
    };
    std::array<Lane, kLanes> lane;
    // By buddy: the tree whose linked multicast has left and keeps the VC for the next; -1: none.
    std::array<std::int32_t, 2> linked_tree{-1, -1};
  };
  struct Sink {
    Inputs input;
    std::uint8_t turn = 0;
    std::array<InputVc, kVcsMax> in;
    std::array<Followers, kVcsMax> followers;
    Pace pace;
    std::uint16_t held = 0;
    std::array<Cycle, kVcsMax> held_until{};
    int current_vc = -1;  // VC of the request being taken
    bool by_endpoint = false;
    bool is_held_up = false;  // by the endpoint
    Cycle ready_at = 0;
  };
  struct alignas(64) QueuedPacket : Packet {};  // in one cache line
  static_assert(sizeof(QueuedPacket) == 64);
  // What a router reads when a header reaches the front.
  struct Header {
    std::int16_t destination_x = 0;
    std::int16_t destination_y = 0;
    std::uint16_t flits = 0;
    bool keeps_buddy : 1 = true;
    bool keeps_path : 1 = false;
    bool is_multicast : 1 = false;
  };
  struct Arrival {
    Wire to;
    PacketId packet;
  };
  // Arrivals of one cycle. A link brings at most one item of each kind, so room is allocated once.
  // Each kind has its own list, because a branch on the kind would be unpredictable.
  template <typename Item>
  class List {
   public:
    void make_room(std::size_t items) {
      items_ = std::make_unique<Item[]>(items);
      end_ = items_.get();
    }
    void add(const Item& item) { *end_++ = item; }
    // Branch-free append; capacity is one more than the maximum kept.
    void add_if(const Item& item, bool is_kept) {
      *end_ = item;
      end_ += is_kept ? 1 : 0;
    }
    void clear() { end_ = items_.get(); }
    bool empty() const { return end_ == items_.get(); }
    std::span<const Item> all() const { return {items_.get(), end_}; }

   private:
    std::unique_ptr<Item[]> items_;
    Item* end_ = nullptr;
  };
  struct Arrivals {
    std::array<List<Arrival>, 2> lists;
    List<Arrival>& headers() { return lists[0]; }
    List<Arrival>& others() { return lists[1]; }
    void add(const Arrival& arrival, bool is_header) { lists[is_header ? 0 : 1].add(arrival); }
    bool empty() const { return lists[0].empty() && lists[1].empty(); }
    void clear() {
      lists[0].clear();
      lists[1].clear();
    }
  };
  struct Slot {
    Arrivals to_routers;
    Arrivals to_sinks;
    List<Wire> router_credits;  // the links that they credit
    List<Wire> source_credits;
    std::vector<Wire> releases;  // output VCs of routers that become free now and are awaited
    bool is_empty() const {
      return to_routers.empty() && to_sinks.empty() && router_credits.empty() &&
             source_credits.empty() && releases.empty();
    }
  };
  enum class EventKind : std::uint8_t {
    wake_source,
    wake_sink,
    release,
    // of a multicast's reservation, see reservation.cpp
    probe,
    granted,
    refusal,
    let_go,
    refused,
    retry
  };
  struct Event {
    Cycle at;
    std::uint64_t sequence;
    EventKind kind;
    std::int32_t node;    // or tree
    std::int32_t detail;  // VC, or branch
    std::int32_t attempt;
    bool operator>(const Event& other) const {
      return at != other.at ? at > other.at : sequence > other.sequence;
    }
  };
  // Nodes to examine in this cycle, one bit each.
  class NodeSet {
   public:
    explicit NodeSet(int nodes) : words_(static_cast<std::size_t>(nodes + 63) / 64) {}
    void insert(int node) { words_[word(node)] |= bit(node); }
    bool empty() const {
      for (const std::uint64_t word : words_) {
        if (word != 0) return false;
      }
      return true;
    }
    // Adds the node if `is_member` is 1, not if it is 0.
    void insert_if(int node, std::uint64_t is_member) {
      words_[word(node)] |= is_member << (node & 63);
    }
    // Calls visit(node) -> bool for each node, in order. A node leaves the set on false, unless it
    // was inserted meanwhile.
    template <typename Visit>
    void filter(Visit visit);

   private:
    static std::size_t word(int node) { return static_cast<std::size_t>(node) >> 6; }
    static std::uint64_t bit(int node) { return std::uint64_t{1} << (node & 63); }
    std::vector<std::uint64_t> words_;
  };

  // The router of a VC; without a multiplication, which would be a good part of what a visit costs.
  Router& router_of(Wire place) {
    static_assert(sizeof(Router) == kRouterBytes);
    return *reinterpret_cast<Router*>(reinterpret_cast<std::byte*>(routers_.data()) +
                                      place.router_begin());
  }
  Links& links_of(int node, int port) {
    return routers_[static_cast<std::size_t>(node)].links[static_cast<std::size_t>(port)];
  }
  void connect(int from, int port, int to);
  void fill_ways_out();
  std::uint8_t& way_out(unsigned number, int output, bool crosses) {
    return ways_out_[static_cast<unsigned>(output * 2 + (crosses ? 1 : 0)) * 64 + number];
  }
  // Output VC on which a packet leaves a router through one of its ports.
  int next_vc(const Router& router, int input, int vc, int output) const {
    return Network::next_vc(input, vc, output, (router.crosses_dateline >> output & 1) != 0);
  }

  PacketId add_packet(const Packet& packet);
  void queue(PacketId id);
  int best_source_vc(const Source& source, const Packet& packet) const;
  bool take_source_vc(Source& source, int lane);
  Slot& slot_in(int cycles) {
    return wheel_[static_cast<std::size_t>(now_ + cycles) & wheel_mask_];
  }
  void schedule(Cycle at, EventKind kind, int node, int detail = 0, int attempt = 0);
  void run_events();

  void receive_slot(Slot& slot);
  template <typename End>  // Router or Sink
  static void flit_arrives(End& end, unsigned number);
  void headers_arrive(std::span<const Arrival> arrivals);
  void header_arrives(Sink& sink, const Arrival& arrival);
  template <typename End>
  void follow(End& end, unsigned number, PacketId id);
  template <typename End>
  PacketId next_follower(End& end, unsigned number);
  void begin_packets();
  inline void begin_packet(Wire place, PacketId id);
  void begin_multicast(Wire place, PacketId id);
  void begin_packet(Sink& sink, unsigned vc, PacketId id);
  void end_packet(Sink& sink, unsigned vc);
  bool has_room(unsigned used, unsigned pool_used, unsigned vc) const {
    return used == 0 || ((without_pool_[pool_used] >> vc & 1) == 0 &&
                         used <= static_cast<unsigned>(figures_.pool_flits_per_vc_max));
  }

  bool step_sink(int node);
  void take_flit(int node, unsigned vc);
  unsigned takeable(const Sink& sink) const;
  Cycle next_flit_at(const Source::Lane& lane) const;
  bool is_granted(const Packet& packet);
  static void use_slot(SourceLink& link, unsigned vc);
  void send_from_source(Source& source, int lane);
  void finish_sending(Source& source, int lane);
  bool step_source(int node);
  void release_when_free(const Router& router, Wire output_vc);
  bool is_free(Router& router, unsigned output_vc) const;
  static bool is_awaited(const Router& router, unsigned output_vc);
  void allocate(std::vector<Wire>& releases);
  void give_vcs(std::span<const Wire> output_vcs);
  void give_other_buddy(int node);
  inline bool give_vc(Router& router, std::uint64_t contenders, Wire output_vc);
  inline bool choose_flits(int node);
  inline bool choose_one_per_port(int node, std::uint64_t candidates);
  bool choose_among_multicasts(int node, std::uint64_t candidates);
  inline unsigned possible_outputs(const Router& router, unsigned number) const;
  inline void credit_arrives(Wire output_vc);
  inline void update_room(Router& router, unsigned number, unsigned output, unsigned used) const;
  void move_chosen();
  inline void send_flit(Wire place);
  void send_copy(Wire place, unsigned output);
  inline void put_on_link(Router& router, unsigned number, unsigned output_vc, PacketId packet,
                          bool is_header);
  inline static void take_turns(Router& router, unsigned number, unsigned output);
  inline void free_slot(Router& router, unsigned number);
  inline void end_packet(Router& router, Wire place);
  void begin_followers();
  inline void release_vc(Router& router, unsigned number, Wire output_vc);
  PacketId branch_off(PacketId id, unsigned output);

  enum class PathState : std::uint8_t { free, own, taken };
  void read_now(Source& source, std::int32_t number);
  void start_reservation(std::int32_t tree);
  PathState path_state(const MulticastTree& tree, MulticastTree::Branch& branch);
  void probe(std::int32_t tree, std::int32_t branch, int attempt);
  int take_path(std::int32_t tree, MulticastTree::Branch& branch, int attempt);
  void send_refusal(std::int32_t tree, std::int32_t from_branch);
  void refusal_arrives(std::int32_t tree, std::int32_t branch, int attempt);
  void let_go(std::int32_t tree, std::int32_t branch, int attempt);
  void reservation_granted(std::int32_t tree);
  void reservation_refused(std::int32_t tree);
  std::int32_t& path_source(int node, int output, int vc) {
    return path_sources_[static_cast<std::size_t>((node * kPorts + output) * kVcsMax + vc)];
  }
  void end_copy(std::int32_t tree);

  int backoff_min_;
  int backoff_max_;
  // By input VC, output, and whether that crosses the dateline: the output VC of a packet.
  std::array<std::uint8_t, kPorts * 2 * 64> ways_out_{};
  // By the used slots of a pool: the VCs that it has no slot for, a bit for each of all ports.
  std::vector<std::uint64_t> without_pool_;
  std::int64_t pool_flits_per_vc_max_;  // as in the figures
  std::vector<Router> routers_;
  std::vector<Source> sources_;
  std::vector<Sink> sinks_;
  std::vector<Slot> wheel_;
  std::size_t wheel_mask_;
  // Where flits and credits of this cycle are filed, by output port and by input port.
  std::array<Arrivals*, kPorts> arrivals_{};
  std::array<List<Wire>*, kPorts> credits_{};
  List<Arrival> fronts_;      // packets that reach the front of a router's VC
  List<Arrival> behind_;      // headers that arrive behind another packet
  List<Wire> undecided_;      // output VCs that may have become free for a contender
  List<Wire> moves_;          // VCs whose front flit, a unicast's, leaves in this cycle
  List<Wire> followed_;       // VCs that a packet left in this cycle, with others behind it
  NodeSet flexible_routers_;  // undecided routers with packets that may take the other buddy's VC
  NodeSet active_routers_;    // routers that may have a flit to move
  NodeSet active_sources_;
  NodeSet active_sinks_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t sequence_ = 0;

  std::vector<QueuedPacket> packets_;
  std::vector<Header> headers_;        // by packet
  std::vector<int> orders_;            // by packet: a multicast's among those of its tree
  std::vector<PacketId> next_packet_;  // by packet: the next in its queue
  std::vector<PacketId> free_packets_;
  std::vector<MulticastTree> trees_;
  std::vector<std::int32_t> free_trees_;
  std::vector<std::int32_t> kept_tree_;  // per source and buddy; -1: none
  // per output VC: source of the multicast that reserved it last
  std::vector<std::int32_t> path_sources_;
  sim::Random random_;
};

}  // namespace towpath::noc
