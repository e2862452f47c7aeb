/* SPDX-FileCopyrightText: The Towpath authors
 * SPDX-License-Identifier: Apache-2.0
 * Times the collectives of any MPI as towpath_peer.cpp times ours:
 *
 *   mpirun -n RANKS mpi_peer COLLECTIVE:BYTES... */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kBatches = 9 };
static const double kBatchSeconds = 0.004;

/* To the cores that this process may use, in turn, as the ranks of towpath_peer.cpp are. */
static void pin(int rank) {
  cpu_set_t allowed, own;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  int skip = rank % CPU_COUNT(&allowed);
  for (int core = 0;; ++core) {
    if (!CPU_ISSET(core, &allowed) || skip-- > 0) continue;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    sched_setaffinity(0, sizeof(own), &own);
    return;
  }
}

static char* private_memory(size_t bytes) {
  const size_t huge = 2 << 20;
  bytes = (bytes + huge - 1) / huge * huge;
  char* const memory = aligned_alloc(huge, bytes);
  madvise(memory, bytes, MADV_HUGEPAGE);
  memset(memory, 0, bytes);
  return memory;
}

static int ranks;

static void call(const char* name, char* input, char* output, size_t size) {
  const int count = (int)(size / 4), part = (int)(size / 4 / (size_t)ranks);
  if (strcmp(name, "all_reduce") == 0) {
    MPI_Allreduce(MPI_IN_PLACE, input, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (strcmp(name, "broadcast") == 0) {
    MPI_Bcast(input, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  } else if (strcmp(name, "all_gather") == 0) {
    MPI_Allgather(input, part, MPI_FLOAT, output, part, MPI_FLOAT, MPI_COMM_WORLD);
  } else if (strcmp(name, "reduce_scatter") == 0) {
    MPI_Reduce_scatter_block(input, output, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (strcmp(name, "all_to_all") == 0) {
    MPI_Alltoall(input, part, MPI_FLOAT, output, part, MPI_FLOAT, MPI_COMM_WORLD);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

static double repeat(int count, const char* name, char* input, char* output, size_t size) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < count; ++i) call(name, input, output, size);
  return MPI_Wtime() - begin;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argument_count, char** arguments) {
  int rank;
  MPI_Init(&argument_count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  pin(rank);
  for (int i = 1; i < argument_count; ++i) {
    char name[64];
    const char* const colon = strchr(arguments[i], ':');
    snprintf(name, sizeof(name), "%.*s", (int)(colon - arguments[i]), arguments[i]);
    const size_t size = strtoull(colon + 1, NULL, 10);
    char* const input = private_memory(size);
    char* const output = private_memory(size);
    repeat(2, name, input, output, size);
    double count = kBatchSeconds / (repeat(5, name, input, output, size) / 5);
    MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    if (count < 1) count = 1;
    double means[kBatches];
    for (int batch = 0; batch < kBatches; ++batch) {
      means[batch] = repeat((int)count, name, input, output, size) / (int)count;
    }
    qsort(means, kBatches, sizeof(double), ascending);
    double us = means[kBatches / 2] * 1e6;
    MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
      printf("%s %zu %.4f\n", name, size, us / ranks);
      fflush(stdout);
    }
    free(input);
    free(output);
  }
  MPI_Finalize();
  return 0;
}
