// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "towpath/gpu/block.hpp"
#include "towpath/gpu/device.hpp"
#include "towpath/gpu/device_memory.hpp"
#include "towpath/gpu/errors.hpp"
#include "towpath/gpu/hazard_monitor.hpp"
#include "towpath/gpu/heap.hpp"
#include "towpath/gpu/host_program.hpp"
#include "towpath/gpu/include/towpath_gpu.h"
#include "towpath/gpu/meeting.hpp"
#include "towpath/gpu/memory_check.hpp"
#include "towpath/gpu/object.hpp"
#include "towpath/gpu/outstanding.hpp"
#include "towpath/gpu/pollers.hpp"
#include "towpath/gpu/profile.hpp"
#include "towpath/gpu/race_monitor.hpp"
#include "towpath/gpu/streams.hpp"
#include "towpath/gpu/thread_stack.hpp"
#include "towpath/machine/kernel_cost.hpp"
#include "towpath/sim/simulation.hpp"
#include "towpath/transport/remote_memory.hpp"
#include "towpath/transport/transport.hpp"

// One PE: a GPU, the host program in front of it, and its part of the symmetric heap. The same
// class serves a simulated machine, with one simulation of all PEs, and a live run, in which each
// process has one PE and a simulation in which no time passes.

namespace towpath::gpu {

class Pe;

// Zero: no limit.
inline constexpr Time kKernelLimit = Time::from_seconds(30);

// The state that the PEs of one simulation share. A live run has one PE in it.
struct Run {
  sim::Simulation& simulation;
  ThreadStack& stack;
  int ranks;
  int ranks_per_host;
  std::vector<Pe*> pes;  // by rank, null for PEs of other processes
  Time timeout = Time::from_seconds(60);
  std::exception_ptr failure{};  // of a kernel or a host program, which ends the run
  bool is_over = false;          // no PE meets another one any more
  Profile* profile = nullptr;    // null: no record
  RaceMonitor* races = nullptr;  // null: races of blocks are not looked for
  // A note about a run that is correct, but relies on more than NVSHMEM guarantees.
  std::set<std::string> remarks{};
  Meeting* meeting = nullptr;  // of a live run
  // The processor time for which a thread of a kernel may compute without a wait.
  Time kernel_limit = kKernelLimit;
  Block* running = nullptr;   // whose threads run now
  std::uint64_t resumes = 0;  // of threads, by now
};

struct CopyRequest {
  void* to = nullptr;
  const void* from = nullptr;  // null: bytes are filled with `value`
  std::uint64_t size_bytes = 0;
  abi::CopyKind kind = abi::CopyKind::on_device;
  int value = 0;
};

class Pe {
 public:
  struct Options {
    const machine::KernelCost* cost = nullptr;  // null: a live run
    Time launch{};
    Rate peer_rate{};                                    // of its links to the GPUs of its host
    std::uint64_t heap_bytes = std::uint64_t{64} << 30;  // of the transport
    std::string gpu_name;
  };
  Pe(Run& run, transport::Transport& transport, std::unique_ptr<LoadedObject> object,
     const Options& options);
  ~Pe();
  Pe(const Pe&) = delete;
  Pe& operator=(const Pe&) = delete;

  int rank() const { return transport_.rank(); }
  Run& run() const { return run_; }
  sim::Simulation& simulation() const { return run_.simulation; }
  transport::Transport& transport() const { return transport_; }
  transport::RemoteMemory& remote_memory() const { return remote_memory_; }
  const LoadedObject& object() const { return *object_; }
  abi::Current& current() { return *object_->object().current; }
  Device& device() { return device_; }
  Streams& streams() { return streams_; }
  HostProgram& host() { return host_; }
  Heap& heap() { return heap_; }
  Outstanding& outstanding() { return outstanding_; }
  MemoryCheck& memory() { return memory_check_; }
  Pollers& pollers() { return pollers_; }
  HazardMonitor& hazards() { return hazards_; }
  bool is_timed() const { return options_.cost != nullptr; }
  const machine::KernelCost& cost() const { return *options_.cost; }
  const Options& options() const { return options_; }

  // The block whose thread runs now. Null while the host program runs.
  Block* running_block = nullptr;

  // --- for the host program ---------------------------------------------------------------------
  int launch(const abi::Launch& launch);
  int launch_kernel(const abi::Kernel& kernel, const abi::Configuration& configuration,
                    void** arguments, bool is_collective);
  // Runs a function that was registered like a kernel in the host program itself. `arguments` are
  // words with the bytes of one argument each.
  void call_host(const abi::Kernel& function, std::vector<std::uint64_t>& arguments);
  DeviceMemory& device_memory() { return device_memory_; }
  int copy(const CopyRequest& request, void* stream, bool is_asynchronous);
  // Collective: all PEs must make these calls in the same order.
  void initialize(int rank, int ranks, const abi::Site& site);
  void begin_finalize(const abi::Site& site);
  void finalize() { is_initialized_ = false; }
  // main() has ended, in the way given by `how`.
  void end_program(const std::string& how);
  void* symmetric_malloc(std::uint64_t size_bytes, std::uint64_t alignment, bool is_zeroed,
                         const abi::Site& site);
  void symmetric_free(void* address, const abi::Site& site);

  // --- for blocks -------------------------------------------------------------------------------
  // Re-enables checks of the running thread's accesses.
  void forget_quiet_ranges();
  // These bytes of a heap are read or changed without signals and waits.
  void note_plain(const void* address, std::uint64_t size_bytes);
  // A volatile store to the memory of a peer, which other threads may poll. Returns its number in
  // the profile.
  std::uint64_t note_flag(Block& block, volatile void* address, unsigned size_bytes) const;

  // Its waits, one sentence per line.
  std::string waiting() const;

 private:
  void agree(const Meeting::Statement& statement);
  Time time_of_copy(std::uint64_t size_bytes, abi::CopyKind kind) const;
  // Adds work to a stream of the profile. Returns its number there.
  std::uint64_t note_work(Profile::StreamWork work, void* stream, const std::string& name);

  Run& run_;
  transport::Transport& transport_;
  transport::RemoteMemory& remote_memory_;
  std::unique_ptr<LoadedObject> object_;
  Options options_;
  Device device_;
  Streams streams_;
  HostProgram host_;
  Heap heap_;
  MemoryCheck memory_check_;
  DeviceMemory device_memory_;
  bool is_initialized_ = false;
  Outstanding outstanding_;
  Pollers pollers_;
  HazardMonitor hazards_;
};

// Binds the functions that the compiled source calls to a PE.
void fill_table(Pe& pe);

}  // namespace towpath::gpu
