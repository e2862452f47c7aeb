// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/bench/traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "towpath/base/index.hpp"
#include "towpath/tenstorrent/core/data_movement_core.hpp"
#include "towpath/tenstorrent/hazards/errors.hpp"

namespace towpath::tenstorrent::bench {

namespace {

// Sources are in the first half of a core's memory and targets in the second, all at the same
// offset, because the time does not depend on it.
std::uint64_t target_offset(const machine::Chip& chip, machine::Coordinate to, int channel) {
  if (chip.tile(to).kind == machine::TileKind::dram) {
    return static_cast<std::uint64_t>(channel) * chip.dram.channel_bytes;
  }
  const bool is_ethernet = chip.tile(to).kind == machine::TileKind::ethernet;
  return (is_ethernet ? chip.ethernet_l1_bytes : chip.l1_bytes) / 2 / 64 * 64;
}

// Executes a step on its core.
struct Runner {
  DataMovementCore& core;
  const machine::Chip& chip;
  const TrafficStep& step;

  void run() const {
    using Kind = TrafficStep::Kind;
    switch (step.kind) {
      case Kind::write:
      case Kind::read:
      case Kind::inline_write:
      case Kind::atomic: return transfer();
      case Kind::multicast: return multicast();
      case Kind::write_barrier: return core.noc_async_write_barrier();
      case Kind::writes_flushed: return core.noc_async_writes_flushed();
      case Kind::read_barrier: return core.noc_async_read_barrier();
      case Kind::atomic_barrier: return core.noc_async_atomic_barrier();
      case Kind::wait_until: return core.work_until(step.cycle);
      case Kind::work: return core.work(step.cycle);
    }
  }

 private:
  WriteOptions write_options(int vc) const {
    return {.vc = vc, .is_static_vc = !step.is_dynamic_vc, .is_posted = step.is_posted};
  }

  void transfer() const {
    const NocAddress to{step.to, target_offset(chip, step.to, step.channel)};
    if (step.has_state && step.kind == TrafficStep::Kind::read) {
      core.noc_async_read_set_state(to, {.vc = step.first_vc});
    } else if (step.has_state && step.kind == TrafficStep::Kind::write) {
      core.noc_async_write_set_state(to, write_options(step.first_vc));
    }
    for (int i = 0; i < step.count; ++i) request(to, step.first_vc + i % step.vcs);
  }

  void request(const NocAddress& to, int vc) const {
    switch (step.kind) {
      case TrafficStep::Kind::write:
        if (step.has_state) return core.noc_async_write_with_state(0, to.offset, step.size_bytes);
        return core.noc_async_write(0, to, step.size_bytes, write_options(vc));
      case TrafficStep::Kind::read:
        if (step.has_state) return core.noc_async_read_with_state(to.offset, 0, step.size_bytes);
        return core.noc_async_read(to, 0, step.size_bytes, {.vc = vc});
      case TrafficStep::Kind::inline_write:
        return core.noc_inline_dw_write(to, 1, write_options(vc));
      default: return core.noc_semaphore_inc(to, 1, write_options(vc));
    }
  }

  void multicast() const {
    const NocMulticastAddress to{step.to, step.to_last, target_offset(chip, step.to, 0)};
    const int destinations = multicast_destinations(
        chip, core.config().core, to.on(core.config().noc_index), step.includes_source);
    for (int i = 0; i < step.count; ++i) {
      const MulticastOptions options{.vc = step.first_vc + i % step.vcs,
                                     .is_linked = step.is_linked && i + 1 < step.count};
      if (i > 0 && i + 1 == step.count) core.work(step.last_call_cycles);
      if (step.includes_source) {
        core.noc_async_write_multicast_loopback_src(0, to, step.size_bytes, destinations, options);
      } else {
        core.noc_async_write_multicast(0, to, step.size_bytes, destinations, options);
      }
    }
  }
};

// The reason why a chip cannot execute a step, if it is decidable before the run; empty if there is
// none.
std::string obstacle(const machine::Chip& chip, const TrafficStep& step) {
  if (step.kind >= TrafficStep::Kind::write_barrier) return {};
  if (step.count < 1 || step.vcs < 1) return "count and vcs must be at least 1";
  if (!chip.holds(step.to)) {
    return fmt::format("({}, {}) is outside the {} x {} grid", step.to.x, step.to.y, chip.width,
                       chip.height);
  }
  const int channels = chip.dram.channels_per_group;
  if (step.channel >= 0 && step.channel < std::max(1, channels)) return {};
  return fmt::format("channel is {}; a DRAM group has {}", step.channel, channels);
}

// Rejects steps that the chip cannot execute, with the program's name.
void check(const machine::Chip& chip, const TrafficProgram& program, std::size_t number) {
  const auto refuse = [number](const std::string& why) {
    throw std::invalid_argument(fmt::format("traffic program {}: {}", number, why));
  };
  if (!chip.holds(program.core)) {
    refuse(fmt::format("core ({}, {}) is outside the {} x {} grid", program.core.x, program.core.y,
                       chip.width, chip.height));
  }
  if (program.noc != 0 && program.noc != 1) refuse("its NoC must be 0 or 1");
  for (const TrafficStep& step : program.steps) {
    if (const std::string why = obstacle(chip, step); !why.empty()) refuse(why);
  }
}

KernelConfig config_of(const TrafficProgram& program, std::size_t number) {
  return {.core = program.core,
          .name = fmt::format("traffic program {}", number),
          .noc_index = program.noc};
}

void run_program(DataMovementCore& core, const machine::Chip& chip, const TrafficProgram& program,
                 TrafficResult::Program& times) {
  core.work_until(program.start_cycle);
  times.begin = core.cycle();
  for (const TrafficStep& step : program.steps) {
    times.step_begin.push_back(core.cycle());
    Runner{core, chip, step}.run();
    times.step_end.push_back(core.cycle());
  }
  times.end = core.cycle();
}

class Traffic {
 public:
  Traffic(const std::shared_ptr<const machine::Chip>& chip,
          const std::vector<TrafficProgram>& programs, const TrafficOptions& options)
      : programs_(programs),
        options_(options),
        simulation_(options.seed),
        network_(
            simulation_, chip,
            {.carries_data = options.carries_data, .records_requests = options.records_requests}) {
    result_.programs.resize(programs.size());
  }

