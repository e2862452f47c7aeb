// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/study/grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace towpath::gpu::study {

using transport::Access;
using transport::AccessKind;
using transport::MemoryWait;
using transport::Offset;

namespace {

// A process that waits for one event.
struct Waiter {
  sim::Simulation* simulation = nullptr;
  sim::Process* process = nullptr;
  bool is_over = false;

  explicit Waiter(sim::Simulation& simulation)
      : simulation(&simulation), process(simulation.current()) {}
  void wake() {
    is_over = true;
    simulation->wake(*process);
  }
  void suspend(std::string_view waiting_for) {
    while (!is_over) simulation->suspend(waiting_for);
  }
};

struct WordWait : MemoryWait {
  transport::Transport* transport = nullptr;
  std::uint64_t value = 0;
};

}  // namespace

int Block::threads() const { return grid_.launch_.shape.threads; }

void Block::complete(Access& access) {
  Waiter waiter(grid_.simulation_);
  access.context = &waiter;
  access.done = [](Access& done) { static_cast<Waiter*>(done.context)->wake(); };
  grid_.memory_.start(access);
  waiter.suspend("an access");
}

void Block::put(Access& put) {
  put.issuer.threads = threads();
  put.issuer.lane = index_;
  complete(put);
}

void Block::put_without_waiting(Access& put) {
  put.issuer.threads = threads();
  put.issuer.lane = index_;
  grid_.memory_.start(put);
}

void Block::fence(int threads) {
  Access fence;
  fence.kind = AccessKind::fence;
  fence.issuer.threads = threads;
  fence.issuer.lane = index_;
  fence.issuer.multiprocessor = multiprocessor_;
  complete(fence);
}

void Block::signal(int peer, Offset at, std::uint64_t value) {
  Access signal;
  signal.peer = peer;
  signal.has_signal = true;
  signal.signal_at = at;
  signal.signal_value = value;
  signal.issuer.lane = index_;
  complete(signal);
}

void Block::wait(Offset word, std::uint64_t value) {
  Waiter waiter(grid_.simulation_);
  WordWait wait;
  wait.first = word;
  wait.size_bytes = sizeof(value);
  wait.transport = &grid_.transport_;
  wait.value = value;
  wait.context = &waiter;
  wait.holds = [](const MemoryWait& self) {
    const auto& own = static_cast<const WordWait&>(self);
    std::uint64_t now = 0;
    std::memcpy(&now, own.transport->data(own.first), sizeof(now));
    return now >= own.value;
  };
  wait.ready = [](MemoryWait& self) { static_cast<Waiter*>(self.context)->wake(); };
  grid_.memory_.wait(wait);
  waiter.suspend("a signal");
}

void Block::work(const Copy& copy, int barriers) {
  const auto accesses = [&](std::uint64_t bytes) {
    const auto size = static_cast<std::uint64_t>(copy.access_bytes);
    const auto all = static_cast<std::uint64_t>(threads());
    const std::uint64_t count = (bytes + size - 1) / size;
    return Accesses{count, bytes, (count + all - 1) / all};
  };
  const Work work{.threads = threads(),
                  .loads = accesses(copy.loaded_bytes),
                  .stores = accesses(copy.stored_bytes),
                  .barriers = static_cast<std::uint64_t>(barriers)};
  grid_.simulation_.sleep(duration(work, grid_.residency(multiprocessor_), grid_.cost_));
}

Grid::Grid(sim::Simulation& simulation, transport::Transport& transport,
           const machine::KernelCost& cost, const Launch& launch, Body body)
    : simulation_(simulation),
      transport_(transport),
      memory_(*transport.remote_memory()),
      cost_(cost),
      launch_(launch),
      body_(std::move(body)),
      multiprocessors_(launch.multiprocessors_max == 0
                           ? cost.multiprocessors
                           : std::min(cost.multiprocessors, launch.multiprocessors_max)),
      resident_(static_cast<std::size_t>(multiprocessors_)) {
  if (resident_blocks(launch.shape, cost) > 0) return;
  throw std::invalid_argument(
      fmt::format("a block of {} threads does not fit on a multiprocessor, which holds {} threads",
                  launch.shape.threads, cost.threads_per_multiprocessor));
}

void Grid::start() {
  const int slots =
      std::min(launch_.blocks, multiprocessors_ * resident_blocks(launch_.shape, cost_));
  for (int slot = 0; slot < slots; ++slot) {
    simulation_.spawn(fmt::format("rank {}, slot {}", transport_.rank(), slot),
                      [this, slot] { run_slot(slot % multiprocessors_); });
  }
}

void Grid::run_slot(int multiprocessor) {
  int& resident = resident_[static_cast<std::size_t>(multiprocessor)];
  busy_ += resident++ == 0;
  Block block(*this, multiprocessor);
  while (next_ < launch_.blocks) {
    block.index_ = next_++;
    body_(block);
    ++ended_;
  }
  busy_ -= --resident == 0;
  if (running() > 0) return;
  // A kernel ends when its stores are acknowledged.
  transport_.block_until([this] { return transport_.is_quiet(); }, Time::max(), transport::kNoPeer,
                         [] { return "the stores of a kernel"; });
  ended_at_ = simulation_.now();
}

Residency Grid::residency(int multiprocessor) const {
  return {resident_[static_cast<std::size_t>(multiprocessor)], busy_};
}

}  // namespace towpath::gpu::study
