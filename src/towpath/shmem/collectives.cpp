// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM's collectives, by loads from and stores to the heaps of the members. Each begins and
// ends with a barrier of its members, so its work array is unchanged afterward.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "towpath/shmem/runtime.hpp"

using towpath::shmem::Call;
using towpath::shmem::kCountWord;
using towpath::shmem::Runtime;
using towpath::shmem::runtime;
using towpath::shmem::Team;

namespace {

Team active_set(int start, int log_stride, int size, long* sync) {
  return {start, 1 << log_stride, size, reinterpret_cast<std::uint64_t*>(sync)};
}

// A member's copy of symmetric memory.
std::byte* at(const Team& team, int member, const void* address, std::size_t size,
              const char* call) {
  return runtime().remote(address, size, team.pe(member), call);
}

// Ends the program if the arrays of a collective overlap without being the same.
void check_arrays(const void* to, std::size_t to_bytes, const void* from, std::size_t from_bytes,
                  bool may_be_same, const char* call) {
  const auto* const target = static_cast<const std::byte*>(to);
  const auto* const source = static_cast<const std::byte*>(from);
  if (may_be_same && target == source) return;
  const bool is_apart = source >= target + to_bytes || target >= source + from_bytes;
  if (is_apart || to_bytes == 0 || from_bytes == 0) return;
  towpath::shmem::fail(fmt::format(
      "{} has a destination of {} bytes that overlaps its source of {} bytes; use "
      "{}",
      call, to_bytes, from_bytes,
      may_be_same ? "the same array twice or arrays that do not overlap" : "separate arrays"));
}

// `into_root`: true if the root also stores its data to `to`.
void broadcast(const Team& team, void* to, const void* from, std::size_t size, int root,
               bool into_root, const char* call) {
  Runtime& own = runtime();
  if (root < 0 || root >= team.size) {
    towpath::shmem::fail(
        fmt::format("{} names root {}; it must be 0 to {}", call, root, team.size - 1));
  }
  check_arrays(to, size, from, size, true, call);
  const Call stated{call, size, root};
  own.sync(team, stated);
  const bool is_root = team.member(own.pe()) == root;
  if ((!is_root || into_root) && size > 0) std::memmove(to, at(team, root, from, size, call), size);
  own.sync(team, stated);
}

void fcollect(const Team& team, void* to, const void* from, std::size_t size, const char* call) {
  Runtime& own = runtime();
  check_arrays(to, size * static_cast<unsigned>(team.size), from, size, false, call);
  own.sync(team, {call, size});
  for (int member = 0; member < team.size && size > 0; ++member) {
    std::memmove(static_cast<std::byte*>(to) + size * static_cast<unsigned>(member),
                 at(team, member, from, size, call), size);
  }
  own.sync(team, {call, size});
}

// Members may pass different sizes.
void collect(const Team& team, void* to, const void* from, std::size_t size, const char* call) {
  Runtime& own = runtime();
  std::uint64_t* const count = team.words + kCountWord;
  const std::uint64_t before = *count;
  *count = size;
  own.sync(team, {call});
  std::vector<std::uint64_t> parts;
  std::uint64_t total = 0;
  for (int member = 0; member < team.size; ++member) {
    parts.push_back(*own.word_at(count, team.pe(member), call));
    total += parts.back();
  }
  check_arrays(to, total, from, size, false, call);
  auto* target = static_cast<std::byte*>(to);
  for (int member = 0; member < team.size; ++member) {
    const std::uint64_t part = parts[static_cast<std::size_t>(member)];
    if (part > 0) std::memmove(target, at(team, member, from, part, call), part);
    target += part;
  }
  own.sync(team, {call});
  *count = before;
}

struct Strides {
  std::ptrdiff_t to = 1;
  std::ptrdiff_t from = 1;
};

void alltoall(const Team& team, void* to, const void* from, std::size_t count, std::size_t size,
              Strides strides, const char* call) {
  Runtime& own = runtime();
  const auto extent = [&](std::ptrdiff_t stride) {
    const std::size_t elements = count * static_cast<unsigned>(team.size);
    return elements == 0 ? 0 : ((elements - 1) * static_cast<std::size_t>(stride) + 1) * size;
  };
  check_arrays(to, extent(strides.to), from, extent(strides.from), false, call);
  own.sync(team, {call, count * size});
  const auto me = static_cast<std::ptrdiff_t>(team.member(own.pe()));
  const auto elements = static_cast<std::ptrdiff_t>(count);
  const auto bytes = static_cast<std::ptrdiff_t>(size);
  for (int member = 0; member < team.size; ++member) {
    const std::byte* const source =
        static_cast<const std::byte*>(from) + me * elements * strides.from * bytes;
    std::byte* const target = static_cast<std::byte*>(to) + member * elements * strides.to * bytes;
    if (count == 0) continue;
    const std::size_t stretch = (count - 1) * static_cast<std::size_t>(strides.from) * size + size;
    const std::byte* const remote = at(team, member, source, stretch, call);
    if (strides.to == 1 && strides.from == 1) {
      std::memmove(target, remote, count * size);
      continue;
    }
    for (std::ptrdiff_t i = 0; i < elements; ++i) {
      std::memcpy(target + i * strides.to * bytes, remote + i * strides.from * bytes, size);
    }
  }
  own.sync(team, {call, count * size});
}

// Each member combines a part of all sources, and stores it at all members. `to` may be `from`.
template <typename T, typename Combine>
void reduce(const Team& team, T* to, const T* from, std::size_t count, Combine combine,
            const char* call) {
  Runtime& own = runtime();
  check_arrays(to, count * sizeof(T), from, count * sizeof(T), true, call);
  own.sync(team, {call, count * sizeof(T)});
  constexpr std::size_t kBlock = 4096;
  const auto members = static_cast<std::size_t>(team.size);
  const auto me = static_cast<std::size_t>(team.member(own.pe()));
  const std::size_t end = count * (me + 1) / members;
  std::vector<T> block(std::min(kBlock, count));
  for (std::size_t first = count * me / members; first < end; first += kBlock) {
    const std::size_t n = std::min(kBlock, end - first);
    for (int member = 0; member < team.size; ++member) {
      const T* const source =
          reinterpret_cast<const T*>(at(team, member, from + first, n * sizeof(T), call));
      for (std::size_t i = 0; i < n; ++i) {
        block[i] = member == 0 ? source[i] : static_cast<T>(combine(block[i], source[i]));
      }
    }
    for (int member = 0; member < team.size; ++member) {
      std::memcpy(at(team, member, to + first, n * sizeof(T), call), block.data(), n * sizeof(T));
    }
  }
  own.sync(team, {call, count * sizeof(T)});
}

struct Operations {
  static auto bit_and(auto a, auto b) { return a & b; }
  static auto bit_or(auto a, auto b) { return a | b; }
  static auto bit_xor(auto a, auto b) { return a ^ b; }
  static auto max(auto a, auto b) { return a < b ? b : a; }
  static auto min(auto a, auto b) { return b < a ? b : a; }
  static auto sum(auto a, auto b) { return a + b; }
  static auto prod(auto a, auto b) { return a * b; }
};

}  // namespace

