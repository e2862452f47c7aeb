// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/chip_network.hpp"

// Traffic on a chip, written down as steps per data-movement core instead of as kernels: what a
// study sweeps and what a trace replays.

namespace towpath::tenstorrent::bench {

enum class TrafficKind : std::uint8_t {
  write,
  read,
  multicast,
  inline_write,
  atomic,
  write_barrier,
  writes_flushed,
  read_barrier,
  atomic_barrier,
  wait_until,  // not before cycle `cycle` of the run
  work         // so many cycles
};

struct TrafficStep {
  TrafficKind kind = TrafficKind::work;
  machine::Coordinate to;       // the other end; of a multicast the corner with the least x and y
  machine::Coordinate to_last;  // of a multicast, the other corner
  std::uint64_t size_bytes = 0;
  int count = 1;     // transactions, back to back
  int first_vc = 1;  // transaction i uses VC first_vc + i % vcs
  int vcs = 1;
  bool is_dynamic_vc = false;
  bool has_state = false;  // destination and size are set once for all `count`
  bool is_posted = false;
  bool is_linked = false;  // all but the last of `count`
  bool includes_source = false;
  int channel = 0;  // of a DRAM tile's group
  noc::Cycle cycle = 0;
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
  // One row per sample and NoC: flits that had left on each link so far. Links are numbered
  // tile * 4 + port with the tile's number in NoC 0's coordinates; ports are along the first axis
  // that the NoC travels, along the second, to the NIU, from the NIU.
  std::vector<std::vector<std::int64_t>> link_samples;
  std::int64_t flit_hops = 0;
  noc::Cycle cycles = 0;
};

// Runs all programs on one chip. Throws std::invalid_argument, naming the program, on a step that
// the chip cannot carry out, before anything is run where that can be known; DeadlockError when the
// traffic deadlocks and std::runtime_error when it takes more than cycles_max, naming who waits for
// what.
TrafficResult run_traffic(const std::shared_ptr<const machine::Chip>& chip,
                          const std::vector<TrafficProgram>& programs,
                          const TrafficOptions& options);

}  // namespace towpath::tenstorrent::bench
