// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Compiled once and linked to each object: its state, what the loader looks for, and the functions
// that the compiler calls at each load and store (-fsanitize=thread) and that stand in for the
// sanitizer's own.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <new>

#include "towpath_gpu_launch.h"

// Until the loader has bound the table, all addresses are free of charge.
towpath_gpu::Current towpath_gpu_current = {
    {0, 0, 0}, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}, 0, 0, false, {}, {0, ~std::uintptr_t{0}}};
towpath_gpu::Table towpath_gpu_table;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
extern "C" {
__attribute__((weak)) extern int towpath_gpu_main(int argc, char** argv, char** environment);

__attribute__((visibility("default"))) towpath_gpu::Object towpath_gpu_object() {
  return {towpath_gpu::kVersion,
          &towpath_gpu_current,
          &towpath_gpu_table,
          &towpath_gpu_main,
          towpath_gpu::registry.kernel,
          towpath_gpu::registry.count};
}

// The clock of the device: a source's calls of clock() come here instead of to the C library.
__attribute__((visibility("hidden"))) clock_t clock(void) noexcept {
  return static_cast<clock_t>(towpath_gpu_table.clock_ns(towpath_gpu_table.self));
}

// exit() of the host program ends its PE; the linker brings calls here (--wrap).
__attribute__((visibility("hidden"), noreturn)) void __wrap_exit(int status) {
  towpath_gpu_table.exit(towpath_gpu_table.self, status);
}
}
#pragma GCC diagnostic pop

#if defined(__SANITIZE_THREAD__)

#define TOWPATH_HOOK \
  extern "C" __attribute__((visibility("hidden"), no_sanitize("thread"), noinline))

#define TOWPATH_PLAIN __attribute__((always_inline, no_sanitize("thread"))) static inline

namespace {

TOWPATH_PLAIN bool holds(const towpath_gpu::Range& range, std::uintptr_t address, unsigned size) {
  const std::uintptr_t offset = address - range.begin;
  return offset < range.size && size <= range.size - offset;
}

TOWPATH_PLAIN bool is_quiet(const towpath_gpu::Range* ranges, std::uintptr_t address,
                            unsigned size) {
  static_assert(towpath_gpu::kQuietRanges == 8);
  return holds(ranges[0], address, size) || holds(ranges[1], address, size) ||
         holds(ranges[2], address, size) || holds(ranges[3], address, size) ||
         holds(ranges[4], address, size) || holds(ranges[5], address, size) ||
         holds(ranges[6], address, size) || holds(ranges[7], address, size);
}

// For a type whose alignment is its size.
TOWPATH_PLAIN bool is_misaligned(const volatile void* address, unsigned size) {
  return (reinterpret_cast<std::uintptr_t>(address) & (size - 1)) != 0;
}

TOWPATH_PLAIN void towpath_load(const void* address, unsigned size, const void* where) {
  towpath_gpu::Current& current = towpath_gpu_current;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (at - current.stack.begin < current.stack.size) return;
  if (at - reinterpret_cast<std::uintptr_t>(&current) < sizeof(current)) return;  // threadIdx
  if (holds(current.quiet_shared_loads, at, size)) {
    current.counters.shared_accesses++;
    return;
  }
  if (is_quiet(current.quiet_loads, at, size)) {
    current.counters.loads++;
    current.counters.load_bytes += size;
    return;
  }
  towpath_gpu_table.load(towpath_gpu_table.self, address, size, where);
}

TOWPATH_PLAIN void towpath_store(void* address, unsigned size, const void* where) {
  towpath_gpu::Current& current = towpath_gpu_current;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (at - current.stack.begin < current.stack.size) return;
  if (at - reinterpret_cast<std::uintptr_t>(&current) < sizeof(current)) return;  // threadIdx
  if (holds(current.quiet_shared_stores, at, size)) {
    current.counters.shared_accesses++;
    return;
  }
  if (is_quiet(current.quiet_stores, at, size)) {
    current.counters.stores++;
    current.counters.store_bytes += size;
    return;
  }
  towpath_gpu_table.store(towpath_gpu_table.self, address, size, where);
}

TOWPATH_PLAIN bool is_free(const volatile void* address) {
  const auto& stack = towpath_gpu_current.stack;
  return reinterpret_cast<std::uintptr_t>(address) - stack.begin < stack.size;
}

TOWPATH_PLAIN void towpath_poll(const volatile void* at, unsigned size, const void* where) {
  if (is_free(at)) return;
  towpath_gpu_table.poll(towpath_gpu_table.self, at, size, where);
}

TOWPATH_PLAIN void towpath_flag(volatile void* at, unsigned size, const void* where) {
  if (is_free(at)) return;
  towpath_gpu_table.flag(towpath_gpu_table.self, at, size, where);
}

TOWPATH_PLAIN void towpath_misaligned(const volatile void* address, unsigned size, bool is_store,
                                      const void* where) {
  if (is_free(address)) return;
  towpath_gpu_table.misaligned(towpath_gpu_table.self, address, size, is_store, where);
}

}  // namespace

