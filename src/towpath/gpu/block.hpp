// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/gpu/include/towpath_gpu.h"
#include "towpath/gpu/knowledge.hpp"
#include "towpath/gpu/profile.hpp"
#include "towpath/gpu/thread_stack.hpp"
#include "towpath/gpu/work.hpp"

// A resident thread block. Its threads run one after the other until each of them waits; a call of
// run() takes no simulated time. What the threads did to memory is counted, and becomes time when
// they synchronize, call the library or end.

namespace towpath::gpu {

namespace abi = towpath_gpu;

class Pe;
class Grid;
struct WaitRecord;

struct Thread {
  enum class State : std::uint8_t { ready, in_group, waiting, finished };

  ThreadStack::Saved stack;
  std::uint64_t value = 0;  // given to an exchange, or its result
  abi::Site site{};         // of the call in which it waits
  const volatile void* polled = nullptr;
  std::uint64_t polled_value = 0;
  std::int32_t operand = 0;  // of an exchange
  State state = State::ready;
  bool is_polling = false;
};

// Threads that go on together: the block, or lanes of a warp, at a barrier, a vote, a shuffle or a
// transfer.
struct Group {
  std::uint32_t mask = 0;     // of a warp's lanes; unused by the block
  std::uint32_t present = 0;  // lanes that have come
  int first_thread = 0;
  int size = 0;  // threads that must come
  int arrived = 0;
  Time latest{};     // when the last of them is there
  abi::Site site{};  // where the first of them is
  // What they do together, of the last that came.
  int reduction = 0;
  int sum = 0;
  bool all = true;
  bool any = false;
  abi::Exchange exchange = abi::Exchange::index;
  int width = abi::kWarpThreads;
};

// What the running thread gives to a vote or a shuffle of its warp.
struct ExchangeRequest {
  abi::Exchange kind = abi::Exchange::index;
  std::uint32_t mask = 0;
  std::uint64_t value = 0;
  int operand = 0;
  int width = abi::kWarpThreads;
};

class Block {
 public:
  Block(Pe& pe, Grid& grid, abi::Index3 index, int multiprocessor);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Grid& grid() const { return grid_; }
  abi::Index3 index() const { return index_; }
  int multiprocessor() const { return multiprocessor_; }
  const Thread& thread(int index) const { return threads_[static_cast<std::size_t>(index)]; }
  int threads() const { return static_cast<int>(threads_.size()); }
  int lane() const { return lane_; }
  Thread& running() { return threads_[static_cast<std::size_t>(running_)]; }
  int running_index() const { return running_; }
  // "block (3,0,0) of all_reduce on PE 2"
  std::string describe() const;
  // Where its threads wait, one sentence; `waits` adds what the PE knows of them.
  std::string waiting() const;

  // All threads that can go on do. From an event, not from a thread.
  void run();
  void make_ready(int thread);

  // --- by the running thread ----------------------------------------------------------------
  int sync(int reduction, int predicate, const abi::Site& site);
  void sync_warp(std::uint32_t mask, const abi::Site& site);
  std::uint64_t exchange(const ExchangeRequest& request, const abi::Site& site);
  void sync_grid(const abi::Site& site);
  // A transfer of a thread, a warp or the block; returns when its source may be changed, or its
  // target read.
  void access(abi::Access& access, const abi::Site& site);
  void fence(bool is_quiet, const abi::Site& site);
  // The same for the block's own stores, without the library's transfers.
  void thread_fence(abi::FenceScope scope, const abi::Site& site);
  std::uint64_t wait(const abi::Wait& wait, const abi::Site& site);
  void sleep(Time duration);
  // Waits until another value is there, or something else makes looking again worthwhile.
  void poll(const volatile void* address, unsigned size_bytes);
  void* shared(const void* key, std::uint64_t size_bytes, std::uint64_t alignment);
  void* dynamic_shared();
  // The running thread goes on no more: an error ends the run.
  [[noreturn]] void halt();
  // It waits until somebody calls make_ready().
  void suspend(const abi::Site& site);
  // When the running thread has done what it did to memory.
  Time thread_time();
  // Waits until then.
  void reach(Time when);

  // What the block can know of the others; null where nothing is timed.
  History* history() { return history_; }
  const History* history() const { return history_; }
  // All that has happened so far, the block may know of.
  void learn_everything();
  // Its stay on the multiprocessor is over: who comes later on this PE knows what it knew.
  void hand_on();

  // Null where nothing is recorded.
  BlockTimeline* timeline() { return timeline_.get(); }

  // --- by the PE ------------------------------------------------------------------------------
  void release_grid_barrier(Moment all);
  std::uint64_t shared_bytes() const { return shared_used_; }
  // The words that a thread waits for have changed.
  void woken(int thread, Profile::Words words);

 private:
  friend struct Operation;
  struct Segment {
    Time begin{};
    Work work{};
  };
  struct Slot {
    const void* key;
    std::uint64_t offset;
  };

  // The running thread suspends, and the timeline says for what.
  void suspend_for(Activity activity, const abi::Site& site);
  void start_timeline();
  void schedule();
  static void run_thread(void* block);
  void enter(int thread);
  void fold_counters();
  void close_segment();
  Time busy_until();
  Group& warp_group(std::uint32_t mask, const abi::Site& site);
  // The running thread is there; true when it is the last.
  bool arrive(Group& group, const abi::Site& site);
  void complete(Group& group, bool is_block);
  void finish_exchange(Group& group);
  void release(Group& group);
  void leave_groups();
  void thread_finished();
  void start_group_access(Group& group, const abi::Access& access, const abi::Site& site);
  // The signals that ended a wait, the block knows of.
  void learn_from(const WaitRecord& wait);
  void note_wait(const abi::Wait& call);
  void flush_fences();
  void start_fence();
  void flush_thread_fences();
  Time acknowledgement() const;
  void allocate_shared();
  [[noreturn]] void refuse_divergence(const Group& group, const abi::Site& site);

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

  History* history_ = nullptr;
  std::unique_ptr<BlockTimeline> timeline_;
  Segment segment_;
  Time floor_{};  // earlier segments end then
  Group block_group_;
  std::list<Group> warp_groups_;        // open ones
  std::vector<std::uint16_t> fencing_;  // threads in a fence or quiet
  bool fencing_is_quiet_ = false;
  Time fencing_from_{};
  struct ThreadFence {
    std::vector<std::uint16_t> threads{};
    bool is_of_system = false;
    Time from{};
  };
  ThreadFence thread_fence_;  // of threads that came to it together
  bool has_stored_ = false;   // since the last fence of the system
  bool has_stored_to_peer_ = false;

  std::unique_ptr<std::byte[]> shared_memory_;
  std::uint64_t shared_capacity_ = 0;
  std::uint64_t shared_used_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace towpath::gpu