extern "C" {

int shmem_broadcastmem(shmem_team_t team, void* d, const void* s, size_t n, int root) {
  if (team == SHMEM_TEAM_INVALID) return -1;
  broadcast(runtime().known(team, __func__), d, s, n, root, true, __func__);
  return 0;
}
int shmem_collectmem(shmem_team_t team, void* d, const void* s, size_t n) {
  if (team == SHMEM_TEAM_INVALID) return -1;
  collect(runtime().known(team, __func__), d, s, n, __func__);
  return 0;
}
int shmem_fcollectmem(shmem_team_t team, void* d, const void* s, size_t n) {
  if (team == SHMEM_TEAM_INVALID) return -1;
  fcollect(runtime().known(team, __func__), d, s, n, __func__);
  return 0;
}
int shmem_alltoallmem(shmem_team_t team, void* d, const void* s, size_t n) {
  if (team == SHMEM_TEAM_INVALID) return -1;
  alltoall(runtime().known(team, __func__), d, s, n, 1, {}, __func__);
  return 0;
}
int shmem_alltoallsmem(shmem_team_t team, void* d, const void* s, ptrdiff_t dst, ptrdiff_t sst,
                       size_t n) {
  if (team == SHMEM_TEAM_INVALID) return -1;
  alltoall(runtime().known(team, __func__), d, s, n, 1, {dst, sst}, __func__);
  return 0;
}

#define TYPED(NAME, TYPE)                                                                       \
  int shmem_##NAME##_broadcast(shmem_team_t team, TYPE* d, const TYPE* s, size_t n, int root) { \
    return shmem_broadcastmem(team, d, s, n * sizeof(TYPE), root);                              \
  }                                                                                             \
  int shmem_##NAME##_collect(shmem_team_t team, TYPE* d, const TYPE* s, size_t n) {             \
    return shmem_collectmem(team, d, s, n * sizeof(TYPE));                                      \
  }                                                                                             \
  int shmem_##NAME##_fcollect(shmem_team_t team, TYPE* d, const TYPE* s, size_t n) {            \
    return shmem_fcollectmem(team, d, s, n * sizeof(TYPE));                                     \
  }                                                                                             \
  int shmem_##NAME##_alltoall(shmem_team_t team, TYPE* d, const TYPE* s, size_t n) {            \
    return shmem_alltoallmem(team, d, s, n * sizeof(TYPE));                                     \
  }                                                                                             \
  int shmem_##NAME##_alltoalls(shmem_team_t team, TYPE* d, const TYPE* s, ptrdiff_t dst,        \
                               ptrdiff_t sst, size_t n) {                                       \
    if (team == SHMEM_TEAM_INVALID) return -1;                                                  \
    alltoall(runtime().known(team, __func__), d, s, n, sizeof(TYPE), {dst, sst}, __func__);     \
    return 0;                                                                                   \
  }
