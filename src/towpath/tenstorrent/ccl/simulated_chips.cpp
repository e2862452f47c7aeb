// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/simulated_chips.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "towpath/base/deadlock_error.hpp"
#include "towpath/base/index.hpp"
#include "towpath/collective/schedule/schedule.hpp"
#include "towpath/ethernet/port.hpp"
#include "towpath/tenstorrent/ccl/broadcasts.hpp"
#include "towpath/tenstorrent/ccl/endpoint.hpp"
#include "towpath/tenstorrent/ccl/link_faults.hpp"
#include "towpath/tenstorrent/ccl/unicasts.hpp"
#include "towpath/transport/transport.hpp"

namespace towpath::tenstorrent::ccl {

using collective::Notification;
using transport::Move;
using transport::SignalWait;

// Ranks of a schedule wait for each other before each call.
class Rendezvous {
 public:
  Rendezvous(SimulatedChips& ranks, const collective::Schedule& schedule,
             std::function<void(int rank)> on_complete);
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // The rank notifies the others. on_complete is called when all their notices have arrived.
  void enter(int rank);

 private:
  enum class Form { peers, all, all_round };
  struct Meeting {
    Rendezvous* rendezvous = nullptr;
    int rank = 0;
    std::vector<transport::Move> notices;  // one to each peer
    transport::SignalWait all_present;
  };

  Form form_for(const collective::Schedule& schedule) const;

  SimulatedChips& ranks_;
  std::function<void(int rank)> on_complete_;
  std::vector<Meeting> meetings_;  // one per rank
  Form form_ = Form::peers;
};

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

// True if ranks forward data: the first one then does not exchange data with all others.
bool passes_on(const collective::Schedule& schedule) {
  return peers_of(schedule.ranks.front()).size() + 1 < schedule.ranks.size();
}

}  // namespace

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

// Notices go around the whole ring if data does.
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

namespace {

// Packets per notification. Source: tt-metal, HEURISTIC_MAX_CHUNKS_PER_SYNC of its all-gather, and
// RING_UNIT_STEP_MAX_CHUNKS_PER_SYNC of its reduce-scatter by steps around a ring: four chunks of
// eight tiles. Other programs notify once.
constexpr std::uint64_t kPacketsPerNotification = 160;
constexpr std::uint64_t kPacketsPerNotificationInRing = 16;
constexpr auto kAllPackets = std::numeric_limits<std::uint64_t>::max();

SimulatedChipsOptions placed(SimulatedChipsOptions options, int ranks) {
  options.places = simulate::places_of_ranks(std::move(options.places), ranks);
  return options;
}

}  // namespace

SimulatedChips::SimulatedChips(std::shared_ptr<const machine::ChipCluster> description, int ranks,
                               const SimulatedChipsOptions& options)
    : link_faults_(options.run.link_faults),
      time_max_(options.deadline),
      chips_(std::move(description), placed(options, ranks)) {
  unicasts_ = std::make_unique<Unicasts>(chips_);
  broadcasts_ = std::make_unique<Broadcasts>(chips_, *unicasts_);
  for (const auto& place : chips_.places()) {
    place->arrivals.on_arrival = [this](DeliveryPart& part) { unicasts_->arrived(part); };
  }
  for (int rank = 0; rank < ranks; ++rank) {
    endpoints_.push_back(std::make_unique<Endpoint>(
        *this, rank, Endpoint::Options{options.carries_data, options.heap_bytes, options.signals}));
  }
}

SimulatedChips::~SimulatedChips() = default;

transport::Transport& SimulatedChips::transport(int rank) { return endpoint(rank); }

