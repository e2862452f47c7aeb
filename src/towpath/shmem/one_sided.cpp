// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM's puts, gets, atomics, signals and waits. Every PE maps every heap, so a put is a copy
// and complete when the call returns.
#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "towpath/shmem/runtime.hpp"

using towpath::shmem::runtime;

namespace {

void put(void* to, const void* from, std::size_t size, int pe, const char* call) {
  if (size > 0) std::memmove(runtime().remote(to, size, pe, call), from, size);
}
void get(void* to, const void* from, std::size_t size, int pe, const char* call) {
  if (size > 0) std::memmove(to, runtime().remote(from, size, pe, call), size);
}

// Strides count elements of `size` bytes.
void put_strided(void* to, const void* from, std::ptrdiff_t to_stride, std::ptrdiff_t from_stride,
                 std::size_t count, std::size_t size, int pe, const char* call) {
  const auto bytes = static_cast<std::ptrdiff_t>(size);
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i) * bytes;
    put(static_cast<char*>(to) + at * to_stride, static_cast<const char*>(from) + at * from_stride,
        size, pe, call);
  }
}
void get_strided(void* to, const void* from, std::ptrdiff_t to_stride, std::ptrdiff_t from_stride,
                 std::size_t count, std::size_t size, int pe, const char* call) {
  const auto bytes = static_cast<std::ptrdiff_t>(size);
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i) * bytes;
    get(static_cast<char*>(to) + at * to_stride, static_cast<const char*>(from) + at * from_stride,
        size, pe, call);
  }
}

// The number in the world of a PE of the context's team.
int world_pe(shmem_ctx_t context, int pe, const char* call) {
  if (context == SHMEM_CTX_DEFAULT) return pe;
  if (context == SHMEM_CTX_INVALID) {
    towpath::shmem::fail(fmt::format("{} was given SHMEM_CTX_INVALID", call));
  }
  const towpath::shmem::Team& team = *context->team;
  if (pe >= 0 && pe < team.size) return team.pe(pe);
  towpath::shmem::fail(fmt::format("{} names PE {} of a context's team; it must be 0 to {}", call,
                                   pe, team.size - 1));
}

template <typename T>
T* word_at(const T* address, int pe, const char* call) {
  return reinterpret_cast<T*>(runtime().remote(address, sizeof(T), pe, call));
}

void put_signal(void* to, const void* from, std::size_t size, std::uint64_t* signal_at,
                std::uint64_t value, int operation, int pe, const char* call) {
  put(to, from, size, pe, call);
  std::uint64_t* const word = word_at(signal_at, pe, call);
  if (operation == SHMEM_SIGNAL_ADD) {
    __atomic_fetch_add(word, value, __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
  }
}

// --- atomics -------------------------------------------------------------------------------------

template <typename T>
T fetch(const T* from, int pe, const char* call) {
  T value;
  __atomic_load(word_at(from, pe, call), &value, __ATOMIC_ACQUIRE);
  return value;
}
template <typename T>
T swap(T* at, T value, int pe, const char* call) {
  T before;
  __atomic_exchange(word_at(at, pe, call), &value, &before, __ATOMIC_ACQ_REL);
  return before;
}
template <typename T>
T compare_swap(T* at, T condition, T value, int pe, const char* call) {
  __atomic_compare_exchange_n(word_at(at, pe, call), &condition, value, false, __ATOMIC_ACQ_REL,
                              __ATOMIC_ACQUIRE);
  return condition;
}
template <typename T>
T fetch_add(T* at, T value, int pe, const char* call) {
  return __atomic_fetch_add(word_at(at, pe, call), value, __ATOMIC_ACQ_REL);
}

// --- waiting -------------------------------------------------------------------------------------

template <typename T>
bool holds(const volatile T* at, int comparison, T value) {
  const T found = __atomic_load_n(at, __ATOMIC_ACQUIRE);
  switch (comparison) {
    case SHMEM_CMP_EQ: return found == value;
    case SHMEM_CMP_NE: return found != value;
    case SHMEM_CMP_GT: return found > value;
    case SHMEM_CMP_LE: return found <= value;
    case SHMEM_CMP_LT: return found < value;
    case SHMEM_CMP_GE: return found >= value;
    default:
      towpath::shmem::fail(
          "a comparison is unknown; it must be SHMEM_CMP_EQ, NE, GT, LE, LT or GE");
  }
}

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// Words, and the value with which each is compared.
template <typename T>
struct Words {
  volatile T* first;
  std::size_t count;
  const int* status;
  int comparison;
  const T* values;
  bool is_vector;

  bool counts(std::size_t i) const { return status == nullptr || status[i] == 0; }
  bool holds_at(std::size_t i) const {
    return holds(first + i, comparison, values[is_vector ? i : 0]);
  }
  bool is_empty() const {
    for (std::size_t i = 0; i < count; ++i) {
      if (counts(i)) return false;
    }
    return true;
  }
  bool all() const {
    for (std::size_t i = 0; i < count; ++i) {
      if (counts(i) && !holds_at(i)) return false;
    }
    return true;
  }
  std::size_t any() const {
    for (std::size_t i = 0; i < count; ++i) {
      if (counts(i) && holds_at(i)) return i;
    }
    return kNone;
  }
  std::size_t some(std::size_t* indices) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (counts(i) && holds_at(i)) indices[found++] = i;
    }
    return found;
  }
  std::size_t wait_any(const char* call) const {
    if (!is_empty()) runtime().wait([this] { return any() != kNone; }, call);
    return any();
  }
  std::size_t wait_some(std::size_t* indices, const char* call) const {
    if (!is_empty()) runtime().wait([this] { return any() != kNone; }, call);
    return some(indices);
  }
};

}  // namespace

