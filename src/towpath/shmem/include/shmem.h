/* SPDX-FileCopyrightText: The Towpath authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOWPATH_SHMEM_H
#define TOWPATH_SHMEM_H

/* OpenSHMEM 1.5 in C and C++ between processes of this host. Every PE maps the memory of every
 * other, and the program's global and static variables are symmetric too.
 *
 *   towpath shmem run hello.c --pes 4
 */

#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
#include <complex>
#else
#include <complex.h>
#endif

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 5
#define SHMEM_VENDOR_STRING "Towpath"
#define SHMEM_MAX_NAME_LEN 64

#define SHMEM_THREAD_SINGLE 0
#define SHMEM_THREAD_FUNNELED 1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE 3

#define SHMEM_CMP_EQ 0
#define SHMEM_CMP_NE 1
#define SHMEM_CMP_GT 2
#define SHMEM_CMP_LE 3
#define SHMEM_CMP_LT 4
#define SHMEM_CMP_GE 5

#define SHMEM_SIGNAL_SET 9
#define SHMEM_SIGNAL_ADD 10

#define SHMEM_MALLOC_ATOMICS_REMOTE 1L
#define SHMEM_MALLOC_SIGNAL_REMOTE 2L

#define SHMEM_CTX_SERIALIZED 1L
#define SHMEM_CTX_PRIVATE 2L
#define SHMEM_CTX_NOSTORE 4L
#define SHMEM_TEAM_NUM_CONTEXTS 1L

/* Deprecated: work arrays of active sets. */
#define SHMEM_SYNC_VALUE 0L
#define SHMEM_BARRIER_SYNC_SIZE 32
#define SHMEM_SYNC_SIZE 128
#define SHMEM_BCAST_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_COLLECT_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALL_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALLS_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 16
#define _SHMEM_SYNC_VALUE SHMEM_SYNC_VALUE
#define _SHMEM_BARRIER_SYNC_SIZE SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE SHMEM_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE SHMEM_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE SHMEM_SYNC_SIZE
#define _SHMEM_ALLTOALL_SYNC_SIZE SHMEM_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE
#define _SHMEM_CMP_EQ SHMEM_CMP_EQ
#define _SHMEM_CMP_NE SHMEM_CMP_NE
#define _SHMEM_CMP_GT SHMEM_CMP_GT
#define _SHMEM_CMP_LE SHMEM_CMP_LE
#define _SHMEM_CMP_LT SHMEM_CMP_LT
#define _SHMEM_CMP_GE SHMEM_CMP_GE
#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING

#ifdef __cplusplus
typedef std::complex<float> towpath_complexf;
typedef std::complex<double> towpath_complexd;
extern "C" {
#else
typedef float _Complex towpath_complexf;
typedef double _Complex towpath_complexd;
#endif

typedef struct towpath_shmem_team* shmem_team_t;
typedef struct towpath_shmem_context* shmem_ctx_t;
typedef struct {
  int num_contexts;
} shmem_team_config_t;

extern const shmem_team_t SHMEM_TEAM_WORLD;
extern const shmem_team_t SHMEM_TEAM_SHARED;
#define SHMEM_TEAM_INVALID ((shmem_team_t)0)
#define SHMEM_CTX_DEFAULT ((shmem_ctx_t)1)
#define SHMEM_CTX_INVALID ((shmem_ctx_t)0)

/* --- types, in groups as the specification has them ------------------------------------------ */
#define TOWPATH_SHMEM_RMA_TYPES(X)                                                           \
  X(float, float) X(double, double) X(longdouble, long double) X(char, char)                 \
  X(schar, signed char) X(short, short) X(int, int) X(long, long) X(longlong, long long)     \
  X(uchar, unsigned char) X(ushort, unsigned short) X(uint, unsigned int)                    \
  X(ulong, unsigned long) X(ulonglong, unsigned long long) X(int8, int8_t) X(int16, int16_t) \
  X(int32, int32_t) X(int64, int64_t) X(uint8, uint8_t) X(uint16, uint16_t)                  \
  X(uint32, uint32_t) X(uint64, uint64_t) X(size, size_t) X(ptrdiff, ptrdiff_t)
#define TOWPATH_SHMEM_COMPLEX_TYPES(X) X(complexf, towpath_complexf) X(complexd, towpath_complexd)
#define TOWPATH_SHMEM_ATOMIC_TYPES(X)                                                            \
  X(int, int) X(long, long) X(longlong, long long) X(uint, unsigned int) X(ulong, unsigned long) \
  X(ulonglong, unsigned long long) X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t)       \
  X(uint64, uint64_t) X(size, size_t) X(ptrdiff, ptrdiff_t)
