// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a kernel calls: barriers, votes, shuffles, atomics, fences, clocks and arithmetic.

#include <time.h>

// --- barriers ---------------------------------------------------------------------------------
static inline void __syncthreads(TOWPATH_SITE) {
  TOWPATH_SITE_OF("__syncthreads");
  TOWPATH_CALL(sync_block, 0, 0, &towpath_site);
}
static inline int __syncthreads_count(int predicate, TOWPATH_SITE) {
  TOWPATH_SITE_OF("__syncthreads_count");
  return TOWPATH_CALL(sync_block, 1, predicate, &towpath_site);
}
static inline int __syncthreads_and(int predicate, TOWPATH_SITE) {
  TOWPATH_SITE_OF("__syncthreads_and");
  return TOWPATH_CALL(sync_block, 2, predicate, &towpath_site);
}
static inline int __syncthreads_or(int predicate, TOWPATH_SITE) {
  TOWPATH_SITE_OF("__syncthreads_or");
  return TOWPATH_CALL(sync_block, 3, predicate, &towpath_site);
}
static inline void __syncwarp(unsigned mask = 0xffffffffu, TOWPATH_SITE) {
  TOWPATH_SITE_OF("__syncwarp");
  TOWPATH_CALL(sync_warp, mask, &towpath_site);
}
// Barrier `id` of the block, for all of its threads or for `threads` of them.
static inline void __barrier_sync(unsigned id, TOWPATH_SITE) {
  TOWPATH_SITE_OF("__barrier_sync");
  TOWPATH_CALL(sync_named, id, 0, towpath_gpu::NamedBarrier::sync, 0, &towpath_site);
}
static inline void __barrier_sync_count(unsigned id, unsigned threads, TOWPATH_SITE) {
  TOWPATH_SITE_OF("__barrier_sync_count");
  TOWPATH_CALL(sync_named, id, threads, towpath_gpu::NamedBarrier::sync, 0, &towpath_site);
}
static inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence(TOWPATH_SITE) {
  TOWPATH_SITE_OF("__threadfence");
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (towpath_gpu_current.on_device) {
    TOWPATH_CALL(thread_fence, towpath_gpu::FenceScope::device, &towpath_site);
  }
}
static inline void __threadfence_system(TOWPATH_SITE) {
  TOWPATH_SITE_OF("__threadfence_system");
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (towpath_gpu_current.on_device) {
    TOWPATH_CALL(thread_fence, towpath_gpu::FenceScope::system, &towpath_site);
  }
}
// A kernel begins when the earlier one has ended, so that there is nothing to wait for.
static inline void cudaGridDependencySynchronize() {}
static inline void cudaTriggerProgrammaticLaunchCompletion() {}
static inline void __nanosleep(unsigned nanoseconds) { TOWPATH_CALL(sleep, nanoseconds); }

// --- votes and shuffles -----------------------------------------------------------------------
namespace towpath_gpu {
inline std::uint64_t exchange(Exchange kind, unsigned mask, std::uint64_t value, int operand,
                              int width, const Site& site) {
  return table().exchange(table().self, kind, mask, value, operand, width, &site);
}
template <typename T>
T shuffle(Exchange kind, unsigned mask, T value, int operand, int width, const Site& site) {
  static_assert(sizeof(T) <= 8, "a shuffle moves up to 8 bytes");
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = exchange(kind, mask, bits, operand, width, site);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}
}  // namespace towpath_gpu

