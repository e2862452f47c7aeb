// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// What the compiler calls for arrays.

#include <stddef.h>

void *memset(void *to, int value, size_t size_bytes);
void *memcpy(void *restrict to, const void *restrict from, size_t size_bytes);

void *memset(void *to, int value, size_t size_bytes) {
  for (size_t i = 0; i < size_bytes; ++i) ((unsigned char *)to)[i] = (unsigned char)value;
  return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size_bytes) {
  for (size_t i = 0; i < size_bytes; ++i)
    ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
  return to;
}
