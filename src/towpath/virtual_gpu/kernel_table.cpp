// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// The functions that kernels call on virtual GPUs.

#include <time.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/device/thread_block.hpp"
#include "towpath/virtual_gpu/streams.hpp"
#include "towpath/virtual_gpu/system.hpp"
#include "towpath_gpu_launch.h"

namespace abi = towpath_gpu;
using namespace towpath::virtual_gpu;

namespace {

std::string place_of(const abi::Site& site) {
  if (site.file == nullptr) return site.call;
  return std::string(site.call) + " at " + site.file + ":" + std::to_string(site.line);
}

int sync_block(void*, int reduction, int predicate, const abi::Site*) {
  constexpr abi::NamedBarrier kActions[] = {abi::NamedBarrier::sync, abi::NamedBarrier::popc,
                                            abi::NamedBarrier::vote_and,
                                            abi::NamedBarrier::vote_or};
  return running_block().sync_named(0, 0, kActions[reduction], predicate);
}
int sync_named(void*, unsigned id, unsigned threads, abi::NamedBarrier action, int vote,
               const abi::Site*) {
  return running_block().sync_named(id, threads, action, vote);
}
void sync_warp(void*, unsigned mask, const abi::Site*) {
  running_block().exchange(abi::Exchange::ballot, mask, 0, 0, abi::kWarpThreads);
}
void sync_grid(void*, const abi::Site*) { stop_at_unknown("grid.sync of cooperative groups"); }
std::uint64_t exchange(void*, abi::Exchange kind, unsigned mask, std::uint64_t value, int operand,
                       int width, const abi::Site*) {
  return running_block().exchange(kind, mask, value, operand, width);
}
void thread_fence(void*, abi::FenceScope, const abi::Site*) {}
void sleep(void*, std::uint64_t) { running_block().yield(); }
void exit_thread(void*) { running_block().end_thread(); }
std::uint64_t clock_ns(void*) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}
void wait_for_change(void*) { running_block().wait_for_change(); }
void misaligned(void*, const volatile void* address, unsigned size, bool is_store, const void*) {
  char text[160];
  std::snprintf(text, sizeof text, "%s %u bytes at %p, which is not a multiple of that",
                is_store ? "stores" : "loads", size, const_cast<const void*>(address));
  stop("thread " + std::to_string(towpath_gpu_current.linear) + " of " +
       running_block().describe() + " " + text);
}
void outside_shared(void*, std::uint64_t address, unsigned size, const char* verb, const void*) {
  stop("thread " + std::to_string(towpath_gpu_current.linear) + " of " +
       running_block().describe() + " " + verb + " " + std::to_string(size) +
       " bytes at the shared address " + std::to_string(address) +
       ", which is outside of the block's shared memory");
}
const abi::Replicas* replicas(void*, const void* address) {
  return &towpath::virtual_gpu::system().multicast().replicas(
      reinterpret_cast<std::uintptr_t>(address));
}
void begin_atomic(void*, const volatile void*, unsigned, const void*) {}
void end_atomic(void*, const volatile void*, unsigned) {}
int launch(void*, const abi::Launch* made) {
  return keep(streams().launch(*made, current_device()));
}
int synchronize(void*, void* stream, bool) {
  return streams().synchronize(static_cast<cudaStream_t>(stream));
}
void properties(void*, int* integers, std::uint64_t* sizes, char* name) {
  const Device& device = towpath::virtual_gpu::system()
                             .machine()
                             .devices()[static_cast<std::size_t>(current_device())];
  integers[0] = device.multiprocessors;
  integers[1] = 2048;
  integers[2] = 32;
  integers[3] = abi::kThreadsPerBlockMax;
  sizes[0] = device.memory_bytes;
  sizes[1] = device.shared_bytes;
  sizes[2] = device.shared_bytes + 1024;
  std::snprintf(name, 256, "%s", device.name.c_str());
}
__attribute__((noreturn)) void fail(void*, const char* sentence, const abi::Site* site) {
  stop("thread " + std::to_string(towpath_gpu_current.linear) + " of " +
       running_block().describe() + ": " + sentence + " in " + place_of(*site));
}

}  // namespace

// Functions that are missing here belong to NVSHMEM and to host programs on simulated GPUs.
extern "C" {
constinit const towpath_gpu::Table towpath_gpu_table = [] {
  abi::Table table{};
  table.sync_block = sync_block;
  table.sync_named = sync_named;
  table.sync_warp = sync_warp;
  table.sync_grid = sync_grid;
  table.exchange = exchange;
  table.thread_fence = thread_fence;
  table.sleep = sleep;
  table.exit_thread = exit_thread;
  table.clock_ns = clock_ns;
  table.wait_for_change = wait_for_change;
  table.misaligned = misaligned;
  table.outside_shared = outside_shared;
  table.replicas = replicas;
  table.begin_atomic = begin_atomic;
  table.end_atomic = end_atomic;
  table.launch = launch;
  table.synchronize = synchronize;
  table.properties = properties;
  table.fail = fail;
  return table;
}();
}
