// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/study/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "towpath/base/invariant.hpp"
#include "towpath/gpu/study/grid.hpp"
#include "towpath/transport/simulated/gpu/gpu_ranks.hpp"

namespace towpath::gpu::study {

using transport::Access;
using transport::Offset;

namespace {

constexpr int kHalfBytes = 2;
constexpr int kVectorBytes = 16;
constexpr std::uint64_t kWordBytes = 8;

// The places of the exchange in the symmetric heap.
struct Places {
  Offset destination = 0;
  Offset signals = 0;
};

void run_block(Block& block, const ExchangeOptions& options, const Places& places, int peer) {
  const auto slice = static_cast<std::uint64_t>(options.threads) *
                     static_cast<std::uint64_t>(options.bytes_per_thread);
  const auto index = static_cast<std::uint64_t>(block.index());
  const Offset signal = places.signals + kWordBytes * index;
  Access put;
  put.peer = peer;
  put.remote = places.destination + slice * index;
  put.size_bytes = slice;
  if (options.stage == ExchangeStage::plain) return block.put(put);
  if (options.stage == ExchangeStage::separate_signal) {
    block.put(put);
    block.fence(options.threads);
    block.barrier();
    block.signal(peer, signal, 1);
    block.wait(signal, 1);
    block.work({slice, slice, kHalfBytes});
    return;
  }
  put.has_signal = true;
  put.signal_at = signal;
  put.signal_value = 1;
  block.put(put);
  block.wait(signal, 1);
  block.work({slice, slice, kVectorBytes}, 1);
}

int blocks_of(const ExchangeOptions& options) {
  const std::int64_t slice = std::int64_t{options.threads} * options.bytes_per_thread;
  const auto size = static_cast<std::int64_t>(options.size_bytes);
  if (slice > 0 && size > 0 && size % slice == 0) return static_cast<int>(size / slice);
  throw std::invalid_argument(
      fmt::format("{} bytes cannot be divided among blocks of {} threads with {} bytes each; use a "
                  "multiple of both",
                  size, options.threads, options.bytes_per_thread));
}

}  // namespace

Time exchange_time(std::shared_ptr<const machine::Machine> machine,
                   const ExchangeOptions& options) {
  const int blocks = blocks_of(options);
  const std::array<int, 2> pair = {options.first, options.second};
  for (const int gpu : pair) {
    if (gpu >= 0 && gpu < machine->ranks() && options.first != options.second) continue;
    throw std::invalid_argument(
        fmt::format("GPUs {} and {} of machine '{}' cannot exchange; they must be two different "
                    "ones of 0 to {}",
                    options.first, options.second, machine->name(), machine->ranks() - 1));
  }
  sim::Simulation simulation;
  transport::simulated::GpuRanks ranks(simulation, machine, {});
  Places places;
  for (int rank = 0; rank < ranks.ranks(); ++rank) {
    places.destination = ranks.transport(rank).allocate(options.size_bytes);
    places.signals =
        ranks.transport(rank).allocate(kWordBytes * static_cast<std::uint64_t>(blocks));
  }
  const machine::KernelCost& cost = kernel_cost(*machine);
  const Launch launch{.shape = {.threads = options.threads}, .blocks = blocks};
  std::array<std::unique_ptr<Grid>, 2> grids;
  for (std::size_t side = 0; side < 2; ++side) {
    grids[side] = std::make_unique<Grid>(
        simulation, ranks.transport(pair[side]), cost, launch,
        [&, peer = pair[1 - side]](Block& block) { run_block(block, options, places, peer); });
    grids[side]->start();
  }
  simulation.run();
  for (const auto& grid : grids) {
    TOWPATH_CHECK(grid->running() == 0, "{} blocks of an exchange wait and nothing is under way",
                  grid->running());
  }
  return std::max(grids[0]->ended_at(), grids[1]->ended_at());
}

}  // namespace towpath::gpu::study
