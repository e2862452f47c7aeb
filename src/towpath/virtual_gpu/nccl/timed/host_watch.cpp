// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/nccl/timed/host_watch.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "towpath/virtual_gpu/device/clock.hpp"
#include "towpath/virtual_gpu/device/settings.hpp"
#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/device/units.hpp"
#include "towpath/virtual_gpu/nccl/timed/call_record.hpp"
#include "towpath/virtual_gpu/nccl/timed/members.hpp"

namespace towpath::virtual_gpu {
namespace {

constexpr std::chrono::seconds kTick{1};
// A process that only waits uses this much of a processor in a tick, and more for each rank that
// polls its sockets every 50 us. It leaves a part of the processors free.
constexpr double kWaitingPart = 0.5, kWaitingPartOfRank = 0.07, kFreePart = 0.25;

struct Watch {
  std::mutex mutex;
  std::map<std::uint64_t, int> seconds;  // that each call has lasted while the process was quiet
  std::uint64_t next = 0;
  bool has_thread = false;
};

Watch& watch() {
  static Watch* const only = new Watch;
  return *only;
}

double processor_time_s() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

bool is_busy(double used_s, std::size_t calls) {
  const double waiting = kWaitingPart + kWaitingPartOfRank * static_cast<double>(calls);
  const double most = (1 - kFreePart) * std::max(1U, std::thread::hardware_concurrency());
  return used_s > std::min(waiting, most) || is_compiling_unit();
}

[[noreturn]] void run() {
  read_real_time();
  const int deadline = deadline_s();
  double before_s = processor_time_s();
  for (;;) {
    std::this_thread::sleep_for(kTick);
    Watch& all = watch();
    const std::scoped_lock lock(all.mutex);
    const double now_s = processor_time_s();
    const bool works = is_busy(now_s - before_s, all.seconds.size());
    before_s = now_s;
    for (auto& [number, seconds] : all.seconds) {
      if (works || ++seconds <= deadline) continue;
      stop("a call of NCCL does not return: nothing has changed for " + std::to_string(deadline) +
           " s" + explain_calls(CallState::given) + absent_members());
    }
  }
}

}  // namespace

InCall::InCall() : had_real_time_(read_real_time()) {
  Watch& all = watch();
  const std::scoped_lock lock(all.mutex);
  number_ = all.next++;
  all.seconds[number_] = 0;
  if (!all.has_thread) std::thread(run).detach();
  all.has_thread = true;
}

InCall::~InCall() {
  read_real_time(had_real_time_);
  Watch& all = watch();
  const std::scoped_lock lock(all.mutex);
  all.seconds.erase(number_);
  // Calls of other ranks may wait for this one.
  for (auto& [number, seconds] : all.seconds) seconds = 0;
}

}  // namespace towpath::virtual_gpu
