// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// What a user's program on the hardware calls seldom; the rest is inline, in mailbox_rtl.h.

#include "mailbox.h"
#include "system.h"

static mailbox_context contexts[8];

mailbox_context *mailbox_open(int domain) {
  for (unsigned i = 0; i < sizeof contexts / sizeof contexts[0]; ++i) {
    mailbox_context *const context = &contexts[i];
    if (context->page != NULL) continue;
    const long number = system_call(SYSTEM_OPEN, domain, 0);
    if (number < 0) return NULL;
    context->page = (volatile uint64_t *)(CONTEXT_PAGES + ((uint64_t)number << 12));
    context->address.node = (int)system_call(SYSTEM_NODE, 0, 0);
    context->address.context = (int)number;
    context->at_open = context->page[MAILBOX_COUNTERS];
    context->room = MAILBOX_SLOTS;
    return context;
  }
  return NULL;
}

void mailbox_close(mailbox_context *context) {
  system_call(SYSTEM_CLOSE, context->address.context, 0);
  context->page = NULL;
}

mailbox_address mailbox_address_of(const mailbox_context *context) { return context->address; }

void mailbox_flush(mailbox_context *context) {
  do mailbox_refresh(context);
  while (context->room != MAILBOX_SLOTS);
}

mailbox_notices mailbox_notices_of(mailbox_context *context) {
  const uint64_t now = context->page[MAILBOX_COUNTERS];
  mailbox_notices notices;
  notices.sent = (uint16_t)(now - context->at_open);
  notices.full = (uint16_t)((now >> 32) - (context->at_open >> 32));
  notices.refused = (uint16_t)((now >> 48) - (context->at_open >> 48));
  notices.acknowledged =
      (uint16_t)((now >> 16) - (context->at_open >> 16)) - notices.full - notices.refused;
  return notices;
}
