// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Clocks of the C library, on which std::chrono rests. Threads of NCCL and of virtual GPUs read
// real time, because they measure how long they wait.

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <utility>

#include "towpath/virtual_gpu/device/clock.hpp"

using namespace towpath::virtual_gpu;

namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;

bool is_of_program(clockid_t clock) {
  return !reads_real_time() && (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC ||
                                clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME);
}

// The real clock when the program first read one.
std::int64_t begin_of(clockid_t clock) {
  timespec now{};
  syscall(SYS_clock_gettime, clock, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

std::int64_t time_of(clockid_t clock) {
  static const std::int64_t realtime = begin_of(CLOCK_REALTIME);
  static const std::int64_t monotonic = begin_of(CLOCK_MONOTONIC);
  return (clock == CLOCK_REALTIME ? realtime : monotonic) + read_clock_ns();
}

struct Start {
  void* (*function)(void*);
  void* argument;
};

void* start_with_real_time(void* given) {
  const Start start = *static_cast<Start*>(given);
  delete static_cast<Start*>(given);
  read_real_time();
  return start.function(start.argument);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (!is_of_program(clock)) {
    return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  }
  const std::int64_t now = time_of(clock);
  *time = {now / kSecondNs, now % kSecondNs};
  return 0;
}

int gettimeofday(timeval* time, void*) noexcept {
  timespec now;
  const int status = clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return status;
}

// A program that sleeps does so in real time, in which its kernels continue, and in simulated time.
// Threads that sleep at the same time share it.
int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  const bool is_moved = flags == 0 && is_of_program(clock);
  const std::int64_t begin_ns = now_ns();
  const int earlier = errno;
  if (syscall(SYS_clock_nanosleep, clock, flags, time, left) != 0) {
    return std::exchange(errno, earlier);
  }
  if (is_moved) reach(begin_ns + time->tv_sec * kSecondNs + time->tv_nsec);
  return 0;
}
int nanosleep(const timespec* time, timespec* left) {
  const int error = clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);
  if (error == 0) return 0;
  errno = error;
  return -1;
}
int usleep(useconds_t microseconds) {
  const timespec time{microseconds / 1'000'000, microseconds % 1'000'000 * 1'000L};
  return nanosleep(&time, nullptr);
}
unsigned sleep(unsigned seconds) {
  timespec time{seconds, 0};
  return nanosleep(&time, &time) == 0 ? 0 : static_cast<unsigned>(time.tv_sec);
}

// The linker gives NCCL's threads this start.
int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                          void* (*function)(void*), void* argument);
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                          void* (*function)(void*), void* argument) {
  return __real_pthread_create(thread, attributes, start_with_real_time,
                               new Start{function, argument});
}

}  // extern "C"
