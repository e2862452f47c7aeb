// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "towpath/gpu/block.hpp"
#include "towpath/gpu/errors.hpp"
#include "towpath/gpu/pe.hpp"

namespace towpath::gpu {

namespace {

// The largest load, with a margin for rounding.
constexpr double kLoadMax = 1 + 1e-9;

}  // namespace

Grid::Grid(const abi::Launch& launch, std::function<void()> finished)
    : launch_(launch), finished_callback_(std::move(finished)) {}

Grid::~Grid() {
  resident_.clear();
  if (launch_.destroy != nullptr) launch_.destroy(launch_.closure);
}

int Grid::threads_per_block() const {
  const abi::Index3& size = launch_.configuration.block;
  return static_cast<int>(size.x * size.y * size.z);
}

std::uint64_t Grid::blocks() const {
  const abi::Index3& size = launch_.configuration.grid;
  return std::uint64_t{size.x} * size.y * size.z;
}

abi::Index3 Grid::index_of(std::uint64_t block) const {
  const abi::Index3& size = launch_.configuration.grid;
  return {static_cast<unsigned>(block % size.x), static_cast<unsigned>(block / size.x % size.y),
          static_cast<unsigned>(block / size.x / size.y)};
}

// NVIDIA H100 SXM, compute capability 9.0 (CUDA programming guide, technical specifications).
machine::KernelCost Device::live_cost() {
  machine::KernelCost cost;
  cost.multiprocessors = 132;
  cost.threads_per_multiprocessor = 2048;
  cost.blocks_per_multiprocessor = 32;
  cost.registers_per_multiprocessor = 65536;
  cost.shared_memory_kib = 228;
  return cost;
}

Device::Device(Pe& pe, const machine::KernelCost& cost)
    : pe_(pe), cost_(cost), multiprocessors_(static_cast<std::size_t>(cost.multiprocessors)) {}

Device::~Device() = default;

int Device::resident_blocks(int threads, std::uint64_t shared_bytes) const {
  if (threads < 1 || threads > abi::kThreadsPerBlockMax) return 0;
  return cost_.multiprocessors *
         gpu::resident_blocks({.threads = threads, .shared_bytes = shared_bytes}, cost_);
}

double Device::share_of(const Grid& grid) const {
  const int blocks =
      gpu::resident_blocks({.threads = grid.threads_per_block(),
                            .shared_bytes = grid.launch().configuration.shared_bytes},
                           cost_);
  return blocks == 0 ? 2.0 : 1.0 / blocks;
}

void Device::start(const abi::Launch& launch, std::function<void()> finished) {
  auto grid = std::make_unique<Grid>(launch, std::move(finished));
  if (share_of(*grid) > kLoadMax) {
    throw KernelError(
        KernelError::Kind::usage,
        fmt::format("a block of kernel {} has {} threads and {} bytes of shared memory, which do "
                    "not fit on a multiprocessor of this GPU; use at most {} threads and {} KiB",
                    grid->name(), grid->threads_per_block(), launch.configuration.shared_bytes,
                    abi::kThreadsPerBlockMax, cost_.shared_memory_kib - 1));
  }
  grids_.push_back(std::move(grid));
  fill();
}

// The emptiest multiprocessor with room, the first among equals, or -1.
int Device::choose(const Grid& grid) const {
  const double share = share_of(grid);
  const auto emptiest =
      std::min_element(multiprocessors_.begin(), multiprocessors_.end(),
                       [](const auto& a, const auto& b) { return a.load < b.load; });
  if (emptiest->load + share > kLoadMax) return -1;
  return static_cast<int>(emptiest - multiprocessors_.begin());
}

void Device::fill() {
  for (const auto& grid : grids_) {
    while (grid->started_ < grid->blocks()) {
      const int place = choose(*grid);
      if (place < 0) return;
      Multiprocessor& multiprocessor = multiprocessors_[static_cast<std::size_t>(place)];
      if (multiprocessor.blocks++ == 0) ++busy_;
      multiprocessor.load += share_of(*grid);
      const abi::Index3 index = grid->index_of(grid->started_++);
      grid->resident_.push_back(std::make_unique<Block>(pe_, *grid, index, place));
    }
  }
}

Residency Device::residency(int multiprocessor) const {
  return {
      .blocks_on_multiprocessor = multiprocessors_[static_cast<std::size_t>(multiprocessor)].blocks,
      .busy_multiprocessors = busy_,
      .peer_rate = pe_.options().peer_rate};
}

void Device::finish(Block& block) {
  block.hand_on();
  Grid& grid = block.grid();
  Multiprocessor& multiprocessor =
      multiprocessors_[static_cast<std::size_t>(block.multiprocessor())];
  if (--multiprocessor.blocks == 0) --busy_;
  multiprocessor.load = multiprocessor.blocks == 0 ? 0 : multiprocessor.load - share_of(grid);
  grid.resident_.remove_if([&](const auto& each) { return each.get() == &block; });
  if (++grid.finished_ == grid.blocks()) {
    const std::function<void()> finished = std::move(grid.finished_callback_);
    grids_.remove_if([&](const auto& each) { return each.get() == &grid; });
    finished();
  }
  fill();
}

void Device::arrive_at_grid_barrier(Grid& grid) {
  if (++grid.at_barrier_ < grid.blocks()) return;
  grid.at_barrier_ = 0;
  // The barrier ends when all threads have arrived. Each has then observed everything that any of
  // them has observed.
  Moment all;
  if (pe_.is_timed()) {
    History& joined = pe_.hazards().new_history();
    const Time now = pe_.simulation().now();
    for (const auto& block : grid.resident_) joined.learn(now, block->history()->now());
    all = joined.now();
  }
  for (const auto& block : grid.resident_) block->release_grid_barrier(all);
}

std::string Device::waiting() const {
  std::string lines;
  for (const auto& grid : grids_) {
    std::map<std::string, std::uint64_t> groups;
    for (const auto& block : grid->resident_) ++groups[block->waiting()];
    const char* const more = "s";
    for (const auto& [what, count] : groups) {
      lines += fmt::format("PE {}: {} block{} of kernel {}: {}\n", pe_.rank(), count,
                           count == 1 ? "" : more, grid->name(), what);
    }
    const std::uint64_t outside = grid->blocks() - grid->started_;
    if (outside > 0) {
      lines += fmt::format(
          "PE {}: kernel {} is not resident: {} of its {} blocks have not started, because the GPU "
          "holds {} of them at once; launch at most as many, or let no block wait for another\n",
          pe_.rank(), grid->name(), outside, grid->blocks(), grid->resident_.size());
    }
  }
  return lines;
}

std::string joined(const std::string& lines) {
  std::string sentence;
  for (const char c : lines) {
    if (c == '\n') {
      sentence += "; ";
    } else {
      sentence += c;
    }
  }
  if (sentence.ends_with("; ")) sentence.resize(sentence.size() - 2);
  return sentence;
}

}  // namespace towpath::gpu
