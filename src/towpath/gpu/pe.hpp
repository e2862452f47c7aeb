// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "towpath/gpu/block.hpp"
#include "towpath/gpu/device.hpp"
#include "towpath/gpu/errors.hpp"
#include "towpath/gpu/include/towpath_gpu.h"
#include "towpath/gpu/memory_monitor.hpp"
#include "towpath/gpu/object.hpp"
#include "towpath/gpu/profile.hpp"
#include "towpath/gpu/streams.hpp"
#include "towpath/gpu/thread_stack.hpp"
#include "towpath/machine/machine.hpp"
#include "towpath/os/code_fault.hpp"
#include "towpath/sim/simulation.hpp"
#include "towpath/transport/remote_memory.hpp"
#include "towpath/transport/symmetric_heap.hpp"
#include "towpath/transport/transport.hpp"

// One PE: a GPU, the host program in front of it, and its part of the symmetric heap. The same
// class serves a simulated machine, where all PEs share a simulation, and a live run, where each
// process has one PE and a simulation in which no time passes.

namespace towpath::gpu {

class Pe;
struct WaitRecord;

// What the PEs of one simulation share; a live run has one PE in it.
struct Run {
  sim::Simulation& simulation;
  ThreadStack& stack;
  int ranks;
  int ranks_per_host;
  std::vector<Pe*> pes;  // by rank; null where another process has it
  Time timeout = Time::from_seconds(60);
  std::exception_ptr failure{};  // of a kernel; ends the run
  Profile* profile = nullptr;    // null: nothing is recorded
};

struct CopyRequest {
  void* to = nullptr;
  const void* from = nullptr;  // null where bytes are filled with `value`
  std::uint64_t size_bytes = 0;
  abi::CopyKind kind = abi::CopyKind::on_device;
  int value = 0;
};

class Pe {
 public:
  static constexpr std::uint64_t kMemoryBytes = std::uint64_t{64} << 30;  // of the GPU

  struct Options {
    const machine::KernelCost* cost = nullptr;  // null: live, nothing takes time
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
  transport::RemoteMemory& remote_memory() const { return *remote_memory_; }
  const LoadedObject& object() const { return *object_; }
  abi::Current& current() { return *object_->object().current; }
  Device& device() { return device_; }
  Streams& streams() { return streams_; }
  bool is_timed() const { return options_.cost != nullptr; }
  const machine::KernelCost& cost() const { return *options_.cost; }
  const Options& options() const { return options_; }

  // The block whose thread runs now; null while the host program does.
  Block* running_block = nullptr;

  // --- the host program -----------------------------------------------------------------------
  // Starts it as a process of the simulation; its status is there once is_finished().
  void start_main(std::vector<std::string> arguments);
  // The same for a function of this program.
  void start_host(std::function<void()> body);
  // What the code of the source did that the processor refuses, with who did it and where.
  std::runtime_error named(const os::CodeFault& fault, const std::string& who) const;
  bool is_finished() const { return is_finished_; }
  int status() const { return status_; }
  [[noreturn]] void exit(int status);
  // The host program waits; from its process.
  void block_host(const std::function<bool()>& holds, const char* what);
  void wake_host();
  // The host program is unwound soon: it waits for nothing any more.
  void close() { is_closing_ = true; }
  int launch(const abi::Launch& launch);
  const abi::Kernel* find_kernel(const void* function) const;
  const abi::Kernel* find_kernel(const std::string& name) const;
  int launch_kernel(const abi::Kernel& kernel, const abi::Configuration& configuration,
                    void** arguments, bool is_collective);
  // Runs a function that was registered like a kernel in the host program itself. `arguments` are
  // words that begin with the bytes of each.
  void call_host(const abi::Kernel& function, std::vector<std::uint64_t>& arguments);
  void* device_malloc(std::uint64_t size_bytes);
  bool device_free(void* address);
  int copy(const CopyRequest& request, void* stream, bool is_asynchronous);
  Time time_of_copy(std::uint64_t size_bytes, abi::CopyKind kind) const;

  // --- the symmetric heap -----------------------------------------------------------------------
  void initialize(int rank, int ranks, const abi::Site& site);
  void finalize() { is_initialized_ = false; }
  void* symmetric_malloc(std::uint64_t size_bytes, std::uint64_t alignment, bool is_zeroed);
  void symmetric_free(void* address);
  bool register_buffer(void* address, std::uint64_t size_bytes);
  bool unregister_buffer(void* address, bool all);
  void* reach(const void* address, int peer);
  std::uint64_t* team_words(int team);
  bool is_in_heap(const void* address) const;
  transport::Offset offset_of(const void* address) const;
  // From the first to the last heap that loads and stores reach.
  abi::Range all_heaps() const { return all_heaps_; }
  // The rank whose heap holds the address, or kNoPeer.
  int owner_of(const void* address) const;

