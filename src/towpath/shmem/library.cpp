// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM's functions of the library itself: begin, end, memory, teams, order, locks.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "towpath/shmem/runtime.hpp"

using towpath::shmem::runtime;
using towpath::shmem::Team;

namespace {

Team world_team;
Team shared_team;

void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

}  // namespace

extern "C" {

extern const shmem_team_t SHMEM_TEAM_WORLD = &world_team;
extern const shmem_team_t SHMEM_TEAM_SHARED = &shared_team;

// --- begin and end -------------------------------------------------------------------------------

void shmem_init(void) {
  towpath::shmem::begin(world_team);
  shared_team = world_team;  // all PEs are on this host
}
int shmem_init_thread(int, int* provided) {
  shmem_init();
  if (provided != nullptr) *provided = SHMEM_THREAD_SERIALIZED;
  return 0;
}
void shmem_query_thread(int* provided) { *provided = SHMEM_THREAD_SERIALIZED; }
void shmem_finalize(void) {
  if (!towpath::shmem::has_begun()) return;
  fence();
  runtime().sync(world_team, {__func__});
  towpath::shmem::end();
}
void start_pes(int) {
  shmem_init();
  static const int registered = std::atexit(&shmem_finalize);
  static_cast<void>(registered);
}
void shmem_global_exit(int status) { towpath::shmem::exit_all(status); }

int shmem_my_pe(void) { return runtime().pe(); }
int shmem_n_pes(void) { return runtime().pes(); }
int _my_pe(void) { return shmem_my_pe(); }
int _num_pes(void) { return shmem_n_pes(); }
int my_pe(void) { return shmem_my_pe(); }
int num_pes(void) { return shmem_n_pes(); }
int shmem_pe_accessible(int pe) { return pe >= 0 && pe < runtime().pes() ? 1 : 0; }
int shmem_addr_accessible(const void* address, int pe) {
  return runtime().reach(address, 1, pe) != nullptr ? 1 : 0;
}
void* shmem_ptr(const void* dest, int pe) { return runtime().reach(dest, 1, pe); }
void shmem_info_get_version(int* major, int* minor) {
  *major = SHMEM_MAJOR_VERSION;
  *minor = SHMEM_MINOR_VERSION;
}
void shmem_info_get_name(char* name) { std::strcpy(name, SHMEM_VENDOR_STRING); }
void shmem_pcontrol(int, ...) {}

// --- memory --------------------------------------------------------------------------------------

void* shmem_malloc(size_t size) { return runtime().allocate(size, 1, __func__); }
void* shmem_malloc_with_hints(size_t size, long) { return shmem_malloc(size); }
void* shmem_calloc(size_t count, size_t size) {
  if (size != 0 && count > SIZE_MAX / size) return nullptr;
  void* const made = runtime().allocate(count * size, 1, __func__);
  if (made != nullptr) std::memset(made, 0, count * size);
  runtime().sync(world_team, {__func__, count * size});
  return made;
}
void* shmem_align(size_t alignment, size_t size) {
  return runtime().allocate(size, alignment, __func__);
}
void* shmem_realloc(void* ptr, size_t size) {
  void* const made = size > 0 ? shmem_malloc(size) : nullptr;
  const size_t before = runtime().size_of(ptr);
  if (made != nullptr && ptr != nullptr) std::memcpy(made, ptr, before < size ? before : size);
  if (ptr != nullptr && (made != nullptr || size == 0)) shmem_free(ptr);
  return made;
}
void shmem_free(void* ptr) { runtime().release(ptr, __func__); }
void* shmalloc(size_t size) { return shmem_malloc(size); }
void* shmemalign(size_t alignment, size_t size) { return shmem_align(alignment, size); }
void* shrealloc(void* ptr, size_t size) { return shmem_realloc(ptr, size); }
void shfree(void* ptr) { shmem_free(ptr); }

// --- teams and contexts --------------------------------------------------------------------------

int shmem_team_my_pe(shmem_team_t team) {
  if (team == SHMEM_TEAM_INVALID) return -1;
  return runtime().known(team, __func__).member(shmem_my_pe());
}
int shmem_team_n_pes(shmem_team_t team) {
  return team == SHMEM_TEAM_INVALID ? -1 : runtime().known(team, __func__).size;
}
int shmem_team_get_config(shmem_team_t team, long, shmem_team_config_t* config) {
  if (team == SHMEM_TEAM_INVALID) return -1;
  if (config != nullptr) config->num_contexts = 0;
  return 0;
}
int shmem_team_translate_pe(shmem_team_t from, int pe, shmem_team_t to) {
  if (from == SHMEM_TEAM_INVALID || to == SHMEM_TEAM_INVALID) return -1;
  const Team& source = runtime().known(from, __func__);
  if (pe < 0 || pe >= source.size) return -1;
  return runtime().known(to, __func__).member(source.pe(pe));
}
int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size,
                             const shmem_team_config_t*, long, shmem_team_t* made) {
  *made = SHMEM_TEAM_INVALID;
  if (parent == SHMEM_TEAM_INVALID) return -1;
  const int last = start + (size - 1) * stride;
  const bool fits = size >= 1 && (stride != 0 || size == 1) && start >= 0 && start < parent->size &&
                    last >= 0 && last < parent->size;
  if (!fits) return -1;
  *made = runtime().split(runtime().known(parent, __func__), start, stride, size, __func__);
  return 0;
}
int shmem_team_split_2d(shmem_team_t parent, int xrange, const shmem_team_config_t* xconfig,
                        long xmask, shmem_team_t* xteam, const shmem_team_config_t* yconfig,
                        long ymask, shmem_team_t* yteam) {
  *xteam = *yteam = SHMEM_TEAM_INVALID;
  if (parent == SHMEM_TEAM_INVALID || xrange < 1) return -1;
  const int size = parent->size;
  const int columns = xrange < size ? xrange : size;
  const int rows = (size + columns - 1) / columns;
  for (int row = 0; row < rows; ++row) {
    const int start = row * columns;
    shmem_team_t made = SHMEM_TEAM_INVALID;
    const int count = size - start < columns ? size - start : columns;
    shmem_team_split_strided(parent, start, 1, count, xconfig, xmask, &made);
    if (made != SHMEM_TEAM_INVALID) *xteam = made;
  }
  for (int column = 0; column < columns; ++column) {
    shmem_team_t made = SHMEM_TEAM_INVALID;
    const int count = (size - column + columns - 1) / columns;
    shmem_team_split_strided(parent, column, columns, count, yconfig, ymask, &made);
    if (made != SHMEM_TEAM_INVALID) *yteam = made;
  }
  return 0;
}
void shmem_team_destroy(shmem_team_t team) {
  if (team == SHMEM_TEAM_INVALID || team == &world_team || team == &shared_team) return;
  runtime().known(team, __func__);
  runtime().destroy(team);
}
int shmem_ctx_create(long, shmem_ctx_t* made) {
  return shmem_team_create_ctx(SHMEM_TEAM_WORLD, 0, made);
}
int shmem_team_create_ctx(shmem_team_t team, long, shmem_ctx_t* made) {
  *made = team == SHMEM_TEAM_INVALID ? SHMEM_CTX_INVALID : new towpath_shmem_context{team};
  return *made == SHMEM_CTX_INVALID ? -1 : 0;
}
void shmem_ctx_destroy(shmem_ctx_t context) {
  fence();
  if (context != SHMEM_CTX_DEFAULT && context != SHMEM_CTX_INVALID) delete context;
}
int shmem_ctx_get_team(shmem_ctx_t context, shmem_team_t* team) {
  if (context == SHMEM_CTX_INVALID) return -1;
  *team = context == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD : context->team;
  return 0;
}

