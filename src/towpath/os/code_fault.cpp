// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/code_fault.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "towpath/os/library_copy.hpp"

namespace towpath::os {

namespace {

constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr std::size_t kHandlerStackBytes = std::size_t{128} << 10;

// For each signal: the handler before on_fault, and a flag that is set while it is called.
std::array<struct sigaction, kSignals.size()> handlers_before;
std::array<std::atomic<bool>, kSignals.size()> is_passed_on;

}  // namespace

const void* interrupted_instruction(const void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(registers.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(registers.pc);
#else
  return nullptr;
#endif
}

namespace {

// The instruction that called nonexistent code, from the return address. Sets the context to this
// instruction. Null after another fault.
const void* leave_wild_call(const siginfo_t* info, void* context) {
#if defined(__x86_64__)
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (info->si_addr != reinterpret_cast<void*>(registers[REG_RIP])) return nullptr;
  const char* const behind = *reinterpret_cast<const char* const*>(registers[REG_RSP]);
  if (!LibraryCopy::has(behind - 1)) return nullptr;
  registers[REG_RIP] = reinterpret_cast<greg_t>(behind - 1);
  registers[REG_RSP] += sizeof(behind);
#elif defined(__aarch64__)
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
  if (reinterpret_cast<std::uintptr_t>(info->si_addr) != registers.pc) return nullptr;
  const char* const behind = reinterpret_cast<const char*>(registers.regs[30]);
  if (!LibraryCopy::has(behind - 4)) return nullptr;
  registers.pc = reinterpret_cast<std::uintptr_t>(behind - 4);
#else
  const char* const behind = nullptr;
  return nullptr;
#endif
  return behind - 1;
}

const char* what_it_did(int signal) {
  switch (signal) {
    case SIGFPE: return "divides a whole number by zero, or by -1 where the quotient does not fit";
    case SIGILL: return "ends in an instruction that stops the program, such as that of a trap";
    default:
      return "follows a pointer to memory that is not there, or needs more stack than it has";
  }
}

// Calls the previous handler. Some handlers restore the former one, which is on_fault again, and
// raise the signal, which ends the process.
void pass_on(int signal, siginfo_t* info, void* context) {
  const auto number =
      static_cast<std::size_t>(std::ranges::find(kSignals, signal) - kSignals.begin());
  const struct sigaction& before = handlers_before[number];
  const bool is_default = before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN;
  if (is_default || is_passed_on[number].exchange(true)) {
    ::signal(signal, SIG_DFL);
    if (info->si_code <= 0) ::raise(signal);
    return;
  }
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else {
    before.sa_handler(signal);
  }
  is_passed_on[number] = false;
}

// A synchronous signal of the instruction itself: this thread does not hold a library lock, and the
// unwind tables cover every instruction.
void on_fault(int signal, siginfo_t* info, void* context) {
  const void* const instruction = interrupted_instruction(context);
  const bool is_of_instruction = info->si_code > 0;  // otherwise another process sent it
  if (is_of_instruction && LibraryCopy::has(instruction)) {
    throw CodeFault(what_it_did(signal), instruction);
  }
  if (signal == SIGSEGV && is_of_instruction) {
    if (const void* const caller = leave_wild_call(info, context); caller != nullptr) {
      throw CodeFault("jumps to an address without code", caller);
    }
  }
  pass_on(signal, info, context);
}

// Libraries that are loaded later replace handlers, as UCX does.
void install() {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  // The handler does not return, so its signal must not stay blocked.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction current = {};
    ::sigaction(kSignals[i], nullptr, &current);
    if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == on_fault) continue;
    handlers_before[i] = current;
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

// The signal stack of a thread that has none yet.
class HandlerStack {
 public:
  HandlerStack() {
    stack_t now = {};
    if (::sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
    bytes_.resize(kHandlerStackBytes);
    const stack_t mine = {.ss_sp = bytes_.data(), .ss_flags = 0, .ss_size = bytes_.size()};
    ::sigaltstack(&mine, nullptr);
  }
  ~HandlerStack() {
    if (bytes_.empty()) return;
    const stack_t none = {.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    ::sigaltstack(&none, nullptr);
  }
  HandlerStack(const HandlerStack&) = delete;
  HandlerStack& operator=(const HandlerStack&) = delete;

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

void throw_code_faults() {
  install();
  static thread_local const HandlerStack stack;
}

}  // namespace towpath::os
