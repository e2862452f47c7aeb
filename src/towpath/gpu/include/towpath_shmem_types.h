// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

// The types of each family of calls, by NVSHMEM's names.

#define TOWPATH_FOR_BITWISE_ATOMIC_TYPES(visit) \
  visit(uint, unsigned int)                 \
  visit(ulong, unsigned long)               \
  visit(ulonglong, unsigned long long)      \
  visit(int32, int32_t)                     \
  visit(uint32, uint32_t)                   \
  visit(int64, int64_t)                     \
  visit(uint64, uint64_t)
#define TOWPATH_FOR_BITWISE_TYPES(visit)    \
  TOWPATH_FOR_BITWISE_ATOMIC_TYPES(visit)   \
  visit(uchar, unsigned char)               \
  visit(ushort, unsigned short)             \
  visit(int8, int8_t)                       \
  visit(int16, int16_t)                     \
  visit(uint8, uint8_t)                     \
  visit(uint16, uint16_t)                   \
  visit(size, size_t)
#define TOWPATH_FOR_REDUCE_TYPES(visit)     \
  TOWPATH_FOR_BITWISE_TYPES(visit)          \
  visit(char, char)                         \
  visit(schar, signed char)                 \
  visit(short, short)                       \
  visit(int, int)                           \
  visit(long, long)                         \
  visit(longlong, long long)                \
  visit(bfloat16, __nv_bfloat16)            \
  visit(half, __half)                       \
  visit(float, float)                       \
  visit(double, double)
#define TOWPATH_FOR_RMA_TYPES(visit)        \
  TOWPATH_FOR_REDUCE_TYPES(visit)           \
  visit(ptrdiff, ptrdiff_t)
#define TOWPATH_FOR_ATOMIC_TYPES(visit)     \
  TOWPATH_FOR_BITWISE_ATOMIC_TYPES(visit)   \
  visit(int, int)                           \
  visit(long, long)                         \
  visit(longlong, long long)                \
  visit(size, size_t)                       \
  visit(ptrdiff, ptrdiff_t)
#define TOWPATH_FOR_WAIT_TYPES(visit)       \
  TOWPATH_FOR_ATOMIC_TYPES(visit)           \
  visit(short, short)                       \
  visit(ushort, unsigned short)
#define TOWPATH_FOR_SIZES(visit) visit(8) visit(16) visit(32) visit(64) visit(128)

namespace towpath_gpu {
template <int Bytes>
struct Element {
  unsigned char byte[Bytes];
};
}  // namespace towpath_gpu