#define TOWPATH_HOOKS_OF_SIZE(size)                                                               \
  TOWPATH_HOOK void __tsan_read##size(void* at) {                                                 \
    const void* const where = __builtin_return_address(0);                                        \
    if (is_misaligned(at, size)) towpath_misaligned(at, size, false, where);                      \
    towpath_load(at, size, where);                                                                \
  }                                                                                               \
  TOWPATH_HOOK void __tsan_write##size(void* at) {                                                \
    const void* const where = __builtin_return_address(0);                                        \
    if (is_misaligned(at, size)) towpath_misaligned(at, size, true, where);                       \
    towpath_store(at, size, where);                                                               \
  }                                                                                               \
  TOWPATH_HOOK void __tsan_unaligned_read##size(void* at) {                                       \
    towpath_load(at, size, __builtin_return_address(0));                                          \
  }                                                                                               \
  TOWPATH_HOOK void __tsan_unaligned_write##size(void* at) {                                      \
    towpath_store(at, size, __builtin_return_address(0));                                         \
  }                                                                                               \
  TOWPATH_HOOK void __tsan_volatile_read##size(void* at) {                                        \
    const void* const where = __builtin_return_address(0);                                        \
    if (is_misaligned(at, size)) towpath_misaligned(at, size, false, where);                      \
    towpath_poll(at, size, where);                                                                \
  }                                                                                               \
  TOWPATH_HOOK void __tsan_volatile_write##size(void* at) {                                       \
    const void* const where = __builtin_return_address(0);                                        \
    if (is_misaligned(at, size)) towpath_misaligned(at, size, true, where);                       \
    towpath_flag(at, size, where);                                                                \
  }                                                                                               \
  TOWPATH_HOOK void __tsan_unaligned_volatile_read##size(void* at) {                              \
    towpath_poll(at, size, __builtin_return_address(0));                                          \
  }                                                                                               \
  TOWPATH_HOOK void __tsan_unaligned_volatile_write##size(void* at) {                             \
    towpath_flag(at, size, __builtin_return_address(0));                                          \
  }

TOWPATH_HOOKS_OF_SIZE(1)
TOWPATH_HOOKS_OF_SIZE(2)
TOWPATH_HOOKS_OF_SIZE(4)
TOWPATH_HOOKS_OF_SIZE(8)
TOWPATH_HOOKS_OF_SIZE(16)

TOWPATH_HOOK void __tsan_read_range(void* at, unsigned long size) {
  towpath_load(at, static_cast<unsigned>(size), __builtin_return_address(0));
}
TOWPATH_HOOK void __tsan_write_range(void* at, unsigned long size) {
  towpath_store(at, static_cast<unsigned>(size), __builtin_return_address(0));
}
TOWPATH_HOOK void __tsan_init() {}
TOWPATH_HOOK void __tsan_func_entry(void*) {}
TOWPATH_HOOK void __tsan_func_exit(void) {}
TOWPATH_HOOK void __tsan_vptr_update(void*, void*) {}
TOWPATH_HOOK void __tsan_vptr_read(void*) {}

// The compiler calls these instead of atomic instructions.
#define TOWPATH_READ_MODIFY_WRITE(bits, type, name, operation)                                    \
  TOWPATH_HOOK type __tsan_atomic##bits##_##name(volatile type* at, type value, int) {            \
    if (is_free(at)) return operation(at, value, __ATOMIC_SEQ_CST);                               \
    towpath_gpu_table.begin_atomic(towpath_gpu_table.self, at, sizeof(type),                      \
                                     __builtin_return_address(0));                                \
    const type before = operation(at, value, __ATOMIC_SEQ_CST);                                   \
    towpath_gpu_table.end_atomic(towpath_gpu_table.self, at, sizeof(type));                       \
    return before;                                                                                \
  }
#define TOWPATH_ATOMICS_OF_SIZE(bits, type)                                                       \
  TOWPATH_HOOK type __tsan_atomic##bits##_load(const volatile type* at, int) {                    \
    if (!is_free(at)) {                                                                           \
      towpath_gpu_table.poll(towpath_gpu_table.self, at, sizeof(type),                            \
                             __builtin_return_address(0));                                        \
    }                                                                                             \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                 \
  }                                                                                               \
  TOWPATH_HOOK void __tsan_atomic##bits##_store(volatile type* at, type value, int) {             \
    if (!is_free(at)) {                                                                           \
      towpath_gpu_table.flag(towpath_gpu_table.self, at, sizeof(type),                            \
                             __builtin_return_address(0));                                        \
    }                                                                                             \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                \
  }                                                                                               \
  TOWPATH_READ_MODIFY_WRITE(bits, type, exchange, __atomic_exchange_n)                            \
  TOWPATH_READ_MODIFY_WRITE(bits, type, fetch_add, __atomic_fetch_add)                            \
  TOWPATH_READ_MODIFY_WRITE(bits, type, fetch_sub, __atomic_fetch_sub)                            \
  TOWPATH_READ_MODIFY_WRITE(bits, type, fetch_and, __atomic_fetch_and)                            \
  TOWPATH_READ_MODIFY_WRITE(bits, type, fetch_or, __atomic_fetch_or)                              \
  TOWPATH_READ_MODIFY_WRITE(bits, type, fetch_xor, __atomic_fetch_xor)                            \
  TOWPATH_HOOK bool __tsan_atomic##bits##_compare_exchange_strong(                                \
      volatile type* at, type* expected, type value, int, int) {                                  \
    if (!is_free(at)) {                                                                           \
      towpath_gpu_table.begin_atomic(towpath_gpu_table.self, at, sizeof(type),                    \
                                     __builtin_return_address(0));                                \
    }                                                                                             \
    const bool is_changed = __atomic_compare_exchange_n(at, expected, value, false,               \
                                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);      \
    if (!is_free(at)) towpath_gpu_table.end_atomic(towpath_gpu_table.self, at, sizeof(type));     \
    return is_changed;                                                                            \
  }                                                                                               \
  TOWPATH_HOOK bool __tsan_atomic##bits##_compare_exchange_weak(                                  \
      volatile type* at, type* expected, type value, int order, int failure) {                    \
    return __tsan_atomic##bits##_compare_exchange_strong(at, expected, value, order, failure);    \
  }