void SimulatedChips::set_plan(const collective::Plan& plan) {
  const collective::Schedule& schedule = *plan.schedule;
  if (plan.window_bytes > 0) {
    if (has_fifo_steps(schedule)) {
      throw std::invalid_argument(
          fmt::format("schedule '{}' sends to single ranks and to all at once; on chips it can do "
                      "only one of them",
                      schedule.name));
    }
    broadcasts_->enable();
  }
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    endpoint(rank).workload().set_plan(plan, rank);
  }
  rendezvous_ = std::make_unique<Rendezvous>(*this, schedule, [this](int rank) { on_begin(rank); });
  set_notification(schedule);
}

void SimulatedChips::set_notification(const collective::Schedule& schedule) {
  Notification notification = schedule.notification;
  if (notification == Notification::attached && !chips_.fill_ring()) {
    notification = Notification::trailing;
  }
  std::uint64_t packets = kAllPackets;
  if (notification == Notification::trailing) packets = kPacketsPerNotification;
  if (notification == Notification::attached && passes_on(schedule)) {
    packets = kPacketsPerNotificationInRing;
  }
  unicasts_->set_notification(notification, packets);
}

void SimulatedChips::start(int rank, const collective::Schedule&) {
  chips_.of(rank).workers.launch();
  rendezvous_->enter(rank);
}

Time SimulatedChips::closed_at() const {
  Time last;
  bool are_all_closed = true;
  for (const auto& place : chips_.places()) {
    last = std::max(last, place->workers.closed_at());
    are_all_closed &= place->workers.are_closed();
  }
  if (!are_all_closed) {
    const std::string down = outages();
    throw DeadlockError(fmt::format("{}{}connections of workers to their routers never close", down,
                                    down.empty() ? "" : "; "));
  }
  return last;
}

void SimulatedChips::run(Time limit) {
  Cluster& cluster = chips_.cluster();
  if (!std::exchange(has_started_, true)) cluster.start();
  if (has_faults(link_faults_)) {
    deadline_.arm_in_background(
        cluster.simulation(), cluster.simulation().from_now(time_max_),
        [](void* context) { static_cast<SimulatedChips*>(context)->throw_deadline_exceeded(); },
        this);
  }
  simulations().run(limit);
  deadline_.cancel();
}

void SimulatedChips::throw_deadline_exceeded() const {
  throw transport::TransportError(
      transport::TransportError::Kind::timeout, transport::kNoPeer,
      fmt::format("the run has not ended after {} us of simulated time; {}", time_max_.us(),
                  describe_drops(chips_.cluster())));
}

// --- links ---------------------------------------------------------------------------------------

std::string SimulatedChips::outages() const { return describe_outages(chips_.cluster()); }

std::vector<sim::LinkLoad> SimulatedChips::loads() {
  std::vector<sim::LinkLoad> loads;
  Cluster& cluster = chips_.cluster();
  for (std::size_t number = 0; number < cluster.description().links.size(); ++number) {
    for (const ethernet::Port* port : cluster.link(number).ports()) {
      const ethernet::PortCounters& counters = port->counters();
      loads.push_back({Bytes(counters.payload_bytes_sent), counters.wire_time, counters.commands});
    }
  }
  return loads;
}

std::vector<simulate::LinkFailure> SimulatedChips::link_failures() const {
  std::vector<simulate::LinkFailure> failures;
  for (std::size_t number = 0; number < link_faults_.size(); ++number) {
    if (link_faults_[number] == ethernet::LinkFaults{}) continue;
    const ethernet::Link& link = chips_.cluster().link(number);
    simulate::LinkFailure failure{.link = number,
                                  .drops = link.drops(),
                                  .down_time = link.down_time(),
                                  .resent = {},
                                  .is_up = link.is_up()};
    for (std::size_t end = 0; end < 2; ++end) {
      const ethernet::PortCounters& counters = link.ports()[end]->counters();
      failure.frames_lost += counters.frames_lost;
      failure.resent[end] = Bytes(counters.payload_bytes_resent);
    }
    failures.push_back(failure);
  }
  return failures;
}

}  // namespace towpath::tenstorrent::ccl
