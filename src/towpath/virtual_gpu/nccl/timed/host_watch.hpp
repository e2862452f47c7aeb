// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Calls of NCCL that do not return, because another rank does not call.

namespace towpath::virtual_gpu {

// The thread is in a call of NCCL while this exists. The process ends with a sentence if it stays
// there for the deadline of kernels, and the process does nothing else.
class InCall {
 public:
  InCall();
  ~InCall();
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  std::uint64_t number_;
};

// A rank enters the communicator with this identity. `ranks` is its size.
void note_entry(std::uint64_t identity, int rank, int ranks);

}  // namespace towpath::virtual_gpu
