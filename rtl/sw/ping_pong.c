// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// The published measurement: node 0 sends a message to node 1, which sends it back. Each iteration
// is timed by itself, by one reading of the cycle counter, and stored to an array.

#include "mailbox.h"
#include "program.h"

// The size is a constant where this is called, as it is in a program that has one kind of message.
static inline __attribute__((always_inline)) void play(mailbox_context *context,
                                                       uint64_t iterations, size_t size_bytes,
                                                       uint64_t *results) {
  const mailbox_address peer = {1, 0};
  uint64_t ball[MAILBOX_PAYLOAD_BYTES_MAX / 8] = {0};
  mailbox_address from;
  uint64_t begin = program_cycles();
  for (uint64_t i = 0; i < iterations; ++i) {
    mailbox_send(context, peer, ball, size_bytes);
    mailbox_receive(context, &from, ball);
    const uint64_t end = program_cycles();
    results[i] = end - begin;
    begin = end;
  }
}

static int initiate(mailbox_context *context, const uint64_t *arguments, uint64_t *results) {
  const uint64_t iterations = arguments[ARGUMENT_ITERATIONS];
  // The pages of the array are made before the measurement.
  for (uint64_t i = 0; i < iterations; i += 512) ((volatile uint64_t *)results)[i] = 0;
  switch (arguments[ARGUMENT_SIZE_BYTES]) {
    case 8: play(context, iterations, 8, results); break;
    case 16: play(context, iterations, 16, results); break;
    case 32: play(context, iterations, 32, results); break;
    case 56: play(context, iterations, 56, results); break;
    default: return 1;
  }
  return mailbox_notices_of(context).refused == 0 ? 0 : 1;
}

static inline __attribute__((always_inline)) void answer(mailbox_context *context,
                                                         uint64_t iterations, size_t size_bytes) {
  uint64_t ball[MAILBOX_PAYLOAD_BYTES_MAX / 8] = {0};
  mailbox_address from;
  for (uint64_t i = 0; i < iterations; ++i) {
    mailbox_receive(context, &from, ball);
    mailbox_send(context, from, ball, size_bytes);
  }
}

static int respond(mailbox_context *context, const uint64_t *arguments) {
  const uint64_t iterations = arguments[ARGUMENT_ITERATIONS];
  const uint64_t delayed_until = program_cycles() + arguments[ARGUMENT_PHASE_CYCLES];
  while (program_cycles() < delayed_until) {
  }
  switch (arguments[ARGUMENT_SIZE_BYTES]) {
    case 8: answer(context, iterations, 8); break;
    case 16: answer(context, iterations, 16); break;
    case 32: answer(context, iterations, 32); break;
    case 56: answer(context, iterations, 56); break;
    default: return 1;
  }
  mailbox_flush(context);
  return 0;
}

int program(int node, int nodes, const uint64_t *arguments, uint64_t *results) {
  mailbox_context *const context = mailbox_open(0);
  if (context == NULL || nodes < 2) return 2;
  if (node > 1) return 0;
  return node == 0 ? initiate(context, arguments, results) : respond(context, arguments);
}
