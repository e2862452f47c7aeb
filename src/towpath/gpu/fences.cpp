// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/fences.hpp"

#include <algorithm>
#include <utility>

#include "towpath/gpu/pe.hpp"

namespace towpath::gpu {

void Fences::fence(bool is_quiet, const abi::Site& site) {
  if (!block_.pe().is_timed()) return block_.pe().transport().fence();
  note_release(block_, abi::FenceScope::system);
  library_fence_.from = std::max(library_fence_.from, block_.work().thread_time());
  library_fence_.is_quiet = library_fence_.is_quiet || is_quiet;
  library_fence_.threads.push_back(static_cast<std::uint16_t>(block_.running_index()));
  block_.wait_for_event(Activity::quiet, site);
}

void Fences::flush_library_fence() {
  if (library_fence_.threads.empty()) return;
  sim::Simulation& simulation = block_.pe().simulation();
  if (library_fence_.from <= simulation.now()) return start_library_fence();
  // Until then other threads may join. Their stores are also ordered.
  simulation.at(
      library_fence_.from,
      [](void* fences) { static_cast<Fences*>(fences)->start_library_fence(); }, this);
}

void Fences::start_library_fence() {
  struct Started {
    Block* block;
    LibraryFence fence;
    std::uint64_t last_operation;
    transport::Access access;
    void release() {
      block->history()->complete(block->pe().simulation().now(), last_operation, fence.is_quiet);
      for (const std::uint16_t thread : fence.threads) block->make_ready(thread);
      delete this;
    }
  };
  if (library_fence_.threads.empty()) return;
  Pe& pe = block_.pe();
  auto* const started =
      new Started{&block_, std::exchange(library_fence_, {}), pe.outstanding().last(), {}};
  started->access.kind = transport::AccessKind::fence;
  started->access.issuer = {.threads = static_cast<int>(started->fence.threads.size()),
                            .lane = block_.lane(),
                            .multiprocessor = block_.multiprocessor()};
  started->access.context = started;
  started->access.done = [](transport::Access& access) {
    auto* const ended = static_cast<Started*>(access.context);
    if (!ended->fence.is_quiet) return ended->release();
    ended->block->pe().outstanding().when_quiet([ended] { ended->release(); });
  };
  pe.remote_memory().start(started->access);
}

void Fences::thread_fence(abi::FenceScope scope, const abi::Site& site) {
  if (!block_.pe().is_timed()) return;
  note_release(block_, scope);
  thread_fence_.from = std::max(thread_fence_.from, block_.work().thread_time());
  thread_fence_.is_of_system = thread_fence_.is_of_system || scope == abi::FenceScope::system;
  thread_fence_.threads.push_back(static_cast<std::uint16_t>(block_.running_index()));
  block_.wait_for_event(Activity::quiet, site);
}

// Starts after all earlier work of the block. A device fence lasts until stores are in the L2
// cache. A system fence also waits for stores at peers, and then takes the time of the library's
// fence without adapters. Threads that arrive later have another fence.
void Fences::flush_thread_fence() {
  struct Started {
    Block* block;
    ThreadFence fence;
    transport::Access access;
    void begin() {
      if (!fence.is_of_system) return release();
      access.kind = transport::AccessKind::thread_fence;
      access.issuer = {.threads = static_cast<int>(fence.threads.size()),
                       .lane = block->lane(),
                       .multiprocessor = block->multiprocessor()};
      access.context = this;
      access.done = [](transport::Access& done) { static_cast<Started*>(done.context)->release(); };
      block->pe().remote_memory().start(access);
    }
    void release() {
      for (const std::uint16_t thread : fence.threads) block->make_ready(thread);
      delete this;
    }
  };
  if (thread_fence_.threads.empty()) return;
  const Pe& pe = block_.pe();
  BlockWork& work = block_.work();
  auto* const started = new Started{&block_, std::exchange(thread_fence_, {}), {}};
  const bool is_of_system = started->fence.is_of_system;
  const Time begin = std::max({started->fence.from, pe.simulation().now(), work.busy_until()});
  const Time when = begin + (is_of_system ? work.acknowledgement() : pe.cost().memory_latency);
  if (is_of_system) work.clear_stores();
  pe.simulation().at(when, [](void* due) { static_cast<Started*>(due)->begin(); }, started);
}

}  // namespace towpath::gpu
