// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/code_ticks.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <system_error>

#include "towpath/os/code_fault.hpp"
#include "towpath/os/library_copy.hpp"

namespace towpath::os {

namespace {

constexpr int kSignal = SIGVTALRM;
constexpr std::int64_t kPsPerNs = 1000;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

}  // namespace

void CodeTicks::on_signal(int, siginfo_t* info, void* context) {
  const int error = errno;
  if (info->si_code == SI_TIMER) {
    const auto& ticks = *static_cast<const CodeTicks*>(info->si_value.sival_ptr);
    const void* const instruction = interrupted_instruction(context);
    if (LibraryCopy::has(instruction)) ticks.call_.function(ticks.call_.context);
  }
  errno = error;
}

CodeTicks::CodeTicks(Time interval, Call call) : call_(call) {
  if (interval <= Time()) return;
  static std::once_flag installed;
  std::call_once(installed, [] {
    struct sigaction action = {};
    action.sa_sigaction = &CodeTicks::on_signal;
    // The call may not return, so its signal must not stay blocked.
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(kSignal, &action, nullptr);
  });
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kSignal;
  event.sigev_value.sival_ptr = this;
  event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));
  if (::timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) != 0) {
    throw std::system_error(errno, std::generic_category(), "timer_create");
  }
  is_armed_ = true;
  const std::int64_t ns = interval.ps() / kPsPerNs;
  itimerspec period = {};
  period.it_interval = {.tv_sec = ns / kNsPerSecond, .tv_nsec = ns % kNsPerSecond};
  period.it_value = period.it_interval;
  ::timer_settime(timer_, 0, &period, nullptr);
}

CodeTicks::~CodeTicks() {
  if (is_armed_) ::timer_delete(timer_);
}

}  // namespace towpath::os
