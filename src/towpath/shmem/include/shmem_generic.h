/* SPDX-FileCopyrightText: The Towpath authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOWPATH_SHMEM_GENERIC_H
#define TOWPATH_SHMEM_GENERIC_H

/* shmem_put(dest, source, nelems, pe) and the like: one name for all types. In C the type chooses by
 * _Generic; a first argument that is a context chooses by its own type, and the number of
 * arguments stays that of the function chosen. In C++ templates do. */

#ifdef __cplusplus

static inline int shmem_sync(shmem_team_t team) { return shmem_team_sync(team); }
static inline void shmem_sync(int start, int log_stride, int size, long* sync) {
  shmem_sync_active_set(start, log_stride, size, sync);
}

/* Types of one size and kind share a function. */
namespace towpath_shmem {
template <typename T>
struct Plain { typedef T type; };
template <typename T>
struct Plain<volatile T> { typedef T type; };
}  // namespace towpath_shmem

#define TOWPATH_SHMEM_CXX_RMA(NAME, TYPE)                                                        \
  static inline void shmem_put(TYPE* d, const TYPE* s, size_t n, int pe) { shmem_##NAME##_put(d, s, n, pe); } \
  static inline void shmem_get(TYPE* d, const TYPE* s, size_t n, int pe) { shmem_##NAME##_get(d, s, n, pe); } \
  static inline void shmem_put_nbi(TYPE* d, const TYPE* s, size_t n, int pe) { shmem_##NAME##_put_nbi(d, s, n, pe); } \
  static inline void shmem_get_nbi(TYPE* d, const TYPE* s, size_t n, int pe) { shmem_##NAME##_get_nbi(d, s, n, pe); } \
  static inline void shmem_iput(TYPE* d, const TYPE* s, ptrdiff_t x, ptrdiff_t y, size_t n, int pe) { shmem_##NAME##_iput(d, s, x, y, n, pe); } \
  static inline void shmem_iget(TYPE* d, const TYPE* s, ptrdiff_t x, ptrdiff_t y, size_t n, int pe) { shmem_##NAME##_iget(d, s, x, y, n, pe); } \
  static inline void shmem_p(TYPE* d, TYPE value, int pe) { shmem_##NAME##_p(d, value, pe); }    \
  static inline TYPE shmem_g(const TYPE* s, int pe) { return shmem_##NAME##_g(s, pe); }          \
  static inline void shmem_put_signal(TYPE* d, const TYPE* s, size_t n, uint64_t* a, uint64_t v, int op, int pe) { shmem_##NAME##_put_signal(d, s, n, a, v, op, pe); }
#define TOWPATH_SHMEM_CXX_EXTENDED(NAME, TYPE)                                                   \
  static inline TYPE shmem_atomic_fetch(const TYPE* s, int pe) { return shmem_##NAME##_atomic_fetch(s, pe); } \
  static inline void shmem_atomic_set(TYPE* d, TYPE v, int pe) { shmem_##NAME##_atomic_set(d, v, pe); } \
  static inline TYPE shmem_atomic_swap(TYPE* d, TYPE v, int pe) { return shmem_##NAME##_atomic_swap(d, v, pe); }
#define TOWPATH_SHMEM_CXX_ATOMIC(NAME, TYPE)                                                     \
  static inline TYPE shmem_atomic_compare_swap(TYPE* d, TYPE c, TYPE v, int pe) { return shmem_##NAME##_atomic_compare_swap(d, c, v, pe); } \
  static inline TYPE shmem_atomic_fetch_inc(TYPE* d, int pe) { return shmem_##NAME##_atomic_fetch_inc(d, pe); } \
  static inline void shmem_atomic_inc(TYPE* d, int pe) { shmem_##NAME##_atomic_inc(d, pe); }     \
  static inline TYPE shmem_atomic_fetch_add(TYPE* d, TYPE v, int pe) { return shmem_##NAME##_atomic_fetch_add(d, v, pe); } \
  static inline void shmem_atomic_add(TYPE* d, TYPE v, int pe) { shmem_##NAME##_atomic_add(d, v, pe); } \
  static inline void shmem_wait_until(volatile TYPE* i, int cmp, TYPE v) { shmem_##NAME##_wait_until(i, cmp, v); } \
  static inline int shmem_test(volatile TYPE* i, int cmp, TYPE v) { return shmem_##NAME##_test(i, cmp, v); }
#define TOWPATH_SHMEM_CXX_TYPES(X)                                                              \
  X(schar, signed char) X(char, char) X(short, short) X(int, int) X(long, long)                  \
  X(longlong, long long) X(uchar, unsigned char) X(ushort, unsigned short)                       \
  X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long)                 \
  X(float, float) X(double, double) X(longdouble, long double)
#define TOWPATH_SHMEM_CXX_WORDS(X)                                                     \
  X(int, int) X(longlong, long long) X(uint, unsigned int) X(ulong, unsigned long)     \
  X(ulonglong, unsigned long long)
TOWPATH_SHMEM_CXX_TYPES(TOWPATH_SHMEM_CXX_RMA)
TOWPATH_SHMEM_CXX_WORDS(TOWPATH_SHMEM_CXX_EXTENDED)
TOWPATH_SHMEM_CXX_EXTENDED(long, long)
TOWPATH_SHMEM_CXX_EXTENDED(float, float)
TOWPATH_SHMEM_CXX_EXTENDED(double, double)
TOWPATH_SHMEM_CXX_WORDS(TOWPATH_SHMEM_CXX_ATOMIC)

#elif __STDC_VERSION__ >= 201112L

/* The type of a pointer's target, by a value of that type. */
#define TOWPATH_SHMEM_OF_TYPE(VALUE, PREFIX, SUFFIX)                                      \
  _Generic((VALUE), float: PREFIX##float##SUFFIX, double: PREFIX##double##SUFFIX,         \
           long double: PREFIX##longdouble##SUFFIX, char: PREFIX##char##SUFFIX,           \
           signed char: PREFIX##schar##SUFFIX, short: PREFIX##short##SUFFIX,              \
           int: PREFIX##int##SUFFIX, long: PREFIX##long##SUFFIX,                          \
           long long: PREFIX##longlong##SUFFIX, unsigned char: PREFIX##uchar##SUFFIX,     \
           unsigned short: PREFIX##ushort##SUFFIX, unsigned int: PREFIX##uint##SUFFIX,    \
           unsigned long: PREFIX##ulong##SUFFIX,                                          \
           unsigned long long: PREFIX##ulonglong##SUFFIX)
#define TOWPATH_SHMEM_OF_WORD(VALUE, PREFIX, SUFFIX)                                    \
  _Generic((VALUE), int: PREFIX##int##SUFFIX, long: PREFIX##long##SUFFIX,               \
           long long: PREFIX##longlong##SUFFIX, unsigned int: PREFIX##uint##SUFFIX,     \
           unsigned long: PREFIX##ulong##SUFFIX,                                        \
           unsigned long long: PREFIX##ulonglong##SUFFIX)
#define TOWPATH_SHMEM_OF_BITS(VALUE, PREFIX, SUFFIX)                                  \
  _Generic((VALUE), int: PREFIX##int32##SUFFIX, long: PREFIX##int64##SUFFIX,          \
           unsigned int: PREFIX##uint##SUFFIX, unsigned long: PREFIX##ulong##SUFFIX,  \
           unsigned long long: PREFIX##ulonglong##SUFFIX)
#define TOWPATH_SHMEM_OF_NUMBER(VALUE, PREFIX, SUFFIX)                                  \
  _Generic((VALUE), int: PREFIX##int##SUFFIX, long: PREFIX##long##SUFFIX,               \
           long long: PREFIX##longlong##SUFFIX, unsigned int: PREFIX##uint##SUFFIX,     \
           unsigned long: PREFIX##ulong##SUFFIX,                                        \
           unsigned long long: PREFIX##ulonglong##SUFFIX, float: PREFIX##float##SUFFIX, \
           double: PREFIX##double##SUFFIX)
#define TOWPATH_SHMEM_OF_WAIT(VALUE, PREFIX, SUFFIX)                                    \
  _Generic((VALUE), int: PREFIX##int##SUFFIX, long: PREFIX##long##SUFFIX,               \
           long long: PREFIX##longlong##SUFFIX, unsigned int: PREFIX##uint##SUFFIX,     \
           unsigned long: PREFIX##ulong##SUFFIX,                                        \
           unsigned long long: PREFIX##ulonglong##SUFFIX, short: PREFIX##short##SUFFIX, \
           unsigned short: PREFIX##ushort##SUFFIX)
#define TOWPATH_SHMEM_FIRST(FIRST, ...) FIRST
#define TOWPATH_SHMEM_SECOND(FIRST, SECOND, ...) SECOND

/* The target of the first argument, or of the second where the first is a context. */
#define TOWPATH_SHMEM_IS_CONTEXT(FIRST) _Generic((FIRST), shmem_ctx_t: 1, default: 0)
#define TOWPATH_SHMEM_PLAIN_FIRST(FIRST) \
  _Generic((FIRST), shmem_ctx_t: (int*)0, default: (FIRST))

#define TOWPATH_SHMEM_CALL(KIND, SUFFIX, FIRST, ...)                                     \
  _Generic((FIRST), shmem_ctx_t: TOWPATH_SHMEM_OF_##KIND(                                \
                        *TOWPATH_SHMEM_POINTER(TOWPATH_SHMEM_FIRST(__VA_ARGS__, 0)),     \
                        shmem_ctx_, SUFFIX),                                             \
           default: TOWPATH_SHMEM_OF_##KIND(*TOWPATH_SHMEM_PLAIN_FIRST(FIRST), shmem_, SUFFIX)) \
  (FIRST, __VA_ARGS__)
/* What is no pointer is not the second argument of a call with a context; any type will do. */
#define TOWPATH_SHMEM_POINTER(VALUE)                                                           \
  _Generic((VALUE), float*: (VALUE), double*: (VALUE), long double*: (VALUE), char*: (VALUE),  \
           signed char*: (VALUE), short*: (VALUE), int*: (VALUE), long*: (VALUE),              \
           long long*: (VALUE), unsigned char*: (VALUE), unsigned short*: (VALUE),             \
           unsigned int*: (VALUE), unsigned long*: (VALUE), unsigned long long*: (VALUE),      \
           const float*: (VALUE), const double*: (VALUE), const long double*: (VALUE),         \
           const char*: (VALUE), const signed char*: (VALUE), const short*: (VALUE),           \
           const int*: (VALUE), const long*: (VALUE), const long long*: (VALUE),               \
           const unsigned char*: (VALUE), const unsigned short*: (VALUE),                      \
           const unsigned int*: (VALUE), const unsigned long*: (VALUE),                        \
           const unsigned long long*: (VALUE), default: (int*)0)

#define shmem_put(...) TOWPATH_SHMEM_CALL(TYPE, _put, __VA_ARGS__)
#define shmem_get(...) TOWPATH_SHMEM_CALL(TYPE, _get, __VA_ARGS__)
#define shmem_put_nbi(...) TOWPATH_SHMEM_CALL(TYPE, _put_nbi, __VA_ARGS__)
#define shmem_get_nbi(...) TOWPATH_SHMEM_CALL(TYPE, _get_nbi, __VA_ARGS__)
#define shmem_iput(...) TOWPATH_SHMEM_CALL(TYPE, _iput, __VA_ARGS__)
#define shmem_iget(...) TOWPATH_SHMEM_CALL(TYPE, _iget, __VA_ARGS__)
#define shmem_p(...) TOWPATH_SHMEM_CALL(TYPE, _p, __VA_ARGS__)
#define shmem_g(...) TOWPATH_SHMEM_CALL(TYPE, _g, __VA_ARGS__)
#define shmem_atomic_fetch(...) TOWPATH_SHMEM_CALL(NUMBER, _atomic_fetch, __VA_ARGS__)
#define shmem_atomic_set(...) TOWPATH_SHMEM_CALL(NUMBER, _atomic_set, __VA_ARGS__)
#define shmem_atomic_swap(...) TOWPATH_SHMEM_CALL(NUMBER, _atomic_swap, __VA_ARGS__)
#define shmem_atomic_compare_swap(...) TOWPATH_SHMEM_CALL(WORD, _atomic_compare_swap, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...) TOWPATH_SHMEM_CALL(WORD, _atomic_fetch_inc, __VA_ARGS__)
#define shmem_atomic_inc(...) TOWPATH_SHMEM_CALL(WORD, _atomic_inc, __VA_ARGS__)
#define shmem_atomic_fetch_add(...) TOWPATH_SHMEM_CALL(WORD, _atomic_fetch_add, __VA_ARGS__)
#define shmem_atomic_add(...) TOWPATH_SHMEM_CALL(WORD, _atomic_add, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) TOWPATH_SHMEM_CALL(NUMBER, _atomic_fetch_nbi, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...) TOWPATH_SHMEM_CALL(NUMBER, _atomic_swap_nbi, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...) \
  TOWPATH_SHMEM_CALL(WORD, _atomic_compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...) TOWPATH_SHMEM_CALL(WORD, _atomic_fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...) TOWPATH_SHMEM_CALL(WORD, _atomic_fetch_add_nbi, __VA_ARGS__)
#define shmem_atomic_and(...) TOWPATH_SHMEM_CALL(BITS, _atomic_and, __VA_ARGS__)
#define shmem_atomic_or(...) TOWPATH_SHMEM_CALL(BITS, _atomic_or, __VA_ARGS__)
#define shmem_atomic_xor(...) TOWPATH_SHMEM_CALL(BITS, _atomic_xor, __VA_ARGS__)
#define shmem_atomic_fetch_and(...) TOWPATH_SHMEM_CALL(BITS, _atomic_fetch_and, __VA_ARGS__)
#define shmem_atomic_fetch_or(...) TOWPATH_SHMEM_CALL(BITS, _atomic_fetch_or, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...) TOWPATH_SHMEM_CALL(BITS, _atomic_fetch_xor, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...) TOWPATH_SHMEM_CALL(BITS, _atomic_fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...) TOWPATH_SHMEM_CALL(BITS, _atomic_fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...) TOWPATH_SHMEM_CALL(BITS, _atomic_fetch_xor_nbi, __VA_ARGS__)
/* Old names of the same. */
#define shmem_fetch(...) TOWPATH_SHMEM_CALL(NUMBER, _atomic_fetch, __VA_ARGS__)
#define shmem_set(...) TOWPATH_SHMEM_CALL(NUMBER, _atomic_set, __VA_ARGS__)
#define shmem_swap(...) TOWPATH_SHMEM_CALL(NUMBER, _atomic_swap, __VA_ARGS__)
#define shmem_cswap(...) TOWPATH_SHMEM_CALL(WORD, _atomic_compare_swap, __VA_ARGS__)
#define shmem_finc(...) TOWPATH_SHMEM_CALL(WORD, _atomic_fetch_inc, __VA_ARGS__)
#define shmem_inc(...) TOWPATH_SHMEM_CALL(WORD, _atomic_inc, __VA_ARGS__)
#define shmem_fadd(...) TOWPATH_SHMEM_CALL(WORD, _atomic_fetch_add, __VA_ARGS__)
#define shmem_add(...) TOWPATH_SHMEM_CALL(WORD, _atomic_add, __VA_ARGS__)

#define shmem_put_signal(...) TOWPATH_SHMEM_CALL(TYPE, _put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) TOWPATH_SHMEM_CALL(TYPE, _put_signal_nbi, __VA_ARGS__)
#define shmem_wait_until(WORD, ...) \
  TOWPATH_SHMEM_OF_WAIT(*(WORD), shmem_, _wait_until)(WORD, __VA_ARGS__)
#define shmem_wait_until_all(WORDS, ...) \
  TOWPATH_SHMEM_OF_WAIT(*(WORDS), shmem_, _wait_until_all)(WORDS, __VA_ARGS__)
#define shmem_wait_until_any(WORDS, ...) \
  TOWPATH_SHMEM_OF_WAIT(*(WORDS), shmem_, _wait_until_any)(WORDS, __VA_ARGS__)
#define shmem_wait_until_some(WORDS, ...) \
  TOWPATH_SHMEM_OF_WAIT(*(WORDS), shmem_, _wait_until_some)(WORDS, __VA_ARGS__)
#define shmem_test(WORD, ...) TOWPATH_SHMEM_OF_WAIT(*(WORD), shmem_, _test)(WORD, __VA_ARGS__)
#define shmem_test_all(WORDS, ...) \
  TOWPATH_SHMEM_OF_WAIT(*(WORDS), shmem_, _test_all)(WORDS, __VA_ARGS__)
#define shmem_test_any(WORDS, ...) \
  TOWPATH_SHMEM_OF_WAIT(*(WORDS), shmem_, _test_any)(WORDS, __VA_ARGS__)
#define shmem_test_some(WORDS, ...) \
  TOWPATH_SHMEM_OF_WAIT(*(WORDS), shmem_, _test_some)(WORDS, __VA_ARGS__)

#define shmem_broadcast(TEAM, DEST, ...) \
  TOWPATH_SHMEM_OF_TYPE(*(DEST), shmem_, _broadcast)(TEAM, DEST, __VA_ARGS__)
#define shmem_collect(TEAM, DEST, ...) \
  TOWPATH_SHMEM_OF_TYPE(*(DEST), shmem_, _collect)(TEAM, DEST, __VA_ARGS__)
#define shmem_fcollect(TEAM, DEST, ...) \
  TOWPATH_SHMEM_OF_TYPE(*(DEST), shmem_, _fcollect)(TEAM, DEST, __VA_ARGS__)
#define shmem_alltoall(TEAM, DEST, ...) \
  TOWPATH_SHMEM_OF_TYPE(*(DEST), shmem_, _alltoall)(TEAM, DEST, __VA_ARGS__)
#define shmem_alltoalls(TEAM, DEST, ...) \
  TOWPATH_SHMEM_OF_TYPE(*(DEST), shmem_, _alltoalls)(TEAM, DEST, __VA_ARGS__)
#define shmem_sum_reduce(TEAM, DEST, ...) \
  TOWPATH_SHMEM_OF_TYPE(*(DEST), shmem_, _sum_reduce)(TEAM, DEST, __VA_ARGS__)
#define shmem_prod_reduce(TEAM, DEST, ...) \
  TOWPATH_SHMEM_OF_TYPE(*(DEST), shmem_, _prod_reduce)(TEAM, DEST, __VA_ARGS__)
#define shmem_max_reduce(TEAM, DEST, ...) \
  TOWPATH_SHMEM_OF_TYPE(*(DEST), shmem_, _max_reduce)(TEAM, DEST, __VA_ARGS__)
#define shmem_min_reduce(TEAM, DEST, ...) \
  TOWPATH_SHMEM_OF_TYPE(*(DEST), shmem_, _min_reduce)(TEAM, DEST, __VA_ARGS__)

/* A team, or the four numbers of an active set. */
#define TOWPATH_SHMEM_FIFTH(A, B, C, D, NAME, ...) NAME
#define shmem_sync(...)                                                              \
  TOWPATH_SHMEM_FIFTH(__VA_ARGS__, shmem_sync_active_set, shmem_sync_active_set,     \
                      shmem_sync_active_set, shmem_team_sync, shmem_team_sync)(__VA_ARGS__)

#endif
#endif
