// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "towpath/base/index.hpp"
#include "towpath/noc/flit_network.hpp"
#include "towpath/noc/router/bits.hpp"

// Reservation of multicast paths. A probe goes down every branch of the tree and takes the output
// VCs; the answers return against the direction of the links; data flows only when all are granted.
// A refusal returns the same way. Each router that it passes gives up its VCs, and sends the news
// down its other branches, behind the probes. The source tries again after a random time.

namespace towpath::noc {

namespace {
constexpr int kBroadcast = static_cast<int>(PacketClass::broadcast);
}  // namespace

void FlitNetwork::send_multicast(const Packet& packet, const std::vector<int>& destinations) {
  check_multicast(packet, destinations);
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
  // The NIU reads ahead only behind a packet that it has yet to send.
  const Source& source = sources_[index(packet.source)];
  tree.reads_when_granted = tree.packets_sent == 0 && (source.sending | source.waiting) == 0;
  orders_[id] = tree.packets_sent++;
  queue(id);
}

void FlitNetwork::start_reservation(std::int32_t number) {
  MulticastTree& tree = trees_[index(number)];
  tree.state = MulticastTree::State::probing;
  ++tree.attempt;
  tree.is_refused = false;
  tree.probes_left = 1;
  tree.answer_at = 0;
  tree.branches[0].input_vc = static_cast<std::uint8_t>(vc_of(0, kBroadcast, tree.buddy));
  schedule(now_ + path_link_cycles_, EventKind::probe, number, 0, tree.attempt);
}

// Chooses the output VCs of a branch. Are they free, or taken by earlier multicasts of its source?
FlitNetwork::PathState FlitNetwork::path_state(const MulticastTree& tree,
                                               MulticastTree::Branch& branch) {
  Router& router = routers_[index(branch.node)];
  bool are_free = true;
  bool are_own = true;
  for (int output = 0; output < kPorts; ++output) {
    if ((branch.outputs >> output & 1) == 0) continue;
    const int vc = next_vc(router, branch.input, branch.input_vc, output);
    branch.output_vc[index(output)] = static_cast<std::uint8_t>(vc);
    if (is_free(router, static_cast<unsigned>(output * kVcsMax + vc))) continue;
    are_free = false;
    if (path_source(branch.node, output, vc) != tree.source) are_own = false;
  }
  if (are_free) return PathState::free;
  return are_own ? PathState::own : PathState::taken;
}

// A probe reaches a router: it takes all output VCs there, or none. It may belong to an attempt
// that was refused elsewhere; what it takes then is given up when the news arrives.
void FlitNetwork::probe(std::int32_t number, std::int32_t at, int attempt) {
  MulticastTree& tree = trees_[index(number)];
  MulticastTree::Branch& branch = tree.branches[index(at)];
  if (branch.let_go_in == attempt) return;
  const bool is_open = attempt == tree.attempt && !tree.is_refused;
  const PathState state = path_state(tree, branch);
  if (state == PathState::own) {  // the earlier multicast is ahead and will move on
    schedule(now_ + 1, EventKind::probe, number, at, attempt);
    return;
  }
  if (state == PathState::taken) {
    if (!is_open) return;
    tree.is_refused = true;
    send_refusal(number, at);
    return;
  }
  const int children = take_path(number, branch, attempt);
  if (!is_open) return;
  tree.probes_left += children - 1;
  if (children == 0) {
    const Cycle back_at = now_ + branch.depth * figures_.credit_return_cycles + path_link_cycles_;
    tree.answer_at = std::max(tree.answer_at, back_at);
  }
  if (tree.probes_left == 0) schedule(tree.answer_at, EventKind::granted, number);
}

// Takes the VCs of a branch and sends the probe on. Returns to how many routers.
int FlitNetwork::take_path(std::int32_t number, MulticastTree::Branch& branch, int attempt) {
  MulticastTree& tree = trees_[index(number)];
  Router& router = routers_[index(branch.node)];
  branch.is_reserved = true;
  int children = 0;
  for (int output = 0; output < kPorts; ++output) {
    if ((branch.outputs >> output & 1) == 0) continue;
    const std::uint8_t vc = branch.output_vc[index(output)];
    set_bit(router.owned, output * kVcsMax + vc);
    path_source(branch.node, output, vc) = tree.source;
    const std::int32_t child = branch.child[index(output)];
    if (child < 0) continue;
    ++children;
    tree.branches[index(child)].input_vc = vc;
    schedule(now_ + figures_.hop_cycles, EventKind::probe, number, child, attempt);
  }
  return children;
}

// From a router to the one before it on the path, or to the source.
void FlitNetwork::send_refusal(std::int32_t number, std::int32_t at) {
  const MulticastTree& tree = trees_[index(number)];
  const std::int32_t parent = tree.branches[index(at)].parent;
  if (parent < 0) {
    schedule(now_ + path_link_cycles_, EventKind::refused, number);
  } else {
    schedule(now_ + figures_.credit_return_cycles, EventKind::refusal, number, parent,
             tree.attempt);
  }
}

void FlitNetwork::refusal_arrives(std::int32_t number, std::int32_t at, int attempt) {
  let_go(number, at, attempt);
  send_refusal(number, at);
}

// A router gives up the VCs that this attempt has taken, and tells those behind it.
void FlitNetwork::let_go(std::int32_t number, std::int32_t at, int attempt) {
  MulticastTree& tree = trees_[index(number)];
  MulticastTree::Branch& branch = tree.branches[index(at)];
  branch.let_go_in = attempt;
  if (!branch.is_reserved) return;  // or its probe still waits, and ends now
  branch.is_reserved = false;
  Router& router = routers_[index(branch.node)];
  for (int output = 0; output < kPorts; ++output) {
    if ((branch.outputs >> output & 1) == 0) continue;
    const int output_vc = output * kVcsMax + branch.output_vc[index(output)];
    clear_bit(router.owned, output_vc);
    undecided_.add(Wire(branch.node, static_cast<unsigned>(output_vc)));
    const std::int32_t child = branch.child[index(output)];
    if (child >= 0) schedule(now_ + figures_.hop_cycles, EventKind::let_go, number, child, attempt);
  }
}

// All answers are back at the source.
void FlitNetwork::reservation_granted(std::int32_t number) {
  MulticastTree& tree = trees_[index(number)];
  tree.state = MulticastTree::State::granted;
  tree.tries = 0;
  if (tree.reads_when_granted) read_now(sources_[index(tree.source)], number);
  active_sources_.insert(tree.source);
}

// Data that was to be read while the path was reserved is read from now on.
void FlitNetwork::read_now(Source& source, std::int32_t number) {
  for (const Source::Lane& lane : source.lane) {
    if (lane.packet == kNoPacket || packets_[lane.packet].tree != number) continue;
    QueuedPacket& packet = packets_[lane.packet];
    packet.data_at = std::max(packet.data_at, now_ * kPaceCycle + packet.data_interval);
  }
}

// A refusal is back at the source.
void FlitNetwork::reservation_refused(std::int32_t number) {
  MulticastTree& tree = trees_[index(number)];
  const std::int64_t longest =
      std::min<std::int64_t>(backoff_max_, std::int64_t{backoff_min_} << std::min(tree.tries, 20));
  ++tree.tries;
  schedule(now_ + random_.between(1, longest), EventKind::retry, number);
}

// One copy of a multicast has been received.
void FlitNetwork::end_copy(std::int32_t number) {
  MulticastTree& tree = trees_[index(number)];
  if (--tree.copies_left > 0) return;
  for (const std::int32_t kept : kept_tree_) {
    if (kept == number) return;
  }
  free_trees_.push_back(number);
}

}  // namespace towpath::noc
