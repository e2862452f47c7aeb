// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// CUDA's vector types, with its alignments, and their make_ functions.

#define TOWPATH_VECTOR1(name, type)  \
  struct name##1 {                   \
    type x;                          \
  };                                 \
  static inline name##1 make_##name##1(type x) { return {x}; }
#define TOWPATH_VECTOR2(name, type, alignment)        \
  struct __attribute__((aligned(alignment))) name##2 { \
    type x, y;                                        \
  };                                                  \
  static inline name##2 make_##name##2(type x, type y) { return {x, y}; }
#define TOWPATH_VECTOR3(name, type) \
  struct name##3 {                  \
    type x, y, z;                   \
  };                                \
  static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }
#define TOWPATH_VECTOR4(name, type, alignment)        \
  struct __attribute__((aligned(alignment))) name##4 { \
    type x, y, z, w;                                  \
  };                                                  \
  static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
#define TOWPATH_VECTORS(name, type, size)                        \
  TOWPATH_VECTOR1(name, type)                                    \
  TOWPATH_VECTOR2(name, type, ((size) * 2 > 16 ? 16 : (size) * 2)) \
  TOWPATH_VECTOR3(name, type)                                    \
  TOWPATH_VECTOR4(name, type, ((size) * 4 > 16 ? 16 : (size) * 4))

TOWPATH_VECTORS(char, signed char, 1)
TOWPATH_VECTORS(uchar, unsigned char, 1)
TOWPATH_VECTORS(short, short, 2)
TOWPATH_VECTORS(ushort, unsigned short, 2)
TOWPATH_VECTORS(int, int, 4)
TOWPATH_VECTOR1(uint, unsigned int)
TOWPATH_VECTOR2(uint, unsigned int, 8)
using uint3 = towpath_gpu::Index3;  // threadIdx and the like are the runtime's own
static inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
TOWPATH_VECTOR4(uint, unsigned int, 16)
TOWPATH_VECTORS(long, long, 8)
TOWPATH_VECTORS(ulong, unsigned long, 8)
TOWPATH_VECTORS(longlong, long long, 8)
TOWPATH_VECTORS(ulonglong, unsigned long long, 8)
TOWPATH_VECTORS(float, float, 4)
TOWPATH_VECTORS(double, double, 8)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned in_x = 1, unsigned in_y = 1, unsigned in_z = 1)
      : x(in_x), y(in_y), z(in_z) {}
  constexpr dim3(uint3 size) : x(size.x), y(size.y), z(size.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
