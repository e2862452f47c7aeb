// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#ifndef TOWPATH_RTL_SYSTEM_H
#define TOWPATH_RTL_SYSTEM_H

#include <stdint.h>

// What the supervisor offers to processes.

enum { SYSTEM_EXIT, SYSTEM_OPEN, SYSTEM_CLOSE, SYSTEM_NODE, SYSTEM_NODES, SYSTEM_PRINT, SYSTEM_YIELD };

// Addresses of a process: its contexts' pages, and the array of results, which is there page by
// page as it is touched.
#define CONTEXT_PAGES 0x10000000UL
#define RESULT_PAGES 0x20000000UL

static inline long system_call(long number, long a, long b) {
  register long a0 __asm__("a0") = a;
  register long a1 __asm__("a1") = b;
  register long a7 __asm__("a7") = number;
  __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a7) : "memory");
  return a0;
}

#endif
