// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NVSHMEM's atomic operations; nvshmem.h includes it.

// Operations with an operand that return nothing, or the word before.
#define TOWPATH_ATOMIC_CALL(name, type, call, operation_name)                                     \
  __towpath_optional__ static inline void nvshmem_##name##_atomic_##call(type* dest, type value, int pe,               \
                                                    TOWPATH_SITE) {                               \
    TOWPATH_SITE_OF("nvshmem_" #name "_atomic_" #call);                                           \
    towpath_gpu::atomic<type>(towpath_gpu::Operation::operation_name, false, dest, value, static_cast<type>(0), \
                              pe, towpath_site);                                                  \
  }
#define TOWPATH_ATOMIC_FETCHING(name, type, call, operation_name)                                 \
  __towpath_optional__ static inline type nvshmem_##name##_atomic_##call(type* dest, type value, int pe,               \
                                                    TOWPATH_SITE) {                               \
    TOWPATH_SITE_OF("nvshmem_" #name "_atomic_" #call);                                           \
    return towpath_gpu::atomic<type>(towpath_gpu::Operation::operation_name, true, dest, value,   \
                                     static_cast<type>(0), pe, towpath_site);                                   \
  }
#define TOWPATH_ATOMIC_READS(name, type)                                                          \
  __towpath_optional__ static inline type nvshmem_##name##_atomic_fetch(const type* source, int pe, TOWPATH_SITE) {    \
    TOWPATH_SITE_OF("nvshmem_" #name "_atomic_fetch");                                            \
    return towpath_gpu::atomic<type>(towpath_gpu::Operation::fetch, true,                         \
                                     const_cast<type*>(source), static_cast<type>(0), static_cast<type>(0), pe,               \
                                     towpath_site);                                               \
  }                                                                                               \
  TOWPATH_ATOMIC_CALL(name, type, set, set)                                                       \
  TOWPATH_ATOMIC_FETCHING(name, type, swap, swap)
#define TOWPATH_ATOMICS(name, type)                                                               \
  TOWPATH_ATOMIC_READS(name, type)                                                                \
  TOWPATH_ATOMIC_CALL(name, type, add, add)                                                       \
  TOWPATH_ATOMIC_FETCHING(name, type, fetch_add, add)                                             \
  __towpath_optional__ static inline void nvshmem_##name##_atomic_inc(type* dest, int pe, TOWPATH_SITE) {              \
    TOWPATH_SITE_OF("nvshmem_" #name "_atomic_inc");                                              \
    towpath_gpu::atomic<type>(towpath_gpu::Operation::add, false, dest, static_cast<type>(1), static_cast<type>(0), pe,      \
                              towpath_site);                                                      \
  }                                                                                               \
  __towpath_optional__ static inline type nvshmem_##name##_atomic_fetch_inc(type* dest, int pe, TOWPATH_SITE) {        \
    TOWPATH_SITE_OF("nvshmem_" #name "_atomic_fetch_inc");                                        \
    return towpath_gpu::atomic<type>(towpath_gpu::Operation::add, true, dest, static_cast<type>(1), static_cast<type>(0), pe, \
                                     towpath_site);                                               \
  }                                                                                               \
  __towpath_optional__ static inline type nvshmem_##name##_atomic_compare_swap(type* dest, type cond, type value,      \
                                                          int pe, TOWPATH_SITE) {                 \
    TOWPATH_SITE_OF("nvshmem_" #name "_atomic_compare_swap");                                     \
    return towpath_gpu::atomic<type>(towpath_gpu::Operation::compare_swap, true, dest, value,     \
                                     cond, pe, towpath_site);                                     \
  }
TOWPATH_FOR_ATOMIC_TYPES(TOWPATH_ATOMICS)
TOWPATH_ATOMIC_READS(float, float)
TOWPATH_ATOMIC_READS(double, double)

#define TOWPATH_BITWISE_ATOMICS(name, type)                       \
  TOWPATH_ATOMIC_CALL(name, type, and, bit_and)                   \
  TOWPATH_ATOMIC_CALL(name, type, or, bit_or)                     \
  TOWPATH_ATOMIC_CALL(name, type, xor, bit_xor)                   \
  TOWPATH_ATOMIC_FETCHING(name, type, fetch_and, bit_and)         \
  TOWPATH_ATOMIC_FETCHING(name, type, fetch_or, bit_or)           \
  TOWPATH_ATOMIC_FETCHING(name, type, fetch_xor, bit_xor)
TOWPATH_FOR_BITWISE_ATOMIC_TYPES(TOWPATH_BITWISE_ATOMICS)

#define TOWPATH_FLOATING_ATOMICS(name, type)                                                     \
  __towpath_optional__ static inline type nvshmemx_##name##_atomic_fetch_add(type* dest, type value, int pe,          \
                                                        TOWPATH_SITE) {                          \
    TOWPATH_SITE_OF("nvshmemx_" #name "_atomic_fetch_add");                                      \
    return towpath_gpu::add_by_swapping(dest, value, pe, towpath_site);                          \
  }                                                                                              \
  __towpath_optional__ static inline void nvshmemx_##name##_atomic_add(type* dest, type value, int pe, TOWPATH_SITE) { \
    TOWPATH_SITE_OF("nvshmemx_" #name "_atomic_add");                                            \
    towpath_gpu::add_by_swapping(dest, value, pe, towpath_site);                                 \
  }
TOWPATH_FLOATING_ATOMICS(float, float)
TOWPATH_FLOATING_ATOMICS(double, double)

static inline uint64_t nvshmem_signal_fetch(uint64_t* sig_addr, TOWPATH_SITE) {
  TOWPATH_SITE_OF("nvshmem_signal_fetch");
  return towpath_gpu::atomic<uint64_t>(towpath_gpu::Operation::fetch, true, sig_addr, 0, 0,
                                       nvshmem_my_pe(), towpath_site);
}
