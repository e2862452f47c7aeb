// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "towpath/noc/multicast_tree.hpp"
#include "towpath/noc/network.hpp"
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

  // A VC of a node's port, packed into a word: node, 2 bits of port, 4 bits of VC.
  class Wire {
   public:
    Wire() = default;
    Wire(std::uint32_t node, int number)
        : word_(node << kNumberBits | static_cast<std::uint32_t>(number)) {}
    std::uint32_t node() const { return word_ >> kNumberBits; }
    // The VC among all of its node, and among those of its port.
    int number() const { return static_cast<int>(word_ & ((1u << kNumberBits) - 1)); }
    int vc() const { return static_cast<int>(word_ & (kVcsMax - 1)); }
    // The same port with another VC; valid on a wire of VC 0.
    Wire with_vc(unsigned vc) const {
      Wire wire;
      wire.word_ = word_ | vc;
      return wire;
    }

   private:
    static constexpr int kNumberBits = 6;
    static_assert(kVcsMax == 16 && (kPorts + 1) * kVcsMax == 1 << kNumberBits);
    std::uint32_t word_ = 0;
  };

  // Buffer of a VC at the receiving end of a link.
  struct InputVc {
    PacketId packet = kNoPacket;   // packet whose flits are in front
    PacketId header = kNoPacket;   // the same while the flit in front is its header
    std::uint16_t flits_left = 0;  // flits of `packet` still to leave from here
    std::uint8_t flits = 0;        // flits in the buffer
    std::uint8_t way = 0;          // unicast: the output VC that it asks for, then owns
    // Multicast: ports that still need the front flit, ports that need each flit, and their VCs.
    std::uint8_t outputs = 0;
    std::uint8_t all_outputs = 0;
    std::array<std::uint8_t, kPorts> output_vc{};
    PacketId first_behind = kNoPacket;  // linked list of the packets behind the one in front
    PacketId last_behind = kNoPacket;
  };
  // VC buffers of up to three input ports.
  template <int ports>
  struct Inputs {
    std::uint64_t occupied = 0;   // VCs that hold flits
    std::uint64_t allocated = 0;  // VCs whose packet owns its output VC
    std::array<std::uint8_t, ports> turn{};
  };
  // Sending end of a link: its view of the buffers at the other end.
  struct OutputLink {
    std::array<std::uint8_t, kVcsMax> used{};  // flits of each VC; the first has a slot of its own
    std::uint8_t pool_used = 0;
    std::uint8_t turn = 0;
    Wire target;  // where flits arrive, with VC 0
    std::int64_t flits = 0;
  };
  // Owner of a router's output VC, and the packets that wait for it.
  struct OutputVc {
    std::uint64_t contenders = 0;  // input VCs whose packets ask for it
    Cycle free_at = 0;             // valid while draining
    std::uint8_t turn = 0;         // input VC with the highest priority
    std::uint8_t last_owner = 0;   // input VC whose packet owns or owned it
  };
  // Input and output VCs of the same number are used together: most packets go straight on.
  struct alignas(64) Vc {
    InputVc in;
    OutputVc out;
  };
  // Members in order of use: what a move reads first shares a cache line.
  struct alignas(64) Router {
    Inputs<kPorts> input;
    std::uint64_t full = 0;       // VCs whose output VC is at its limit of flits at the other end
    std::uint64_t starved = 0;    // VCs that need a slot of a pool that is exhausted
    std::uint64_t multicast = 0;  // VCs with a multicast in front
    std::uint32_t node = 0;
    std::int16_t x = 0;
    std::int16_t y = 0;
    std::uint64_t flexible = 0;   // VCs that wait for an output VC and may take the other buddy's
    std::uint64_t owned = 0;      // output VCs that a packet owns, or that drain
    std::uint64_t draining = 0;   // owned VCs whose last flit has left
    std::uint64_t wanted = 0;     // output VCs with contenders
    std::uint64_t undecided = 0;  // output VCs that may have become free for a contender
    std::array<std::uint64_t, kPorts> pooled{};  // by output: VCs that need a slot of its pool
    std::array<OutputLink, kPorts> output;
    std::array<bool, kPorts> crosses_dateline{};        // outputs whose link wraps around
    std::array<std::uint8_t, kPorts * kVcsMax> holder;  // VC whose unicast owns it, or kNobody
    std::array<Wire, kPorts> upstream{};                // link that feeds each input, with VC 0
    std::array<Vc, kPorts * kVcsMax> vc;

    Router() { holder.fill(kNobody); }
    // VCs whose packet may send a flit; multicasts have further conditions.
    std::uint64_t ready() const { return input.occupied & input.allocated & ~(full | starved); }
    InputVc& input_vc(int number) { return vc[static_cast<std::size_t>(number)].in; }
    const InputVc& input_vc(int number) const { return vc[static_cast<std::size_t>(number)].in; }
    OutputVc& output_vc(int number) { return vc[static_cast<std::size_t>(number)].out; }
    const OutputVc& output_vc(int number) const { return vc[static_cast<std::size_t>(number)].out; }
  };
  struct Source {
    OutputLink link;
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
    Inputs<1> input;
    std::array<InputVc, kVcsMax> vc;
    InputVc& input_vc(int number) { return vc[static_cast<std::size_t>(number)]; }
    Pace pace;
    std::uint16_t held = 0;
    std::array<Cycle, kVcsMax> held_until{};
    int current_vc = -1;  // VC of the request being taken
    bool by_endpoint = false;
    bool is_held_up = false;  // by the endpoint
    Cycle ready_at = 0;
  };
  struct QueuedPacket : Packet {
    int order = 0;  // multicast: its position among those of its tree
  };
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
    PacketId header;  // kNoPacket: not a header flit
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
    void add(const Arrival& arrival) { lists[arrival.header == kNoPacket ? 1 : 0].add(arrival); }
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
    // Output VCs of routers that become free now and are awaited.
    std::vector<Wire> releases;
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

  static Wire wire_of(int node, int port) {
    return Wire(static_cast<std::uint32_t>(node), port * kVcsMax);
  }

  int next_vc(const Router& router, int input, int vc, int output) const {
    return Network::next_vc(input, vc, output,
                            router.crosses_dateline[static_cast<std::size_t>(output)]);
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
  static int flit_arrives(End& end, Wire to);
  template <typename End>
  void header_arrives(End& end, const Arrival& arrival);
  inline void begin_packet(Router& router, int number, PacketId id);
  void begin_packet(Sink& sink, int number, PacketId id);
  template <typename End>
  void end_packet(End& end, int number);
  static void return_credit(OutputLink& link, unsigned vc) {
    const unsigned used = --link.used[vc];
    link.pool_used = static_cast<std::uint8_t>(link.pool_used - (used != 0 ? 1 : 0));
  }
  static void use_slot(OutputLink& link, unsigned vc) {
    const unsigned used = link.used[vc]++;
    link.pool_used = static_cast<std::uint8_t>(link.pool_used + (used != 0 ? 1 : 0));
    ++link.flits;
  }
  bool has_room(const OutputLink& link, unsigned vc) const {
    const int used = link.used[vc];
    return used == 0 || ((without_pool(link.pool_used) >> vc & 1) == 0 &&
                         used <= figures_.pool_flits_per_vc_max);
  }
  // The VCs that a pool has no slot for, a bit for each of all ports. Responses may take some that
  // others may not.
  std::uint64_t without_pool(int pool_used) const {
    if (pool_used < pool_limit_) return 0;
    return pool_used < pool_limit_ + figures_.pool_flits_for_responses ? ~response_vcs_
                                                                       : ~std::uint64_t{0};
  }

  bool step_sink(int node);
  void take_flit(int node, int vc);
  unsigned takeable(const Sink& sink) const;
  Cycle next_flit_at(const Source::Lane& lane) const;
  bool is_granted(const Packet& packet);
  void send_from_source(Source& source, int lane);
  void finish_sending(Source& source, int lane);
  bool step_source(int node);
  void release_when_free(Router& router, int output_vc);
  bool is_free(Router& router, int output_vc) const;
  void decide(Router& router, std::uint64_t output_vcs);
  inline bool allocate(Router& router);
  inline bool give_vc(Router& router, std::uint64_t contenders, int output_vc);
  inline bool choose_flits(Router& router);
  inline bool choose_one_per_port(Router& router, std::uint64_t candidates);
  bool move_one_per_port(Router& router, std::uint64_t candidates);
  inline unsigned possible_outputs(const Router& router, int number) const;
  inline void credit_arrives(Router& router, unsigned output_vc);
  inline void use_room(Router& router, int number, unsigned output, unsigned vc) const;
  inline void take_room(Router& router, int number, int output_vc) const;
  inline static void leave_room(Router& router, int number, int output_vc);
  void move_chosen();
  inline void send_flit(Router& router, int number);
  void send_copy(Router& router, int number, int output);
  inline void take_turns(Router& router, int number, int output) const;
  inline void free_slot(Router& router, int number);
  void end_packets();
  inline void release_vc(Router& router, int number, int output_vc);
  PacketId branch_off(PacketId id, int output);

  enum class PathState : std::uint8_t { free, own, taken };
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
  int pool_limit_;
  std::uint64_t response_vcs_ = 0;  // of all ports
  std::vector<Router> routers_;
  std::vector<Source> sources_;
  std::vector<Sink> sinks_;
  std::vector<Slot> wheel_;
  std::size_t wheel_mask_;
  // Where flits and credits of this cycle are filed, by output port and by input port.
  std::array<Arrivals*, kPorts> arrivals_{};
  std::array<List<Wire>*, kPorts> credits_{};
  List<Wire> moves_;           // VCs whose front flit, a unicast's, leaves in this cycle
  List<Wire> ended_;           // VCs that a unicast's last flit left in this cycle
  NodeSet undecided_routers_;  // routers with output VCs to decide on
  NodeSet active_routers_;     // routers that may have a flit to move
  NodeSet active_sources_;
  NodeSet active_sinks_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t sequence_ = 0;

  std::vector<QueuedPacket> packets_;
  std::vector<Header> headers_;        // by packet
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
