// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NVSHMEM by its names, version 3: what OpenSHMEM has too. nvshmemx.h has its extensions.

#include "towpath_shmem.h"
#include "towpath_shmem_types.h"

#define NVSHMEM_VENDOR_MAJOR_VERSION 3
#define NVSHMEM_VENDOR_MINOR_VERSION 8
#define NVSHMEM_VENDOR_PATCH_VERSION 0
#define NVSHMEM_MAJOR_VERSION 1
#define NVSHMEM_MINOR_VERSION 3
#define NVSHMEM_MAX_NAME_LEN 256

enum {
  NVSHMEM_CMP_EQ = 0,
  NVSHMEM_CMP_NE,
  NVSHMEM_CMP_GT,
  NVSHMEM_CMP_LE,
  NVSHMEM_CMP_LT,
  NVSHMEM_CMP_GE,
};
enum { NVSHMEM_SIGNAL_SET = 9, NVSHMEM_SIGNAL_ADD = 10 };
enum {
  NVSHMEM_THREAD_SINGLE = 0,
  NVSHMEM_THREAD_FUNNELED,
  NVSHMEM_THREAD_SERIALIZED,
  NVSHMEM_THREAD_MULTIPLE,
};
typedef int32_t nvshmem_team_t;
typedef nvshmem_team_t nvshmemx_team_t;
enum {
  NVSHMEM_TEAM_INVALID = -1,
  NVSHMEM_TEAM_WORLD = 0,
  NVSHMEM_TEAM_SHARED = 1,
  NVSHMEMX_TEAM_NODE = 2,
  NVSHMEMX_TEAM_SAME_MYPE_NODE = 3,
};
struct nvshmem_team_config_t {
  int num_contexts;
};

// --- beginning and end ------------------------------------------------------------------------
static inline void nvshmem_init(TOWPATH_SITE) {
  TOWPATH_SITE_OF("nvshmem_init");
  TOWPATH_CALL(initialize, -1, -1, &towpath_site);
  towpath_gpu::define_teams();
}
static inline int nvshmem_init_thread(int requested, int* provided, TOWPATH_SITE) {
  nvshmem_init(TOWPATH_SITE_ARGUMENTS);
  *provided = requested < NVSHMEM_THREAD_SERIALIZED ? requested : NVSHMEM_THREAD_SERIALIZED;
  return 0;
}
static inline void nvshmem_query_thread(int* provided) { *provided = NVSHMEM_THREAD_SERIALIZED; }
static inline int nvshmem_my_pe() { return towpath_gpu::table().my_pe; }
static inline int nvshmem_n_pes() { return towpath_gpu::table().n_pes; }
static inline void nvshmem_info_get_version(int* major, int* minor) {
  *major = NVSHMEM_MAJOR_VERSION;
  *minor = NVSHMEM_MINOR_VERSION;
}
static inline void nvshmem_info_get_name(char* name) { strcpy(name, "Towpath NVSHMEM"); }
static inline void nvshmem_global_exit(int status) { TOWPATH_CALL(exit, status); }

// --- the symmetric heap -----------------------------------------------------------------------
static inline void* nvshmem_malloc(size_t size, TOWPATH_SITE) {
  TOWPATH_SITE_OF("nvshmem_malloc");
  return TOWPATH_CALL(symmetric_malloc, size, 1, false, &towpath_site);
}
static inline void* nvshmem_calloc(size_t count, size_t size, TOWPATH_SITE) {
  TOWPATH_SITE_OF("nvshmem_calloc");
  return TOWPATH_CALL(symmetric_malloc, count * size, 1, true, &towpath_site);
}
static inline void* nvshmem_align(size_t alignment, size_t size, TOWPATH_SITE) {
  TOWPATH_SITE_OF("nvshmem_align");
  return TOWPATH_CALL(symmetric_malloc, size, alignment, false, &towpath_site);
}
static inline void nvshmem_free(void* address, TOWPATH_SITE) {
  TOWPATH_SITE_OF("nvshmem_free");
  if (address != nullptr) TOWPATH_CALL(symmetric_free, address, &towpath_site);
}
static inline void* nvshmem_ptr(const void* address, int pe) {
  return TOWPATH_CALL(reach, address, pe);
}

