// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/os/code_ticks.hpp"

namespace towpath::gpu {

struct Run;

// Ends a run in which a thread of a kernel computes for too long without a wait. Belongs to the
// thread that runs the kernels.
class KernelLimit {
 public:
  explicit KernelLimit(Run& run);

 private:
  static constexpr int kTicks = 8;  // of the limit
  void tick();

  Run& run_;
  std::uint64_t resumes_ = 0;
  int ticks_ = 0;  // since then
  os::CodeTicks code_ticks_;
};

}  // namespace towpath::gpu
