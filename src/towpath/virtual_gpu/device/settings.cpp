// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/settings.hpp"

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#include "towpath/virtual_gpu/device/stop.hpp"

namespace towpath::virtual_gpu {
namespace {

// Longer than the pauses of a program that works, and a day, which turns the deadline off.
constexpr int kDeadlineS = 60, kDeadlineMaxS = 86'400;

}  // namespace

int deadline_s() { return setting("TOWPATH_VIRTUAL_GPU_DEADLINE_S", 1, kDeadlineMaxS, kDeadlineS); }

int setting(const char* name, int least, int most, int otherwise) {
  const char* const named = std::getenv(name);
  if (named == nullptr) return otherwise;
  const std::string_view text = named;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    stop(std::string("$") + name + " is '" + named + "'; it must be a number from " +
         std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

}  // namespace towpath::virtual_gpu