TOWPATH_ATOMICS_OF_SIZE(8, unsigned char)
TOWPATH_ATOMICS_OF_SIZE(16, unsigned short)
TOWPATH_ATOMICS_OF_SIZE(32, unsigned)
TOWPATH_ATOMICS_OF_SIZE(64, unsigned long)
TOWPATH_HOOK void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
TOWPATH_HOOK void __tsan_atomic_signal_fence(int) {}

// The linker brings calls of the source here (--wrap). The compiler does not report their accesses.
#define TOWPATH_WRAP extern "C" __attribute__((visibility("hidden"), no_sanitize("thread")))
#define TOWPATH_TOUCH(address, size, is_store)                                                    \
  if ((size) != 0 && !is_free(address)) {                                                         \
    towpath_gpu_table.touch(towpath_gpu_table.self, address, size, is_store,                      \
                            __builtin_return_address(0));                                         \
  }

extern "C" void* __real_memmove(void* to, const void* from, size_t size);
extern "C" void* __real_memset(void* to, int value, size_t size);
TOWPATH_WRAP void* __wrap_memcpy(void* to, const void* from, size_t size) {
  TOWPATH_TOUCH(from, size, false)
  TOWPATH_TOUCH(to, size, true)
  return __real_memmove(to, from, size);
}
TOWPATH_WRAP void* __wrap_memmove(void* to, const void* from, size_t size) {
  TOWPATH_TOUCH(from, size, false)
  TOWPATH_TOUCH(to, size, true)
  return __real_memmove(to, from, size);
}
TOWPATH_WRAP void* __wrap_memset(void* to, int value, size_t size) {
  TOWPATH_TOUCH(to, size, true)
  return __real_memset(to, value, size);
}

// Memory that a kernel allocates is the GPU's.
#define TOWPATH_ALLOCATION(name, parameters, arguments, size)                                     \
  extern "C" void* __real_##name parameters;                                                      \
  TOWPATH_WRAP void* __wrap_##name parameters {                                                   \
    void* const address = __real_##name arguments;                                                \
    if (towpath_gpu_current.on_device && address != nullptr) {                                    \
      const towpath_gpu::Site site{nullptr, 0, "malloc or new in a kernel"};                      \
      towpath_gpu_table.lend(towpath_gpu_table.self, address, size,                               \
                             towpath_gpu::MemoryKind::of_kernel, &site);                          \
    }                                                                                             \
    return address;                                                                               \
  }
#define TOWPATH_DEALLOCATION(name, parameters, arguments)                                         \
  extern "C" void __real_##name parameters;                                                       \
  TOWPATH_WRAP void __wrap_##name parameters {                                                    \
    if (towpath_gpu_current.on_device && address != nullptr) {                                    \
      const towpath_gpu::Site site{nullptr, 0, "free or delete in a kernel"};                     \
      towpath_gpu_table.take_back(towpath_gpu_table.self, address, &site);                        \
    }                                                                                             \
    __real_##name arguments;                                                                      \
  }
TOWPATH_ALLOCATION(malloc, (size_t size), (size), size)
TOWPATH_ALLOCATION(calloc, (size_t count, size_t size), (count, size), count* size)
TOWPATH_ALLOCATION(__cxa_allocate_exception, (size_t size), (size), size)
TOWPATH_ALLOCATION(_Znwm, (size_t size), (size), size)
TOWPATH_ALLOCATION(_Znam, (size_t size), (size), size)
TOWPATH_DEALLOCATION(free, (void* address), (address))
TOWPATH_DEALLOCATION(_ZdlPv, (void* address), (address))
TOWPATH_DEALLOCATION(_ZdaPv, (void* address), (address))
TOWPATH_DEALLOCATION(_ZdlPvm, (void* address, size_t size), (address, size))
TOWPATH_DEALLOCATION(_ZdaPvm, (void* address, size_t size), (address, size))

#endif  // __SANITIZE_THREAD__
