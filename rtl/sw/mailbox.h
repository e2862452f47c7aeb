// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#ifndef TOWPATH_RTL_MAILBOX_H
#define TOWPATH_RTL_MAILBOX_H

#include <stddef.h>
#include <stdint.h>

// Small messages from one program to another, without the kernel in between (docs/mailbox.md). The
// same programs are linked with one of three libraries: mailbox_rtl.c, for the hardware of
// rtl/hw; host/mailbox_model.cpp, for the model; host/mailbox_live.cpp, for processes of this host.

#ifdef __cplusplus
extern "C" {
#endif

enum { MAILBOX_PAYLOAD_BYTES_MAX = 56 };  // the least of what the three carry

typedef struct mailbox_context mailbox_context;

typedef struct {
  int node;
  int context;
} mailbox_address;

typedef struct {
  uint64_t sent;
  uint64_t acknowledged;
  uint64_t full;     // dropped: no room in the mailbox
  uint64_t refused;  // dropped: no such mailbox, or one of another domain
} mailbox_notices;

// A context of this program in a domain; the first of a node has the number 0. NULL when the node
// has none left.
mailbox_context *mailbox_open(int domain);
void mailbox_close(mailbox_context *context);
mailbox_address mailbox_address_of(const mailbox_context *context);

// Waits until the fate of every message sent is known.
void mailbox_flush(mailbox_context *context);
mailbox_notices mailbox_notices_of(mailbox_context *context);

#ifdef __riscv
#include "mailbox_rtl.h"
#else
// Returns when the last store is acknowledged by the core; 0, or -1 for a size that no packet has.
// The payload is aligned to 8 bytes. Waits while no packet fits.
int mailbox_send(mailbox_context *context, mailbox_address to, const void *payload,
                 size_t size_bytes);
// The size of the first message, which is now in `payload` (of MAILBOX_PAYLOAD_BYTES_MAX), or 0.
size_t mailbox_try_receive(mailbox_context *context, mailbox_address *from, void *payload);
// The same; polls until there is a message.
size_t mailbox_receive(mailbox_context *context, mailbox_address *from, void *payload);
#endif

#ifdef __cplusplus
}
#endif
#endif
