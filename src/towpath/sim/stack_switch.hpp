// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/context/stack_context.hpp>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace towpath::sim {

// Notifies the address and thread sanitizers of stack switches, which they cannot detect. Each call
// is next to a switch. Without a sanitizer the calls are empty.
class StackSwitch {
 public:
#if defined(__SANITIZE_ADDRESS__)
  void set_stack(const boost::context::stack_context& stack) {
    own_ = {static_cast<const char*>(stack.sp) - stack.size, stack.size};
  }
  void before_entering() {
    __sanitizer_start_switch_fiber(&caller_frames_, own_.bottom, own_.size_bytes);
  }
  void after_entering() {
    __sanitizer_finish_switch_fiber(own_frames_, &caller_.bottom, &caller_.size_bytes);
  }
  void before_leaving() {
    __sanitizer_start_switch_fiber(&own_frames_, caller_.bottom, caller_.size_bytes);
  }
  void before_finishing() {
    __sanitizer_start_switch_fiber(nullptr, caller_.bottom, caller_.size_bytes);
  }
  void after_leaving() { __sanitizer_finish_switch_fiber(caller_frames_, nullptr, nullptr); }

 private:
  struct Stack {
    const void* bottom = nullptr;
    std::size_t size_bytes = 0;
  };
  Stack own_;
  Stack caller_;
  void* own_frames_ = nullptr;
  void* caller_frames_ = nullptr;
#elif defined(__SANITIZE_THREAD__)
  StackSwitch() = default;
  StackSwitch(const StackSwitch&) = delete;
  StackSwitch& operator=(const StackSwitch&) = delete;
  ~StackSwitch() {
    if (own_ != nullptr) __tsan_destroy_fiber(own_);
  }
  void set_stack(const boost::context::stack_context&) { own_ = __tsan_create_fiber(0); }
  // Uses the fiber that enters, which may belong to another thread each time. The calls around a
  // switch then enter and leave on the same stack, including at the end of a process.
  void before_entering() {
    caller_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(own_, 0);
  }
  void after_leaving() { __tsan_switch_to_fiber(caller_, 0); }
  void after_entering() {}
  void before_leaving() {}
  void before_finishing() {}

 private:
  void* own_ = nullptr;
  void* caller_ = nullptr;
#else
  void set_stack(const boost::context::stack_context&) {}
  void before_entering() {}
  void after_entering() {}
  void before_leaving() {}
  void before_finishing() {}
  void after_leaving() {}
#endif
};

}  // namespace towpath::sim
