// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/router/router.hpp"

namespace towpath::noc {

struct Arrival {
  VcRef to;
  PacketId packet;
};

// A list with a fixed capacity that is never exceeded.
template <typename Item>
class BoundedList {
 public:
  BoundedList() = default;
  explicit BoundedList(std::size_t items) { make_room(items); }
  void make_room(std::size_t items) {
    items_ = std::make_unique<Item[]>(items);
    end_ = items_.get();
  }
  void add(const Item& item) { *end_++ = item; }
  // Branch-free append. The capacity is one more than the maximum kept.
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

// Flits and credits on the links of a network, by the cycle of their arrival, and the output VCs
// that become free in a cycle. A link brings at most one flit and one credit in a cycle. Headers
// have separate lists, because a branch on the kind would be unpredictable.
class LinkPipeline {
 public:
  struct Arrivals {
    std::array<BoundedList<Arrival>, 2> lists;
    BoundedList<Arrival>& headers() { return lists[0]; }
    BoundedList<Arrival>& others() { return lists[1]; }
    void add(const Arrival& arrival, bool is_header) { lists[is_header ? 0 : 1].add(arrival); }
    bool empty() const { return lists[0].empty() && lists[1].empty(); }
    void clear() {
      lists[0].clear();
      lists[1].clear();
    }
  };
  struct Slot {
    Arrivals to_routers;
    Arrivals to_nius;
    BoundedList<VcRef> router_credits;  // the links that they credit
    BoundedList<VcRef> niu_credits;
    std::vector<VcRef> releases;  // output VCs that become free, and that packets wait for
    bool is_empty() const {
      return to_routers.empty() && to_nius.empty() && router_credits.empty() &&
             niu_credits.empty() && releases.empty();
    }
    void clear_links() {
      to_routers.clear();
      to_nius.clear();
      router_credits.clear();
      niu_credits.clear();
    }
  };

  LinkPipeline(const machine::RouterParameters& parameters, int nodes);

  // From here on, everything is sent in cycle `now`.
  void begin_cycle(Cycle now);
  // Arrivals of the current cycle.
  Slot& arrived() { return slot_in(0); }
  // The first cycle from `now` on with an arrival, or kNever if nothing is in flight.
  Cycle next_arrival(Cycle now) const;

  void send_flit(unsigned output, const Arrival& flit, bool is_header) {
    flits_[output]->add(flit, is_header);
  }
  void send_flit_of_niu(const Arrival& flit, bool is_header) {
    flits_of_nius_->add(flit, is_header);
  }
  // To the sending end of the link behind an input port.
  void send_credit(unsigned input, VcRef link) { credits_[input]->add(link); }
  // To a router, for its link to the NIU.
  void send_credit_of_niu(VcRef link) { credits_[kX]->add(link); }
  void release_in(Cycle cycles, VcRef output_vc) { slot_in(cycles).releases.push_back(output_vc); }

 private:
  Slot& slot_in(Cycle cycles) { return wheel_[static_cast<std::size_t>(now_ + cycles) & mask_]; }

  machine::RouterParameters parameters_;
  std::vector<Slot> wheel_;
  std::size_t mask_;
  Cycle now_ = 0;
  // Lists of the flits and credits of this cycle, by output port and by input port.
  std::array<Arrivals*, kPorts> flits_{};
  Arrivals* flits_of_nius_ = nullptr;
  std::array<BoundedList<VcRef>*, kPorts> credits_{};
};

}  // namespace towpath::noc
