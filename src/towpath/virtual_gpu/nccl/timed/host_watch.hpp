// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Calls of NCCL that do not return, because another rank does not call.

namespace towpath::virtual_gpu {

// The thread is in a call of NCCL while this exists. The process ends with a sentence if it stays
// there for the deadline of kernels, and the process does nothing else. NCCL's sleeps take no
// simulated time.
class InCall {
 public:
  InCall();
  ~InCall();
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  std::uint64_t number_;
  bool had_real_time_;
};

}  // namespace towpath::virtual_gpu
