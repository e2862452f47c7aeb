// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/study/rings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <stdexcept>

#include "towpath/base/index.hpp"
#include "towpath/base/invariant.hpp"
#include "towpath/gpu/study/grid.hpp"
#include "towpath/transport/simulated/gpu/gpu_ranks.hpp"

namespace towpath::gpu::study {

using transport::Access;
using transport::Offset;

namespace {

constexpr std::uint64_t kWordBytes = 8;

// A GPU in a ring.
struct Seat {
  int position = 0;
  int next = 0;  // the GPU that it sends to
};

struct Layout {
  int gpus = 0;
  int rings = 1;
  int blocks_of_ring = 0;
  std::uint64_t slice_bytes = 0;  // per send of a block
  Offset destination = 0;
  Offset signals = 0;
  std::vector<std::vector<Seat>> seats;  // per ring and GPU
};

std::vector<std::vector<int>> gpus_by_host(const machine::Machine& machine) {
  std::vector<std::vector<int>> hosts;
  for (int gpu = 0; gpu < machine.ranks(); ++gpu) {
    const bool is_new = gpu == 0 || machine.host_of_rank(gpu) != machine.host_of_rank(gpu - 1);
    if (is_new) hosts.emplace_back();
    hosts.back().push_back(gpu);
  }
  return hosts;
}

// One block of a kernel on one GPU.
class RingBlock {
 public:
  RingBlock(Block& block, const Layout& layout, int gpu)
      : block_(block),
        layout_(layout),
        seat_(layout.seats[index(block.index() / layout.blocks_of_ring)][index(gpu)]),
        signal_(layout.signals + kWordBytes * static_cast<std::uint64_t>(block.index())) {}

  void run_ring(std::deque<Access>& puts);
  void run_simple_ring(std::deque<Access>& puts);

 private:
  void send(std::deque<Access>& puts);
  void receive() { block_.wait(signal_, ++received_); }
  void add() { block_.work({2 * layout_.slice_bytes, layout_.slice_bytes, 16}, 1); }
  void copy() { block_.work({layout_.slice_bytes, layout_.slice_bytes, 16}, 1); }

  Block& block_;
  const Layout& layout_;
  Seat seat_;
  Offset signal_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

// Puts are not awaited, so they outlive the block. Their bytes are not moved: no two puts of a
// block go to the same place.
void RingBlock::send(std::deque<Access>& puts) {
  Access& put = puts.emplace_back();
  put.peer = seat_.next;
  put.remote = layout_.destination;
  put.size_bytes = layout_.slice_bytes;
  put.has_signal = true;
  put.signal_at = signal_;
  put.signal_value = ++sent_;
  block_.put_without_waiting(put);
}

void RingBlock::run_ring(std::deque<Access>& puts) {
  for (int step = 0; step < layout_.gpus - 1; ++step) {
    send(puts);
    receive();
    add();
  }
  for (int step = 0; step < layout_.gpus - 1; ++step) {
    send(puts);
    receive();
    copy();
  }
}

void RingBlock::run_simple_ring(std::deque<Access>& puts) {
  if (seat_.position > 0) {
    receive();
    add();
  }
  send(puts);
  if (seat_.position == layout_.gpus - 1) return;
  receive();
  if (seat_.position < layout_.gpus - 2) send(puts);
  copy();
}

Layout layout_of(const machine::Machine& machine, const RingOptions& options) {
  Layout layout;
  layout.gpus = machine.ranks();
  layout.rings =
      options.alternates ? static_cast<int>(gpus_by_host(machine).front().size()) / 2 * 2 : 1;
  layout.slice_bytes = static_cast<std::uint64_t>(options.threads) *
                       static_cast<std::uint64_t>(options.bytes_per_thread);
  const bool is_chunked = options.kernel == RingKernel::ring;
  const std::uint64_t step_bytes = layout.slice_bytes * static_cast<std::uint64_t>(layout.rings) *
                                   static_cast<std::uint64_t>(is_chunked ? layout.gpus : 1);
  if (step_bytes == 0 || options.size_bytes == 0 || options.size_bytes % step_bytes != 0) {
    throw std::invalid_argument(
        fmt::format("{} bytes cannot be divided among {} rings of {} GPUs with blocks of {} "
                    "threads and {} bytes "
                    "each; use a multiple of {}",
                    options.size_bytes, layout.rings, layout.gpus, options.threads,
                    options.bytes_per_thread, step_bytes));
  }
  layout.blocks_of_ring = static_cast<int>(options.size_bytes / step_bytes);
  for (int ring = 0; ring < layout.rings; ++ring) {
    const std::vector<int> order = ring_order(machine, options.alternates, ring);
    std::vector<Seat>& seats = layout.seats.emplace_back(order.size());
    for (int position = 0; position < layout.gpus; ++position) {
      const int next = order[index((position + 1) % layout.gpus)];
      seats[index(order[index(position)])] = {position, next};
    }
  }
  return layout;
}

}  // namespace

std::vector<int> ring_order(const machine::Machine& machine, bool alternates, int ring) {
  const std::vector<std::vector<int>> hosts = gpus_by_host(machine);
  std::vector<int> order;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    std::vector<int> inside = hosts[host];
    if (alternates) {
      // The ring enters a host at one GPU of the pair and leaves it at the other. The last of an
      // odd number of hosts also goes from the second to the first, so its next hop crosses rails.
      const auto first = static_cast<std::ptrdiff_t>(ring / 2 * 2);
      std::rotate(inside.begin(), inside.begin() + first + 1, inside.end());
      if (host % 2 == 1) std::reverse(inside.begin(), inside.end());
    }
    order.insert(order.end(), inside.begin(), inside.end());
  }
  if (alternates && ring % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

Time all_reduce_time(std::shared_ptr<const machine::Machine> machine, const RingOptions& options) {
  const machine::KernelCost& cost = kernel_cost(*machine);
  Layout layout = layout_of(*machine, options);
  const int blocks = layout.blocks_of_ring * layout.rings;
  sim::Simulation simulation;
  transport::simulated::GpuRanks ranks(simulation, machine, {});
  std::deque<Access> puts;
  std::deque<Grid> grids;
  for (int gpu = 0; gpu < layout.gpus; ++gpu) {
    transport::Transport& transport = ranks.transport(gpu);
    layout.destination = transport.allocate(layout.slice_bytes);
    layout.signals = transport.allocate(kWordBytes * static_cast<std::uint64_t>(blocks));
    grids.emplace_back(
        simulation, transport, cost,
        Launch{.shape = {.threads = options.threads}, .blocks = blocks}, [&, gpu](Block& block) {
          RingBlock own(block, layout, gpu);
          options.kernel == RingKernel::ring ? own.run_ring(puts) : own.run_simple_ring(puts);
        });
  }
  for (Grid& grid : grids) grid.start();
  simulation.run();
  Time ended;
  for (const Grid& grid : grids) {
    TOWPATH_CHECK(grid.running() == 0, "{} blocks of a ring wait and nothing is under way",
                  grid.running());
    ended = std::max(ended, grid.ended_at());
  }
  return ended;
}

}  // namespace towpath::gpu::study
