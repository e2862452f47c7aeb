// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/path_reservation.hpp"

#include <algorithm>
#include <utility>

namespace towpath::noc {

PathReservation::PathReservation(const machine::Chip& chip, NetworkState& state,
                                 VcAllocator& allocator, sim::Random random)
    : now_(state.now),
      routing_(state.routing),
      trees_(state.trees),
      routers_(state.routers),
      allocator_(allocator),
      parameters_(chip.router),
      path_link_cycles_(chip.niu.path_link_cycles),
      backoff_min_(chip.niu.backoff_cycles_min),
      backoff_max_(chip.niu.backoff_cycles_max),
      last_sources_(index(state.routers.count() * kPorts * kVcsMax), -1),
      random_(std::move(random)) {}

void PathReservation::run_event(const Event& event) {
  switch (event.kind) {
    case EventKind::probe: probe(event); break;
    case EventKind::refusal:
      cancel(event);
      send_refusal(event.tree, event.branch);
      break;
    case EventKind::cancellation: cancel(event); break;
    case EventKind::refused: retry_later(event.tree); break;
    case EventKind::retry: start(event.tree); break;
    case EventKind::granted: break;  // by run()
  }
}

void PathReservation::start(std::int32_t number) {
  MulticastTree& tree = trees_[number];
  tree.state = MulticastTree::State::probing;
  ++tree.attempt;
  tree.is_refused = false;
  tree.probes_left = 1;
  tree.answer_at = 0;
  tree.branches[0].input_vc = static_cast<std::uint8_t>(
      routing_.vc_of(0, static_cast<int>(PacketClass::broadcast), tree.buddy));
  timers_.add(now_ + path_link_cycles_, {EventKind::probe, number, 0, tree.attempt});
}

// Chooses the output VCs of a branch, and returns whether they are free, or taken by earlier
// multicasts of its source.
PathReservation::PathState PathReservation::path_state(const MulticastTree& tree,
                                                       MulticastTree::Branch& branch) {
  Router& router = routers_[branch.node];
  bool are_free = true;
  bool are_own = true;
  for (int output = 0; output < kPorts; ++output) {
    if ((branch.outputs >> output & 1) == 0) continue;
    const int vc = routing_.next_vc(branch.input, branch.input_vc, output, router.crosses(output));
    branch.output_vc[index(output)] = static_cast<std::uint8_t>(vc);
    if (allocator_.is_free(router, static_cast<unsigned>(output * kVcsMax + vc))) continue;
    are_free = false;
    if (last_source(branch.node, output, vc) != tree.source) are_own = false;
  }
  if (are_free) return PathState::free;
  return are_own ? PathState::own : PathState::taken;
}

// A probe reaches a router and takes all output VCs there, or none. It may belong to an attempt
// that was refused elsewhere. The VCs that it takes are then returned when the cancellation
// arrives.
void PathReservation::probe(const Event& event) {
  MulticastTree& tree = trees_[event.tree];
  MulticastTree::Branch& branch = tree.branches[index(event.branch)];
  if (branch.cancelled_attempt == event.attempt) return;
  const bool is_open = event.attempt == tree.attempt && !tree.is_refused;
  const PathState state = path_state(tree, branch);
  if (state == PathState::own) {  // the earlier multicast is ahead and will move on
    timers_.add(now_ + 1, event);
    return;
  }
  if (state == PathState::taken) {
    if (!is_open) return;
    tree.is_refused = true;
    send_refusal(event.tree, event.branch);
    return;
  }
  const int children = take_path(event);
  if (!is_open) return;
  tree.probes_left += children - 1;
  if (children == 0) {
    const Cycle back_at =
        now_ + branch.depth * parameters_.credit_return_cycles + path_link_cycles_;
    tree.answer_at = std::max(tree.answer_at, back_at);
  }
  if (tree.probes_left == 0) timers_.add(tree.answer_at, {EventKind::granted, event.tree});
}

// Takes the VCs of a branch and sends the probe on. Returns the number of routers that it goes to.
int PathReservation::take_path(const Event& event) {
  MulticastTree& tree = trees_[event.tree];
  MulticastTree::Branch& branch = tree.branches[index(event.branch)];
  branch.is_reserved = true;
  int children = 0;
  for (int output = 0; output < kPorts; ++output) {
    if ((branch.outputs >> output & 1) == 0) continue;
    const std::uint8_t vc = branch.output_vc[index(output)];
    VcAllocator::reserve(routers_[branch.node], output * kVcsMax + vc);
    last_source(branch.node, output, vc) = tree.source;
    const std::int32_t child = branch.child[index(output)];
    if (child < 0) continue;
    ++children;
    tree.branches[index(child)].input_vc = vc;
    timers_.add(now_ + parameters_.hop_cycles,
                {EventKind::probe, event.tree, child, event.attempt});
  }
  return children;
}

// From a router to its predecessor on the path, or to the source.
void PathReservation::send_refusal(std::int32_t number, std::int32_t from_branch) {
  const MulticastTree& tree = trees_[number];
  const std::int32_t parent = tree.branches[index(from_branch)].parent;
  if (parent < 0) {
    timers_.add(now_ + path_link_cycles_, {EventKind::refused, number});
  } else {
    timers_.add(now_ + parameters_.credit_return_cycles,
                {EventKind::refusal, number, parent, tree.attempt});
  }
}

// A router returns the VCs of this attempt, and cancels the branches behind it.
void PathReservation::cancel(const Event& event) {
  MulticastTree::Branch& branch = trees_[event.tree].branches[index(event.branch)];
  branch.cancelled_attempt = event.attempt;
  if (!branch.is_reserved) return;  // or its probe still waits, and ends now
  branch.is_reserved = false;
  for (int output = 0; output < kPorts; ++output) {
    if ((branch.outputs >> output & 1) == 0) continue;
    allocator_.cancel(routers_[branch.node], output * kVcsMax + branch.output_vc[index(output)]);
    const std::int32_t child = branch.child[index(output)];
    if (child < 0) continue;
    timers_.add(now_ + parameters_.hop_cycles,
                {EventKind::cancellation, event.tree, child, event.attempt});
  }
}

void PathReservation::retry_later(std::int32_t number) {
  MulticastTree& tree = trees_[number];
  const std::int64_t longest =
      std::min<std::int64_t>(backoff_max_, std::int64_t{backoff_min_} << std::min(tree.tries, 20));
  ++tree.tries;
  timers_.add(now_ + random_.between(1, longest), {EventKind::retry, number});
}

}  // namespace towpath::noc
