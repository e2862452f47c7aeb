// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NVSHMEM's teams and collectives, by a thread, a warp, a block or on a stream; nvshmem.h includes
// it.

static inline int nvshmem_team_my_pe(nvshmem_team_t team) {
  const towpath_gpu::Team* const found = towpath_gpu::team_of(team);
  return found == nullptr ? -1 : found->member(nvshmem_my_pe());
}
static inline int nvshmem_team_n_pes(nvshmem_team_t team) {
  const towpath_gpu::Team* const found = towpath_gpu::team_of(team);
  return found == nullptr ? -1 : found->size;
}
static inline int nvshmem_team_translate_pe(nvshmem_team_t source, int pe, nvshmem_team_t target) {
  const towpath_gpu::Team* const from = towpath_gpu::team_of(source);
  const towpath_gpu::Team* const to = towpath_gpu::team_of(target);
  if (from == nullptr || to == nullptr || pe < 0 || pe >= from->size) return -1;
  return to->member(from->pe(pe));
}
static inline void nvshmem_team_get_config(nvshmem_team_t, nvshmem_team_config_t* config) {
  config->num_contexts = 1;
}
static inline int nvshmem_team_split_strided(nvshmem_team_t parent, int start, int stride,
                                             int size, const nvshmem_team_config_t*, long,
                                             nvshmem_team_t* made, TOWPATH_SITE) {
  TOWPATH_SITE_OF("nvshmem_team_split_strided");
  return towpath_gpu::split_team(parent, start, stride, size, made, towpath_site);
}
static inline int nvshmem_team_split_2d(nvshmem_team_t parent, int xrange,
                                        const nvshmem_team_config_t*, long, nvshmem_team_t* xaxis,
                                        const nvshmem_team_config_t*, long, nvshmem_team_t* yaxis,
                                        TOWPATH_SITE) {
  TOWPATH_SITE_OF("nvshmem_team_split_2d");
  const int n = nvshmem_team_n_pes(parent), me = nvshmem_team_my_pe(parent);
  if (n < 0 || xrange < 1) return -1;
  const int x_start = me / xrange * xrange;
  const int x_size = n - x_start < xrange ? n - x_start : xrange;
  const int y_start = me % xrange;
  const int y_size = (n - y_start + xrange - 1) / xrange;
  const int status = towpath_gpu::split_team(parent, x_start, 1, x_size, xaxis, towpath_site);
  if (status != 0) return status;
  return towpath_gpu::split_team(parent, y_start, xrange, y_size, yaxis, towpath_site);
}
static inline void nvshmem_team_destroy(nvshmem_team_t team) {
  if (team >= towpath_gpu::kPredefinedTeams && towpath_gpu::team_of(team) != nullptr) {
    towpath_gpu::teams[team].is_used = false;
  }
}

