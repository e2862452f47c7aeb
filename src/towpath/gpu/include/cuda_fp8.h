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
#define TOWPATH_FLOAT8(type, to_float, from_float)                     \
  struct type {                                                        \
    __nv_fp8_storage_t __x;                                            \
    type() = default;                                                  \
    type(float value) : __x(from_float(value)) {}                      \
    type(double value) : __x(from_float(static_cast<float>(value))) {} \
    type(int value) : __x(from_float(static_cast<float>(value))) {}    \
    type(__half value) : __x(from_float(static_cast<float>(value))) {} \
    operator float() const { return to_float(__x); }                   \
  };
TOWPATH_FLOAT8(__nv_fp8_e4m3, towpath_gpu::e4m3_to_float, towpath_gpu::e4m3_from_float)
TOWPATH_FLOAT8(__nv_fp8_e5m2, towpath_gpu::e5m2_to_float, towpath_gpu::e5m2_from_float)

enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
// Always saturates, as all callers so far ask.
static inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float value, __nv_saturation_t,
                                                       __nv_fp8_interpretation_t format) {
  return format == __NV_E4M3 ? towpath_gpu::e4m3_from_float(value)
                             : towpath_gpu::e5m2_from_float(value);
}