  // --- what blocks ask ------------------------------------------------------------------------
  std::uint64_t started_operation() {
    outstanding_.insert(++operations_);
    return operations_;
  }
  void operation_visible(std::uint64_t number);
  // Calls `then` once what was started so far is visible.
  void when_quiet(std::function<void()> then);
  void add_poller(Block& block, int thread, unsigned size_bytes);
  // Threads that poll look again, those whose memory has changed, or all of them.
  void look_again();
  // How many there were.
  std::size_t wake_all_pollers();
  bool has_pollers() const { return !pollers_.empty(); }
  void note_store(const volatile void* address, std::uint64_t size_bytes);
  void notify_stores();
  // A store that others may wait for, to a peer's memory; its number in the profile.
  std::uint64_t note_flag(Block& block, volatile void* address, unsigned size_bytes) const;
  // Throw KernelError for memory that a transfer may not name.
  void check_local(const abi::Access& access, const Block& block, const abi::Site& site) const;
  void check_remote(const abi::Access& access, const Block& block, const abi::Site& site) const;

  // --- mistakes ---------------------------------------------------------------------------------
  MemoryMonitor& monitor() { return monitor_; }
  // The running thread's accesses are looked at again.
  void forget_quiet_ranges();
  History& new_history() { return histories_.emplace_back(rank()); }
  // What is over on this PE: who begins now knows it.
  History& past() { return past_; }
  SignalWords& signal_words() { return signal_words_; }
  // Words of a heap that are looked at, or changed, by other means than signals and waits.
  void note_plain(const void* address, std::uint64_t size_bytes);
  // The number of the last operation whose end quiet() awaits.
  std::uint64_t last_operation() const { return operations_; }
  // Throw KernelError: the block reads what it has not waited for; it changes what a put may still
  // read; it sends a signal again before its peer has seen the last one.
  void check_read(const MonitoredTransfer& transfer, const Block& block, const void* where) const;
  void check_sent(std::uintptr_t begin, std::uint64_t size_bytes, const Block& block,
                  const std::string& what) const;
  void check_change(const MonitoredTransfer& transfer, const Block& block, const void* where);
  void check_signal(SignalWord& word, const Signal& signal, const Block& block) const;
  static void check_reuse(SignalWord& word);
  void add_wait(const WaitRecord& wait) { waits_.insert(&wait); }
  void remove_wait(const WaitRecord& wait) { waits_.erase(&wait); }
  // Throws KernelError where a wait for equality was overtaken.
  void check_overshot() const;

  // What it waits for, one sentence per line.
  std::string waiting() const;

 private:
  struct Poller {
    Pe* pe;
    Block* block;
    int thread;
    unsigned size_bytes;
    bool is_shared;  // what it looks at
    transport::MemoryWait wait{};
    bool is_looking = false;
    bool has_changed() const;
  };
  struct Allocation {
    std::uint64_t size_bytes;
    transport::Offset allocated;  // as the transport knows it, before alignment
  };
  struct QuietWait {
    std::uint64_t until;
    std::function<void()> then;
  };
  struct StoredRange {
    int owner;
    transport::Offset first;
    std::uint64_t size_bytes;
  };

  void agree(const std::string& statement);
  void find_heaps();
  bool is_allocated(const void* address, std::uint64_t size_bytes) const;
  void wake_poller(const Poller& poller);
  // Work that is added to a stream now; its number in the profile.
  std::uint64_t note_work(Profile::StreamWork work, void* stream, const std::string& name);
  void notice(Poller& poller);
  void fill_table();

  Run& run_;
  transport::Transport& transport_;
  transport::RemoteMemory* remote_memory_;
  std::unique_ptr<LoadedObject> object_;
  Options options_;
  Device device_;
  Streams streams_;

  sim::Process* host_ = nullptr;
  const char* host_waits_for_ = nullptr;
  bool is_finished_ = false;
  bool is_closing_ = false;
  int status_ = 0;

  bool is_initialized_ = false;
  std::byte* words_ = nullptr;
  std::map<transport::Offset, Allocation> allocations_;
  std::map<std::uintptr_t, std::uint64_t> registered_;
  abi::Range all_heaps_{};
  std::vector<abi::Range> heaps_;  // by rank, as far as loads and stores reach them

  std::byte* memory_ = nullptr;  // of cudaMalloc
  transport::RangeAllocator memory_ranges_;

  std::uint64_t operations_ = 0;
  std::set<std::uint64_t> outstanding_;
  std::vector<QuietWait> quiet_waits_;
  std::vector<std::unique_ptr<Poller>> pollers_;
  MemoryMonitor monitor_;
  std::deque<History> histories_;
  History past_;
  SignalWords signal_words_;
  std::set<const WaitRecord*> waits_;
  std::vector<StoredRange> stored_;
  bool has_stored_ = false;
};

}  // namespace towpath::gpu
