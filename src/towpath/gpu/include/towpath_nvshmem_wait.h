// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NVSHMEM's wait and test families; nvshmem.h includes it.

#define TOWPATH_WAIT_MANY(name, type, result, call, quantity, is_test)                           \
  __towpath_optional__ static inline result nvshmem_##name##_##call(type* ivars, size_t nelems, const int* status,    \
                                               int cmp, type value, TOWPATH_SITE) {              \
    TOWPATH_SITE_OF("nvshmem_" #name "_" #call);                                                 \
    return static_cast<result>(towpath_gpu::wait_many<type>(                                     \
        towpath_gpu::Quantity::quantity, is_test, ivars, nelems, nullptr, status, cmp, &value,   \
        false, towpath_site));                                                                   \
  }                                                                                              \
  __towpath_optional__ static inline result nvshmem_##name##_##call##_vector(type* ivars, size_t nelems,              \
                                                        const int* status, int cmp, type* values, \
                                                        TOWPATH_SITE) {                          \
    TOWPATH_SITE_OF("nvshmem_" #name "_" #call "_vector");                                       \
    return static_cast<result>(towpath_gpu::wait_many<type>(                                     \
        towpath_gpu::Quantity::quantity, is_test, ivars, nelems, nullptr, status, cmp, values,   \
        true, towpath_site));                                                                    \
  }
#define TOWPATH_WAIT_SOME(name, type, call, is_test)                                             \
  __towpath_optional__ static inline size_t nvshmem_##name##_##call(type* ivars, size_t nelems, size_t* indices,      \
                                               const int* status, int cmp, type value,           \
                                               TOWPATH_SITE) {                                   \
    TOWPATH_SITE_OF("nvshmem_" #name "_" #call);                                                 \
    return towpath_gpu::wait_many<type>(towpath_gpu::Quantity::some, is_test, ivars, nelems,     \
                                        indices, status, cmp, &value, false, towpath_site);      \
  }                                                                                              \
  __towpath_optional__ static inline size_t nvshmem_##name##_##call##_vector(type* ivars, size_t nelems,              \
                                                        size_t* indices, const int* status,      \
                                                        int cmp, type* values, TOWPATH_SITE) {   \
    TOWPATH_SITE_OF("nvshmem_" #name "_" #call "_vector");                                       \
    return towpath_gpu::wait_many<type>(towpath_gpu::Quantity::some, is_test, ivars, nelems,     \
                                        indices, status, cmp, values, true, towpath_site);       \
  }
#define TOWPATH_WAITS(name, type)                                                                \
  __towpath_optional__ static inline void nvshmem_##name##_wait_until(type* ivar, int cmp, type value, TOWPATH_SITE) { \
    TOWPATH_SITE_OF("nvshmem_" #name "_wait_until");                                             \
    towpath_gpu::wait_one<type>(ivar, cmp, value, false, false, towpath_site);                   \
  }                                                                                              \
  __towpath_optional__ static inline int nvshmem_##name##_test(type* ivar, int cmp, type value, TOWPATH_SITE) {       \
    TOWPATH_SITE_OF("nvshmem_" #name "_test");                                                   \
    return static_cast<int>(                                                                     \
        towpath_gpu::wait_one<type>(ivar, cmp, value, true, false, towpath_site));               \
  }                                                                                              \
  TOWPATH_WAIT_MANY(name, type, void, wait_until_all, all, false)                                \
  TOWPATH_WAIT_MANY(name, type, size_t, wait_until_any, any, false)                              \
  TOWPATH_WAIT_SOME(name, type, wait_until_some, false)                                          \
  TOWPATH_WAIT_MANY(name, type, int, test_all, all, true)                                        \
  TOWPATH_WAIT_MANY(name, type, size_t, test_any, any, true)                                     \
  TOWPATH_WAIT_SOME(name, type, test_some, true)
TOWPATH_FOR_WAIT_TYPES(TOWPATH_WAITS)
