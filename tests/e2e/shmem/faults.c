/* SPDX-FileCopyrightText: The Towpath authors
 * SPDX-License-Identifier: Apache-2.0
 * PEs that add and compare in turn, until PE 1 does something wrong: the first argument of main names
 * it, the second one says after how many rounds, if not after 20. */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long counter, total, word, pair[2], wide[2];

static void misbehave(const char* how, long* heap) {
#define CASE(NAME) if (strcmp(how, NAME) == 0)
  CASE("kill") raise(SIGKILL);
  CASE("segfault") *(volatile int*)8 = 1;
  CASE("abort") abort();
  CASE("stop") raise(SIGSTOP);
  CASE("exit 0") exit(0);
  CASE("_exit 0") _exit(0);
  CASE("exit 3") exit(3);
  CASE("finalize") {
    shmem_finalize();
    exit(0);
  }
  CASE("malloc on one") shmem_malloc(77);
  CASE("free on one") shmem_free(heap);
  CASE("wrong PE") shmem_long_p(&word, 1, shmem_n_pes() + 3);
  CASE("beyond") shmem_putmem(heap + 999, heap, 16, 0);
  CASE("far beyond") shmem_long_p(heap + 2000000000, 1, 0);
  CASE("on the stack") {
    long local = 0;
    shmem_long_p(&local, 1, 0);
  }
  CASE("another call") shmem_broadcastmem(SHMEM_TEAM_WORLD, &total, &counter, 8, 0);
  CASE("another type") shmem_double_sum_reduce(SHMEM_TEAM_WORLD, (double*)wide, (double*)pair, 1);
  CASE("another operation") shmem_long_max_reduce(SHMEM_TEAM_WORLD, &total, &counter, 1);
  CASE("another size") shmem_long_sum_reduce(SHMEM_TEAM_WORLD, wide, pair, 2);
  CASE("not a team") shmem_team_sync((shmem_team_t)(void*)&word);
  CASE("root outside") shmem_broadcastmem(SHMEM_TEAM_WORLD, &total, &counter, 8, 99);
  CASE("overlap") shmem_long_sum_reduce(SHMEM_TEAM_WORLD, pair, pair + 1, 2);
  CASE("never raised") shmem_long_wait_until(&word, SHMEM_CMP_EQ, 5);
}

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "";
  const char* const number = getenv("TOWPATH_RANK");
  const int is_first = number != NULL && atoi(number) == 1;
  if (is_first && strcmp(how, "exit before init") == 0) return 0;
  if (is_first && strcmp(how, "kill before init") == 0) raise(SIGKILL);
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  if (strcmp(how, "never ends") == 0) {
    for (;;) shmem_barrier_all();
  }
  long* const heap = shmem_malloc(1000 * sizeof(long));
  const long last = argc > 2 ? atol(argv[2]) : 20;
  for (long round = 1; round <= 2 * last; ++round) {
    if (round == last && me == 1) misbehave(how, heap);
    shmem_long_atomic_inc(&counter, (me + 1) % pes);
    shmem_barrier_all();
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &total, &counter, 1);
    if (total != pes * round) {
      printf("PE %d has a wrong sum\n", me);
      return 9;
    }
    shmem_barrier_all();
  }
  if (me == 0) printf("all is well\n");
  shmem_finalize();
  return 0;
}