TOWPATH_SHMEM_RMA_TYPES(TYPED)

#define ACTIVE_SET(BITS, BYTES)                                                                    \
  void shmem_broadcast##BITS(void* d, const void* s, size_t n, int root, int start,                \
                             int log_stride, int size, long* sync) {                               \
    broadcast(active_set(start, log_stride, size, sync), d, s, n* BYTES, root, false, __func__);   \
  }                                                                                                \
  void shmem_collect##BITS(void* d, const void* s, size_t n, int start, int log_stride, int size,  \
                           long* sync) {                                                           \
    collect(active_set(start, log_stride, size, sync), d, s, n* BYTES, __func__);                  \
  }                                                                                                \
  void shmem_fcollect##BITS(void* d, const void* s, size_t n, int start, int log_stride, int size, \
                            long* sync) {                                                          \
    fcollect(active_set(start, log_stride, size, sync), d, s, n* BYTES, __func__);                 \
  }                                                                                                \
  void shmem_alltoall##BITS(void* d, const void* s, size_t n, int start, int log_stride, int size, \
                            long* sync) {                                                          \
    alltoall(active_set(start, log_stride, size, sync), d, s, n, BYTES, {}, __func__);             \
  }                                                                                                \
  void shmem_alltoalls##BITS(void* d, const void* s, ptrdiff_t dst, ptrdiff_t sst, size_t n,       \
                             int start, int log_stride, int size, long* sync) {                    \
    alltoall(active_set(start, log_stride, size, sync), d, s, n, BYTES, {dst, sst}, __func__);     \
  }
ACTIVE_SET(32, 4)
ACTIVE_SET(64, 8)

#define REDUCTION(NAME, TYPE, OPERATION, FUNCTION)                                               \
  int shmem_##NAME##_##OPERATION##_reduce(shmem_team_t team, TYPE* d, const TYPE* s, size_t n) { \
    if (team == SHMEM_TEAM_INVALID) return -1;                                                   \
    reduce(                                                                                      \
        runtime().known(team, __func__), d, s, n,                                                \
        [](TYPE a, TYPE b) { return Operations::FUNCTION(a, b); }, __func__);                    \
    return 0;                                                                                    \
  }
#define REDUCE_BITWISE(NAME, TYPE)    \
  REDUCTION(NAME, TYPE, and, bit_and) \
  REDUCTION(NAME, TYPE, or, bit_or)   \
  REDUCTION(NAME, TYPE, xor, bit_xor)
#define REDUCE_ORDER(NAME, TYPE)  \
  REDUCTION(NAME, TYPE, max, max) \
  REDUCTION(NAME, TYPE, min, min)
#define REDUCE_SUM(NAME, TYPE)    \
  REDUCTION(NAME, TYPE, sum, sum) \
  REDUCTION(NAME, TYPE, prod, prod)
TOWPATH_SHMEM_REDUCE_BITWISE_TYPES(REDUCE_BITWISE)
TOWPATH_SHMEM_RMA_TYPES(REDUCE_ORDER)
TOWPATH_SHMEM_RMA_TYPES(REDUCE_SUM)
TOWPATH_SHMEM_COMPLEX_TYPES(REDUCE_SUM)

#define TO_ALL(NAME, TYPE, OPERATION, FUNCTION)                                           \
  void shmem_##NAME##_##OPERATION##_to_all(TYPE* d, const TYPE* s, int n, int start,      \
                                           int log_stride, int size, TYPE*, long* sync) { \
    reduce(                                                                               \
        active_set(start, log_stride, size, sync), d, s, static_cast<std::size_t>(n),     \
        [](TYPE a, TYPE b) { return Operations::FUNCTION(a, b); }, __func__);             \
  }
#define TO_ALL_BITWISE(NAME, TYPE) \
  TO_ALL(NAME, TYPE, and, bit_and) \
  TO_ALL(NAME, TYPE, or, bit_or)   \
  TO_ALL(NAME, TYPE, xor, bit_xor)
#define TO_ALL_ORDER(NAME, TYPE) \
  TO_ALL(NAME, TYPE, max, max)   \
  TO_ALL(NAME, TYPE, min, min)
#define TO_ALL_SUM(NAME, TYPE) \
  TO_ALL(NAME, TYPE, sum, sum) \
  TO_ALL(NAME, TYPE, prod, prod)
TOWPATH_SHMEM_TO_ALL_INTEGERS(TO_ALL_BITWISE)
TOWPATH_SHMEM_TO_ALL_NUMBERS(TO_ALL_ORDER)
TOWPATH_SHMEM_TO_ALL_NUMBERS(TO_ALL_SUM)
TOWPATH_SHMEM_COMPLEX_TYPES(TO_ALL_SUM)

}  // extern "C"