#define TOWPATH_SHMEM_EXTENDED_TYPES(X) \
  TOWPATH_SHMEM_ATOMIC_TYPES(X) X(float, float) X(double, double)
#define TOWPATH_SHMEM_BITWISE_ATOMIC_TYPES(X)                                    \
  X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long) \
  X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t) X(uint64, uint64_t)
#define TOWPATH_SHMEM_WAIT_TYPES(X) \
  TOWPATH_SHMEM_ATOMIC_TYPES(X) X(short, short) X(ushort, unsigned short)
#define TOWPATH_SHMEM_REDUCE_BITWISE_TYPES(X)                                                \
  X(uchar, unsigned char) X(ushort, unsigned short) X(uint, unsigned int)                    \
  X(ulong, unsigned long) X(ulonglong, unsigned long long) X(int8, int8_t) X(int16, int16_t) \
  X(int32, int32_t) X(int64, int64_t) X(uint8, uint8_t) X(uint16, uint16_t)                  \
  X(uint32, uint32_t) X(uint64, uint64_t) X(size, size_t)
#define TOWPATH_SHMEM_SIZES(X) X(8, 1) X(16, 2) X(32, 4) X(64, 8) X(128, 16)

/* --- the library ----------------------------------------------------------------------------- */
void shmem_init(void);
int shmem_init_thread(int requested, int* provided);
void shmem_query_thread(int* provided);
void shmem_finalize(void);
void shmem_global_exit(int status);
int shmem_my_pe(void);
int shmem_n_pes(void);
int shmem_pe_accessible(int pe);
int shmem_addr_accessible(const void* address, int pe);
void* shmem_ptr(const void* dest, int pe);
void shmem_info_get_version(int* major, int* minor);
void shmem_info_get_name(char* name);
void start_pes(int unused);
int _my_pe(void);
int _num_pes(void);
int my_pe(void);
int num_pes(void);
void shmem_pcontrol(int level, ...);

void* shmem_malloc(size_t size);
void* shmem_calloc(size_t count, size_t size);
void* shmem_align(size_t alignment, size_t size);
void* shmem_realloc(void* ptr, size_t size);
void* shmem_malloc_with_hints(size_t size, long hints);
void shmem_free(void* ptr);
void* shmalloc(size_t size);
void* shmemalign(size_t alignment, size_t size);
void* shrealloc(void* ptr, size_t size);
void shfree(void* ptr);

/* --- teams and contexts ---------------------------------------------------------------------- */
int shmem_team_my_pe(shmem_team_t team);
int shmem_team_n_pes(shmem_team_t team);
int shmem_team_get_config(shmem_team_t team, long mask, shmem_team_config_t* config);
int shmem_team_translate_pe(shmem_team_t from, int pe, shmem_team_t to);
int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size,
                             const shmem_team_config_t* config, long mask, shmem_team_t* made);
int shmem_team_split_2d(shmem_team_t parent, int xrange, const shmem_team_config_t* xconfig,
                        long xmask, shmem_team_t* xteam, const shmem_team_config_t* yconfig,
                        long ymask, shmem_team_t* yteam);
void shmem_team_destroy(shmem_team_t team);
int shmem_team_sync(shmem_team_t team);
int shmem_ctx_create(long options, shmem_ctx_t* made);
int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t* made);
void shmem_ctx_destroy(shmem_ctx_t context);
int shmem_ctx_get_team(shmem_ctx_t context, shmem_team_t* team);

