// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "towpath/base/invariant.hpp"
#include "towpath/noc/bits.hpp"
#include "towpath/noc/network.hpp"

// Reservation of multicast paths. A probe goes down every branch of the tree and takes the output
// VCs; the answers return against the direction of the links; data flows only when all are granted.
// One refusal releases everything, and the source tries again after a random time.

namespace towpath::noc {

namespace {
constexpr int kBroadcast = static_cast<int>(PacketClass::broadcast);
}  // namespace

void Network::send_multicast(const Packet& packet, const std::vector<int>& destinations) {
  TOWPATH_CHECK(!destinations.empty(), "a multicast from node {} has no destination",
                packet.source);
  TOWPATH_CHECK(classes_ > kBroadcast, "a NoC of {} classes has none for multicasts", classes_);
  std::int32_t& kept = kept_tree_[index(packet.source) * 2 + packet.buddy];
  std::int32_t number = kept;
  if (number < 0) {
    if (free_trees_.empty()) {
      number = static_cast<std::int32_t>(trees_.size());
      trees_.emplace_back();
    } else {
      number = free_trees_.back();
      free_trees_.pop_back();
    }
    trees_[index(number)] = multicast_tree(torus_, packet.source, destinations);
    trees_[index(number)].buddy = packet.buddy;
  }
  kept = packet.keeps_path ? number : -1;
  MulticastTree& tree = trees_[index(number)];
  tree.copies_left += tree.destinations;
  packets_in_flight_ += tree.destinations;

  Packet root = packet;
  root.packet_class = kBroadcast;
  root.keeps_buddy = true;  // as the path was reserved
  root.tree = number;
  root.branch = 0;
  const PacketId id = add_packet(root);
  packets_[id].order = tree.packets_sent++;
  queue(id);
}

void Network::start_reservation(std::int32_t number) {
  MulticastTree& tree = trees_[index(number)];
  tree.state = MulticastTree::State::probing;
  tree.is_refused = false;
  tree.probes_left = 1;
  tree.answer_at = 0;
  tree.branches[0].input_vc = static_cast<std::uint8_t>(vc_of(0, kBroadcast, tree.buddy));
  schedule(now_ + figures_.niu_to_router_cycles, EventKind::probe, number, 0);
}

// A probe reaches a router: it takes all output VCs there, or none.
void Network::probe(std::int32_t number, std::int32_t at) {
  MulticastTree& tree = trees_[index(number)];
  MulticastTree::Branch& branch = tree.branches[index(at)];
  Router& router = routers_[index(branch.node)];
  bool are_free = true;
  bool is_own = true;  // all taken VCs belong to an earlier multicast of this source
  for (int output = 0; output < kPorts; ++output) {
    if ((branch.outputs >> output & 1) == 0) continue;
    const int vc = next_vc(router, branch.input, branch.input_vc, output);
    branch.output_vc[index(output)] = static_cast<std::uint8_t>(vc);
    if (is_free(router, output * kVcsMax + vc)) continue;
    are_free = false;
    if (path_source(branch.node, output, vc) != tree.source) is_own = false;
  }
  if (!are_free && is_own) {  // the earlier multicast is ahead and will move on
    schedule(now_ + 1, EventKind::probe, number, at);
    return;
  }
  const Cycle back_at =
      now_ + branch.depth * figures_.credit_return_cycles + figures_.router_to_niu_cycles;
  if (!are_free) {
    tree.is_refused = true;
    tree.answer_at = std::max(tree.answer_at, back_at);
  } else {
    branch.is_reserved = true;
    bool is_end = true;
    for (int output = 0; output < kPorts; ++output) {
      if ((branch.outputs >> output & 1) == 0) continue;
      const std::uint8_t vc = branch.output_vc[index(output)];
      set_bit(router.owned, output * kVcsMax + vc);
      path_source(branch.node, output, vc) = tree.source;
      const std::int32_t child = branch.child[index(output)];
      if (child < 0) continue;
      is_end = false;
      tree.branches[index(child)].input_vc = vc;
      ++tree.probes_left;
      schedule(now_ + figures_.hop_cycles, EventKind::probe, number, child);
    }
    if (is_end) tree.answer_at = std::max(tree.answer_at, back_at);
  }
  if (--tree.probes_left == 0) schedule(std::max(now_, tree.answer_at), EventKind::granted, number);
}

// All answers are back at the source.
void Network::finish_reservation(std::int32_t number) {
  MulticastTree& tree = trees_[index(number)];
  if (!tree.is_refused) {
    tree.state = MulticastTree::State::granted;
    tree.tries = 0;
    active_sources_.insert(tree.source);
    return;
  }
  release_reservation(tree);
  const std::int64_t longest =
      std::min<std::int64_t>(backoff_max_, std::int64_t{backoff_min_} << std::min(tree.tries, 20));
  ++tree.tries;
  schedule(now_ + random_.between(1, longest), EventKind::retry, number);
}

void Network::release_reservation(MulticastTree& tree) {
  for (MulticastTree::Branch& branch : tree.branches) {
    if (!branch.is_reserved) continue;
    branch.is_reserved = false;
    Router& router = routers_[index(branch.node)];
    for (int output = 0; output < kPorts; ++output) {
      if ((branch.outputs >> output & 1) == 0) continue;
      const int output_vc = output * kVcsMax + branch.output_vc[index(output)];
      clear_bit(router.owned, output_vc);
      decide(router, std::uint64_t{1} << output_vc);
    }
  }
}

// One copy of a multicast has been received.
void Network::end_copy(std::int32_t number) {
  MulticastTree& tree = trees_[index(number)];
  if (--tree.copies_left > 0) return;
  for (const std::int32_t kept : kept_tree_) {
    if (kept == number) return;
  }
  free_trees_.push_back(number);
}

}  // namespace towpath::noc
