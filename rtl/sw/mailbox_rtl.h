// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#ifndef TOWPATH_RTL_MAILBOX_RTL_H
#define TOWPATH_RTL_MAILBOX_RTL_H

// Sending and receiving on the hardware, inline: stores and loads of the context's page
// (hw/network_node.sv). mailbox.h includes this; what each call promises is there.

enum {
  MAILBOX_DESCRIPTOR = 0x40 / 8,
  MAILBOX_COUNTERS = 0x48 / 8,
  MAILBOX_POLL = 0x80 / 8,
  MAILBOX_DATA = 0x88 / 8,
  MAILBOX_SLOTS = 4
};

struct mailbox_context {
  volatile uint64_t *page;
  uint64_t room;  // packets that certainly fit
  mailbox_address address;
  uint64_t at_open;  // the counters of the hardware
};

// Looks how many packets fit.
static inline void mailbox_refresh(mailbox_context *context) {
  const uint64_t counters = context->page[MAILBOX_COUNTERS];
  context->room = MAILBOX_SLOTS - (uint16_t)(counters - (counters >> 16));
}

// Room is looked for behind a packet, when there is time, and before one only when none was found.
// All words are loaded before the first is stored, so that nothing comes between the stores. Where
// the size is a constant, no branch is left.
static inline __attribute__((always_inline)) int mailbox_send(mailbox_context *context,
                                                              mailbox_address to,
                                                              const void *payload,
                                                              size_t size_bytes) {
  volatile uint64_t *const page = context->page;
  const uint64_t *const words = (const uint64_t *)payload;
  const uint64_t descriptor =
      (uint64_t)size_bytes << 32 | (uint64_t)to.context << 16 | (uint64_t)to.node;
  const size_t count = (size_bytes + 7) / 8;
  uint64_t word[MAILBOX_PAYLOAD_BYTES_MAX / 8];
  if (size_bytes == 0 || size_bytes > MAILBOX_PAYLOAD_BYTES_MAX) return -1;
  while (__builtin_expect(context->room == 0, 0)) mailbox_refresh(context);
#pragma GCC unroll 7
  for (size_t i = 0; i < MAILBOX_PAYLOAD_BYTES_MAX / 8; ++i)
    if (i < count) {
      word[i] = words[i];
      __asm__ volatile("" : "+r"(word[i]));
    }
#pragma GCC unroll 7
  for (size_t i = 0; i < MAILBOX_PAYLOAD_BYTES_MAX / 8; ++i)
    if (i < count) page[i] = word[i];
  page[MAILBOX_DESCRIPTOR] = descriptor;
  if (--context->room == 0) mailbox_refresh(context);
  return 0;
}

static inline __attribute__((always_inline)) size_t mailbox_take(mailbox_context *context,
                                                                 uint64_t head,
                                                                 mailbox_address *from,
                                                                 void *payload) {
  volatile uint64_t *const page = context->page;
  uint64_t *const words = (uint64_t *)payload;
  const size_t size_bytes = head & 0x7F;
  from->node = (int)(head >> 28 & 0x3FF);
  from->context = (int)(head >> 19 & 0x1FF);
#pragma GCC unroll 7
  for (size_t i = 0; i < MAILBOX_PAYLOAD_BYTES_MAX / 8; ++i) {
    if (8 * i >= size_bytes) break;
    words[i] = page[MAILBOX_DATA];
  }
  return size_bytes;
}

static inline __attribute__((always_inline)) size_t mailbox_try_receive(mailbox_context *context,
                                                                        mailbox_address *from,
                                                                        void *payload) {
  const uint64_t head = context->page[MAILBOX_POLL];
  return head == 0 ? 0 : mailbox_take(context, head, from, payload);
}

static inline __attribute__((always_inline)) size_t mailbox_receive(mailbox_context *context,
                                                                    mailbox_address *from,
                                                                    void *payload) {
  uint64_t head;
  do head = context->page[MAILBOX_POLL];
  while (head == 0);
  return mailbox_take(context, head, from, payload);
}

#endif
