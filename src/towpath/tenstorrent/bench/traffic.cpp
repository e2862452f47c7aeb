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

// Sources are in the first half of a core's memory, targets in the second, all at the same offset:
// the time does not depend on it.
std::uint64_t target_offset(const machine::Chip& chip, machine::Coordinate to, int channel) {
  if (chip.tile(to).kind == machine::TileKind::dram) {
    return static_cast<std::uint64_t>(channel) * chip.dram.channel_bytes;
  }
  const bool is_ethernet = chip.tile(to).kind == machine::TileKind::ethernet;
  return (is_ethernet ? chip.ethernet_l1_bytes : chip.l1_bytes) / 2 / 64 * 64;
}

WriteOptions write_options(const TrafficTransfer& transfer, int vc) {
  return {.vc = vc, .is_static_vc = !transfer.is_dynamic_vc, .is_posted = transfer.is_posted};
}

// Executes a step on its core.
struct Runner {
  DataMovementCore& core;
  const machine::Chip& chip;

  void operator()(const TrafficTransfer& transfer) const {
    const NocAddress to{transfer.to, target_offset(chip, transfer.to, transfer.channel)};
    if (transfer.has_state) set_state(transfer, to);
    for (int i = 0; i < transfer.count; ++i) request(transfer, to, i);
  }

  void operator()(const TrafficMulticast& multicast) const {
    const NocMulticastAddress to{multicast.first, multicast.last,
                                 target_offset(chip, multicast.first, 0)};
    const int destinations =
        multicast_destinations(chip, core.config().core, to, multicast.includes_source);
    for (int i = 0; i < multicast.count; ++i) {
      const MulticastOptions options{.vc = multicast.first_vc + i % multicast.vcs,
                                     .is_linked = multicast.is_linked && i + 1 < multicast.count};
      if (i > 0 && i + 1 == multicast.count) core.work(multicast.last_call_cycles);
      if (multicast.includes_source) {
        core.noc_async_write_multicast_loopback_src(0, to, multicast.size_bytes, destinations,
                                                    options);
      } else {
        core.noc_async_write_multicast(0, to, multicast.size_bytes, destinations, options);
      }
    }
  }

  void operator()(TrafficBarrier barrier) const {
    switch (barrier) {
      case TrafficBarrier::writes: core.noc_async_write_barrier(); break;
      case TrafficBarrier::writes_flushed: core.noc_async_writes_flushed(); break;
      case TrafficBarrier::reads: core.noc_async_read_barrier(); break;
      case TrafficBarrier::atomics: core.noc_async_atomic_barrier(); break;
    }
  }

  void operator()(const TrafficWait& wait) const { core.work_until(wait.until); }
  void operator()(const TrafficWork& work) const { core.work(work.cycles); }

 private:
  void set_state(const TrafficTransfer& transfer, const NocAddress& to) const {
    if (transfer.kind == TrafficTransfer::Kind::read) {
      core.noc_async_read_set_state(to, {.vc = transfer.first_vc});
    } else if (transfer.kind == TrafficTransfer::Kind::write) {
      core.noc_async_write_set_state(to, write_options(transfer, transfer.first_vc));
    }
  }

  void request(const TrafficTransfer& transfer, const NocAddress& to, int number) const {
    const int vc = transfer.first_vc + number % transfer.vcs;
    switch (transfer.kind) {
      case TrafficTransfer::Kind::write:
        if (transfer.has_state) {
          core.noc_async_write_with_state(0, to.offset, transfer.size_bytes);
        } else {
          core.noc_async_write(0, to, transfer.size_bytes, write_options(transfer, vc));
        }
        break;
      case TrafficTransfer::Kind::read:
        if (transfer.has_state) {
          core.noc_async_read_with_state(to.offset, 0, transfer.size_bytes);
        } else {
          core.noc_async_read(to, 0, transfer.size_bytes, {.vc = vc});
        }
        break;
      case TrafficTransfer::Kind::inline_write:
        core.noc_inline_dw_write(to, 1, write_options(transfer, vc));
        break;
      case TrafficTransfer::Kind::atomic:
        core.noc_semaphore_inc(to, 1, write_options(transfer, vc));
        break;
    }
  }
};

// The reason why a chip cannot execute a step, if it is decidable before the run; empty if there is
// none.
struct Obstacle {
  const machine::Chip& chip;

  std::string operator()(const TrafficTransfer& transfer) const {
    std::string why = counts_or_target(transfer.count, transfer.vcs, transfer.to);
    if (why.empty() &&
        (transfer.channel < 0 || transfer.channel >= std::max(1, chip.dram.channels_per_group))) {
      why = fmt::format("channel is {}; a DRAM group has {}", transfer.channel,
                        chip.dram.channels_per_group);
    }
    return why;
  }
  std::string operator()(const TrafficMulticast& multicast) const {
    return counts_or_target(multicast.count, multicast.vcs, multicast.first);
  }
  std::string operator()(const auto&) const { return {}; }

 private:
  std::string counts_or_target(int count, int vcs, machine::Coordinate to) const {
    if (count < 1 || vcs < 1) return "count and vcs must be at least 1";
    if (chip.holds(to)) return {};
    return fmt::format("({}, {}) is outside of the {} x {} grid", to.x, to.y, chip.width,
                       chip.height);
  }
};

// Rejects steps that the chip cannot execute, with the program's name.
void check(const machine::Chip& chip, const TrafficProgram& program, std::size_t number) {
  const auto refuse = [number](const std::string& why) {
    throw std::invalid_argument(fmt::format("traffic program {}: {}", number, why));
  };
  if (!chip.holds(program.core)) {
    refuse(fmt::format("core ({}, {}) is outside of the {} x {} grid", program.core.x,
                       program.core.y, chip.width, chip.height));
  }
  if (program.noc != 0 && program.noc != 1) refuse("its NoC must be 0 or 1");
  for (const TrafficStep& step : program.steps) {
    if (const std::string why = std::visit(Obstacle{chip}, step.action); !why.empty()) refuse(why);
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
    std::visit(Runner{core, chip}, step.action);
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
