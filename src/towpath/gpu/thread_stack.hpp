// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The stack on which the threads of kernels run, one at a time. A waiting thread keeps a copy of
// the part of the stack that it uses, a few hundred bytes, and gets it back at the same addresses
// when it continues. A million waiting threads therefore take less than a gigabyte. The copy is
// made only when another thread needs the stack.

namespace towpath::gpu {

class ThreadStack {
 public:
  static constexpr std::size_t kBytes = 256 << 10;

  // A thread's state while it does not run. It must not move from its first resume() until it has
  // finished or forget() was called.
  class Saved {
   public:
    Saved() = default;
    Saved(const Saved&) = delete;
    Saved& operator=(const Saved&) = delete;
    ~Saved();
    bool has_begun() const { return context_ != nullptr; }
    // The copy will be read soon.
    void prefetch() const;

   private:
    friend class ThreadStack;
    void* context_ = nullptr;  // the lowest address in use
    std::byte* bytes_ = nullptr;
    std::uint32_t size_bytes_ = 0;
    std::uint32_t capacity_bytes_ = 0;
  };

  ThreadStack();
  ThreadStack(const ThreadStack&) = delete;
  ThreadStack& operator=(const ThreadStack&) = delete;
  ~ThreadStack();

  std::byte* begin() const { return bytes_; }

  // Runs the thread until it suspends or `body` returns. Returns true if `body` returned. Must not
  // be called from a thread.
  bool resume(Saved& thread, void (*body)(void*), void* argument);
  // The running thread waits for its next resume().
  void suspend();
  // The thread will not continue, and may be destroyed.
  void forget(const Saved& thread) {
    if (occupant_ == &thread) occupant_ = nullptr;
  }
  bool contains(const void* address) const {
    const auto* const byte = static_cast<const std::byte*>(address);
    return byte >= bytes_ && byte < bytes_ + kBytes;
  }

 private:
  std::byte* top() const { return bytes_ + kBytes; }
  void save(Saved& thread) const;
  void restore(const Saved& thread) const;

  std::byte* bytes_;
  void* caller_ = nullptr;     // context of the resumer
  Saved* occupant_ = nullptr;  // owner of the frames on the stack
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
};

}  // namespace towpath::gpu
