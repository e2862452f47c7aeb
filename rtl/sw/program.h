// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#ifndef TOWPATH_RTL_PROGRAM_H
#define TOWPATH_RTL_PROGRAM_H

#include <stdint.h>

// What surrounds a program: a supervisor on the hardware, a process or a simulation on the host.

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ARGUMENT_ITERATIONS,
  ARGUMENT_SIZE_BYTES,
  ARGUMENT_PHASE_CYCLES,         // of delay before the first poll of nodes but the first
  ARGUMENT_TICK_CYCLES,          // between timer interrupts; 0: none
  ARGUMENT_BACKGROUND_TICKS,     // between turns of the second process; 0: it never runs
  ARGUMENT_BACKGROUND_LOOPS,     // of its work in a turn
  ARGUMENT_COUNT
};

enum { RESULTS_MAX = 512 * 1024 };

// Defined by the program, called on every node; 0 is success.
int program(int node, int nodes, const uint64_t *arguments, uint64_t *results);

#ifdef __riscv
static inline uint64_t program_cycles(void) {
  uint64_t cycles;
  __asm__ volatile("rdcycle %0" : "=r"(cycles));
  return cycles;
}
#else
uint64_t program_cycles(void);  // of the simulated core, or nanoseconds of this host
#endif

#ifdef __cplusplus
}
#endif
#endif