#define TOWPATH_SHUFFLE(name, kind, operand_type)                                           \
  template <typename T>                                                                     \
  T name(unsigned mask, T value, operand_type operand, int width = warpSize, TOWPATH_SITE) { \
    TOWPATH_SITE_OF(#name);                                                                 \
    return towpath_gpu::shuffle(towpath_gpu::Exchange::kind, mask, value,                   \
                                static_cast<int>(operand), width, towpath_site);            \
  }
TOWPATH_SHUFFLE(__shfl_sync, index, int)
TOWPATH_SHUFFLE(__shfl_up_sync, up, unsigned)
TOWPATH_SHUFFLE(__shfl_down_sync, down, unsigned)
TOWPATH_SHUFFLE(__shfl_xor_sync, exclusive_or, int)

#define TOWPATH_VOTE(type, name, kind, argument)                                                  \
  static inline type name(unsigned mask, argument value, TOWPATH_SITE) {                          \
    TOWPATH_SITE_OF(#name);                                                                       \
    return static_cast<type>(towpath_gpu::exchange(towpath_gpu::Exchange::kind, mask,             \
                                                   static_cast<std::uint64_t>(value), 0,          \
                                                   warpSize, towpath_site));                      \
  }
TOWPATH_VOTE(unsigned, __ballot_sync, ballot, int)
TOWPATH_VOTE(int, __all_sync, all, int)
TOWPATH_VOTE(int, __any_sync, any, int)
TOWPATH_VOTE(unsigned, __match_any_sync, match_any, unsigned long long)
static inline unsigned __activemask() { return 1u << (towpath_gpu::current().linear % warpSize); }

// --- reductions of a warp ---------------------------------------------------------------------
#define TOWPATH_WARP_REDUCTION(name, operation)                                        \
  template <typename T>                                                                \
  T name(unsigned mask, T value, TOWPATH_SITE) {                                       \
    T result{};                                                                        \
    bool is_first = true;                                                              \
    for (int lane = 0; lane < warpSize; ++lane) {                                      \
      if ((mask >> lane & 1) == 0) continue;                                           \
      const T other = __shfl_sync(mask, value, lane, warpSize, TOWPATH_SITE_ARGUMENTS); \
      result = is_first ? other : operation;                                           \
      is_first = false;                                                                \
    }                                                                                  \
    return result;                                                                     \
  }
TOWPATH_WARP_REDUCTION(__reduce_add_sync, result + other)
TOWPATH_WARP_REDUCTION(__reduce_min_sync, (other < result ? other : result))
TOWPATH_WARP_REDUCTION(__reduce_max_sync, (result < other ? other : result))
TOWPATH_WARP_REDUCTION(__reduce_and_sync, (result & other))
TOWPATH_WARP_REDUCTION(__reduce_or_sync, (result | other))
TOWPATH_WARP_REDUCTION(__reduce_xor_sync, (result ^ other))

// --- atomics ----------------------------------------------------------------------------------
namespace towpath_gpu {
// The operations are ours from begin to end: not reported a second time by the compiler.
template <typename T, typename Change>
__attribute__((noinline, no_sanitize("thread"))) T change_atomically(T* address, Change change) {
  table().begin_atomic(table().self, address, sizeof(T), __builtin_return_address(0));
  T before, after;
  do {
    __atomic_load(address, &before, __ATOMIC_SEQ_CST);
    after = change(before);
    while (!__atomic_compare_exchange(address, &before, &after, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
      after = change(before);
    }
    // An operation that changes nothing polls, such as an attempt to take a lock.
  } while (__builtin_memcmp(&before, &after, sizeof(T)) == 0 &&
           has_waited(address, &before, sizeof(T)));
  if (__builtin_memcmp(&before, &after, sizeof(T)) != 0) note_store();
  table().end_atomic(table().self, address, sizeof(T));
  return before;
}
}  // namespace towpath_gpu

#define TOWPATH_ATOMIC(name, expression)                                                         \
  template <typename T>                                                                          \
  T name(T* address, std::type_identity_t<T> value) {                                            \
    return towpath_gpu::change_atomically(address, [value](T before)                             \
                                          __attribute__((no_sanitize("thread"))) -> T {          \
                                            return static_cast<T>(expression);                   \
                                          });                                                    \
  }                                                                                              \
  template <typename T>                                                                          \
  T name##_system(T* address, std::type_identity_t<T> value) {                                   \
    return name(address, value);                                                                 \
  }                                                                                              \
  template <typename T>                                                                          \
  T name##_block(T* address, std::type_identity_t<T> value) {                                    \
    return name(address, value);                                                                 \
  }
TOWPATH_ATOMIC(atomicAdd, before + value)
TOWPATH_ATOMIC(atomicSub, before - value)
TOWPATH_ATOMIC(atomicExch, (static_cast<void>(before), value))
TOWPATH_ATOMIC(atomicMin, value < before ? value : before)
TOWPATH_ATOMIC(atomicMax, before < value ? value : before)
TOWPATH_ATOMIC(atomicAnd, before & value)
TOWPATH_ATOMIC(atomicOr, before | value)
TOWPATH_ATOMIC(atomicXor, before ^ value)
TOWPATH_ATOMIC(atomicInc, before >= value ? T(0) : before + 1)
TOWPATH_ATOMIC(atomicDec, before == 0 || before > value ? value : before - 1)

template <typename T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return towpath_gpu::change_atomically(address, [expected, value](T before)
                                        __attribute__((no_sanitize("thread"))) -> T {
                                          return before == expected ? value : before;
                                        });
}
template <typename T>
T atomicCAS_system(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return atomicCAS(address, expected, value);
}

