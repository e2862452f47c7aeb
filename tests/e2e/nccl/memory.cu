// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Prints the MiB of shared memory, which holds all memory of GPUs, that this process has touched
// once all GPUs have a communicator.

#include <cuda_runtime.h>

#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "check.hpp"

int main() {
  int gpus = 0;
  cudaGetDeviceCount(&gpus);
  std::vector<ncclComm_t> communicators(gpus);
  check(ncclCommInitAll(communicators.data(), gpus, nullptr));
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name;) {
    long kibibytes = 0;
    if (name == "RssShmem:" && status >> kibibytes) std::cout << kibibytes / 1024 << std::endl;
  }
  return 0;
}
