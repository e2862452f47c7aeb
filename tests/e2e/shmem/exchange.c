/* SPDX-FileCopyrightText: The Towpath authors
 * SPDX-License-Identifier: Apache-2.0 */
/* What PEs say to each other in OpenSHMEM's ways, as lines that any implementation must print. */
#include <shmem.h>
#include <stdio.h>

#define COUNT 1000

static long sync_words[SHMEM_REDUCE_SYNC_SIZE];
static int work[COUNT];
static int source[COUNT], target[COUNT], sums[COUNT];
int global_word = -1;

int main(void) {
  shmem_init();
  const int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n, last = (me + n - 1) % n;
  for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; ++i) sync_words[i] = SHMEM_SYNC_VALUE;
  for (int i = 0; i < COUNT; ++i) source[i] = 1000 * me + i;
  shmem_barrier_all();

  shmem_int_put(target, source, COUNT, next);
  shmem_int_p(&global_word, me, next);
  shmem_barrier_all();
  int wrong = global_word != last;
  for (int i = 0; i < COUNT; ++i) wrong += target[i] != 1000 * last + i;

  shmem_int_sum_to_all(sums, source, COUNT, 0, 0, n, work, sync_words);
  for (int i = 0; i < COUNT; ++i) wrong += sums[i] != 1000 * n * (n - 1) / 2 + n * i;
  shmem_barrier_all();

  long* const counter = shmem_malloc(2 * sizeof(long));
  counter[0] = counter[1] = 0;
  shmem_barrier_all();
  for (int i = 0; i < 100; ++i) shmem_long_atomic_add(&counter[0], me + 1, 0);
  shmem_barrier_all();
  const long total = shmem_long_g(&counter[0], 0);
  wrong += total != 100L * n * (n + 1) / 2;

  /* A token goes round. */
  if (me == 0) shmem_long_p(&counter[1], 1, next);
  shmem_long_wait_until(&counter[1], SHMEM_CMP_GE, 1);
  if (me != 0) shmem_long_p(&counter[1], counter[1] + 1, next);
  wrong += counter[1] != (me == 0 ? n : me);
  shmem_barrier_all();

  if (me == 0) printf("%d PEs, total %ld\n", n, total);
  if (wrong) printf("PE %d: %d wrong\n", me, wrong);
  shmem_free(counter);
  shmem_finalize();
  return wrong != 0;
}
