/* SPDX-FileCopyrightText: The Towpath authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Contexts of a team have the PE numbers of the team. Run with an even number of PEs, 4 or more. */
#include <shmem.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long word = -1, counter, values[4], source[4] = {1, 2, 3, 4};
static unsigned bits = 5, before;
static uint64_t signal_word;

int main(int argc, char** argv) {
  shmem_init();
  const int me = shmem_my_pe(), pes = shmem_n_pes();
  shmem_team_t odd = SHMEM_TEAM_INVALID, alone = SHMEM_TEAM_INVALID;
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, pes / 2, NULL, 0, &odd);
  const int rc = shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 0, 1, NULL, 0, &alone);
  printf("%d: alone %d, number %d\n", me, rc, shmem_team_my_pe(alone));
  if (argc > 1 && strcmp(argv[1], "fork") == 0 && me == 0) {
    const pid_t child = fork();
    if (child == 0) shmem_barrier_all();
    waitpid(child, NULL, 0);
  }
  if (odd != SHMEM_TEAM_INVALID) {
    shmem_team_create_ctx(odd, 0, &context);
    const int member = shmem_team_my_pe(odd);
    if (member == 1) shmem_ctx_long_p(context, &word, me, 0);
    shmem_ctx_long_atomic_inc(context, &counter, 0);
    if (argc > 1 && strcmp(argv[1], "outside") == 0) shmem_ctx_long_p(context, &word, 0, pes / 2);
    if (member == 0) {
      shmem_ctx_long_put_signal(context, values, source, 4, &signal_word, 1, SHMEM_SIGNAL_SET, 1);
      shmem_ctx_putmem_signal_nbi(context, values, source, sizeof(values), &signal_word, 1,
                                  SHMEM_SIGNAL_ADD, 1);
      shmem_ctx_iput64(context, values, source, 1, 2, 2, 1);
      shmem_ctx_uint_atomic_fetch_add_nbi(context, &before, &bits, 1, 1);
      shmem_atomic_fetch_xor_nbi(context, &before, &bits, 2u, 1);
      shmem_put_signal(context, values + 3, source, 1, &signal_word, 1, SHMEM_SIGNAL_ADD, 1);
    }
    shmem_ctx_quiet(context);
    shmem_ctx_destroy(context);
  }
  shmem_barrier_all();
  printf("%d: word %ld, counter %ld, signal %d, bits %u, values %ld %ld %ld %ld\n", me, word,
         counter, (int)signal_word, bits, values[0], values[1], values[2], values[3]);
  shmem_finalize();
  return 0;
}
