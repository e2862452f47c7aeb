// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/cluster/cluster.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

#include "towpath/base/invariant.hpp"

namespace towpath::tenstorrent {

namespace {

// Maximum number of kernels and processes in the message of a deadlock.
constexpr std::size_t kNamedMax = 8;

// Bytes that fast dispatch writes to a core in addition to code and arguments.
constexpr std::uint64_t kFastLaunchBytesMin = kLaunchMessageBytes + kRingUnitBytes;
// Longest time of a batch of commands on a link: 32 KiB at less than a lane of PCIe 3.
constexpr Time kBatchPause = Time::from_ps(50'000'000);

// Longest time without progress in a network that will continue: many attempts to reserve a path,
// or a slow memory.
noc::Cycle longest_pause(const machine::Chip& chip) {
  constexpr noc::Cycle kTries = 64;
  const machine::NiuParameters& niu = chip.niu;
  const noc::Cycle memory_cycles = niu.request_cycles + niu.read_response_cycles +
                                   niu.acknowledge_cycles + chip.dram.read_cycles +
                                   chip.dram.write_cycles;
  return kTries * (niu.backoff_cycles_max + memory_cycles);
}

void check_dispatch(const machine::ChipCluster& cluster, const RunOptions& options) {
  if (!options.launches_programs()) return;
  constexpr std::uint64_t kMost = ethernet_memory_map::kLaunchBytesMax;
  const std::string which = options.slow_dispatch ? "slow dispatch" : "fast dispatch";
  const std::uint64_t least = options.slow_dispatch ? noc::kWordBytes : kFastLaunchBytesMin;
  const std::uint64_t unit = options.slow_dispatch ? noc::kWordBytes : kRingUnitBytes;
  const std::uint64_t size_bytes = options.launch_bytes;
  if (size_bytes < least || size_bytes > kMost || size_bytes % unit != 0) {
    throw std::invalid_argument(
        fmt::format("{} writes {} bytes to a core; it must write {} to {}, a multiple of {}", which,
                    size_bytes, least, kMost, unit));
  }
  if (!options.carries_data) {
    throw std::invalid_argument(fmt::format(
        "{} on cluster '{}', which simulates only time; use a cluster that carries data", which,
        cluster.name));
  }
}

Time least_latency(const machine::ChipCluster& cluster) {
  Time least;
  for (const machine::EthernetLink& link : cluster.links) {
    for (const machine::EthernetEnd end : link.ends) {
      const machine::Chip& chip = *cluster.chips[static_cast<std::size_t>(end.chip)].chip;
      const Time latency = ethernet::Port::latency(chip.ethernet);
      least = least == Time() ? latency : std::min(least, latency);
    }
  }
  return least;
}

sim::SimulationGroup::Options partitions_of(const machine::ChipCluster& cluster,
                                            const RunOptions& options, Time lookahead) {
  const bool has_faults = std::ranges::any_of(
      options.link_faults, [](const auto& faults) { return faults != ethernet::LinkFaults{}; });
  const bool is_partitioned = options.threads > 0 && cluster.chips.size() > 1 &&
                              lookahead > Time() && !options.finds_hazards && !has_faults &&
                              !options.launches_programs();
  return {.seed = options.seed,
          .partitions = is_partitioned ? cluster.chips.size() : 1,
          .lookahead = lookahead,
          .threads = options.threads};
}

bool is_waiting(const Program::Entry& entry) { return !entry.is_over && entry.core->is_waiting(); }

}  // namespace

Cluster::Cluster(std::shared_ptr<const machine::ChipCluster> cluster, const Options& options)
    : description_(options.slow_dispatch ? machine::without_dispatcher(*cluster)
                                         : std::move(cluster)),
      options_(options),
      lookahead_(least_latency(*description_)),
      simulations_(partitions_of(*description_, options_, lookahead_)) {
  const machine::ChipCluster& description = *description_;
  check_dispatch(description, options_);
  if (options_.finds_hazards && !description.links.empty()) monitor_.emplace(description);
  for (std::size_t chip = 0; chip < description.chips.size(); ++chip) {
    devices_.push_back(std::make_unique<Device>(simulations_[is_partitioned() ? chip : 0],
                                                description, static_cast<int>(chip), options_,
                                                monitor_ ? &*monitor_ : nullptr));
  }
  for (std::size_t number = 0; number < description.links.size(); ++number) {
    const auto& [one, other] = description.links[number].ends;
    const auto port = [&](machine::EthernetEnd end) -> ethernet::Port& {
      return device(end.chip).ethernet_tile({0, end.channel}).port();
    };
    const bool has_faults = number < options_.link_faults.size();
    links_.push_back(std::make_unique<ethernet::Link>(
        device(one.chip).network().simulation(), port(one), port(other),
        has_faults ? options_.link_faults[number] : ethernet::LinkFaults{}));
  }
}

Cluster::~Cluster() = default;

sim::Simulation& Cluster::simulation() {
  TOWPATH_CHECK(!is_partitioned(), "cluster '{}' has a simulation for each chip",
                description_->name);
  return simulations_[0];
}

Device& Cluster::device(int chip) {
  if (chip < 0 || static_cast<std::size_t>(chip) >= devices_.size()) {
    throw std::invalid_argument(fmt::format("cluster '{}' has no chip {}; it has 0 to {}",
                                            description_->name, chip, devices_.size() - 1));
  }
  return *devices_[static_cast<std::size_t>(chip)];
}

Program& Cluster::create_program(int chip, int generation) {
  programs_.push_back(std::make_unique<Program>(device(chip), generation));
  return *programs_.back();
}

void Cluster::run_host(std::string name, std::function<void(HostAccess&)> body) {
  TOWPATH_CHECK(!has_run_, "cluster '{}' was run before host '{}' was told to", description_->name,
                name);
  if (!options_.carries_data) {
    throw std::invalid_argument(
        fmt::format("host '{}': cluster '{}' simulates only time; the host needs carries_data",
                    name, description_->name));
  }
  if (is_partitioned()) {
    throw std::invalid_argument(
        fmt::format("host '{}': each chip of cluster '{}' is simulated separately; set threads = 0 "
                    "to simulate them together",
                    name, description_->name));
  }
  if (!host_) host_.emplace(*description_, devices_);
  host_->start(std::move(name), std::move(body));
}

// --- running ------------------------------------------------------------------------------------

void Cluster::start() {
  TOWPATH_CHECK(!has_run_, "cluster '{}' was run before; it runs once", description_->name);
  if (options_.slow_dispatch) dispatch_slowly();
  if (options_.dispatches_fast()) dispatch_fast();
  has_run_ = true;
  for (const auto& device : devices_) device->start();
}

// One after the other: the n-th programs of all chips before the next ones.
void Cluster::dispatch_slowly() {
  run_host("dispatcher", [this](HostAccess& host) {
    const auto wait_for = [&](int chip, const Program& program) {
      host.wait_for_programs(chip, static_cast<std::size_t>(program.number()) + 1);
      for (const machine::Coordinate core : program.cores()) {
        if (device(chip).resident_at(core) != nullptr) continue;
        std::uint32_t value = 0;
        host.read(chip, {core, program.launch_word(core)},
                  std::as_writable_bytes(std::span(&value, 1)));
        TOWPATH_CHECK(value == 0, "a core of a program that has ended still runs program {}",
                      value);
      }
    };
    const auto launch = [&](int chip, const Program& program) {
      std::vector<std::byte> message(options_.launch_bytes);
      const auto number = static_cast<std::uint32_t>(program.number() + 1);
      std::ranges::copy(std::as_bytes(std::span(&number, 1)), message.end() - noc::kWordBytes);
      for (const machine::Coordinate core : program.cores()) {
        host.write(chip, {core, program.launch_at(core)}, message);
      }
    };
    std::size_t most = 0;
    for (const auto& device : devices_) most = std::max(most, device->programs());
    for (std::size_t number = 0; number < most; ++number) {
      for (const auto& device : devices_) {
        if (number >= device->programs()) continue;
        if (number > 0) wait_for(device->id(), device->program(number - 1));
        launch(device->id(), device->program(number));
      }
    }
  });
}

// In the same order, but the host does not wait until all are launched.
void Cluster::dispatch_fast() {
  const bool has_programs =
      std::ranges::any_of(devices_, [](const auto& device) { return device->programs() > 0; });
  if (!has_programs) return;
  run_host("dispatcher", [this](HostAccess& host) {
    std::size_t most = 0;
    for (const auto& device : devices_) most = std::max(most, device->programs());
    for (std::size_t number = 0; number < most; ++number) {
      for (const auto& device : devices_) {
        if (number >= device->programs() || device->program(number).cores().empty()) continue;
        host.launch(device->id(), device->program(number));
      }
    }
    for (const auto& device : devices_) {
      if (device->programs() > 0) host.finish(device->id());
    }
  });
}

Time Cluster::run() {
  start();
  run_until_over();
  simulations_.run();  // posted writes still have to arrive
  Time end = host_ ? host_->over_at() : Time();
  for (const auto& device : devices_) end = std::max(end, device->over_at());
  return end;
}

// Runs in slices, because cores that cannot reserve a path retry forever: the run has stopped if
// all wait from the start of a slice to its end and no flit or frame moves.
void Cluster::run_until_over() {
  const sim::Clock& clock = devices_.front()->network().clock();
  const auto cycle = [&] { return devices_.front()->network().cycle(); };
  noc::Cycle slice = 0;
  for (const auto& device : devices_) slice = std::max(slice, longest_pause(device->chip()));
  if (const machine::Host* host = options_.host.get(); host != nullptr) {
    // A chip is not at rest while the host configures a window, or while its link has a request.
    const Time pause = host->core.call_time + host->driver.window_time + host->link.read_time;
    // It is also not at rest while a batch of commands is on its way over a slow link.
    const Time batch = options_.dispatches_fast() ? kBatchPause : Time();
    slice = std::max(slice, 2 * clock.cycle_at(pause + batch).count());
  }
  const noc::Cycle limit = options_.cycles_max;
  while (!is_over()) {
    const bool were_all_blocked = all_blocked();
    const std::int64_t progress_before = progress();
    noc::Cycle until = cycle() + slice;
    if (limit > 0) until = std::min(until, limit);
    simulations_.run_until(clock.edge(Cycles(until)));
    if (is_over()) break;
    if (limit > 0 && cycle() >= limit) fail_at_limit();
    if (were_all_blocked && all_blocked() && progress() == progress_before &&
        is_ethernet_at_rest()) {
      fail_waiting();
    }
  }
}

bool Cluster::is_over() const {
  return (!host_ || host_->is_over()) &&
         std::ranges::all_of(devices_, [](const auto& device) { return device->is_over(); });
}

bool Cluster::all_blocked() const {
  if (host_ && !host_->all_blocked()) return false;
  return std::ranges::all_of(devices_, [](const auto& device) {
    return device->is_over() || device->current()->all_blocked();
  });
}

std::int64_t Cluster::progress() const {
  std::int64_t sum = 0;
  for (const auto& device : devices_) {
    sum += device->flit_hops();
    for (const auto& tile : device->ethernet_tiles()) {
      const ethernet::PortCounters& counters = tile->port().counters();
      sum += static_cast<std::int64_t>(counters.frames_sent + counters.frames_received +
                                       counters.commands);
    }
  }
  return sum;
}

// True if links that are up carry no frame, and no link is being trained.
bool Cluster::is_ethernet_at_rest() const {
  return std::ranges::all_of(links_,
                             [](const auto& link) { return link->is_up() || link->is_stuck(); }) &&
         std::ranges::all_of(devices_, [](const auto& device) {
           return std::ranges::all_of(device->ethernet_tiles(), [](const auto& tile) {
             return tile->port().is_idle() || !tile->port().is_link_up();
           });
         });
}

std::size_t Cluster::kernels() const {
  std::size_t count = 0;
  for (const auto& device : devices_) {
    if (!device->is_over()) count += device->current()->kernels().size();
  }
  return count;
}

std::size_t Cluster::running() const {
  std::size_t count = 0;
  for (const auto& device : devices_) {
    if (device->is_over()) continue;
    count += static_cast<std::size_t>(std::ranges::count_if(
        device->current()->kernels(), [](const Program::Entry& entry) { return !entry.is_over; }));
  }
  return count;
}

// --- errors of a run that does not end ----------------------------------------------------------

std::string Cluster::describe_waits() const {
  std::string text;
  std::string deadlocks;
  std::size_t named = 0;
  for (const auto& device : devices_) {
    if (device->is_over()) continue;
    for (const Program::Entry& entry : device->current()->kernels()) {
      if (entry.is_over || ++named > kNamedMax) continue;
      if (!text.empty()) text += "; ";
      text += entry.core->is_waiting()
                  ? entry.core->describe_wait()
                  : name_of(entry.config) +
                        (entry.is_launched ? " is at work" : " has not been launched");
    }
    const std::string deadlock = device->network().describe_deadlock();
    if (!deadlock.empty()) deadlocks += "; " + deadlock;
  }
  if (named > kNamedMax) text += fmt::format("; and {} more", named - kNamedMax);
  if (host_ && !host_->is_over()) text += (text.empty() ? "" : "; ") + host_->describe_waits();
  return text + deadlocks;
}

std::vector<const Program::Entry*> Cluster::waiting() const {
  std::vector<const Program::Entry*> entries;
  for (const auto& device : devices_) {
    if (device->is_over()) continue;
    for (const Program::Entry& entry : device->current()->kernels()) {
      if (is_waiting(entry)) entries.push_back(&entry);
    }
  }
  return entries;
}

// Kernels that wait for each other, as far as the monitor has found kernels that could end a wait.
std::vector<KernelName> Cluster::find_cycle() const {
  if (!monitor_) return {};
  std::map<const KernelWatch*, std::vector<const KernelWatch*>> awaited;
  for (const Program::Entry* entry : waiting()) {
    const DataMovementCore::Range range = entry->core->awaited();
    if (entry->watch == nullptr || range.size_bytes == 0) continue;
    awaited[entry->watch] =
        monitor_->kernels.writers_of(*entry->watch, range.offset, range.size_bytes);
  }
  // Kernels that wait for a single word come first, because a cycle with one of them is easiest to
  // explain.
  std::vector<const Program::Entry*> entries = waiting();
  std::ranges::stable_partition(entries, [](const Program::Entry* entry) {
    return entry->core->awaited().size_bytes <= noc::kWordBytes;
  });
  for (const Program::Entry* first : entries) {
    std::vector<const KernelWatch*> path;
    std::set<const KernelWatch*> tried;
    const auto leads_back = [&](const auto& self, const KernelWatch* at) -> bool {
      if (!tried.insert(at).second) return false;
      path.push_back(at);
      for (const KernelWatch* next : awaited[at]) {
        if (next == path.front() || self(self, next)) return true;
      }
      path.pop_back();
      return false;
    };
    if (first->watch == nullptr || !leads_back(leads_back, first->watch)) continue;
    std::vector<KernelName> names;
    for (const KernelWatch* kernel : path) names.push_back(kernel->name());
    return names;
  }
  return {};
}

// Reports a link that only a kernel could have trained, by yielding to the base firmware.
void Cluster::check_links() const {
  for (const Program::Entry* entry : waiting()) {
    if (entry->tile == nullptr || !entry->tile->needs_firmware()) continue;
    if (!entry->tile->port().link()->is_stuck()) continue;
    const int chip = entry->tile->end().chip;
    throw HazardError(
        Hazard::link_down_without_routing, {chip, entry->config.core, entry->config.name},
        fmt::format("{}; it waits forever and does not call run_routing(), while its link is "
                    "down: {}",
                    entry->core->describe_wait(), entry->tile->port().link()->outage()));
  }
}

std::string Cluster::describe_links() const {
  std::string text;
  for (const auto& link : links_) {
    if (!link->is_up()) text += "; " + link->outage();
  }
  return text;
}

void Cluster::fail_at_limit() const {
  throw std::runtime_error(
      fmt::format("after {} cycles, the limit (cycles_max), {} of {} kernels still run: {}",
                  options_.cycles_max, running(), kernels(), describe_waits()));
}

void Cluster::fail_waiting() const {
  check_links();
  std::vector<KernelName> kernels_in_cycle = find_cycle();
  const std::string who = running() == 0
                              ? "the host waits forever"
                              : fmt::format("{} of {} kernels wait forever", running(), kernels());
  std::string sentence = fmt::format("{}: {}{}", who, describe_waits(), describe_links());
  std::vector<std::string> cycle;
  for (const KernelName& kernel : kernels_in_cycle) {
    cycle.push_back(fmt::format("'{}' on core ({}, {}) of chip {}", kernel.kernel, kernel.core.x,
                                kernel.core.y, kernel.chip));
  }
  if (!cycle.empty()) {
    sentence += fmt::format("; each of these waits for the next, and the last for the first: {}",
                            fmt::join(cycle, ", "));
  }
  for (const auto& device : devices_) {
    if (cycle.empty()) cycle = deadlock_cycle(device->network());
  }
  throw KernelDeadlock(sentence, std::move(cycle), std::move(kernels_in_cycle));
}

}  // namespace towpath::tenstorrent