extern "C" {

// Functions with a context, and the same without one. A context has the PE numbers of its team.
#define CONTEXT_PARAMETER shmem_ctx_t context,
#define WITH_AND_WITHOUT(FAMILY, ...) \
  FAMILY(shmem_, , pe, __VA_ARGS__)   \
  FAMILY(shmem_ctx_, CONTEXT_PARAMETER, world_pe(context, pe, __func__), __VA_ARGS__)

#define RMA_OF(PREFIX, CONTEXT, PE, NAME, TYPE)                                                \
  void PREFIX##NAME##_put(CONTEXT TYPE* d, const TYPE* s, size_t n, int pe) {                  \
    put(d, s, n * sizeof(TYPE), PE, __func__);                                                 \
  }                                                                                            \
  void PREFIX##NAME##_get(CONTEXT TYPE* d, const TYPE* s, size_t n, int pe) {                  \
    get(d, s, n * sizeof(TYPE), PE, __func__);                                                 \
  }                                                                                            \
  void PREFIX##NAME##_put_nbi(CONTEXT TYPE* d, const TYPE* s, size_t n, int pe) {              \
    put(d, s, n * sizeof(TYPE), PE, __func__);                                                 \
  }                                                                                            \
  void PREFIX##NAME##_get_nbi(CONTEXT TYPE* d, const TYPE* s, size_t n, int pe) {              \
    get(d, s, n * sizeof(TYPE), PE, __func__);                                                 \
  }                                                                                            \
  void PREFIX##NAME##_iput(CONTEXT TYPE* d, const TYPE* s, ptrdiff_t x, ptrdiff_t y, size_t n, \
                           int pe) {                                                           \
    put_strided(d, s, x, y, n, sizeof(TYPE), PE, __func__);                                    \
  }                                                                                            \
  void PREFIX##NAME##_iget(CONTEXT TYPE* d, const TYPE* s, ptrdiff_t x, ptrdiff_t y, size_t n, \
                           int pe) {                                                           \
    get_strided(d, s, x, y, n, sizeof(TYPE), PE, __func__);                                    \
  }                                                                                            \
  void PREFIX##NAME##_p(CONTEXT TYPE* d, TYPE v, int pe) {                                     \
    put(d, &v, sizeof(TYPE), PE, __func__);                                                    \
  }                                                                                            \
  TYPE PREFIX##NAME##_g(CONTEXT const TYPE* s, int pe) {                                       \
    TYPE v;                                                                                    \
    get(&v, s, sizeof(TYPE), PE, __func__);                                                    \
    return v;                                                                                  \
  }                                                                                            \
  void PREFIX##NAME##_put_signal(CONTEXT TYPE* d, const TYPE* s, size_t n, uint64_t* a,        \
                                 uint64_t v, int op, int pe) {                                 \
    put_signal(d, s, n * sizeof(TYPE), a, v, op, PE, __func__);                                \
  }                                                                                            \
  void PREFIX##NAME##_put_signal_nbi(CONTEXT TYPE* d, const TYPE* s, size_t n, uint64_t* a,    \
                                     uint64_t v, int op, int pe) {                             \
    put_signal(d, s, n * sizeof(TYPE), a, v, op, PE, __func__);                                \
  }