/* --- order and synchronization --------------------------------------------------------------- */
void shmem_fence(void);
void shmem_quiet(void);
void shmem_ctx_fence(shmem_ctx_t context);
void shmem_ctx_quiet(shmem_ctx_t context);
void shmem_barrier_all(void);
void shmem_sync_all(void);
void shmem_barrier(int start, int log_stride, int size, long* sync);
/* shmem_sync takes a team, or in its deprecated form an active set. */
int shmem_sync_team(shmem_team_t team);
void shmem_sync_active_set(int start, int log_stride, int size, long* sync);

/* --- puts, gets ------------------------------------------------------------------------------ */
/* CONTEXT is the first parameter of a function that also exists without a context. */
#define TOWPATH_SHMEM_CONTEXT shmem_ctx_t,
#define TOWPATH_SHMEM_RMA_OF(PREFIX, CONTEXT, NAME, TYPE)                                        \
  void PREFIX##NAME##_put(CONTEXT TYPE* dest, const TYPE* source, size_t nelems, int pe);        \
  void PREFIX##NAME##_get(CONTEXT TYPE* dest, const TYPE* source, size_t nelems, int pe);        \
  void PREFIX##NAME##_put_nbi(CONTEXT TYPE* dest, const TYPE* source, size_t nelems, int pe);    \
  void PREFIX##NAME##_get_nbi(CONTEXT TYPE* dest, const TYPE* source, size_t nelems, int pe);    \
  void PREFIX##NAME##_iput(CONTEXT TYPE* dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, \
                           size_t nelems, int pe);                                               \
  void PREFIX##NAME##_iget(CONTEXT TYPE* dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, \
                           size_t nelems, int pe);                                               \
  void PREFIX##NAME##_p(CONTEXT TYPE* dest, TYPE value, int pe);                                 \
  TYPE PREFIX##NAME##_g(CONTEXT const TYPE* source, int pe);                                     \
  void PREFIX##NAME##_put_signal(CONTEXT TYPE* dest, const TYPE* source, size_t nelems,          \
                                 uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);       \
  void PREFIX##NAME##_put_signal_nbi(CONTEXT TYPE* dest, const TYPE* source, size_t nelems,      \
                                     uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
#define TOWPATH_SHMEM_RMA(NAME, TYPE)                                                            \
  TOWPATH_SHMEM_RMA_OF(shmem_, , NAME, TYPE)                                                     \
  TOWPATH_SHMEM_RMA_OF(shmem_ctx_, TOWPATH_SHMEM_CONTEXT, NAME, TYPE)                            \
  int shmem_##NAME##_broadcast(shmem_team_t team, TYPE* dest, const TYPE* source, size_t nelems, \
                               int root);                                                        \
  int shmem_##NAME##_collect(shmem_team_t team, TYPE* dest, const TYPE* source, size_t nelems);  \
  int shmem_##NAME##_fcollect(shmem_team_t team, TYPE* dest, const TYPE* source, size_t nelems); \
  int shmem_##NAME##_alltoall(shmem_team_t team, TYPE* dest, const TYPE* source, size_t nelems); \
  int shmem_##NAME##_alltoalls(shmem_team_t team, TYPE* dest, const TYPE* source, ptrdiff_t dst, \
                               ptrdiff_t sst, size_t nelems);
TOWPATH_SHMEM_RMA_TYPES(TOWPATH_SHMEM_RMA)

#define TOWPATH_SHMEM_SIZED_OF(PREFIX, CONTEXT, NAME, BYTES)                                   \
  void PREFIX##put##NAME(CONTEXT void* dest, const void* source, size_t nelems, int pe);       \
  void PREFIX##get##NAME(CONTEXT void* dest, const void* source, size_t nelems, int pe);       \
  void PREFIX##put##NAME##_nbi(CONTEXT void* dest, const void* source, size_t nelems, int pe); \
  void PREFIX##get##NAME##_nbi(CONTEXT void* dest, const void* source, size_t nelems, int pe); \
  void PREFIX##put##NAME##_signal(CONTEXT void* dest, const void* source, size_t nelems,       \
                                  uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);    \
  void PREFIX##put##NAME##_signal_nbi(CONTEXT void* dest, const void* source, size_t nelems,   \
                                      uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
