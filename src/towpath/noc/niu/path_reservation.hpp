// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/noc/niu/timers.hpp"
#include "towpath/noc/router/vc_allocator.hpp"
#include "towpath/sim/random.hpp"

namespace towpath::noc {

// Reservation of multicast paths. A probe goes down every branch of the tree and takes the output
// VCs. The answers return against the direction of the links, and data flows only when all are
// granted. A refusal returns in the same way. Each router that it passes returns its VCs and sends
// a cancellation down its other branches, behind the probes. The source tries again after a random
// time.
class PathReservation {
 public:
  PathReservation(const machine::Chip& chip, NetworkState& state, VcAllocator& allocator,
                  sim::Random random);

  // Starts the first attempt of a tree.
  void start(std::int32_t tree);
  // Runs the events of this cycle. Calls granted(tree) for each path with all answers back at its
  // source.
  template <typename Granted>
  void run(Granted granted) {
    timers_.run_until(now_, [&](const Event& event) {
      if (event.kind != EventKind::granted) return run_event(event);
      trees_[event.tree].state = MulticastTree::State::granted;
      trees_[event.tree].tries = 0;
      granted(event.tree);
    });
  }
  Cycle next_work() const { return timers_.next(); }

 private:
  enum class EventKind : std::uint8_t { probe, granted, refusal, cancellation, refused, retry };
  struct Event {
    EventKind kind;
    std::int32_t tree;
    std::int32_t branch = 0;
    std::int32_t attempt = 0;
  };
  enum class PathState : std::uint8_t { free, own, taken };

  void run_event(const Event& event);
  PathState path_state(const MulticastTree& tree, MulticastTree::Branch& branch);
  void probe(const Event& event);
  int take_path(const Event& event);
  void send_refusal(std::int32_t tree, std::int32_t from_branch);
  void cancel(const Event& event);
  void retry_later(std::int32_t tree);
  std::int32_t& last_source(int node, int output, int vc) {
    return last_sources_[index((node * kPorts + output) * kVcsMax + vc)];
  }

  const Cycle& now_;
  const Routing& routing_;
  MulticastTrees& trees_;
  Routers routers_;
  VcAllocator& allocator_;
  machine::RouterParameters parameters_;
  int path_link_cycles_;
  int backoff_min_;
  int backoff_max_;
  // By output VC: source of the multicast that reserved it last, or -1.
  std::vector<std::int32_t> last_sources_;
  Timers<Event> timers_;
  sim::Random random_;
};

}  // namespace towpath::noc
