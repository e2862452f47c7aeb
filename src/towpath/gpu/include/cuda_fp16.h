// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath_narrow_float.h"

#define __CUDA_FP16_TYPES_EXIST__

namespace towpath_gpu {
static inline float half_to_float(unsigned short bits) {
  _Float16 value;
  __builtin_memcpy(&value, &bits, 2);
  return static_cast<float>(value);
}
static inline unsigned short half_from_float(float value) {
  const auto narrow = static_cast<_Float16>(value);
  unsigned short bits;
  __builtin_memcpy(&bits, &narrow, 2);
  return bits;
}
}  // namespace towpath_gpu

struct __half_raw {
  unsigned short x;
};
TOWPATH_NARROW_FLOAT(__half, unsigned short, __half_raw, towpath_gpu::half_to_float,
                     towpath_gpu::half_from_float)
TOWPATH_NARROW_PAIR(__half2, __half)
typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;

static inline float __half2float(__half value) { return value; }
static inline __half __float2half(float value) { return value; }
static inline __half __float2half_rn(float value) { return value; }
static inline __half __double2half(double value) { return value; }
static inline __half __int2half_rn(int value) { return value; }
static inline __half __ull2half_rn(unsigned long long value) { return value; }
static inline int __half2int_rn(__half value) { return static_cast<int>(nearbyintf(value)); }
static inline __half2 __floats2half2_rn(float x, float y) { return {x, y}; }
static inline __half2 __float2half2_rn(float value) { return {value, value}; }
static inline __half2 __float22half2_rn(float2 value) { return {value.x, value.y}; }
static inline float2 __half22float2(__half2 value) { return {value.x, value.y}; }
static inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
static inline __half2 __half2half2(__half value) { return {value, value}; }
static inline __half __low2half(__half2 value) { return value.x; }
static inline __half __high2half(__half2 value) { return value.y; }
static inline float __low2float(__half2 value) { return value.x; }
static inline float __high2float(__half2 value) { return value.y; }
static inline unsigned short __half_as_ushort(__half value) { return value.bits; }
static inline __half __ushort_as_half(unsigned short bits) { return __half_raw{bits}; }
static inline __half hexp(__half value) { return expf(value); }
static inline __half hsqrt(__half value) { return sqrtf(value); }