#define TOWPATH_SHMEM_SIZED(NAME, BYTES)        \
  TOWPATH_SHMEM_SIZED_OF(shmem_, , NAME, BYTES) \
  TOWPATH_SHMEM_SIZED_OF(shmem_ctx_, TOWPATH_SHMEM_CONTEXT, NAME, BYTES)
TOWPATH_SHMEM_SIZES(TOWPATH_SHMEM_SIZED)
TOWPATH_SHMEM_SIZED(mem, 1)
#define TOWPATH_SHMEM_STRIDED_OF(PREFIX, CONTEXT, NAME, BYTES)                                  \
  void PREFIX##iput##NAME(CONTEXT void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, \
                          size_t nelems, int pe);                                               \
  void PREFIX##iget##NAME(CONTEXT void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, \
                          size_t nelems, int pe);
#define TOWPATH_SHMEM_STRIDED(NAME, BYTES)        \
  TOWPATH_SHMEM_STRIDED_OF(shmem_, , NAME, BYTES) \
  TOWPATH_SHMEM_STRIDED_OF(shmem_ctx_, TOWPATH_SHMEM_CONTEXT, NAME, BYTES)
TOWPATH_SHMEM_SIZES(TOWPATH_SHMEM_STRIDED)

/* --- atomics --------------------------------------------------------------------------------- */
#define TOWPATH_SHMEM_EXTENDED_OF(PREFIX, CONTEXT, NAME, TYPE)                           \
  TYPE PREFIX##NAME##_atomic_fetch(CONTEXT const TYPE* source, int pe);                  \
  void PREFIX##NAME##_atomic_set(CONTEXT TYPE* dest, TYPE value, int pe);                \
  TYPE PREFIX##NAME##_atomic_swap(CONTEXT TYPE* dest, TYPE value, int pe);               \
  void PREFIX##NAME##_atomic_fetch_nbi(CONTEXT TYPE* fetch, const TYPE* source, int pe); \
  void PREFIX##NAME##_atomic_swap_nbi(CONTEXT TYPE* fetch, TYPE* dest, TYPE value, int pe);
#define TOWPATH_SHMEM_EXTENDED(NAME, TYPE)                                 \
  TOWPATH_SHMEM_EXTENDED_OF(shmem_, , NAME, TYPE)                          \
  TOWPATH_SHMEM_EXTENDED_OF(shmem_ctx_, TOWPATH_SHMEM_CONTEXT, NAME, TYPE) \
  TYPE shmem_##NAME##_fetch(const TYPE* source, int pe);                   \
  void shmem_##NAME##_set(TYPE* dest, TYPE value, int pe);                 \
  TYPE shmem_##NAME##_swap(TYPE* dest, TYPE value, int pe);
TOWPATH_SHMEM_EXTENDED_TYPES(TOWPATH_SHMEM_EXTENDED)
#define TOWPATH_SHMEM_ATOMIC_OF(PREFIX, CONTEXT, NAME, TYPE)                                  \
  TYPE PREFIX##NAME##_atomic_compare_swap(CONTEXT TYPE* dest, TYPE cond, TYPE value, int pe); \
  TYPE PREFIX##NAME##_atomic_fetch_inc(CONTEXT TYPE* dest, int pe);                           \
  void PREFIX##NAME##_atomic_inc(CONTEXT TYPE* dest, int pe);                                 \
  TYPE PREFIX##NAME##_atomic_fetch_add(CONTEXT TYPE* dest, TYPE value, int pe);               \
  void PREFIX##NAME##_atomic_add(CONTEXT TYPE* dest, TYPE value, int pe);                     \
  void PREFIX##NAME##_atomic_compare_swap_nbi(CONTEXT TYPE* fetch, TYPE* dest, TYPE cond,     \
                                              TYPE value, int pe);                            \
  void PREFIX##NAME##_atomic_fetch_inc_nbi(CONTEXT TYPE* fetch, TYPE* dest, int pe);          \
  void PREFIX##NAME##_atomic_fetch_add_nbi(CONTEXT TYPE* fetch, TYPE* dest, TYPE value, int pe);
