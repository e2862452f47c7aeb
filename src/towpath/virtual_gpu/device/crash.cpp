// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/crash.hpp"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/device/thread_block.hpp"
#include "towpath_gpu_launch.h"

namespace towpath::virtual_gpu {
namespace {

constexpr std::size_t kSignalStackBytes = 64 << 10;  // more than SIGSTKSZ of x86-64 with AVX-512

struct sigaction earlier_bus, earlier_segment;

// Only functions that a signal handler may call.
void explain(int signal, siginfo_t* info, void* context) {
  if (!towpath_gpu_current.on_device) {
    // The crash of the program happens again, with its usual end.
    sigaction(signal, signal == SIGBUS ? &earlier_bus : &earlier_segment, nullptr);
    return;
  }
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto stack_pointer = static_cast<std::uintptr_t>(registers[REG_RSP]);
  const ThreadBlock& block = running_block();
  char text[512];
  if (!block.explain_full_stack(stack_pointer, text, sizeof text)) {
    const char* const verb = (registers[REG_ERR] & 2) != 0 ? "stores to" : "loads from";
    std::snprintf(
        text, sizeof text,
        "thread %u of block %llu of %s on GPU %d %s address %p, where no memory is mapped%s",
        towpath_gpu_current.linear, static_cast<unsigned long long>(block.number()),
        block.grid().launch.name, block.grid().device, verb, info->si_addr,
        towpath_gpu::is_multicast(info->si_addr)
            ? " for plain accesses; use multimem for multicast memory"
            : "");
  }
  stop_at_once(text);
}

}  // namespace

void explain_crashes() {
  struct sigaction action {};
  action.sa_sigaction = explain;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &earlier_segment);
  sigaction(SIGBUS, &action, &earlier_bus);
}

void use_own_stack_for_signals() {
  // The worker never ends.
  stack_t stack{};
  stack.ss_sp = new char[kSignalStackBytes];
  stack.ss_size = kSignalStackBytes;
  sigaltstack(&stack, nullptr);
}

}  // namespace towpath::virtual_gpu
