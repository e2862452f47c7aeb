// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "towpath/base/index.hpp"
#include "towpath/noc/flit_network.hpp"
#include "towpath/noc/router/bits.hpp"

// What is due in a later cycle, beside what is under way on links.

namespace towpath::noc {

void FlitNetwork::schedule(Cycle at, EventKind kind, int node, int detail, int attempt) {
  events_.push({at, sequence_++, kind, node, detail, attempt});
}

void FlitNetwork::run_events() {
  while (!events_.empty() && events_.top().at <= now_) {
    const Event event = events_.top();
    events_.pop();
    switch (event.kind) {
      case EventKind::wake_source: active_sources_.insert(event.node); break;
      case EventKind::wake_sink: active_sinks_.insert(event.node); break;
      case EventKind::release:
        if (sinks_[index(event.node)].held_until[index(event.detail)] > now_) break;
        clear_bit(sinks_[index(event.node)].held, event.detail);
        active_sinks_.insert(event.node);
        break;
      case EventKind::probe: probe(event.node, event.detail, event.attempt); break;
      case EventKind::granted: reservation_granted(event.node); break;
      case EventKind::refusal: refusal_arrives(event.node, event.detail, event.attempt); break;
      case EventKind::let_go: let_go(event.node, event.detail, event.attempt); break;
      case EventKind::refused: reservation_refused(event.node); break;
      case EventKind::retry: start_reservation(event.node); break;
    }
  }
}

void FlitNetwork::hold(int node, int vc, Cycle until) {
  Sink& sink = sinks_[index(node)];
  set_bit(sink.held, vc);
  sink.held_until[index(vc)] = std::max(sink.held_until[index(vc)], until);
  if (until != kNever) schedule(until, EventKind::release, node, vc);
}

void FlitNetwork::release(int node, int vc, Cycle at) {
  sinks_[index(node)].held_until[index(vc)] = at;
  schedule(at, EventKind::release, node, vc);
}

}  // namespace towpath::noc