#define TOWPATH_SHMEM_ATOMIC(NAME, TYPE)                                 \
  TOWPATH_SHMEM_ATOMIC_OF(shmem_, , NAME, TYPE)                          \
  TOWPATH_SHMEM_ATOMIC_OF(shmem_ctx_, TOWPATH_SHMEM_CONTEXT, NAME, TYPE) \
  TYPE shmem_##NAME##_cswap(TYPE* dest, TYPE cond, TYPE value, int pe);  \
  TYPE shmem_##NAME##_finc(TYPE* dest, int pe);                          \
  void shmem_##NAME##_inc(TYPE* dest, int pe);                           \
  TYPE shmem_##NAME##_fadd(TYPE* dest, TYPE value, int pe);              \
  void shmem_##NAME##_add(TYPE* dest, TYPE value, int pe);
TOWPATH_SHMEM_ATOMIC_TYPES(TOWPATH_SHMEM_ATOMIC)
#define TOWPATH_SHMEM_BITWISE_ATOMIC_OF(PREFIX, CONTEXT, NAME, TYPE)                             \
  TYPE PREFIX##NAME##_atomic_fetch_and(CONTEXT TYPE* dest, TYPE value, int pe);                  \
  void PREFIX##NAME##_atomic_and(CONTEXT TYPE* dest, TYPE value, int pe);                        \
  void PREFIX##NAME##_atomic_fetch_and_nbi(CONTEXT TYPE* fetch, TYPE* dest, TYPE value, int pe); \
  TYPE PREFIX##NAME##_atomic_fetch_or(CONTEXT TYPE* dest, TYPE value, int pe);                   \
  void PREFIX##NAME##_atomic_or(CONTEXT TYPE* dest, TYPE value, int pe);                         \
  void PREFIX##NAME##_atomic_fetch_or_nbi(CONTEXT TYPE* fetch, TYPE* dest, TYPE value, int pe);  \
  TYPE PREFIX##NAME##_atomic_fetch_xor(CONTEXT TYPE* dest, TYPE value, int pe);                  \
  void PREFIX##NAME##_atomic_xor(CONTEXT TYPE* dest, TYPE value, int pe);                        \
  void PREFIX##NAME##_atomic_fetch_xor_nbi(CONTEXT TYPE* fetch, TYPE* dest, TYPE value, int pe);
#define TOWPATH_SHMEM_BITWISE_ATOMIC(NAME, TYPE)        \
  TOWPATH_SHMEM_BITWISE_ATOMIC_OF(shmem_, , NAME, TYPE) \
  TOWPATH_SHMEM_BITWISE_ATOMIC_OF(shmem_ctx_, TOWPATH_SHMEM_CONTEXT, NAME, TYPE)
TOWPATH_SHMEM_BITWISE_ATOMIC_TYPES(TOWPATH_SHMEM_BITWISE_ATOMIC)

