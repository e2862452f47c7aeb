// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "towpath/virtual_gpu/device/kernels.hpp"
#include "towpath/virtual_gpu/device/stacks.hpp"
#include "towpath_gpu.h"

namespace towpath::virtual_gpu {

// Some threads of a block.
class ThreadSet {
 public:
  void add(int thread) { words_[word(thread)] |= bit(thread); }
  void remove(int thread) { words_[word(thread)] &= ~bit(thread); }
  void clear() { words_ = {}; }
  // Calls function(thread) in the order of threads.
  template <typename Function>
  void for_each(Function function) const {
    for (int i = 0; i < kWords; ++i) {
      for (std::uint64_t left = words_[static_cast<std::size_t>(i)]; left != 0; left &= left - 1) {
        function(64 * i + std::countr_zero(left));
      }
    }
  }

 private:
  static constexpr int kWords = abi::kThreadsPerBlockMax / 64;
  static std::size_t word(int thread) { return static_cast<std::size_t>(thread / 64); }
  static std::uint64_t bit(int thread) { return std::uint64_t{1} << (thread % 64); }
  std::array<std::uint64_t, kWords> words_{};
};

// A thread of a kernel. It has a stack from its first instruction to its last one.
struct DeviceThread {
  void* context = nullptr;
  std::byte* stack = nullptr;
  std::uint64_t value = 0;  // of a vote or a shuffle, and its result
  int operand = 0;
  abi::Index3 index{};
  abi::Polls polls{};
};

// A resident block. Its threads run one after the other on the operating-system thread of a worker,
// each until it waits, in the order of their numbers from one synchronization to the next.
class ThreadBlock {
 public:
  ThreadBlock(Grid& grid, std::uint64_t number, Stacks& stacks);
  ~ThreadBlock();
  ThreadBlock(const ThreadBlock&) = delete;
  ThreadBlock& operator=(const ThreadBlock&) = delete;

  Grid& grid() const { return grid_; }
  std::uint64_t number() const { return number_; }
  int threads() const { return count_; }
  bool has_ended() const { return ended_ == count_; }
  bool has_ready() const { return ready_count_ > 0; }
  // Runs threads until none is ready, or each has had many turns.
  void run();
  // Spinning threads continue if a word that they polled has changed. True if one does.
  bool wake_changed();
  // All spinning threads look again.
  void wake_all();
  // "block 3 of ncclDevKernel_... on GPU 2"
  std::string describe() const;
  // The reasons for which its threads wait: "32 threads spin at 0x7f.., barrier 1 has 64 of 96
  // threads".
  std::string waiting();
  // Writes the sentence on a thread that has used more than its stack. False if none has. For a
  // signal handler: `stack_pointer` is of the running thread.
  bool explain_full_stack(std::uintptr_t stack_pointer, char* text, std::size_t size) const;

  // --- calls of the running thread ---
  int sync_named(unsigned id, unsigned threads, abi::NamedBarrier action, int vote);
  std::uint64_t exchange(abi::Exchange kind, std::uint32_t mask, std::uint64_t value, int operand,
                         int width);
  void wait_for_change();
  // Other threads and blocks go first.
  void yield();
  [[noreturn]] void end_thread();

 private:
  struct Barrier {
    int size = 0;  // zero: all threads that have not ended
    int arrived = 0;
    int votes = 0;
    bool has_result = false;  // for its threads
    ThreadSet waiting;
  };
  // Lanes of a warp that meet.
  struct Meeting {
    int warp;
    std::uint32_t mask, present;
    abi::Exchange kind;
    int width;
  };

  static void thread_body();
  void note_end();
  void show_memory();
  std::string reason_of_library(const abi::Polls& polls);
  void check_stack() const;
  [[noreturn]] void leave_stack(int next);
  void prepare(int number);
  bool is_full(const Meeting& meeting) const;
  DeviceThread& thread(int number) { return threads_[static_cast<std::size_t>(number)]; }
  int running() const;
  void make_ready(int number);
  // The next thread runs. Returns when this one is continued.
  void suspend();
  // -1 if no thread is ready or the block has had its turn.
  int next_ready();
  void enter(int number);
  void complete_if_full(Barrier& barrier);
  void complete(Meeting& meeting);
  bool spins(int warp, std::uint32_t mask);
  bool has_changed(const DeviceThread& one) const;
  void continue_polling(int number);
  Meeting& meeting_of(std::uint32_t mask, abi::Exchange kind, int width);

  Grid& grid_;
  std::uint64_t number_;
  Stacks& stacks_;
  int count_;
  int ended_ = 0;
  std::vector<DeviceThread> threads_;
  std::vector<std::uint16_t> ready_;  // a ring of as many places as threads
  std::size_t ready_begin_ = 0, ready_count_ = 0;
  int turns_left_ = 0;
  void* worker_ = nullptr;  // its context
  ThreadSet polling_;
  std::vector<std::uint32_t> alive_;  // lanes of each warp
  std::array<Barrier, abi::kNamedBarriers> barriers_;
  std::vector<Meeting> meetings_;
  // Lanes that spin in a vote, by warp.
  std::vector<std::uint32_t> spinning_;
  // Room for __shared__ variables, then the dynamic shared memory.
  std::unique_ptr<std::byte[]> shared_;
  std::uint64_t static_bytes_ = 0, shared_bytes_ = 0;
};

// The block whose thread runs on this operating-system thread.
ThreadBlock& running_block();

}  // namespace towpath::virtual_gpu