#define RMA(NAME, TYPE) WITH_AND_WITHOUT(RMA_OF, NAME, TYPE)
TOWPATH_SHMEM_RMA_TYPES(RMA)

#define SIZED_OF(PREFIX, CONTEXT, PE, NAME, BYTES)                                           \
  void PREFIX##put##NAME(CONTEXT void* d, const void* s, size_t n, int pe) {                 \
    put(d, s, n* BYTES, PE, __func__);                                                       \
  }                                                                                          \
  void PREFIX##get##NAME(CONTEXT void* d, const void* s, size_t n, int pe) {                 \
    get(d, s, n* BYTES, PE, __func__);                                                       \
  }                                                                                          \
  void PREFIX##put##NAME##_nbi(CONTEXT void* d, const void* s, size_t n, int pe) {           \
    put(d, s, n* BYTES, PE, __func__);                                                       \
  }                                                                                          \
  void PREFIX##get##NAME##_nbi(CONTEXT void* d, const void* s, size_t n, int pe) {           \
    get(d, s, n* BYTES, PE, __func__);                                                       \
  }                                                                                          \
  void PREFIX##put##NAME##_signal(CONTEXT void* d, const void* s, size_t n, uint64_t* a,     \
                                  uint64_t v, int op, int pe) {                              \
    put_signal(d, s, n* BYTES, a, v, op, PE, __func__);                                      \
  }                                                                                          \
  void PREFIX##put##NAME##_signal_nbi(CONTEXT void* d, const void* s, size_t n, uint64_t* a, \
                                      uint64_t v, int op, int pe) {                          \
    put_signal(d, s, n* BYTES, a, v, op, PE, __func__);                                      \
  }
#define SIZED(NAME, BYTES) WITH_AND_WITHOUT(SIZED_OF, NAME, BYTES)
TOWPATH_SHMEM_SIZES(SIZED)
SIZED(mem, 1)

#define STRIDED_OF(PREFIX, CONTEXT, PE, NAME, BYTES)                                          \
  void PREFIX##iput##NAME(CONTEXT void* d, const void* s, ptrdiff_t x, ptrdiff_t y, size_t n, \
                          int pe) {                                                           \
    put_strided(d, s, x, y, n, BYTES, PE, __func__);                                          \
  }                                                                                           \
  void PREFIX##iget##NAME(CONTEXT void* d, const void* s, ptrdiff_t x, ptrdiff_t y, size_t n, \
                          int pe) {                                                           \
    get_strided(d, s, x, y, n, BYTES, PE, __func__);                                          \
  }
#define STRIDED(NAME, BYTES) WITH_AND_WITHOUT(STRIDED_OF, NAME, BYTES)
TOWPATH_SHMEM_SIZES(STRIDED)

#define EXTENDED_OF(PREFIX, CONTEXT, PE, NAME, TYPE)                                            \
  TYPE PREFIX##NAME##_atomic_fetch(CONTEXT const TYPE* s, int pe) {                             \
    return fetch(s, PE, __func__);                                                              \
  }                                                                                             \
  void PREFIX##NAME##_atomic_set(CONTEXT TYPE* d, TYPE v, int pe) { swap(d, v, PE, __func__); } \
  TYPE PREFIX##NAME##_atomic_swap(CONTEXT TYPE* d, TYPE v, int pe) {                            \
    return swap(d, v, PE, __func__);                                                            \
  }                                                                                             \
  void PREFIX##NAME##_atomic_fetch_nbi(CONTEXT TYPE* f, const TYPE* s, int pe) {                \
    *f = fetch(s, PE, __func__);                                                                \
  }                                                                                             \
  void PREFIX##NAME##_atomic_swap_nbi(CONTEXT TYPE* f, TYPE* d, TYPE v, int pe) {               \
    *f = swap(d, v, PE, __func__);                                                              \
  }