/* --- signals and waiting --------------------------------------------------------------------- */
uint64_t shmem_signal_fetch(const uint64_t* sig_addr);
uint64_t shmem_signal_wait_until(uint64_t* sig_addr, int cmp, uint64_t cmp_value);
#define TOWPATH_SHMEM_WAIT(NAME, TYPE)                                                            \
  void shmem_##NAME##_wait_until(volatile TYPE* ivar, int cmp, TYPE cmp_value);                   \
  void shmem_##NAME##_wait(volatile TYPE* ivar, TYPE cmp_value);                                  \
  int shmem_##NAME##_test(volatile TYPE* ivar, int cmp, TYPE cmp_value);                          \
  void shmem_##NAME##_wait_until_all(volatile TYPE* ivars, size_t nelems, const int* status,      \
                                     int cmp, TYPE cmp_value);                                    \
  size_t shmem_##NAME##_wait_until_any(volatile TYPE* ivars, size_t nelems, const int* status,    \
                                       int cmp, TYPE cmp_value);                                  \
  size_t shmem_##NAME##_wait_until_some(volatile TYPE* ivars, size_t nelems, size_t* indices,     \
                                        const int* status, int cmp, TYPE cmp_value);              \
  void shmem_##NAME##_wait_until_all_vector(volatile TYPE* ivars, size_t nelems,                  \
                                            const int* status, int cmp, TYPE* cmp_values);        \
  size_t shmem_##NAME##_wait_until_any_vector(volatile TYPE* ivars, size_t nelems,                \
                                              const int* status, int cmp, TYPE* cmp_values);      \
  size_t shmem_##NAME##_wait_until_some_vector(volatile TYPE* ivars, size_t nelems,               \
                                               size_t* indices, const int* status, int cmp,       \
                                               TYPE* cmp_values);                                 \
  int shmem_##NAME##_test_all(volatile TYPE* ivars, size_t nelems, const int* status, int cmp,    \
                              TYPE cmp_value);                                                    \
  size_t shmem_##NAME##_test_any(volatile TYPE* ivars, size_t nelems, const int* status, int cmp, \
                                 TYPE cmp_value);                                                 \
  size_t shmem_##NAME##_test_some(volatile TYPE* ivars, size_t nelems, size_t* indices,           \
                                  const int* status, int cmp, TYPE cmp_value);                    \
  int shmem_##NAME##_test_all_vector(volatile TYPE* ivars, size_t nelems, const int* status,      \
                                     int cmp, TYPE* cmp_values);                                  \
  size_t shmem_##NAME##_test_any_vector(volatile TYPE* ivars, size_t nelems, const int* status,   \
                                        int cmp, TYPE* cmp_values);                               \
  size_t shmem_##NAME##_test_some_vector(volatile TYPE* ivars, size_t nelems, size_t* indices,    \
                                         const int* status, int cmp, TYPE* cmp_values);
TOWPATH_SHMEM_WAIT_TYPES(TOWPATH_SHMEM_WAIT)
void shmem_wait_until(volatile long* ivar, int cmp, long cmp_value);
void shmem_wait(volatile long* ivar, long cmp_value);

/* --- collectives ----------------------------------------------------------------------------- */
int shmem_broadcastmem(shmem_team_t team, void* dest, const void* source, size_t nelems, int root);
int shmem_collectmem(shmem_team_t team, void* dest, const void* source, size_t nelems);
int shmem_fcollectmem(shmem_team_t team, void* dest, const void* source, size_t nelems);
int shmem_alltoallmem(shmem_team_t team, void* dest, const void* source, size_t nelems);
int shmem_alltoallsmem(shmem_team_t team, void* dest, const void* source, ptrdiff_t dst,
                       ptrdiff_t sst, size_t nelems);
#define TOWPATH_SHMEM_ACTIVE_SET(BITS, BYTES)                                                    \
  void shmem_broadcast##BITS(void* dest, const void* source, size_t nelems, int root, int start, \
                             int log_stride, int size, long* sync);                              \
  void shmem_collect##BITS(void* dest, const void* source, size_t nelems, int start,             \
                           int log_stride, int size, long* sync);                                \
  void shmem_fcollect##BITS(void* dest, const void* source, size_t nelems, int start,            \
                            int log_stride, int size, long* sync);                               \
  void shmem_alltoall##BITS(void* dest, const void* source, size_t nelems, int start,            \
                            int log_stride, int size, long* sync);                               \
  void shmem_alltoalls##BITS(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,       \
                             size_t nelems, int start, int log_stride, int size, long* sync);
TOWPATH_SHMEM_ACTIVE_SET(32, 4)
TOWPATH_SHMEM_ACTIVE_SET(64, 8)

#define TOWPATH_SHMEM_REDUCTION(NAME, TYPE, OPERATION)                                       \
  int shmem_##NAME##_##OPERATION##_reduce(shmem_team_t team, TYPE* dest, const TYPE* source, \
                                          size_t nelems);
