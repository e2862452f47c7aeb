// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "towpath/machine/chip_cluster.hpp"
#include "towpath/noc/chip_network.hpp"
#include "towpath/tenstorrent/cluster/cluster.hpp"
#include "towpath/tenstorrent/metalium/kernel_fabric.hpp"
#include "towpath/tenstorrent/metalium/source_kernel.hpp"

// One program per chip whose kernels are in source form, for `towpath kernel run`.

namespace towpath::tenstorrent::metalium {

// Default limit of the cycles of a user's program: a tenth of a second on a Wormhole, and some ten
// seconds of the host's time for a loop of short calls.
constexpr noc::Cycle kCyclesMax = 100'000'000;

struct PlacedKernel {
  int chip = 0;
  // In the logical grid of workers, or {0, channel} of an Ethernet core.
  machine::Coordinate core;
  Processor processor = Processor::data_movement_0;
  int noc_index = 0;
  KernelSource source;
  std::vector<std::uint32_t> runtime_args{};
  // A connection to a fabric router. Its arguments are inserted before the one at a position.
  struct Connection {
    std::size_t position = 0;
    int to_chip = 0;  // the router is the first one towards it
    int link = 0;     // index among parallel links
  };
  std::vector<Connection> connections{};
  std::vector<std::uint32_t> common_args{};
  CircularBuffers circular_buffers{};
};

// Bytes of a tile's memory, in NoC 0 coordinates.
struct MemoryBlock {
  int chip = 0;
  machine::Coordinate tile;
  std::uint64_t offset = 0;
  std::vector<std::byte> bytes{};
};

struct SourceProgram {
  std::vector<PlacedKernel> kernels;
  // Initial values of semaphores 0, 1, ... on every core.
  std::vector<std::uint32_t> semaphores{};
  std::vector<MemoryBlock> before{};  // written before the kernels start
  std::vector<MemoryBlock> after{};   // read when they have ended, with the sizes given
  RunOptions options{};
  std::optional<FabricMode> fabric{};  // empty if kernels use none
};

struct SourceResult {
  struct KernelTimes {
    noc::Cycle begin = 0;
    noc::Cycle end = 0;
  };
  std::vector<KernelTimes> kernels;  // in program order
  Time time;                         // end of the last kernel
  KernelLog log;
  std::vector<MemoryBlock> after;
};

// Tile of a core. Throws std::invalid_argument if there is none.
machine::Coordinate tile_of(const machine::Chip& chip, machine::Coordinate core,
                            Processor processor);
// The NoC that it runs on, or kNoNoc for compute kernels.
int noc_of(const PlacedKernel& kernel);
// Shared by the kernels of a run, which it outlives.
struct SharedByKernels {
  KernelLog& log;
  KernelArrivals* arrivals = nullptr;  // null if they are not watched
  const KernelFabric* fabric = nullptr;
};
// Compiles a kernel.
Kernel compiled_body(const machine::Chip& chip, const PlacedKernel& kernel,
                     const SharedByKernels& shared);
// Compiles a kernel and adds it to a program. Returns its number there.
std::size_t add_kernel(Device& device, Program& program, const PlacedKernel& kernel,
                       const SharedByKernels& shared);

// A cluster of one chip.
std::shared_ptr<const machine::ChipCluster> cluster_of(std::shared_ptr<const machine::Chip> chip);

// Compiles and runs the kernels. Throws the errors of Cluster::run() and compile_kernel().
SourceResult run_source_program(std::shared_ptr<const machine::ChipCluster> cluster,
                                const SourceProgram& program);

// Kernels in source form on a network that is shared, mainly with the host. The caller runs the
// simulation.
class KernelsBeside {
 public:
  // Compiles and starts the kernels of workers. All are on this chip, whatever chip number they
  // have, and do not use a fabric. The network must exist until they have ended. Throws the same
  // errors as run_source_program().
  KernelsBeside(noc::ChipNetwork& network, const SourceProgram& program);

  bool is_over() const;
  // The state of the run: first and last cycle of each kernel, or 0, the end of the last one, or 0,
  // and their reports.
  const SourceResult& result() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the kernels
};

}  // namespace towpath::tenstorrent::metalium