// --- put and get ------------------------------------------------------------------------------
#define TOWPATH_PUT(prefix, name, suffix, type, scope, is_nonblocking, size)                      \
  __towpath_optional__ static inline void prefix##_##name##suffix(type* dest, const type* source, size_t nelems,       \
                                             int pe, TOWPATH_SITE) {                              \
    TOWPATH_SITE_OF(#prefix "_" #name #suffix);                                                   \
    towpath_gpu::put(towpath_gpu::Scope::scope, is_nonblocking, dest, source, nelems * (size), pe, \
                     {}, towpath_site);                                                           \
  }
#define TOWPATH_GET(prefix, name, suffix, type, scope, is_nonblocking, size)                      \
  __towpath_optional__ static inline void prefix##_##name##suffix(type* dest, const type* source, size_t nelems,       \
                                             int pe, TOWPATH_SITE) {                              \
    TOWPATH_SITE_OF(#prefix "_" #name #suffix);                                                   \
    towpath_gpu::get(towpath_gpu::Scope::scope, is_nonblocking, dest, source, nelems * (size), pe, \
                     towpath_site);                                                               \
  }
#define TOWPATH_PUT_SIGNAL(prefix, name, suffix, type, scope, is_nonblocking, size)               \
  __towpath_optional__ static inline void prefix##_##name##suffix(type* dest, const type* source, size_t nelems,       \
                                             uint64_t* sig_addr, uint64_t signal, int sig_op,     \
                                             int pe, TOWPATH_SITE) {                              \
    TOWPATH_SITE_OF(#prefix "_" #name #suffix);                                                   \
    towpath_gpu::put(towpath_gpu::Scope::scope, is_nonblocking, dest, source, nelems * (size), pe, \
                     {towpath_gpu::signal_operation(sig_op), sig_addr, signal}, towpath_site);    \
  }

// The transfers of one type, size or scope: prefix_BEFOREputAFTER, _nbi, _signal and so on.
#define TOWPATH_TRANSFERS(prefix, before, after, end, type, scope, size)                          \
  TOWPATH_PUT(prefix, before##put##after, end, type, scope, false, size)                          \
  TOWPATH_PUT(prefix, before##put##after##_nbi, end, type, scope, true, size)                     \
  TOWPATH_GET(prefix, before##get##after, end, type, scope, false, size)                          \
  TOWPATH_GET(prefix, before##get##after##_nbi, end, type, scope, true, size)                     \
  TOWPATH_PUT_SIGNAL(prefix, before##put##after##_signal, end, type, scope, false, size)          \
  TOWPATH_PUT_SIGNAL(prefix, before##put##after##_signal_nbi, end, type, scope, true, size)
#define TOWPATH_STRIDED(prefix, name, end, type, scope)                                           \
  __towpath_optional__ static inline void prefix##_##name##_iput##end(                            \
      type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe,        \
      TOWPATH_SITE) {                                                                             \
    TOWPATH_SITE_OF(#prefix "_" #name "_iput" #end);                                              \
    towpath_gpu::put_strided(towpath_gpu::Scope::scope, dest, source, dst, sst, nelems, pe,       \
                             towpath_site);                                                       \
  }                                                                                               \
  __towpath_optional__ static inline void prefix##_##name##_iget##end(                            \
      type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe,        \
      TOWPATH_SITE) {                                                                             \
    TOWPATH_SITE_OF(#prefix "_" #name "_iget" #end);                                              \
    towpath_gpu::get_strided(towpath_gpu::Scope::scope, dest, source, dst, sst, nelems, pe,       \
                             towpath_site);                                                       \
  }

#define TOWPATH_TYPED(name, type)                                                       \
  TOWPATH_TRANSFERS(nvshmem, name##_, , , type, thread, sizeof(type))                   \
  TOWPATH_STRIDED(nvshmem, name, , type, thread)                                        \
  __towpath_optional__ static inline void nvshmem_##name##_p(type* dest, const type value, int pe, TOWPATH_SITE) { \
    TOWPATH_SITE_OF("nvshmem_" #name "_p");                                             \
    towpath_gpu::put_value<type>(dest, value, pe, towpath_site);                        \
  }                                                                                     \
  __towpath_optional__ static inline type nvshmem_##name##_g(const type* source, int pe, TOWPATH_SITE) {     \
    TOWPATH_SITE_OF("nvshmem_" #name "_g");                                             \
    return towpath_gpu::get_value<type>(source, pe, towpath_site);                      \
  }
TOWPATH_FOR_RMA_TYPES(TOWPATH_TYPED)

#define TOWPATH_SIZED(bits)                                                             \
  TOWPATH_TRANSFERS(nvshmem, , bits, , void, thread, bits / 8)                          \
  __towpath_optional__ static inline void nvshmem_iput##bits(void* dest, const void* source, ptrdiff_t dst,  \
                                        ptrdiff_t sst, size_t nelems, int pe, TOWPATH_SITE) { \
    TOWPATH_SITE_OF("nvshmem_iput" #bits);                                              \
    using Element = towpath_gpu::Element<bits / 8>;                                     \
    towpath_gpu::put_strided(towpath_gpu::Scope::thread, static_cast<Element*>(dest),   \
                             static_cast<const Element*>(source), dst, sst, nelems, pe, \
                             towpath_site);                                             \
  }                                                                                     \
  __towpath_optional__ static inline void nvshmem_iget##bits(void* dest, const void* source, ptrdiff_t dst,  \
                                        ptrdiff_t sst, size_t nelems, int pe, TOWPATH_SITE) { \
    TOWPATH_SITE_OF("nvshmem_iget" #bits);                                              \
    using Element = towpath_gpu::Element<bits / 8>;                                     \
    towpath_gpu::get_strided(towpath_gpu::Scope::thread, static_cast<Element*>(dest),   \
                             static_cast<const Element*>(source), dst, sst, nelems, pe, \
                             towpath_site);                                             \
  }
TOWPATH_FOR_SIZES(TOWPATH_SIZED)

TOWPATH_TRANSFERS(nvshmem, , mem, , void, thread, 1)

static inline void nvshmem_fence(TOWPATH_SITE) {
  TOWPATH_SITE_OF("nvshmem_fence");
  towpath_gpu::on_device(towpath_site.call, [=] { TOWPATH_CALL(fence, &towpath_site); });
}
static inline void nvshmem_quiet(TOWPATH_SITE) {
  TOWPATH_SITE_OF("nvshmem_quiet");
  towpath_gpu::on_device(towpath_site.call, [=] { TOWPATH_CALL(quiet, &towpath_site); });
}
static inline uint64_t nvshmem_signal_wait_until(uint64_t* sig_addr, int cmp, uint64_t cmp_value,
                                                 TOWPATH_SITE) {
  TOWPATH_SITE_OF("nvshmem_signal_wait_until");
  return towpath_gpu::wait_one(sig_addr, cmp, cmp_value, false, true, towpath_site);
}

#include "towpath_nvshmem_wait.h"
#include "towpath_nvshmem_atomic.h"
#include "towpath_nvshmem_team.h"