// --- clocks, loads, bits ----------------------------------------------------------------------
static inline unsigned long long __globaltimer() { return TOWPATH_CALL(clock_ns); }
static inline long long clock64() { return static_cast<long long>(TOWPATH_CALL(clock_ns)); }
// clock() is declared in time.h and defined in towpath_gpu_object.h.
template <typename T>
T __ldg(const T* address) {
  return *address;
}
template <typename T>
T __ldcg(const T* address) {
  return *address;
}
template <typename T>
T __ldcs(const T* address) {
  return *address;
}
template <typename T>
T __ldcv(const T* address) {
  return *const_cast<const volatile T*>(address);
}
template <typename T>
void __stcg(T* address, T value) {
  *address = value;
}
template <typename T>
void __stcs(T* address, T value) {
  *address = value;
}
static inline int __popc(unsigned value) { return __builtin_popcount(value); }
static inline int __popcll(unsigned long long value) { return __builtin_popcountll(value); }
static inline int __clz(int value) {
  return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value));
}
static inline int __clzll(long long value) {
  return value == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(value));
}
static inline int __ffs(int value) { return __builtin_ffs(value); }
static inline int __ffsll(long long value) { return __builtin_ffsll(value); }
static inline unsigned __float_as_uint(float value) {
  unsigned bits;
  __builtin_memcpy(&bits, &value, 4);
  return bits;
}
static inline int __float_as_int(float value) { return static_cast<int>(__float_as_uint(value)); }
static inline float __uint_as_float(unsigned bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}
static inline float __int_as_float(int bits) { return __uint_as_float(static_cast<unsigned>(bits)); }
static inline void __trap(TOWPATH_SITE) {
  TOWPATH_SITE_OF("__trap");
  TOWPATH_CALL(fail, "a kernel called __trap", &towpath_site);
}

// --- arithmetic -------------------------------------------------------------------------------
using std::max;
using std::min;
// The smaller and the larger of two types. A function of the source is preferred.
template <typename A, typename B>
concept TowpathMixed = std::is_arithmetic_v<A> && std::is_arithmetic_v<B> && !std::is_same_v<A, B>;
template <typename A, typename B>
  requires TowpathMixed<A, B>
std::common_type_t<A, B> min(A a, B b) {
  const std::common_type_t<A, B> x = a, y = b;
  return y < x ? y : x;
}
template <typename A, typename B>
  requires TowpathMixed<A, B>
std::common_type_t<A, B> max(A a, B b) {
  const std::common_type_t<A, B> x = a, y = b;
  return x < y ? y : x;
}
// The C library has functions of these names.
#define __expf(value) expf(value)
#define __logf(value) logf(value)
static inline float __fdividef(float a, float b) { return a / b; }
static inline float rsqrtf(float value) { return 1.0f / sqrtf(value); }
static inline double rsqrt(double value) { return 1.0 / sqrt(value); }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
