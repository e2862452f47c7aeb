// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Every node sends every other one a message per iteration, and checks what it receives. Results:
// cycles of each iteration, on every node.

#include "mailbox.h"
#include "program.h"

enum { NODES_MAX = 64 };

static uint64_t word_of(int from, int to, uint64_t iteration) {
  return (uint64_t)from << 40 | (uint64_t)to << 32 | iteration;
}

int program(int node, int nodes, const uint64_t *arguments, uint64_t *results) {
  mailbox_context *const context = mailbox_open(0);
  if (context == NULL || nodes > NODES_MAX) return 2;
  uint64_t expected[NODES_MAX] = {0};  // the next iteration's number, by sender
  uint64_t ball[MAILBOX_PAYLOAD_BYTES_MAX / 8] = {0};
  const uint64_t iterations = arguments[ARGUMENT_ITERATIONS];
  uint64_t begin = program_cycles();
  for (uint64_t i = 0; i < iterations; ++i) {
    for (int other = 1; other < nodes; ++other) {
      const int to = (node + other) % nodes;
      ball[0] = word_of(node, to, i);
      ball[1] = ~ball[0];
      mailbox_send(context, (mailbox_address){to, 0}, ball, 16);
    }
    // A neighbour may be one iteration ahead.
    for (int other = 1; other < nodes; ++other) {
      mailbox_address from;
      if (mailbox_receive(context, &from, ball) != 16) return 3;
      if (ball[0] != word_of(from.node, node, expected[from.node])) return 4;
      if (ball[1] != ~ball[0]) return 5;
      ++expected[from.node];
    }
    const uint64_t end = program_cycles();
    results[i] = end - begin;
    begin = end;
  }
  mailbox_flush(context);
  const mailbox_notices notices = mailbox_notices_of(context);
  return notices.full + notices.refused == 0 ? 0 : 6;
}
