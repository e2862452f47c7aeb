// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath_narrow_float.h"

#define __CUDA_BF16_TYPES_EXIST__

namespace towpath_gpu {
static inline float bfloat16_to_float(unsigned short bits) {
  return __uint_as_float(static_cast<unsigned>(bits) << 16);
}
// To the nearest, ties to even; a NaN stays one.
static inline unsigned short bfloat16_from_float(float value) {
  const unsigned bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}
}  // namespace towpath_gpu

struct __nv_bfloat16_raw {
  unsigned short x;
};
TOWPATH_NARROW_FLOAT(__nv_bfloat16, unsigned short, __nv_bfloat16_raw,
                     towpath_gpu::bfloat16_to_float, towpath_gpu::bfloat16_from_float)
TOWPATH_NARROW_PAIR(__nv_bfloat162, __nv_bfloat16)
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

static inline float __bfloat162float(__nv_bfloat16 value) { return value; }
static inline __nv_bfloat16 __float2bfloat16(float value) { return value; }
static inline __nv_bfloat16 __float2bfloat16_rn(float value) { return value; }
static inline __nv_bfloat16 __double2bfloat16(double value) { return value; }
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
static inline __nv_bfloat162 __float22bfloat162_rn(float2 value) { return {value.x, value.y}; }
static inline __nv_bfloat162 __float2bfloat162_rn(float value) { return {value, value}; }
static inline float2 __bfloat1622float2(__nv_bfloat162 value) { return {value.x, value.y}; }
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 value) { return {value, value}; }
static inline float __low2float(__nv_bfloat162 value) { return value.x; }
static inline float __high2float(__nv_bfloat162 value) { return value.y; }
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return __nv_bfloat16_raw{bits};
}
