// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <coroutine>
#include <cstddef>
#include <utility>

#include "towpath/base/invariant.hpp"

namespace towpath::live {

// Memory for the frames of successive coroutines, so that a call does not allocate.
struct Frame {
  static constexpr std::size_t kBytes = 4096;  // several times the largest frame
  alignas(64) std::byte bytes[kBytes];
};

// A coroutine that is resumed until it is done. Its first parameter has a member `frame`. An
// exception ends it and leaves resume().
class Task {
 public:
  struct promise_type {
    template <typename Owner, typename... Others>
    static void* operator new(std::size_t size, Owner& owner, Others&&...) {
      TOWPATH_CHECK(size <= Frame::kBytes, "a coroutine's frame of {} bytes has room", size);
      return owner.frame.bytes;
    }
    static void operator delete(void*) {}
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; }
  };

  Task() = default;
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    clear();
    handle_ = std::exchange(other.handle_, nullptr);
    return *this;
  }
  ~Task() { clear(); }

  bool is_done() const { return !handle_ || handle_.done(); }
  void resume() { handle_.resume(); }
  void clear() {
    if (handle_) std::exchange(handle_, nullptr).destroy();
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace towpath::live
