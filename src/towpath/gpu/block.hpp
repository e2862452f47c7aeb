// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/gpu/block_work.hpp"
#include "towpath/gpu/fences.hpp"
#include "towpath/gpu/hazard_monitor.hpp"
#include "towpath/gpu/include/towpath_gpu.h"
#include "towpath/gpu/profile.hpp"
#include "towpath/gpu/shared_memory.hpp"
#include "towpath/gpu/thread_groups.hpp"
#include "towpath/gpu/thread_stack.hpp"

// A resident thread block. Its threads run one after the other, each until it waits, in zero
// simulated time. Their memory accesses are counted (BlockWork) and converted to time when they
// synchronize (ThreadGroups, Fences), call the library (Operation, WaitRecord) or end.

namespace towpath::gpu {

namespace abi = towpath_gpu;

class Pe;
class Grid;

// The bytes that a thread has polled, up to 16 at once.
struct PolledValue {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const PolledValue&) const = default;
};

struct Thread {
  enum class State : std::uint8_t { ready, in_group, waiting, finished };

  ThreadStack::Saved stack;
  std::uint64_t value = 0;  // before and after an exchange
  abi::Site site{};         // of the call in which it waits
  const volatile void* polled = nullptr;
  PolledValue polled_value{};
  std::int32_t operand = 0;  // of an exchange
  State state = State::ready;
  bool is_polling = false;
};

class Block {
 public:
  Block(Pe& pe, Grid& grid, abi::Index3 index, int multiprocessor);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Pe& pe() const { return pe_; }
  Grid& grid() const { return grid_; }
  int multiprocessor() const { return multiprocessor_; }
  int lane() const { return lane_; }
  int threads() const { return static_cast<int>(threads_.size()); }
  Thread& thread(int index) { return threads_[static_cast<std::size_t>(index)]; }
  Thread& running() { return thread(running_); }
  int running_index() const { return running_; }
  BlockWork& work() { return work_; }
  ThreadGroups& groups() { return groups_; }
  Fences& fences() { return fences_; }
  const SharedMemory& shared_memory() const { return shared_memory_; }
  // Null without a record.
  BlockTimeline* timeline() { return timeline_.get(); }
  // The order of events that the block has observed. Null in a live run.
  History* history() const { return history_; }
  // "block (3,0,0) of all_reduce on PE 2"
  std::string describe() const;
  // The calls in which its threads wait, one sentence.
  std::string waiting() const;

  // --- events ---------------------------------------------------------------------------------
  void make_ready(int thread);
  // The words that a thread waits for have changed.
  void woken(int thread, Profile::Words words);
  void release_grid_barrier(Moment all);
  // Its residence on the multiprocessor has ended. Later blocks of this PE have observed everything
  // that it has observed.
  void hand_on();

  // --- calls of the running thread --------------------------------------------------------------
  void sync_grid(const abi::Site& site);
  void sleep(Time duration);
  void* shared(const abi::SharedVariable& variable);
  void* dynamic_shared();
  // Never returns: an error ends the run.
  [[noreturn]] void halt();
  // Waits until make_ready(). The second form is recorded. The third also sets the state of the
  // thread, which the other forms expect to be set.
  void suspend(const abi::Site& site);
  void suspend_for(Activity activity, const abi::Site& site);
  void wait_for_event(Activity activity, const abi::Site& site);
  // The thread has ended.
  void thread_finished();
  // Waits until a time.
  void reach(Time when);
  // All earlier events count as observed by the block.
  void learn_everything();

 private:
  std::unique_ptr<BlockTimeline> new_timeline() const;
  // Runs all threads that are ready.
  void run();
  void schedule();
  static void run_thread(void* block);
  void enter(int thread);

  Pe& pe_;
  Grid& grid_;
  abi::Index3 index_;
  int multiprocessor_;
  int lane_;
  std::vector<Thread> threads_;
  std::vector<std::uint16_t> ready_;
  std::size_t next_ready_ = 0;
  int running_ = -1;
  int finished_ = 0;
  bool is_scheduled_ = false;
  bool is_running_ = false;
  std::unique_ptr<BlockTimeline> timeline_;
  History* history_ = nullptr;
  BlockWork work_;
  ThreadGroups groups_;
  Fences fences_;
  SharedMemory shared_memory_;
};

// "call at FILE:LINE"
std::string place_of(const abi::Site& site);

}  // namespace towpath::gpu