// A collective in its four forms. `parameters` and `arguments` are in parentheses.
#define TOWPATH_COLLECTIVE(result, given, name, parameters, ...)                                  \
  __towpath_optional__ static inline result nvshmem_##name(TOWPATH_UNWRAP parameters TOWPATH_SITE) {                   \
    TOWPATH_SITE_OF("nvshmem_" #name);                                                            \
    towpath_gpu::on_device(towpath_site.call, [=] { __VA_ARGS__; });                              \
    return given;                                                                                 \
  }                                                                                               \
  __towpath_optional__ static inline result nvshmemx_##name##_warp(TOWPATH_UNWRAP parameters TOWPATH_SITE) {           \
    TOWPATH_SITE_OF("nvshmemx_" #name "_warp");                                                   \
    towpath_gpu::in_scope(towpath_gpu::Scope::warp, towpath_site, [=] { __VA_ARGS__; });          \
    return given;                                                                                 \
  }                                                                                               \
  __towpath_optional__ static inline result nvshmemx_##name##_block(TOWPATH_UNWRAP parameters TOWPATH_SITE) {          \
    TOWPATH_SITE_OF("nvshmemx_" #name "_block");                                                  \
    towpath_gpu::in_scope(towpath_gpu::Scope::block, towpath_site, [=] { __VA_ARGS__; });         \
    return given;                                                                                 \
  }                                                                                               \
  __towpath_optional__ static inline result nvshmemx_##name##_on_stream(TOWPATH_UNWRAP parameters cudaStream_t stream, \
                                                   TOWPATH_SITE) {                                \
    TOWPATH_SITE_OF("nvshmemx_" #name "_on_stream");                                              \
    towpath_gpu::run_on_stream(stream, towpath_site.call, [=] { __VA_ARGS__; });                  \
    return given;                                                                                 \
  }
#define TOWPATH_UNWRAP(...) __VA_ARGS__

TOWPATH_COLLECTIVE(void, , barrier_all, (), towpath_gpu::barrier_team(0, towpath_site))
TOWPATH_COLLECTIVE(void, , sync_all, (), towpath_gpu::sync_team(0, towpath_site))
TOWPATH_COLLECTIVE(int, 0, barrier, (nvshmem_team_t team, ),
                   towpath_gpu::barrier_team(team, towpath_site))
TOWPATH_COLLECTIVE(int, 0, team_sync, (nvshmem_team_t team, ),
                   towpath_gpu::sync_team(team, towpath_site))
#define nvshmem_sync nvshmem_team_sync

#define TOWPATH_MOVING_COLLECTIVES(prefix, type, size)                                           \
  TOWPATH_COLLECTIVE(                                                                            \
      int, 0, prefix##broadcast,                                                                 \
      (nvshmem_team_t team, type * dest, const type* source, size_t nelems, int root, ),         \
      towpath_gpu::broadcast(team, dest, source, nelems * (size), root, towpath_site))           \
  TOWPATH_COLLECTIVE(int, 0, prefix##fcollect,                                                   \
                     (nvshmem_team_t team, type * dest, const type* source, size_t nelems, ),    \
                     towpath_gpu::fcollect(team, dest, source, nelems * (size), towpath_site))   \
  TOWPATH_COLLECTIVE(int, 0, prefix##alltoall,                                                   \
                     (nvshmem_team_t team, type * dest, const type* source, size_t nelems, ),    \
                     towpath_gpu::alltoall(team, dest, source, nelems * (size), towpath_site))
#define TOWPATH_MOVING_TYPED(name, type) TOWPATH_MOVING_COLLECTIVES(name##_, type, sizeof(type))
TOWPATH_FOR_RMA_TYPES(TOWPATH_MOVING_TYPED)
TOWPATH_COLLECTIVE(int, 0, broadcastmem,
                   (nvshmem_team_t team, void* dest, const void* source, size_t nelems, int root, ),
                   towpath_gpu::broadcast(team, dest, source, nelems, root, towpath_site))
TOWPATH_COLLECTIVE(int, 0, fcollectmem,
                   (nvshmem_team_t team, void* dest, const void* source, size_t nelems, ),
                   towpath_gpu::fcollect(team, dest, source, nelems, towpath_site))
TOWPATH_COLLECTIVE(int, 0, alltoallmem,
                   (nvshmem_team_t team, void* dest, const void* source, size_t nelems, ),
                   towpath_gpu::alltoall(team, dest, source, nelems, towpath_site))

#define TOWPATH_REDUCTION(name, type, call, expression)                                          \
  TOWPATH_COLLECTIVE(int, 0, name##_##call##_reduce,                                             \
                     (nvshmem_team_t team, type * dest, const type* source, size_t nreduce, ),   \
                     towpath_gpu::reduce(                                                        \
                         team, dest, source, nreduce,                                            \
                         [](type a, type b) { return static_cast<type>(expression); },           \
                         towpath_site))                                                          \
  TOWPATH_COLLECTIVE(int, 0, name##_##call##_reducescatter,                                      \
                     (nvshmem_team_t team, type * dest, const type* source, size_t nreduce, ),   \
                     towpath_gpu::reduce_scatter(                                                \
                         team, dest, source, nreduce,                                            \
                         [](type a, type b) { return static_cast<type>(expression); },           \
                         towpath_site))
#define TOWPATH_ARITHMETIC_REDUCTIONS(name, type)    \
  TOWPATH_REDUCTION(name, type, sum, a + b)          \
  TOWPATH_REDUCTION(name, type, prod, a * b)         \
  TOWPATH_REDUCTION(name, type, min, b < a ? b : a)  \
  TOWPATH_REDUCTION(name, type, max, a < b ? b : a)
#define TOWPATH_BITWISE_REDUCTIONS(name, type) \
  TOWPATH_REDUCTION(name, type, and, a & b)    \
  TOWPATH_REDUCTION(name, type, or, a | b)     \
  TOWPATH_REDUCTION(name, type, xor, a ^ b)
TOWPATH_FOR_REDUCE_TYPES(TOWPATH_ARITHMETIC_REDUCTIONS)
TOWPATH_FOR_BITWISE_TYPES(TOWPATH_BITWISE_REDUCTIONS)

// The end; here because it waits for all.
static inline void nvshmem_finalize(TOWPATH_SITE) {
  TOWPATH_SITE_OF("nvshmem_finalize");
  TOWPATH_CALL(begin_finalize, &towpath_site);
  nvshmem_barrier_all(TOWPATH_SITE_ARGUMENTS);
  TOWPATH_CALL(finalize);
}
