// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/rendezvous.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/tenstorrent/ccl/broadcasts.hpp"
#include "towpath/tenstorrent/ccl/endpoint.hpp"
#include "towpath/tenstorrent/ccl/simulated_chips.hpp"

namespace towpath::tenstorrent::ccl {

using transport::Move;
using transport::SignalWait;

namespace {

// The ranks with which a rank exchanges data.
std::set<int> peers_of(const collective::RankProgram& program) {
  std::set<int> peers;
  for (const collective::ThreadBlock& block : program.blocks) {
    for (const int peer : {block.send_peer, block.receive_peer}) {
      if (peer != collective::kNone) peers.insert(peer);
    }
  }
  return peers;
}

}  // namespace

bool passes_on(const collective::Schedule& schedule) {
  return peers_of(schedule.ranks.front()).size() + 1 < schedule.ranks.size();
}

Rendezvous::Rendezvous(SimulatedChips& ranks, const collective::Schedule& schedule,
                       std::function<void(int rank)> on_complete)
    : ranks_(ranks), on_complete_(std::move(on_complete)), meetings_(schedule.ranks.size()) {
  for (std::size_t rank = 0; rank < meetings_.size(); ++rank) {
    Meeting& meeting = meetings_[rank];
    meeting.rendezvous = this;
    meeting.rank = static_cast<int>(rank);
    meeting.all_present.signal = ranks.endpoint(meeting.rank).allocate_signals(1);
    meeting.all_present.context = &meeting;
    meeting.all_present.ready = [](SignalWait& wait) {
      const Meeting& ready = *static_cast<Meeting*>(wait.context);
      ready.rendezvous->on_complete_(ready.rank);
    };
    for (const int peer : peers_of(schedule.ranks[rank])) {
      Move& notice = meeting.notices.emplace_back();
      notice.peer = peer;
      notice.has_signal = true;
      notice.signal = meeting.all_present.signal;
      notice.signal_value = 1;
      notice.signal_operation = transport::SignalOperation::add;
    }
  }
  form_ = form_for(schedule);
}

// Notices go all round a ring if data does.
Rendezvous::Form Rendezvous::form_for(const collective::Schedule& schedule) const {
  if (schedule.rendezvous == collective::Rendezvous::peers || meetings_.size() < 2) {
    return Form::peers;
  }
  std::vector<int> ranks(meetings_.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank] = static_cast<int>(rank);
  const bool can_reach_all = std::ranges::all_of(meetings_, [&](const Meeting& meeting) {
    const int place = ranks_.endpoint(meeting.rank).place();
    return !meeting.notices.empty() && ranks_.broadcasts().refusal(place, ranks).empty();
  });
  if (!can_reach_all) return Form::peers;
  return passes_on(schedule) && ranks_.chips().fill_ring() ? Form::all_round : Form::all;
}

void Rendezvous::enter(int rank) {
  Meeting& meeting = meetings_[index(rank)];
  Endpoint& endpoint = ranks_.endpoint(rank);
  if (form_ == Form::peers) {
    for (Move& notice : meeting.notices) endpoint.start(notice);
    meeting.all_present.value += meeting.notices.size();
  } else {
    ranks_.broadcasts().notify_all(endpoint, meeting.all_present.signal, form_ == Form::all_round);
    meeting.all_present.value += meetings_.size() - 1;
  }
  endpoint.wait(meeting.all_present);
}

}  // namespace towpath::tenstorrent::ccl
