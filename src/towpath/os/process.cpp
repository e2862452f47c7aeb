// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/process.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

namespace towpath::os {

int count_cores(std::span<const pid_t> processes) {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (const pid_t process : processes) {
    cpu_set_t own;
    if (::sched_getaffinity(process, sizeof(own), &own) == 0) CPU_OR(&all, &all, &own);
  }
  return std::max(CPU_COUNT(&all), 1);
}

std::optional<std::uint64_t> last_level_cache_bytes() {
  const int core = ::sched_getcpu();
  std::optional<std::uint64_t> largest;
  for (int level = 0;; ++level) {
    std::ifstream file(
        fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}/size", core, level));
    std::uint64_t kibibytes = 0;  // format "32768K"
    if (!(file >> kibibytes)) return largest;
    largest = std::max(largest.value_or(0), kibibytes << 10);
  }
}

bool is_stopped(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // Format "PID (NAME) STATE ...". The name may contain any character.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return false;
  const char state = text[name_end + 2];
  return state == 'T' || state == 't';
}

}  // namespace towpath::os