  TrafficResult run() {
    for (std::size_t number = 0; number < programs_.size(); ++number) {
      check(network_.chip(), programs_[number], number);
      run_kernel(network_, config_of(programs_[number], number),
                 [this, number](DataMovementCore& core) {
                   run_program(core, network_.chip(), programs_[number], result_.programs[number]);
                   --running_;
                 });
      ++running_;
    }
    if (options_.link_sample_cycles > 0) sample_links(this);
    if (options_.cycles_max > 0) {
      simulation_.run_until(network_.clock().edge(Cycles(options_.cycles_max)));
    } else {
      simulation_.run();
    }
    if (running_ > 0) fail();
    result_.flit_hops = network_.network(0).flit_hops() + network_.network(1).flit_hops();
    result_.requests = network_.requests();
    for (const auto& program : result_.programs) {
      result_.cycles = std::max(result_.cycles, program.end);
    }
    return std::move(result_);
  }

 private:
  static void sample_links(void* self) { static_cast<Traffic*>(self)->take_sample(); }

  void take_sample() {
    const int tiles = static_cast<int>(network_.chip().tiles.size());
    for (int noc = 0; noc < 2; ++noc) {
      const noc::Network& network = network_.network(noc);
      std::vector<std::int64_t> flits(index(tiles) * 4);
      for (int tile = 0; tile < tiles; ++tile) {
        const int node = network.torus().node_of(network_.chip().coordinate_of(tile));
        for (int port = 0; port < 4; ++port) {
          flits[index(tile * 4 + port)] = network.link_flits(node, port);
        }
      }
      result_.link_samples.push_back(std::move(flits));
    }
    // A sample must not keep an otherwise idle simulation running.
    if (running_ == 0 || simulation_.pending_events() == 0) return;
    simulation_.at(network_.clock().edge(Cycles(network_.cycle() + options_.link_sample_cycles)),
                   &Traffic::sample_links, this);
  }

  [[noreturn]] void fail() const {
    std::string who = network_.describe_deadlock();
    const bool is_deadlock = !who.empty() || simulation_.pending_events() == 0;
    if (who.empty()) {
      for (const sim::BlockedProcess& blocked : simulation_.blocked()) {
        who += fmt::format("{}{} waits for {}", who.empty() ? "" : ", ", blocked.name,
                           blocked.waiting_for);
        if (who.size() > 300) break;
      }
    }
    const std::string sentence =
        fmt::format("after {} cycles {} of {} traffic programs have not ended: {}",
                    network_.cycle(), running_, programs_.size(), who);
    if (is_deadlock) throw DeadlockError(sentence, deadlock_cycle(network_));
    throw std::runtime_error(sentence);
  }

  const std::vector<TrafficProgram>& programs_;
  TrafficOptions options_;
  sim::Simulation simulation_;
  noc::ChipNetwork network_;
  TrafficResult result_;
  int running_ = 0;
};

}  // namespace

struct TrafficBeside::State {
  std::vector<TrafficProgram> programs;
  std::vector<TrafficResult::Program> times;
  std::size_t running = 0;
};

TrafficBeside::TrafficBeside(noc::ChipNetwork& network, const std::vector<TrafficProgram>& programs)
    : state_(std::make_shared<State>()) {
  for (std::size_t number = 0; number < programs.size(); ++number) {
    check(network.chip(), programs[number], number);
  }
  state_->programs = programs;
  state_->times.resize(programs.size());
  state_->running = programs.size();
  for (std::size_t number = 0; number < programs.size(); ++number) {
    run_kernel(network, config_of(programs[number], number),
               [state = state_, &network, number](DataMovementCore& core) {
                 run_program(core, network.chip(), state->programs[number], state->times[number]);
                 --state->running;
               });
  }
}

bool TrafficBeside::is_over() const { return state_->running == 0; }

const std::vector<TrafficResult::Program>& TrafficBeside::programs() const { return state_->times; }

TrafficResult run_traffic(const std::shared_ptr<const machine::Chip>& chip,
                          const std::vector<TrafficProgram>& programs,
                          const TrafficOptions& options) {
  return Traffic(chip, programs, options).run();
}

}  // namespace towpath::tenstorrent::bench
