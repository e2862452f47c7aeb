// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "towpath/collective/execute/executor.hpp"
#include "towpath/collective/schedule/plan.hpp"
#include "towpath/ethernet/link.hpp"
#include "towpath/gpu_links/network.hpp"
#include "towpath/machine/chip_cluster.hpp"
#include "towpath/machine/machine.hpp"
#include "towpath/sim/simulation.hpp"
#include "towpath/sim/trace.hpp"
#include "towpath/tenstorrent/fabric/fabric_topology.hpp"

// All ranks of one plan on one described machine: the top of the simulator.
//
//   SimulatedRun run(machine, plan, {});
//   const Time time = run.invoke(buffers);

namespace towpath::simulate {

struct SimulatedRunOptions {
  std::vector<int> gpus;  // rank -> GPU of the machine; empty: the first ones
  bool carries_data = true;
  std::uint64_t seed = 1;
  Time jitter_max;              // of GPUs: explores interleavings; leave zero for timing
  sim::Trace* trace = nullptr;  // steps per thread block and segments per link
  // Of links between chips, by number; those that are missing have none. Only links that the fabric
  // uses may have some.
  std::vector<ethernet::LinkFaults> link_faults{};
  // Where links have faults, how long a call may take.
  Time deadline = Time::from_seconds(1);
  // Of the fabric between chips; none: default_shape.
  std::optional<tenstorrent::fabric::Shape> shape{};
};

// What the faults of a link between chips have done so far.
struct LinkFailure {
  std::size_t link = 0;  // its number in the cluster
  std::uint64_t drops = 0;
  Time down_time;
  std::uint64_t frames_lost = 0;
  std::array<Bytes, 2> resent;  // of payload, from each end
  bool is_up = true;
};

class SimulatedRun {
 public:
  SimulatedRun(std::shared_ptr<const machine::Machine> machine,
               std::shared_ptr<const collective::Plan> plan, const SimulatedRunOptions& options);
  // On chips that Ethernet joins: `gpus` are places of their fabric.
  SimulatedRun(std::shared_ptr<const machine::ChipCluster> cluster,
               std::shared_ptr<const collective::Plan> plan, const SimulatedRunOptions& options);
  ~SimulatedRun();

  // One invocation: every rank's host calls at the same moment. Returns the time from there until
  // the last rank has finished. `buffers` has one entry per rank, or none in a time-only run.
  // Throws transport::TransportError::Kind::deadlock naming who waits for whom and which links are
  // down, or Kind::timeout at the deadline.
  Time invoke(const std::vector<collective::Buffers>& buffers);

  // Of a machine's links; of chips two of each link, from its first end and from its second. Bytes
  // that are sent again count in the time only.
  std::vector<gpu_links::LinkLoad> loads() const;
  // Of the links that have faults.
  std::vector<LinkFailure> link_failures() const;
  std::uint64_t events() const;
  Time now() const;

 private:
  struct Ranks;
  void make_ranks();
  void observe_steps();

  std::shared_ptr<const collective::Plan> plan_;
  SimulatedRunOptions options_;
  std::unique_ptr<Ranks> ranks_;
};

}  // namespace towpath::simulate
