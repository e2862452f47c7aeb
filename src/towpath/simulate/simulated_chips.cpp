// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/simulate/simulated_chips.hpp"

#include <fmt/format.h>

#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include "towpath/ethernet/port.hpp"
#include "towpath/tenstorrent/ccl/link_faults.hpp"

namespace towpath::simulate {

using tenstorrent::ccl::Telling;
using transport::Move;
using transport::SignalWait;

namespace {

// Largest scratch of two calls that is kept in the L1 of a core: tt-metal,
// reduce_scatter_minimal_direct_op_device_operation.cpp (k_l1_shard_budget_bytes).
constexpr std::uint64_t kNearBytesMax = 640 << 10;

// The ranks that each rank of a schedule exchanges data with, in ascending order.
std::vector<std::vector<int>> peers_of(const collective::Schedule& schedule) {
  std::vector<std::vector<int>> peers;
  for (const collective::RankProgram& program : schedule.ranks) {
    std::set<int> found;
    for (const collective::ThreadBlock& block : program.blocks) {
      for (const int peer : {block.send_peer, block.receive_peer}) {
        if (peer != collective::kNone) found.insert(peer);
      }
    }
    peers.emplace_back(found.begin(), found.end());
  }
  return peers;
}

// Packets that are told of at a time, of all that a worker has if they are fewer: tt-metal's
// all-gather, HEURISTIC_MAX_CHUNKS_PER_SYNC, and its reduce-scatter where sums go round a ring,
// four chunks of eight tiles, RING_UNIT_STEP_MAX_CHUNKS_PER_SYNC; of others all at once.
constexpr std::uint64_t kPacketsPerIncrement = 160;
constexpr std::uint64_t kPacketsPerIncrementOnRing = 16;
constexpr auto kAllPackets = std::numeric_limits<std::uint64_t>::max();

bool is_exchange(collective::Collective collective) {
  return collective == collective::Collective::all_to_all ||
         collective == collective::Collective::all_to_all_v;
}

}  // namespace

SimulatedChips::SimulatedChips(std::shared_ptr<const machine::ChipCluster> cluster, int ranks,
                               const SimulatedChipsOptions& options)
    : link_faults_(options.link_faults),
      chips_(std::move(cluster), {.shape = options.shape,
                                  .places = places_of_ranks(options.places, ranks),
                                  .carries_data = options.carries_data,
                                  .payload_bytes_max = options.payload_bytes_max,
                                  .run = {.seed = options.seed,
                                          .finds_hazards = false,
                                          .link_faults = options.link_faults,
                                          .threads = options.threads,
                                          .network = options.network},
                                  .deadline = options.deadline}),
      meetings_(static_cast<std::size_t>(ranks)) {}

void SimulatedChips::set_plan(const collective::Plan& plan) {
  const collective::Schedule& schedule = *plan.schedule;
  // Calls take turns with two of them.
  chips_.keep_scratch_near(2 * plan.scratch_bytes <= kNearBytesMax);
  if (plan.window_bytes > 0) send_to_all(schedule);
  const std::vector<std::vector<int>> peers = peers_of(schedule);
  choose_greeting(schedule, peers);
  choose_telling(schedule.collective);
  for (std::size_t rank = 0; rank < meetings_.size(); ++rank) {
    Meeting& meeting = meetings_[rank];
    meeting.chips = this;
    meeting.rank = static_cast<int>(rank);
    meeting.all_present.signal = transport(meeting.rank).allocate_signals(1);
    meeting.all_present.context = &meeting;
    meeting.all_present.ready = [](SignalWait& wait) {
      const Meeting& ready = *static_cast<Meeting*>(wait.context);
      ready.chips->on_begin(ready.rank);
    };
    for (const int peer : peers[rank]) {
      Move& notice = meeting.notices.emplace_back();
      notice.peer = peer;
      notice.has_signal = true;
      notice.signal = meeting.all_present.signal;
      notice.signal_value = 1;
      notice.signal_operation = transport::SignalOperation::add;
    }
  }
}

// Routers have one worker each at a time, and those that send to one peer are others.
void SimulatedChips::send_to_all(const collective::Schedule& schedule) {
  if (has_fifo_steps(schedule)) {
    throw std::invalid_argument(
        fmt::format("schedule '{}' sends to single ranks and to all at once; on chips it does one "
                    "of the two",
                    schedule.name));
  }
  chips_.send_to_all();
}

// In tt-metal's all-gather by chains neighbours greet each other (all_gather, unicast_writer.cpp).
// Workers of other collectives greet all ranks: where sums go round a ring, those of each way all
// round it, otherwise each rank by the shorter way.
void SimulatedChips::choose_greeting(const collective::Schedule& schedule,
                                     const std::vector<std::vector<int>>& peers) {
  greeting_ = Greeting::peers;
  if (schedule.collective == collective::Collective::all_gather || meetings_.size() < 2) return;
  for (std::size_t rank = 0; rank < meetings_.size(); ++rank) {
    if (peers[rank].empty() || !chips_.can_greet_all(static_cast<int>(rank))) return;
  }
  const bool hands_on = peers.front().size() + 1 < meetings_.size();
  greeting_ = hands_on && is_ring() ? Greeting::all_round : Greeting::all;
}

// In tt-metal an all-to-all's last packet tells of a part, and its receivers hand nothing on
// (all_to_all_async_generic). So does that of a reduce-scatter round a ring, whose router waits
// until the bytes are there (reduce_scatter_minimal_direct, reduce_scatter_minimal_async). All else
// has a packet behind it.
void SimulatedChips::choose_telling(collective::Collective collective) {
  if (is_exchange(collective)) {
    chips_.set_telling(Telling::with_last_deferred, kAllPackets);
  } else if (collective == collective::Collective::reduce_scatter && is_ring()) {
    const bool hands_on = greeting_ == Greeting::all_round;
    chips_.set_telling(Telling::with_last, hands_on ? kPacketsPerIncrementOnRing : kAllPackets);
  } else {
    chips_.set_telling(Telling::behind, kPacketsPerIncrement);
  }
}

bool SimulatedChips::is_ring() const {
  const auto& shape = chips_.topology().shape();
  return shape.dimensions.size() == 1 && shape.dimensions.front().is_ring &&
         shape.dimensions.front().size == static_cast<int>(meetings_.size());
}

void SimulatedChips::start(int rank, Protocol) {
  chips_.launch_program(rank);
  await_peers(rank);
}

void SimulatedChips::await_peers(int rank) {
  Meeting& meeting = meetings_[static_cast<std::size_t>(rank)];
  if (greeting_ == Greeting::peers) {
    for (Move& notice : meeting.notices) transport(rank).start(notice);
    meeting.all_present.value += meeting.notices.size();
  } else {
    chips_.greet_all(rank, meeting.all_present.signal, greeting_ == Greeting::all_round);
    meeting.all_present.value += meetings_.size() - 1;
  }
  transport(rank).wait(meeting.all_present);
}

std::string SimulatedChips::outages() {
  return tenstorrent::ccl::describe_outages(chips_.cluster());
}

std::vector<gpu_links::LinkLoad> SimulatedChips::loads() {
  std::vector<gpu_links::LinkLoad> loads;
  tenstorrent::Cluster& cluster = chips_.cluster();
  for (std::size_t number = 0; number < cluster.description().links.size(); ++number) {
    for (const ethernet::Port* port : cluster.link(number).ports()) {
      const ethernet::PortCounters& counters = port->counters();
      loads.push_back({Bytes(counters.payload_bytes_sent), counters.wire_time, counters.commands});
    }
  }
  return loads;
}

std::vector<LinkFailure> SimulatedChips::link_failures() {
  std::vector<LinkFailure> failures;
  for (std::size_t number = 0; number < link_faults_.size(); ++number) {
    if (link_faults_[number] == ethernet::LinkFaults{}) continue;
    const ethernet::Link& link = chips_.cluster().link(number);
    LinkFailure failure{.link = number,
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

}  // namespace towpath::simulate
