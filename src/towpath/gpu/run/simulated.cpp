// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/run/simulated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "towpath/gpu/kernel_limit.hpp"

namespace towpath::gpu {

namespace {

// Number of times that polling threads poll again without any other event before the run counts as
// stuck: a kernel may read one word a few times.
constexpr int kRoundsWithoutEventsMax = 64;
// Events of a thread that polls again without a change: its block continues, the thread reaches the
// time of its load, and the block continues again. More events are progress.
constexpr std::uint64_t kEventsPerLookMax = 3;
constexpr std::uint64_t kHeapBytes = std::uint64_t{64} << 30;

std::vector<int> first_places(int count) {
  std::vector<int> places(static_cast<std::size_t>(count));
  std::iota(places.begin(), places.end(), 0);
  return places;
}

int checked_pes(const machine::Machine& machine, int asked) {
  const int pes = asked == 0 ? machine.ranks() : asked;
  if (pes < 1 || pes > machine.ranks()) {
    throw std::invalid_argument(
        fmt::format("pes is {}; machine '{}' has {} GPUs", pes, machine.name(), machine.ranks()));
  }
  return pes;
}

int ranks_per_host(const machine::Machine& machine, int pes) {
  int count = 0;
  for (int rank = 0; rank < pes; ++rank) {
    if (machine.host_of_rank(rank) == machine.host_of_rank(0)) ++count;
  }
  return count;
}

// Total rate of the links from a GPU to the other GPUs of its host.
Rate peer_rate(const machine::Machine& machine, int rank) {
  std::set<int> links;
  for (int peer = 0; peer < machine.ranks(); ++peer) {
    if (peer == rank || machine.host_of_rank(peer) != machine.host_of_rank(rank)) continue;
    links.insert(machine.route(rank, peer).front());
  }
  std::int64_t bytes_per_second = 0;
  for (const int link : links)
    bytes_per_second += machine.links()[static_cast<std::size_t>(link)].rate.bytes_per_second();
  return links.empty() ? Rate() : Rate::from_bytes_per_second(bytes_per_second);
}

}  // namespace

SimulatedPes::SimulatedPes(std::shared_ptr<const machine::Machine> machine,
                           const std::filesystem::path& object, const SimulatedOptions& options)
    : machine_(std::move(machine)),
      simulation_(std::make_unique<sim::Simulation>(options.seed)),
      profile_(new_profile(options.profile_records_max)),
      ranks_(*simulation_, machine_,
             {.places = first_places(checked_pes(*machine_, options.pes)),
              .heap_bytes = kHeapBytes,
              .jitter_max = {}}),
      run_{.simulation = *simulation_,
           .stack = stack_,
           .ranks = ranks_.ranks(),
           .ranks_per_host = ranks_per_host(*machine_, ranks_.ranks()),
           .pes = std::vector<Pe*>(static_cast<std::size_t>(ranks_.ranks())),
           .timeout = Time::max(),
           .profile = profile_.get(),
           .races = options.checks_races ? &races_ : nullptr,
           .kernel_limit = options.kernel_limit} {
  simulation_->set_trace(options.trace);
  if (profile_ != nullptr) {
    link_history_ = std::make_unique<gpu_links::LinkHistory>(machine_->links().size());
    ranks_.record(link_history_.get());
  }
  for (int rank = 0; rank < ranks_.ranks(); ++rank) {
    pes_.push_back(std::make_unique<Pe>(run_, ranks_.transport(rank),
                                        std::make_unique<LoadedObject>(object),
                                        Pe::Options{.cost = &kernel_cost(*machine_),
                                                    .launch = machine_->gpu().launch,
                                                    .peer_rate = peer_rate(*machine_, rank),
                                                    .heap_bytes = kHeapBytes,
                                                    .gpu_name = machine_->name()}));
  }
}

// Unwinds host programs that are still running while their PEs exist.
SimulatedPes::~SimulatedPes() {
  run_.is_over = true;
  for (const auto& pe : pes_) pe->host().close();
  simulation_.reset();
}

std::unique_ptr<Profile> SimulatedPes::new_profile(std::size_t records_max) const {
  if (records_max == 0) return nullptr;
  // Blocks of a failed run end after their simulation is destroyed.
  const auto now = [this] { return simulation_ == nullptr ? Time() : simulation_->now(); };
  return std::make_unique<Profile>(now, records_max);
}

Time SimulatedPes::latency(int from, int to) {
  const machine::KernelCost& cost = kernel_cost(*machine_);
  Time latency = ranks_.latency(from, to) + cost.poll;
  if (machine_->host_of_rank(from) == machine_->host_of_rank(to)) return latency;
  return latency + (cost.gpu_initiated_adapters ? cost.initiation_overhead
                                                : cost.proxy_overhead + cost.proxy_message);
}

int SimulatedPes::run_main(const std::vector<std::string>& arguments) {
  for (const auto& pe : pes_) pe->host().start_main(arguments);
  finish();
  int status = 0;
  for (const auto& pe : pes_) status = std::max(status, pe->host().status());
  return status;
}

void SimulatedPes::run(const std::function<void(Pe&)>& body) {
  for (const auto& pe : pes_) pe->host().start([&body, &pe = *pe] { body(pe); });
  finish();
}

void SimulatedPes::finish() {
  const KernelLimit limit(run_);
  const auto is_finished = [this] {
    return std::all_of(pes_.begin(), pes_.end(),
                       [](const auto& pe) { return pe->host().is_finished(); });
  };
  int rounds = 0;
  std::uint64_t events = 0;
  std::size_t pollers = 0;
  while (!is_finished()) {
    const bool has_stepped = simulation_->step();
    if (run_.failure != nullptr) std::rethrow_exception(run_.failure);
    if (has_stepped) continue;
    const bool any = simulation_->events() - events > kEventsPerLookMax * pollers;
    rounds = any ? 0 : rounds + 1;
    events = simulation_->events();
    pollers = 0;
    for (const auto& pe : pes_) pollers += pe->pollers().wake_all();
    if (pollers > 0 && rounds < kRoundsWithoutEventsMax) continue;
    for (const auto& pe : pes_) pe->hazards().check_overshot();
    std::string lines;
    for (const auto& pe : pes_) lines += pe->waiting();
    if (lines.empty()) lines = "host programs wait for each other";
    lines = joined(lines);
    throw KernelError(KernelError::Kind::deadlock,
                      fmt::format("deadlock: no PE can continue at {} ns; {}",
                                  simulation_->now().ps() / 1000, lines));
  }
  finished_at_ = simulation_->now();
  // Transfers in flight arrive.
  while (simulation_->step()) continue;
  // The next kernels start after all of these, so their history includes them.
  for (const auto& pe : pes_) pe->hazards().past().learn_everything(simulation_->now());
}

}  // namespace towpath::gpu