#define EXTENDED(NAME, TYPE)                                                          \
  WITH_AND_WITHOUT(EXTENDED_OF, NAME, TYPE)                                           \
  TYPE shmem_##NAME##_fetch(const TYPE* s, int pe) { return fetch(s, pe, __func__); } \
  void shmem_##NAME##_set(TYPE* d, TYPE v, int pe) { swap(d, v, pe, __func__); }      \
  TYPE shmem_##NAME##_swap(TYPE* d, TYPE v, int pe) { return swap(d, v, pe, __func__); }
TOWPATH_SHMEM_EXTENDED_TYPES(EXTENDED)

#define ATOMIC_OF(PREFIX, CONTEXT, PE, NAME, TYPE)                                                 \
  TYPE PREFIX##NAME##_atomic_compare_swap(CONTEXT TYPE* d, TYPE c, TYPE v, int pe) {               \
    return compare_swap(d, c, v, PE, __func__);                                                    \
  }                                                                                                \
  TYPE PREFIX##NAME##_atomic_fetch_inc(CONTEXT TYPE* d, int pe) {                                  \
    return fetch_add<TYPE>(d, 1, PE, __func__);                                                    \
  }                                                                                                \
  void PREFIX##NAME##_atomic_inc(CONTEXT TYPE* d, int pe) { fetch_add<TYPE>(d, 1, PE, __func__); } \
  TYPE PREFIX##NAME##_atomic_fetch_add(CONTEXT TYPE* d, TYPE v, int pe) {                          \
    return fetch_add(d, v, PE, __func__);                                                          \
  }                                                                                                \
  void PREFIX##NAME##_atomic_add(CONTEXT TYPE* d, TYPE v, int pe) {                                \
    fetch_add(d, v, PE, __func__);                                                                 \
  }                                                                                                \
  void PREFIX##NAME##_atomic_compare_swap_nbi(CONTEXT TYPE* f, TYPE* d, TYPE c, TYPE v, int pe) {  \
    *f = compare_swap(d, c, v, PE, __func__);                                                      \
  }                                                                                                \
  void PREFIX##NAME##_atomic_fetch_inc_nbi(CONTEXT TYPE* f, TYPE* d, int pe) {                     \
    *f = fetch_add<TYPE>(d, 1, PE, __func__);                                                      \
  }                                                                                                \
  void PREFIX##NAME##_atomic_fetch_add_nbi(CONTEXT TYPE* f, TYPE* d, TYPE v, int pe) {             \
    *f = fetch_add(d, v, PE, __func__);                                                            \
  }
#define ATOMIC(NAME, TYPE)                                                                    \
  WITH_AND_WITHOUT(ATOMIC_OF, NAME, TYPE)                                                     \
  TYPE shmem_##NAME##_cswap(TYPE* d, TYPE c, TYPE v, int pe) {                                \
    return compare_swap(d, c, v, pe, __func__);                                               \
  }                                                                                           \
  TYPE shmem_##NAME##_finc(TYPE* d, int pe) { return fetch_add<TYPE>(d, 1, pe, __func__); }   \
  void shmem_##NAME##_inc(TYPE* d, int pe) { fetch_add<TYPE>(d, 1, pe, __func__); }           \
  TYPE shmem_##NAME##_fadd(TYPE* d, TYPE v, int pe) { return fetch_add(d, v, pe, __func__); } \
  void shmem_##NAME##_add(TYPE* d, TYPE v, int pe) { fetch_add(d, v, pe, __func__); }
TOWPATH_SHMEM_ATOMIC_TYPES(ATOMIC)

#define BITWISE_OF(PREFIX, CONTEXT, PE, NAME, TYPE, OPERATION)                                   \
  TYPE PREFIX##NAME##_atomic_fetch_##OPERATION(CONTEXT TYPE* d, TYPE v, int pe) {                \
    return __atomic_fetch_##OPERATION(word_at(d, PE, __func__), v, __ATOMIC_ACQ_REL);            \
  }                                                                                              \
  void PREFIX##NAME##_atomic_##OPERATION(CONTEXT TYPE* d, TYPE v, int pe) {                      \
    __atomic_fetch_##OPERATION(word_at(d, PE, __func__), v, __ATOMIC_ACQ_REL);                   \
  }                                                                                              \
  void PREFIX##NAME##_atomic_fetch_##OPERATION##_nbi(CONTEXT TYPE* f, TYPE* d, TYPE v, int pe) { \
    *f = __atomic_fetch_##OPERATION(word_at(d, PE, __func__), v, __ATOMIC_ACQ_REL);              \
  }
