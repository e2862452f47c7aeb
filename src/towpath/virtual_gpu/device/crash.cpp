// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/crash.hpp"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>

#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/device/thread_block.hpp"
#include "towpath_gpu_launch.h"

namespace towpath::virtual_gpu {
namespace {

constexpr std::size_t kSignalStackBytes = 64 << 10;  // more than SIGSTKSZ of x86-64 with AVX-512

constexpr greg_t kStoreBit = 2;  // in the error code of a page fault (Intel's manual, 4.7)

struct sigaction earlier_bus, earlier_segment;

// Functions that a signal handler may call.
void describe(const siginfo_t& info, greg_t page_fault, char* text, std::size_t size) {
  // A general protection fault comes without the address.
  if (info.si_code == SI_KERNEL) {
    std::snprintf(text, size,
                  "uses an address that no memory can have, or one that is not a multiple of the "
                  "size of its data");
    return;
  }
  const char* why = "where no memory is mapped";
  if (info.si_code == SEGV_ACCERR) why = "where it has no access";
  if (towpath_gpu::is_multicast(info.si_addr)) {
    why = "where no memory is mapped for plain accesses; use multimem for multicast memory";
  }
  std::snprintf(text, size, "%s address %p, %s",
                (page_fault & kStoreBit) != 0 ? "stores to" : "loads from", info.si_addr, why);
}

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
    char access[256];
    describe(*info, registers[REG_ERR], access, sizeof access);
    std::snprintf(text, sizeof text, "thread %u of block %llu of %s on GPU %d %s",
                  towpath_gpu_current.linear, static_cast<unsigned long long>(block.number()),
                  block.grid().launch.name, block.grid().device, access);
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
  thread_local const auto memory = std::make_unique<char[]>(kSignalStackBytes);
  stack_t stack{};
  stack.ss_sp = memory.get();
  stack.ss_size = kSignalStackBytes;
  sigaltstack(&stack, nullptr);
}

}  // namespace towpath::virtual_gpu
