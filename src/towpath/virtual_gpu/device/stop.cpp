// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/stop.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace towpath::virtual_gpu {

void stop(const std::string& sentence) {
  const std::string line = "towpath: " + sentence + "\n";
  // One write, so that the lines of threads do not mix.
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) _exit(kStoppedStatus + 1);
  _exit(kStoppedStatus);
}

void stop_at_once(const char* sentence) {
  constexpr char kStart[] = "towpath: ";
  constexpr std::size_t kStartLength = sizeof kStart - 1;
  char line[kStartLength + 1001];
  const std::size_t length = std::min<std::size_t>(std::strlen(sentence), 1000);
  std::memcpy(line, kStart, kStartLength);
  std::memcpy(line + kStartLength, sentence, length);
  line[kStartLength + length] = '\n';
  if (write(STDERR_FILENO, line, kStartLength + length + 1) < 0) _exit(kStoppedStatus + 1);
  _exit(kStoppedStatus);
}

void stop_at_unknown(const char* call) {
  stop(std::string("virtual GPUs do not answer ") + call +
       "; report the call and the program that makes it");
}

}  // namespace towpath::virtual_gpu
