// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// What a program must not do: send to a mailbox of another domain, or to one that nobody opened; and
// at last, on node 0, load from a page of a context that is another process's.

#include "mailbox.h"
#include "program.h"
#include "system.h"

enum { MESSAGES = 6 };

int program(int node, int nodes, const uint64_t *arguments, uint64_t *results) {
  // The domain of a context is its node's number, so that no two nodes may talk.
  mailbox_context *const context = mailbox_open(node);
  if (context == NULL) return 2;
  uint64_t ball[MAILBOX_PAYLOAD_BYTES_MAX / 8] = {(uint64_t)node};
  mailbox_address from;
  for (int i = 0; i < MESSAGES; ++i) {
    const mailbox_address wrong = {(node + 1) % nodes, i % 2 == 0 ? 0 : 40};
    mailbox_send(context, wrong, ball, 8);
    mailbox_send(context, mailbox_address_of(context), ball, 8);  // its own may
    if (mailbox_receive(context, &from, ball) != 8 || from.node != node) return 3;
  }
  mailbox_flush(context);
  const mailbox_notices notices = mailbox_notices_of(context);
  if (notices.refused != MESSAGES || notices.acknowledged != MESSAGES) return 4;
  if (mailbox_try_receive(context, &from, ball) != 0) return 5;
  if (node == 0) results[0] = *(volatile uint64_t *)(CONTEXT_PAGES + arguments[0] * 0x1000 + 0x80);
  return 0;
}
