// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Where the processes of a node begin.

#include "program.h"
#include "system.h"

uint64_t arguments[ARGUMENT_COUNT] = {100, 32, 0, 0, 0, 0};

void start_program(void);
void run_background(void);

void start_program(void) {
  const int node = (int)system_call(SYSTEM_NODE, 0, 0);
  const int nodes = (int)system_call(SYSTEM_NODES, 0, 0);
  const int code = program(node, nodes, arguments, (uint64_t *)RESULT_PAGES);
  system_call(SYSTEM_EXIT, code, 0);
}

// The second process: some work, then it waits for its next turn.
void run_background(void) {
  for (;;) {
    for (volatile uint64_t i = 0; i < arguments[ARGUMENT_BACKGROUND_LOOPS]; ++i) {
    }
    system_call(SYSTEM_YIELD, 0, 0);
  }
}