// --- order and synchronization -------------------------------------------------------------------

void shmem_fence(void) { fence(); }
void shmem_quiet(void) { fence(); }
void shmem_ctx_fence(shmem_ctx_t) { fence(); }
void shmem_ctx_quiet(shmem_ctx_t) { fence(); }
void shmem_sync_all(void) { runtime().sync(world_team, {__func__}); }
void shmem_barrier_all(void) {
  fence();
  runtime().sync(world_team, {__func__});
}
int shmem_team_sync(shmem_team_t team) {
  if (team == SHMEM_TEAM_INVALID) return -1;
  runtime().sync(runtime().known(team, __func__), {__func__});
  return 0;
}
int shmem_sync_team(shmem_team_t team) { return shmem_team_sync(team); }
void shmem_sync_active_set(int start, int log_stride, int size, long* sync) {
  runtime().sync({start, 1 << log_stride, size, reinterpret_cast<std::uint64_t*>(sync)},
                 {__func__});
}
void shmem_barrier(int start, int log_stride, int size, long* sync) {
  fence();
  runtime().sync({start, 1 << log_stride, size, reinterpret_cast<std::uint64_t*>(sync)},
                 {__func__});
}

// --- locks: the word of PE 0 says who has it -----------------------------------------------------

int shmem_test_lock(long* lock) {
  auto* const word = reinterpret_cast<long*>(runtime().remote(lock, sizeof(long), 0, __func__));
  long free = 0;
  return __atomic_compare_exchange_n(word, &free, shmem_my_pe() + 1, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)
             ? 0
             : 1;
}
void shmem_set_lock(long* lock) {
  const auto what = [lock] {
    const auto* const word =
        reinterpret_cast<long*>(runtime().remote(lock, sizeof(long), 0, "shmem_set_lock"));
    return fmt::format("held by PE {}", __atomic_load_n(word, __ATOMIC_RELAXED) - 1);
  };
  runtime().wait([lock] { return shmem_test_lock(lock) == 0; }, __func__, what);
}
void shmem_clear_lock(long* lock) {
  fence();
  auto* const word = reinterpret_cast<long*>(runtime().remote(lock, sizeof(long), 0, __func__));
  __atomic_store_n(word, 0, __ATOMIC_RELEASE);
}

void shmem_clear_cache_inv(void) {}
void shmem_set_cache_inv(void) {}
void shmem_clear_cache_line_inv(void*) {}
void shmem_set_cache_line_inv(void*) {}
void shmem_udcflush(void) {}
void shmem_udcflush_line(void*) {}

}  // extern "C"
