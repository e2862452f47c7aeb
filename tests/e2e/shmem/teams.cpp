// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Teams, signals, collectives of teams and names for all types, in C++.
#include <shmem.h>

#include <cstdio>

static int global_words[64];

int main() {
  shmem_init();
  const int me = shmem_my_pe(), n = shmem_n_pes();
  int wrong = 0;

  shmem_team_t evens = SHMEM_TEAM_INVALID;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, nullptr, 0, &evens);
  wrong += (evens != SHMEM_TEAM_INVALID) != (me % 2 == 0);
  auto* const values = static_cast<double*>(shmem_calloc(64, sizeof(double)));
  auto* const results = static_cast<double*>(shmem_calloc(64, sizeof(double)));
  for (int i = 0; i < 8; ++i) values[i] = me + i;
  if (evens != SHMEM_TEAM_INVALID) {
    shmem_double_max_reduce(evens, results, values, 8);
    const int highest = (n - 1) / 2 * 2;
    for (int i = 0; i < 8; ++i) wrong += results[i] != highest + i;
    wrong += shmem_team_translate_pe(evens, shmem_team_my_pe(evens), SHMEM_TEAM_WORLD) != me;
    shmem_team_destroy(evens);
  }
  shmem_sync_all();

  auto* const signal = static_cast<uint64_t*>(shmem_calloc(1, sizeof(uint64_t)));
  shmem_double_put_signal(results, values, 8, signal, 1, SHMEM_SIGNAL_ADD, (me + 1) % n);
  wrong += shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 1) != 1;
  for (int i = 0; i < 8; ++i) wrong += results[i] != (me + n - 1) % n + i;
  shmem_barrier_all();

  shmem_p(&global_words[me], me + 1, 0);
  shmem_barrier_all();
  for (int pe = 0; me == 0 && pe < n; ++pe) wrong += global_words[pe] != pe + 1;
  shmem_int_broadcast(SHMEM_TEAM_WORLD, global_words, global_words, 8, 0);
  for (int pe = 0; pe < n && pe < 8; ++pe) wrong += global_words[pe] != pe + 1;

  auto* const parts = static_cast<int*>(shmem_malloc(2 * 64 * sizeof(int)));
  for (int i = 0; i < 64; ++i) parts[i] = 100 * me + i;
  shmem_barrier_all();
  shmem_int_alltoall(SHMEM_TEAM_WORLD, parts + 64, parts, 2);
  for (int pe = 0; pe < n; ++pe) wrong += parts[64 + 2 * pe] != 100 * pe + 2 * me;
  shmem_barrier_all();

  static long lock = 0;
  static int guarded = 0;
  for (int i = 0; i < 20; ++i) {
    shmem_set_lock(&lock);
    shmem_int_p(&guarded, shmem_int_g(&guarded, 0) + 1, 0);
    shmem_quiet();
    shmem_clear_lock(&lock);
  }
  shmem_barrier_all();
  wrong += me == 0 && guarded != 20 * n;
  if (wrong) std::printf("PE %d: %d wrong\n", me, wrong);
  shmem_finalize();
  return wrong != 0;
}
