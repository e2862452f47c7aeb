// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/bench/traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "towpath/noc/bits.hpp"
#include "towpath/tenstorrent/device/data_movement_core.hpp"
#include "towpath/tenstorrent/device/errors.hpp"

namespace towpath::tenstorrent::bench {

namespace {

using noc::index;
using tenstorrent::DataMovementCore;

// Sources lie in the first half of a core's memory, targets in the second, all at the same place:
// the time does not depend on it.
std::uint64_t target_offset(const machine::Chip& chip, const TrafficStep& step) {
  if (chip.tile(step.to).kind == machine::TileKind::dram) {
    return static_cast<std::uint64_t>(step.channel) * chip.dram.channel_bytes;
  }
  return chip.l1_bytes / 2 / 64 * 64;
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
      const TrafficProgram& program = programs_[number];
      check(program, number);
      tenstorrent::run_kernel(
          network_,
          {.core = program.core,
           .name = fmt::format("traffic program {}", number),
           .noc_index = program.noc},
          [this, number](DataMovementCore& core) { run_program(core, number); });
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
  void check(const TrafficProgram& program, std::size_t number) const {
    const machine::Chip& chip = network_.chip();
    const auto refuse = [number](const std::string& why) {
      throw std::invalid_argument(fmt::format("traffic program {}: {}", number, why));
    };
    if (!chip.holds(program.core)) {
      refuse(fmt::format("core ({}, {}) is outside of the {} x {} grid", program.core.x,
                         program.core.y, chip.width, chip.height));
    }
    if (program.noc != 0 && program.noc != 1) refuse("its NoC must be 0 or 1");
    for (const TrafficStep& step : program.steps) {
      if (step.count < 1 || step.vcs < 1) refuse("count and vcs must be at least 1");
      if (step.kind <= TrafficKind::atomic && !chip.holds(step.to)) {
        refuse(fmt::format("({}, {}) is outside of the {} x {} grid", step.to.x, step.to.y,
                           chip.width, chip.height));
      }
      if (step.channel < 0 || step.channel >= std::max(1, chip.dram.channels_per_group)) {
        refuse(fmt::format("channel is {}; a DRAM group has {}", step.channel,
                           chip.dram.channels_per_group));
      }
    }
  }

  void run_program(DataMovementCore& core, std::size_t number) {
    const TrafficProgram& program = programs_[number];
    TrafficResult::Program& times = result_.programs[number];
    core.work_until(program.start_cycle);
    times.begin = core.cycle();
    for (const TrafficStep& step : program.steps) {
      times.step_begin.push_back(core.cycle());
      run_step(core, step);
      times.step_end.push_back(core.cycle());
    }
    times.end = core.cycle();
    --running_;
  }

  void run_step(DataMovementCore& core, const TrafficStep& step) {
    switch (step.kind) {
      case TrafficKind::write_barrier: core.noc_async_write_barrier(); return;
      case TrafficKind::writes_flushed: core.noc_async_writes_flushed(); return;
      case TrafficKind::read_barrier: core.noc_async_read_barrier(); return;
      case TrafficKind::atomic_barrier: core.noc_async_atomic_barrier(); return;
      case TrafficKind::wait_until: core.work_until(step.cycle); return;
      case TrafficKind::work: core.work(step.cycle); return;
      default: break;
    }
    const std::uint64_t offset = target_offset(network_.chip(), step);
    const tenstorrent::NocAddress to{step.to, offset};
    if (step.has_state) set_state(core, step, to);
    for (int i = 0; i < step.count; ++i) transact(core, step, to, i);
  }

  static void set_state(DataMovementCore& core, const TrafficStep& step,
                        const tenstorrent::NocAddress& to) {
    if (step.kind == TrafficKind::read) {
      core.noc_async_read_set_state(to, {.vc = step.first_vc});
    } else if (step.kind == TrafficKind::write) {
      core.noc_async_write_set_state(
          to,
          {.vc = step.first_vc, .is_static_vc = !step.is_dynamic_vc, .is_posted = step.is_posted});
    }
  }

  static void transact(DataMovementCore& core, const TrafficStep& step,
                       const tenstorrent::NocAddress& to, int number) {
    const int vc = step.first_vc + number % step.vcs;
    const tenstorrent::WriteOptions write{
        .vc = vc, .is_static_vc = !step.is_dynamic_vc, .is_posted = step.is_posted};
    switch (step.kind) {
      case TrafficKind::write:
        if (step.has_state) {
          core.noc_async_write_with_state(0, to.offset, step.size_bytes);
        } else {
          core.noc_async_write(0, to, step.size_bytes, write);
        }
        break;
      case TrafficKind::read:
        if (step.has_state) {
          core.noc_async_read_with_state(to.offset, 0, step.size_bytes);
        } else {
          core.noc_async_read(to, 0, step.size_bytes, {.vc = vc});
        }
        break;
      case TrafficKind::multicast: multicast(core, step, to.offset, number); break;
      case TrafficKind::inline_write: core.noc_inline_dw_write(to, 1, write); break;
      case TrafficKind::atomic: core.noc_semaphore_inc(to, 1, write); break;
      default: break;
    }
  }

  static void multicast(DataMovementCore& core, const TrafficStep& step, std::uint64_t offset,
                        int number) {
    const tenstorrent::NocMulticastAddress to{step.to, step.to_last, offset};
    const int destinations = tenstorrent::multicast_destinations(
        core.network().chip(), core.config().core, to, step.includes_source);
    const tenstorrent::MulticastOptions options{
        .vc = step.first_vc + number % step.vcs,
        .is_linked = step.is_linked && number + 1 < step.count};
    if (step.includes_source) {
      core.noc_async_write_multicast_loopback_src(0, to, step.size_bytes, destinations, options);
    } else {
      core.noc_async_write_multicast(0, to, step.size_bytes, destinations, options);
    }
  }

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
    // A sample keeps nothing going in which nothing else happens.
    if (running_ == 0 || simulation_.pending_events() == 0) return;
    simulation_.at(network_.clock().edge(Cycles(network_.cycle() + options_.link_sample_cycles)),
                   &Traffic::sample_links, this);
  }

  [[noreturn]] void fail() const {
    std::string who = network_.describe_deadlock();
    const bool waits_for_ever = !who.empty() || simulation_.pending_events() == 0;
    if (who.empty()) {
      for (const sim::BlockedProcess& blocked : simulation_.blocked()) {
        who += fmt::format("{}{} waits for {}", who.empty() ? "" : ", ", blocked.name,
                           blocked.waiting_for);
        if (who.size() > 300) break;
      }
    }
    const std::string sentence =
        fmt::format("after {} cycles {} of {} traffic programs are not over: {}", network_.cycle(),
                    running_, programs_.size(), who);
    if (waits_for_ever) throw DeadlockError(sentence, network_.deadlock_cycle());
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

TrafficResult run_traffic(const std::shared_ptr<const machine::Chip>& chip,
                          const std::vector<TrafficProgram>& programs,
                          const TrafficOptions& options) {
  return Traffic(chip, programs, options).run();
}

}  // namespace towpath::tenstorrent::bench
