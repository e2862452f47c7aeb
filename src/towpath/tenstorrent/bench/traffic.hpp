// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/chip_network.hpp"

// Traffic on a chip as steps per data-movement core instead of kernels: the input of sweeps and
// replayed traces.

namespace towpath::tenstorrent::bench {

// An action of a core. Each kind uses some of the fields.
struct TrafficStep {
  enum class Kind : std::uint8_t {
    write,
    read,
    multicast,
    inline_write,
    atomic,
    write_barrier,
    writes_flushed,
    read_barrier,
    atomic_barrier,
    wait_until,
    work
  };
  Kind kind = Kind::write;
  // The target of `count` requests, back to back. A multicast goes to the workers of the rectangle
  // from `to` to `to_last`, in the direction of its NoC.
  machine::Coordinate to;
  machine::Coordinate to_last;
  std::uint64_t size_bytes = 0;
  int count = 1;
  int first_vc = 1;  // request i uses VC first_vc + i % vcs
  int vcs = 1;
  bool is_dynamic_vc = false;
  bool has_state = false;  // write and read: destination and size are set once for all `count`
  bool is_posted = false;
  bool is_linked = false;  // multicasts: all but the last of `count`
  bool includes_source = false;
  int channel = 0;           // of a DRAM tile's group
  noc::Cycle cycle = 0;      // of the run to wait for, or cycles of work
  int last_call_cycles = 0;  // additional cost of the last multicast, if there are several
};

struct TrafficProgram {
  machine::Coordinate core;
  int noc = 0;
  noc::Cycle start_cycle = 0;
  std::vector<TrafficStep> steps;
};

struct TrafficOptions {
  std::uint64_t seed = 1;
  bool carries_data = false;
  bool records_requests = false;
  noc::Cycle link_sample_cycles = 0;  // 0: no samples
  noc::Cycle cycles_max = 0;          // 0: no limit
};

struct TrafficResult {
  struct Program {
    noc::Cycle begin = 0;
    noc::Cycle end = 0;
    std::vector<noc::Cycle> step_begin;
    std::vector<noc::Cycle> step_end;
  };
  std::vector<Program> programs;
  std::vector<noc::RequestTimes> requests;
  // One row per sample and NoC: total flits sent on each link. Links are numbered tile * 4 + port
  // with the tile's number in NoC 0 coordinates. Ports are: along the first axis of the NoC's
  // routes, along the second, to the NIU, from the NIU.
  std::vector<std::vector<std::int64_t>> link_samples;
  std::int64_t flit_hops = 0;
  noc::Cycle cycles = 0;
};

// Traffic on a shared network. The caller runs the simulation. programs() has the current results.
class TrafficBeside {
 public:
  // Starts the programs. Throws the same errors as run_traffic(). The network must outlive them.
  TrafficBeside(noc::ChipNetwork& network, const std::vector<TrafficProgram>& programs);

  bool is_over() const;
  // Cycles of the network's clock.
  const std::vector<TrafficResult::Program>& programs() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the kernels
};

// Runs all programs on one chip. Throws std::invalid_argument with the program's name for a step
// that the chip cannot execute, before the run if possible; DeadlockError for a deadlock, and
// std::runtime_error after more than cycles_max, both with the wait-for relations.
TrafficResult run_traffic(const std::shared_ptr<const machine::Chip>& chip,
                          const std::vector<TrafficProgram>& programs,
                          const TrafficOptions& options);

}  // namespace towpath::tenstorrent::bench
