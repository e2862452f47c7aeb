// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/riscv_mailbox/ping_pong.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <deque>
#include <stdexcept>
#include <utility>

#include "towpath/riscv_mailbox/context.hpp"
#include "towpath/sim/simulation.hpp"
#include "towpath/sim/trace.hpp"

namespace towpath::riscv_mailbox {

namespace {

// Iteration used for the breakdown. Earlier ones differ, because both nodes start together.
constexpr int kSettled = 4;
// Some milliseconds of real time.
constexpr std::uint64_t kEventsPerReport = 1 << 16;

std::shared_ptr<const machine::MailboxCluster> checked(
    std::shared_ptr<const machine::MailboxCluster> cluster, const PingPongOptions& options) {
  const auto fail = [&](const std::string& problem) {
    throw std::invalid_argument(fmt::format("cluster '{}': {}", cluster->name, problem));
  };
  if (options.hops < 0 || options.hops > cluster->nodes / 2) {
    fail(fmt::format("hops is {}; it must be 0 to {} on this ring", options.hops,
                     cluster->nodes / 2));
  }
  machine::check_programs_per_node(*cluster, options.pairs * (options.hops == 0 ? 2 : 1));
  if (options.phase_cycles < 0)
    fail(fmt::format("phase is {}; it must be at least 0", options.phase_cycles));
  if (options.iterations < 1)
    fail(fmt::format("iterations is {}; it must be at least 1", options.iterations));
  if (!options.has_interruptions) cluster = machine::without_interruptions(*cluster);
  if (options.has_page_walks) return cluster;
  machine::MailboxCluster without = *cluster;
  without.page_walks = {};
  return machine::build_mailbox_cluster(std::move(without));
}

// The programs at both ends of a pair.
class Pair {
 public:
  Pair(sim::Simulation& simulation, Interconnect& interconnect, const PingPongOptions& options,
       int number)
      : options_(options),
        software_(interconnect.cluster().software),
        initiator_core_(simulation, interconnect.cluster(), fmt::format("initiator {}", number)),
        responder_core_(simulation, interconnect.cluster(), fmt::format("responder {}", number)),
        initiator_(interconnect, initiator_core_, {.node = 0}),
        responder_(interconnect, responder_core_, {.node = options.hops}) {
    simulation.spawn(fmt::format("initiator {}", number), [this] { initiate(); });
    simulation.spawn(fmt::format("responder {}", number), [this] { respond(); });
  }

  const std::vector<std::int64_t>& round_trip_cycles() const { return round_trip_cycles_; }

 private:
  void initiate() {
    std::vector<std::byte> ball(static_cast<std::size_t>(options_.size_bytes));
    initiator_core_.spend(software_.cycle_counter_cycles);
    Cycles begin = initiator_core_.now();
    for (int i = 0; i < options_.iterations; ++i) {
      ball[0] = static_cast<std::byte>(i);
      initiator_.send(responder_.address(), ball);
      ball = initiator_.receive()->payload;
      initiator_core_.store_to_array();
      initiator_core_.spend(software_.cycle_counter_cycles);
      const Cycles end = initiator_core_.now();
      round_trip_cycles_.push_back((end - begin).count());
      begin = end;
    }
  }

  void respond() {
    responder_core_.spend(options_.phase_cycles);
    for (int i = 0; i < options_.iterations; ++i) {
      const Message ball = *responder_.receive();
      responder_core_.spend(software_.responder_cycles);
      responder_.send(ball.from, ball.payload);
    }
  }

  PingPongOptions options_;
  machine::MailboxSoftwareParameters software_;
  Core initiator_core_;
  Core responder_core_;
  Context initiator_;
  Context responder_;
  std::vector<std::int64_t> round_trip_cycles_;
};

PingPongResult run(std::shared_ptr<const machine::MailboxCluster> cluster,
                   const PingPongOptions& options, sim::Trace* trace) {
  sim::Simulation simulation(options.seed);
  simulation.set_trace(trace);
  Interconnect interconnect(simulation, std::move(cluster));
  std::deque<Pair> pairs;
  for (int number = 0; number < options.pairs; ++number) {
    pairs.emplace_back(simulation, interconnect, options, number);
  }
  for (std::uint64_t events = 1; simulation.step(); ++events) {
    if (events % kEventsPerReport != 0 || !options.on_progress) continue;
    options.on_progress(pairs.front().round_trip_cycles().size());
  }
  PingPongResult result{{}, simulation.now(), simulation.events()};
  for (const Pair& pair : pairs) {
    const auto& cycles = pair.round_trip_cycles();
    result.round_trip_cycles.insert(result.round_trip_cycles.end(), cycles.begin(), cycles.end());
  }
  return result;
}

}  // namespace

PingPongResult run_ping_pong(std::shared_ptr<const machine::MailboxCluster> cluster,
                             const PingPongOptions& options) {
  return run(checked(std::move(cluster), options), options, nullptr);
}

std::vector<PingPongEvent> ping_pong_breakdown(
    std::shared_ptr<const machine::MailboxCluster> cluster, const PingPongOptions& options) {
  PingPongOptions calm = options;
  calm.pairs = 1;
  calm.has_interruptions = false;
  calm.has_page_walks = false;
  calm.iterations = kSettled + 1;
  sim::Trace trace;
  const sim::Clock clock(cluster->core_clock);
  run(checked(std::move(cluster), calm), calm, &trace);

  const std::string own = "node 0";
  std::vector<PingPongEvent> events;
  int iteration = 0;
  Time begin;
  for (const sim::Trace::Record& record : trace.records()) {
    const std::string& track = trace.tracks()[static_cast<std::size_t>(record.track)];
    const std::string& name = trace.names()[static_cast<std::size_t>(record.name)];
    if (track == own && name == "first store" && ++iteration == kSettled) begin = record.begin;
    if (iteration < kSettled) continue;
    events.push_back(
        {std::stoi(track.substr(track.find(' '))), name, clock.cycles_until(begin, record.begin)});
    if (iteration > kSettled) break;
  }
  return events;
}

}  // namespace towpath::riscv_mailbox
