// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/stop.hpp"

#include <unistd.h>

namespace towpath::virtual_gpu {

void stop(const std::string& sentence) {
  const std::string line = "towpath: " + sentence + "\n";
  // One write, so that the lines of threads do not mix.
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) _exit(kStoppedStatus + 1);
  _exit(kStoppedStatus);
}

void stop_at_unknown(const char* call) {
  stop(std::string("virtual GPUs do not answer ") + call +
       "; report the call and the program that makes it");
}

}  // namespace towpath::virtual_gpu
