// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda_fp16.h"

// The two 8-bit floats: rounded to the nearest, ties to even. A larger number becomes the largest
// one.

#define __CUDA_FP8_TYPES_EXIST__

namespace towpath_gpu {
// A float of a sign, `exponent_bits` and the rest as mantissa. `largest` is the largest finite one.
struct Float8Format {
  int mantissa_bits, bias;
  unsigned char largest, nan;
};
inline constexpr Float8Format kE4M3 = {3, 7, 0x7e, 0x7f};
inline constexpr Float8Format kE5M2 = {2, 15, 0x7b, 0x7f};

static inline float float8_to_float(unsigned char bits, const Float8Format& format) {
  const int magnitude = bits & 0x7f;
  const float sign = bits & 0x80 ? -1.0F : 1.0F;
  if (magnitude > format.largest) {
    const bool is_infinite = format.mantissa_bits == 2 && magnitude == 0x7c;
    return sign * (is_infinite ? __builtin_inff() : __builtin_nanf(""));
  }
  const int exponent = magnitude >> format.mantissa_bits;
  const int mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << format.mantissa_bits);
  return sign * ldexpf(static_cast<float>(whole),
                       (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits);
}
static inline unsigned char float8_from_float(float value, const Float8Format& format) {
  if (value != value) return format.nan;
  const auto sign = static_cast<unsigned char>(__builtin_signbit(value) ? 0x80 : 0);
  const float magnitude = fabsf(value);
  if (magnitude == 0) return sign;
  int exponent;
  frexpf(magnitude, &exponent);
  const int smallest = 1 - format.bias;
  const int step = (exponent - 1 < smallest ? smallest : exponent - 1) - format.mantissa_bits;
  // In units of the last place, where each step to the next number is one, also across exponents.
  const auto units = static_cast<long>(nearbyintf(ldexpf(magnitude, -step > 200 ? 200 : -step)));
  const long rank =
      units + (static_cast<long>(step + format.mantissa_bits - smallest) << format.mantissa_bits);
  return static_cast<unsigned char>(sign | (rank > format.largest ? format.largest : rank));
}
static inline float e4m3_to_float(unsigned char bits) { return float8_to_float(bits, kE4M3); }
static inline float e5m2_to_float(unsigned char bits) { return float8_to_float(bits, kE5M2); }
static inline unsigned char e4m3_from_float(float value) { return float8_from_float(value, kE4M3); }
static inline unsigned char e5m2_from_float(float value) { return float8_from_float(value, kE5M2); }
}  // namespace towpath_gpu

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned __nv_fp8x4_storage_t;
#define TOWPATH_FLOAT8(type, to_float, from_float)                     \
  struct type {                                                        \
    __nv_fp8_storage_t __x;                                            \
    type() = default;                                                  \
    type(float value) : __x(from_float(value)) {}                      \
    type(double value) : __x(from_float(static_cast<float>(value))) {} \
    type(int value) : __x(from_float(static_cast<float>(value))) {}    \
    type(__half value) : __x(from_float(static_cast<float>(value))) {} \
    operator float() const { return to_float(__x); }                   \
    explicit operator __half() const { return to_float(__x); }         \
  };
TOWPATH_FLOAT8(__nv_fp8_e4m3, towpath_gpu::e4m3_to_float, towpath_gpu::e4m3_from_float)
TOWPATH_FLOAT8(__nv_fp8_e5m2, towpath_gpu::e5m2_to_float, towpath_gpu::e5m2_from_float)

// Two and four of them. The first one has the low bits.
#define TOWPATH_FLOAT8_VECTORS(pair, four, to_float, from_float)                                  \
  struct __attribute__((aligned(2))) pair {                                                       \
    __nv_fp8x2_storage_t __x;                                                                     \
    pair() = default;                                                                             \
    explicit pair(float2 v)                                                                       \
        : __x(static_cast<__nv_fp8x2_storage_t>(from_float(v.x) | from_float(v.y) << 8)) {}       \
    explicit pair(__half2 v) : pair(float2{v.x, v.y}) {}                                          \
    explicit operator float2() const {                                                            \
      return {to_float(static_cast<unsigned char>(__x)),                                          \
              to_float(static_cast<unsigned char>(__x >> 8))};                                    \
    }                                                                                             \
    explicit operator __half2() const {                                                           \
      const float2 v = static_cast<float2>(*this);                                                \
      return {v.x, v.y};                                                                          \
    }                                                                                             \
  };                                                                                              \
  struct __attribute__((aligned(4))) four {                                                       \
    __nv_fp8x4_storage_t __x;                                                                     \
    four() = default;                                                                             \
    explicit four(float4 v)                                                                       \
        : __x(from_float(v.x) | from_float(v.y) << 8 | from_float(v.z) << 16 |                    \
              static_cast<unsigned>(from_float(v.w)) << 24) {}                                    \
    explicit operator float4() const {                                                            \
      const auto part = [this](int bits) {                                                        \
        return to_float(static_cast<unsigned char>(__x >> bits));                                 \
      };                                                                                          \
      return {part(0), part(8), part(16), part(24)};                                              \
    }                                                                                             \
  };
TOWPATH_FLOAT8_VECTORS(__nv_fp8x2_e4m3, __nv_fp8x4_e4m3, towpath_gpu::e4m3_to_float,
                       towpath_gpu::e4m3_from_float)
TOWPATH_FLOAT8_VECTORS(__nv_fp8x2_e5m2, __nv_fp8x4_e5m2, towpath_gpu::e5m2_to_float,
                       towpath_gpu::e5m2_from_float)

enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
// Always saturates, as all callers so far ask.
static inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float value, __nv_saturation_t,
                                                       __nv_fp8_interpretation_t format) {
  return format == __NV_E4M3 ? towpath_gpu::e4m3_from_float(value)
                             : towpath_gpu::e5m2_from_float(value);
}
static inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t bits,
                                                 __nv_fp8_interpretation_t format) {
  return __half(format == __NV_E4M3 ? towpath_gpu::e4m3_to_float(bits)
                                    : towpath_gpu::e5m2_to_float(bits));
}
