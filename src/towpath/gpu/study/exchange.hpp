// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "towpath/base/units.hpp"
#include "towpath/machine/machine.hpp"

// Two GPUs exchange a buffer, one slice per block: the kernels of a worklog on NVSHMEM, step by
// step.

namespace towpath::gpu::study {

enum class ExchangeStage : std::uint8_t {
  // Put. The host waits for all GPUs and copies, which is not part of the kernel.
  plain,
  // Put, fence by all threads, signal by one, wait by all, copy by words of 2 bytes.
  separate_signal,
  // Put with signal, wait by one thread, copy by words of 16 bytes.
  fused_signal,
};

struct ExchangeOptions {
  ExchangeStage stage = ExchangeStage::fused_signal;
  std::uint64_t size_bytes = 0;
  int threads = 512;          // of a block
  int bytes_per_thread = 16;  // a block's slice over its threads
  int first = 0;              // the two GPUs
  int second = 1;
};

// The time of the slower kernel, from the start of its first block, without a launch. Throws
// std::invalid_argument for a machine without costs of kernels, for missing GPUs, and if the slices
// do not divide the buffer.
Time exchange_time(std::shared_ptr<const machine::Machine> machine, const ExchangeOptions& options);

}  // namespace towpath::gpu::study
