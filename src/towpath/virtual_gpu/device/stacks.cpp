// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/stacks.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "towpath/virtual_gpu/device/stop.hpp"

#if !defined(__x86_64__)
#error "threads of kernels change stacks in the assembly of x86-64 only"
#endif

namespace towpath::virtual_gpu {
namespace {

constexpr std::size_t kStacksPerSlab = 256;
constexpr std::size_t kPageBytes = 4096;
// From one stack to the next there is an additional cache line. Stacks that all begin at multiples
// of a page would share a few sets of the cache. After 16 stacks they begin at the end of a page
// again: most threads use up to 3 KiB, which is then a part of one page.
constexpr std::size_t kStacksPerRun = 16;
constexpr std::size_t kStride = Stacks::kBytes + 64;
constexpr std::size_t kRunBytes = kStacksPerRun * Stacks::kBytes + kPageBytes;
// Below the lowest stack of a slab no memory is accessible. A page per stack would be more mappings
// than Linux lets a process have.
constexpr std::size_t kGuardBytes = 64 << 10;
constexpr std::size_t kSlabBytes = kGuardBytes + kStacksPerSlab / kStacksPerRun * kRunBytes;
constexpr std::uint64_t kMark = 0x5ca1ab1e0ddba115;

// The place of a stack above the guard. The last one of a run ends with the run.
constexpr std::size_t place_of(std::size_t stack) {
  const std::size_t from_end = kStacksPerRun - stack % kStacksPerRun;
  return (stack / kStacksPerRun + 1) * kRunBytes - from_end * kStride + (kStride - Stacks::kBytes);
}

}  // namespace

Stacks::~Stacks() {
  for (std::byte* const slab : slabs_) munmap(slab, kSlabBytes);
}

bool Stacks::is_intact(const std::byte* stack) {
  std::uint64_t mark = 0;
  std::memcpy(&mark, stack, sizeof mark);
  return mark == kMark;
}

void Stacks::add_slab() {
  void* const mapped = mmap(nullptr, kSlabBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED || mprotect(mapped, kGuardBytes, PROT_NONE) != 0) {
    stop(std::string("virtual GPUs cannot map the stacks of threads: ") + strerror(errno));
  }
  slabs_.push_back(static_cast<std::byte*>(mapped));
  for (std::size_t i = kStacksPerSlab; i-- > 0;) {
    free_.push_back(slabs_.back() + kGuardBytes + place_of(i));
  }
}

std::byte* Stacks::take() {
  if (free_.empty()) add_slab();
  std::byte* const stack = free_.back();
  free_.pop_back();
  std::memcpy(stack, &kMark, sizeof kMark);
  return stack;
}

void Stacks::give_back(std::byte* stack) { free_.push_back(stack); }

void* first_context(std::byte* stack, void (*body)()) {
  // From the top: a return address that is not used, the body's address, six saved registers.
  auto* const top = reinterpret_cast<std::uint64_t*>(stack + Stacks::kBytes);
  top[-1] = 0;
  top[-2] = reinterpret_cast<std::uint64_t>(body);
  for (int i = 3; i <= 8; ++i) top[-i] = 0;
  return top - 8;
}

}  // namespace towpath::virtual_gpu

asm(R"(
.text
.globl towpath_change_stack
.type towpath_change_stack, @function
towpath_change_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size towpath_change_stack, . - towpath_change_stack
)");