#define BITWISE(NAME, TYPE)                     \
  WITH_AND_WITHOUT(BITWISE_OF, NAME, TYPE, and) \
  WITH_AND_WITHOUT(BITWISE_OF, NAME, TYPE, or)  \
  WITH_AND_WITHOUT(BITWISE_OF, NAME, TYPE, xor)
TOWPATH_SHMEM_BITWISE_ATOMIC_TYPES(BITWISE)

uint64_t shmem_signal_fetch(const uint64_t* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
uint64_t shmem_signal_wait_until(uint64_t* at, int comparison, uint64_t value) {
  runtime().wait([=] { return holds<uint64_t>(at, comparison, value); }, __func__);
  return shmem_signal_fetch(at);
}

#define MANY(NAME, TYPE, SUFFIX, VALUE, VALUES, IS_VECTOR)                                       \
  void shmem_##NAME##_wait_until_all##SUFFIX(volatile TYPE* w, size_t n, const int* status,      \
                                             int cmp, VALUE) {                                   \
    const Words<TYPE> words{w, n, status, cmp, VALUES, IS_VECTOR};                               \
    runtime().wait([&] { return words.all(); }, __func__);                                       \
  }                                                                                              \
  size_t shmem_##NAME##_wait_until_any##SUFFIX(volatile TYPE* w, size_t n, const int* status,    \
                                               int cmp, VALUE) {                                 \
    return Words<TYPE>{w, n, status, cmp, VALUES, IS_VECTOR}.wait_any(__func__);                 \
  }                                                                                              \
  size_t shmem_##NAME##_wait_until_some##SUFFIX(volatile TYPE* w, size_t n, size_t* indices,     \
                                                const int* status, int cmp, VALUE) {             \
    return Words<TYPE>{w, n, status, cmp, VALUES, IS_VECTOR}.wait_some(indices, __func__);       \
  }                                                                                              \
  int shmem_##NAME##_test_all##SUFFIX(volatile TYPE* w, size_t n, const int* status, int cmp,    \
                                      VALUE) {                                                   \
    return Words<TYPE>{w, n, status, cmp, VALUES, IS_VECTOR}.all() ? 1 : 0;                      \
  }                                                                                              \
  size_t shmem_##NAME##_test_any##SUFFIX(volatile TYPE* w, size_t n, const int* status, int cmp, \
                                         VALUE) {                                                \
    return Words<TYPE>{w, n, status, cmp, VALUES, IS_VECTOR}.any();                              \
  }                                                                                              \
  size_t shmem_##NAME##_test_some##SUFFIX(volatile TYPE* w, size_t n, size_t* indices,           \
                                          const int* status, int cmp, VALUE) {                   \
    return Words<TYPE>{w, n, status, cmp, VALUES, IS_VECTOR}.some(indices);                      \
  }
#define WAIT(NAME, TYPE)                                              \
  void shmem_##NAME##_wait_until(volatile TYPE* w, int cmp, TYPE v) { \
    runtime().wait([=] { return holds<TYPE>(w, cmp, v); }, __func__); \
  }                                                                   \
  void shmem_##NAME##_wait(volatile TYPE* w, TYPE v) {                \
    shmem_##NAME##_wait_until(w, SHMEM_CMP_NE, v);                    \
  }                                                                   \
  int shmem_##NAME##_test(volatile TYPE* w, int cmp, TYPE v) {        \
    return holds<TYPE>(w, cmp, v) ? 1 : 0;                            \
  }                                                                   \
  MANY(NAME, TYPE, , TYPE value, &value, false)                       \
  MANY(NAME, TYPE, _vector, TYPE* values, values, true)
TOWPATH_SHMEM_WAIT_TYPES(WAIT)

#undef shmem_wait_until
void shmem_wait_until(volatile long* word, int cmp, long value) {
  shmem_long_wait_until(word, cmp, value);
}
void shmem_wait(volatile long* word, long value) { shmem_long_wait(word, value); }

}  // extern "C"
