// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/kernel_limit.hpp"

#include <fmt/format.h>

#include "towpath/gpu/pe.hpp"
#include "towpath/os/library_copy.hpp"

namespace towpath::gpu {

KernelLimit::KernelLimit(Run& run)
    : run_(run),
      code_ticks_(Time::from_ps(run.kernel_limit.ps() / kTicks),
                  {[](void* limit) { static_cast<KernelLimit*>(limit)->tick(); }, this}) {}

// Runs in a signal handler on the stack of the thread, whose code holds no lock. The thread does
// not return to its code.
void KernelLimit::tick() {
  if (run_.running == nullptr || run_.resumes != resumes_) {
    resumes_ = run_.resumes;
    ticks_ = 0;
    return;
  }
  if (++ticks_ < kTicks || run_.failure != nullptr) return;
  Block& block = *run_.running;
  // The instruction itself may be in a function that the compiler calls at each load and store.
  std::string place;
  for (const void* const call : os::LibraryCopy::calls()) {
    place = block.pe().object().place_of(call);
    if (!place.empty()) break;
  }
  run_.failure = std::make_exception_ptr(
      KernelError(KernelError::Kind::deadlock,
                  fmt::format("endless kernel: thread {} of {}{}{} has computed for {:g} s without "
                              "a wait; let it end, or allow it more time (kernel_limit_s)",
                              block.running_index(), block.describe(), place.empty() ? "" : " at ",
                              place, run_.kernel_limit.seconds())));
  block.halt();
}

}  // namespace towpath::gpu
