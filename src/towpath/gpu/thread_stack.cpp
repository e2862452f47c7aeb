// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/thread_stack.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/detail/fcontext.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

namespace towpath::gpu {

namespace detail = boost::context::detail;

namespace {

// The content of the stack differs from the model of the sanitizer.
__attribute__((no_sanitize("address"))) void copy_frames(std::byte* to, const std::byte* from,
                                                         std::size_t size_bytes) {
  auto* target = reinterpret_cast<std::uint64_t*>(to);
  const auto* source = reinterpret_cast<const std::uint64_t*>(from);
#if defined(__SANITIZE_ADDRESS__)
  for (std::size_t i = 0; i < size_bytes / 8; ++i) target[i] = source[i];
#else
  std::memcpy(target, source, size_bytes);
#endif
}

}  // namespace

ThreadStack::Saved::~Saved() { std::free(bytes_); }

void ThreadStack::Saved::prefetch() const {
  constexpr std::uint32_t kLineBytes = 64;
  for (std::uint32_t line = 0; line < size_bytes_; line += kLineBytes) {
    __builtin_prefetch(bytes_ + line);
  }
}

// The lowest page is a guard: a thread that needs more ends the program with SIGSEGV.
ThreadStack::ThreadStack() {
  void* const mapped =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "cannot map the stack of threads");
  }
  bytes_ = static_cast<std::byte*>(mapped);
  ::mprotect(bytes_, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), PROT_NONE);
}

ThreadStack::~ThreadStack() { ::munmap(bytes_, kBytes); }

bool ThreadStack::resume(Saved& thread, void (*body)(void*), void* argument) {
  if (occupant_ != &thread) {
    if (occupant_ != nullptr) save(*occupant_);
    occupant_ = &thread;
    if (thread.has_begun()) {
      restore(thread);
    } else {
      body_ = body;
      argument_ = argument;
      thread.context_ = detail::make_fcontext(top(), kBytes, [](detail::transfer_t from) {
        auto& stack = *static_cast<ThreadStack*>(from.data);
        stack.caller_ = from.fctx;
        stack.body_(stack.argument_);
        // Null tells resume() that the thread has finished. This call does not return.
        detail::jump_fcontext(stack.caller_, nullptr);
      });
    }
  }
  const detail::transfer_t back = detail::jump_fcontext(thread.context_, this);
  thread.context_ = back.fctx;
  if (back.data != nullptr) return false;
  occupant_ = nullptr;
  return true;
}

void ThreadStack::suspend() {
  const detail::transfer_t from = detail::jump_fcontext(caller_, this);
  caller_ = from.fctx;
}

void ThreadStack::save(Saved& thread) const {
  const auto* const begin = static_cast<const std::byte*>(thread.context_);
  const auto size_bytes = static_cast<std::uint32_t>(top() - begin);
  if (size_bytes > thread.capacity_bytes_) {
    std::free(thread.bytes_);
    thread.bytes_ = static_cast<std::byte*>(std::malloc(size_bytes));
    if (thread.bytes_ == nullptr) throw std::bad_alloc();
    thread.capacity_bytes_ = size_bytes;
  }
  thread.size_bytes_ = size_bytes;
  copy_frames(thread.bytes_, begin, size_bytes);
}

void ThreadStack::restore(const Saved& thread) const {
  copy_frames(static_cast<std::byte*>(thread.context_), thread.bytes_, thread.size_bytes_);
}

}  // namespace towpath::gpu
