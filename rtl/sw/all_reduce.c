// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// The sum of a vector of every node, on every node: around the ring, and around once more. Results:
// cycles of each iteration.

#include "mailbox.h"
#include "program.h"

enum { WORDS = 4 };

int program(int node, int nodes, const uint64_t *arguments, uint64_t *results) {
  mailbox_context *const context = mailbox_open(0);
  if (context == NULL) return 2;
  const mailbox_address next = {(node + 1) % nodes, 0};
  mailbox_address from;
  uint64_t sum[MAILBOX_PAYLOAD_BYTES_MAX / 8];
  uint64_t begin = program_cycles();
  for (uint64_t i = 0; i < arguments[ARGUMENT_ITERATIONS]; ++i) {
    uint64_t own[WORDS];
    for (int word = 0; word < WORDS; ++word) own[word] = (uint64_t)node * 3 + (uint64_t)word + i;
    if (node == 0) {
      mailbox_send(context, next, own, sizeof own);
      mailbox_receive(context, &from, sum);  // all partial sums
      mailbox_send(context, next, sum, sizeof own);
      mailbox_receive(context, &from, sum);  // the result was everywhere
    } else {
      mailbox_receive(context, &from, sum);
      for (int word = 0; word < WORDS; ++word) sum[word] += own[word];
      mailbox_send(context, next, sum, sizeof own);
      mailbox_receive(context, &from, sum);
      mailbox_send(context, next, sum, sizeof own);
    }
    const uint64_t count = (uint64_t)nodes;
    for (int word = 0; word < WORDS; ++word) {
      if (sum[word] != count * (count - 1) / 2 * 3 + count * ((uint64_t)word + i)) return 3;
    }
    const uint64_t end = program_cycles();
    results[i] = end - begin;
    begin = end;
  }
  mailbox_flush(context);
  return 0;
}
