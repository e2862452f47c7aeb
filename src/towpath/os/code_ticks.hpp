// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <time.h>

#include "towpath/base/units.hpp"

namespace towpath::os {

// Interrupts the code of LibraryCopy objects on the thread that creates this, once per interval of
// its processor time. The call comes from a signal handler on the stack of that code, and need not
// return. Other code is not interrupted.
class CodeTicks {
 public:
  struct Call {
    void (*function)(void* context);
    void* context;
  };
  // An interval of zero: no calls. Throws std::system_error.
  CodeTicks(Time interval, Call call);
  ~CodeTicks();
  CodeTicks(const CodeTicks&) = delete;
  CodeTicks& operator=(const CodeTicks&) = delete;

 private:
  static void on_signal(int signal, siginfo_t* info, void* context);

  Call call_;
  timer_t timer_{};
  bool is_armed_ = false;
};

}  // namespace towpath::os