#define TOWPATH_SHMEM_REDUCE_BITWISE(NAME, TYPE) \
  TOWPATH_SHMEM_REDUCTION(NAME, TYPE, and)       \
  TOWPATH_SHMEM_REDUCTION(NAME, TYPE, or)        \
  TOWPATH_SHMEM_REDUCTION(NAME, TYPE, xor)
#define TOWPATH_SHMEM_REDUCE_ORDER(NAME, TYPE) \
  TOWPATH_SHMEM_REDUCTION(NAME, TYPE, max)     \
  TOWPATH_SHMEM_REDUCTION(NAME, TYPE, min)
#define TOWPATH_SHMEM_REDUCE_SUM(NAME, TYPE) \
  TOWPATH_SHMEM_REDUCTION(NAME, TYPE, sum)   \
  TOWPATH_SHMEM_REDUCTION(NAME, TYPE, prod)
TOWPATH_SHMEM_REDUCE_BITWISE_TYPES(TOWPATH_SHMEM_REDUCE_BITWISE)
TOWPATH_SHMEM_RMA_TYPES(TOWPATH_SHMEM_REDUCE_ORDER)
TOWPATH_SHMEM_RMA_TYPES(TOWPATH_SHMEM_REDUCE_SUM)
TOWPATH_SHMEM_COMPLEX_TYPES(TOWPATH_SHMEM_REDUCE_SUM)

#define TOWPATH_SHMEM_TO_ALL(NAME, TYPE, OPERATION)                                                \
  void shmem_##NAME##_##OPERATION##_to_all(TYPE* dest, const TYPE* source, int nreduce, int start, \
                                           int log_stride, int size, TYPE* work, long* sync);
#define TOWPATH_SHMEM_TO_ALL_BITWISE(NAME, TYPE) \
  TOWPATH_SHMEM_TO_ALL(NAME, TYPE, and)          \
  TOWPATH_SHMEM_TO_ALL(NAME, TYPE, or)           \
  TOWPATH_SHMEM_TO_ALL(NAME, TYPE, xor)
#define TOWPATH_SHMEM_TO_ALL_ORDER(NAME, TYPE) \
  TOWPATH_SHMEM_TO_ALL(NAME, TYPE, max)        \
  TOWPATH_SHMEM_TO_ALL(NAME, TYPE, min)
#define TOWPATH_SHMEM_TO_ALL_SUM(NAME, TYPE) \
  TOWPATH_SHMEM_TO_ALL(NAME, TYPE, sum)      \
  TOWPATH_SHMEM_TO_ALL(NAME, TYPE, prod)
#define TOWPATH_SHMEM_TO_ALL_INTEGERS(X) \
  X(short, short) X(int, int) X(long, long) X(longlong, long long)
#define TOWPATH_SHMEM_TO_ALL_NUMBERS(X) \
  TOWPATH_SHMEM_TO_ALL_INTEGERS(X) X(float, float) X(double, double) X(longdouble, long double)
TOWPATH_SHMEM_TO_ALL_INTEGERS(TOWPATH_SHMEM_TO_ALL_BITWISE)
TOWPATH_SHMEM_TO_ALL_NUMBERS(TOWPATH_SHMEM_TO_ALL_ORDER)
TOWPATH_SHMEM_TO_ALL_NUMBERS(TOWPATH_SHMEM_TO_ALL_SUM)
TOWPATH_SHMEM_COMPLEX_TYPES(TOWPATH_SHMEM_TO_ALL_SUM)

/* --- locks, and what caches once needed ------------------------------------------------------- */
void shmem_set_lock(long* lock);
void shmem_clear_lock(long* lock);
int shmem_test_lock(long* lock);
void shmem_clear_cache_inv(void);
void shmem_set_cache_inv(void);
void shmem_clear_cache_line_inv(void* dest);
void shmem_set_cache_line_inv(void* dest);
void shmem_udcflush(void);
void shmem_udcflush_line(void* dest);

#ifdef __cplusplus
}
#endif

#include "shmem_generic.h"

#endif
