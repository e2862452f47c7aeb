// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda_runtime.h"

// What half and bfloat16 share. Arithmetic is that of float, rounded once, as a GPU does it.
// A type needs `to_float` and `from_float` in TOWPATH_NARROW_FLOAT's namespace.
#define TOWPATH_NARROW_FLOAT(type, bits_type, raw, to_float, from_float)                        \
  struct __attribute__((aligned(2))) type {                                                     \
    bits_type bits;                                                                             \
    type() = default;                                                                           \
    type(float value) : bits(from_float(value)) {}                                              \
    type(double value) : bits(from_float(static_cast<float>(value))) {}                         \
    type(int value) : bits(from_float(static_cast<float>(value))) {}                            \
    type(unsigned value) : bits(from_float(static_cast<float>(value))) {}                       \
    type(long value) : bits(from_float(static_cast<float>(value))) {}                           \
    type(unsigned long value) : bits(from_float(static_cast<float>(value))) {}                  \
    type(long long value) : bits(from_float(static_cast<float>(value))) {}                      \
    type(unsigned long long value) : bits(from_float(static_cast<float>(value))) {}             \
    type(const raw& other) : bits(other.x) {}                                                   \
    operator float() const { return to_float(bits); }                                           \
    operator raw() const { return {bits}; }                                                     \
    type& operator=(float value) { bits = from_float(value); return *this; }                    \
    type& operator=(double value) { return *this = static_cast<float>(value); }                 \
    type& operator=(int value) { return *this = static_cast<float>(value); }                    \
  };                                                                                            \
  static inline type operator+(type a, type b) { return float(a) + float(b); }                  \
  static inline type operator-(type a, type b) { return float(a) - float(b); }                  \
  static inline type operator*(type a, type b) { return float(a) * float(b); }                  \
  static inline type operator/(type a, type b) { return float(a) / float(b); }                  \
  static inline type operator-(type a) { return -float(a); }                                    \
  static inline type& operator+=(type& a, const type& b) { return a = a + b; }                  \
  static inline type& operator-=(type& a, const type& b) { return a = a - b; }                  \
  static inline type& operator*=(type& a, const type& b) { return a = a * b; }                  \
  static inline type& operator/=(type& a, const type& b) { return a = a / b; }                  \
  static inline bool operator==(type a, type b) { return float(a) == float(b); }                \
  static inline bool operator!=(type a, type b) { return float(a) != float(b); }                \
  static inline bool operator<(type a, type b) { return float(a) < float(b); }                  \
  static inline bool operator>(type a, type b) { return float(a) > float(b); }                  \
  static inline bool operator<=(type a, type b) { return float(a) <= float(b); }                \
  static inline bool operator>=(type a, type b) { return float(a) >= float(b); }                \
  static inline type __hadd(type a, type b) { return a + b; }                                   \
  static inline type __hsub(type a, type b) { return a - b; }                                   \
  static inline type __hmul(type a, type b) { return a * b; }                                   \
  static inline type __hdiv(type a, type b) { return a / b; }                                   \
  static inline type __hneg(type a) { return -a; }                                              \
  static inline type __habs(type a) { return fabsf(float(a)); }                                 \
  static inline type __hfma(type a, type b, type c) {                                           \
    return fmaf(float(a), float(b), float(c));                                                  \
  }                                                                                             \
  static inline type __hmax(type a, type b) { return a < b ? b : a; }                           \
  static inline type __hmin(type a, type b) { return b < a ? b : a; }                           \
  static inline bool __heq(type a, type b) { return a == b; }                                   \
  static inline bool __hlt(type a, type b) { return a < b; }                                    \
  static inline bool __hgt(type a, type b) { return a > b; }                                    \
  static inline bool __hisnan(type a) { return float(a) != float(a); }

// Its pairs.
#define TOWPATH_NARROW_PAIR(pair, type)                                                         \
  struct __attribute__((aligned(4))) pair {                                                     \
    type x, y;                                                                                  \
    pair() = default;                                                                           \
    pair(type first, type second) : x(first), y(second) {}                                      \
  };                                                                                            \
  static inline pair operator+(pair a, pair b) { return {a.x + b.x, a.y + b.y}; }               \
  static inline pair operator-(pair a, pair b) { return {a.x - b.x, a.y - b.y}; }               \
  static inline pair operator*(pair a, pair b) { return {a.x * b.x, a.y * b.y}; }               \
  static inline pair& operator+=(pair& a, pair b) { return a = a + b; }                         \
  static inline pair __hadd2(pair a, pair b) { return a + b; }                                  \
  static inline pair __hsub2(pair a, pair b) { return a - b; }                                  \
  static inline pair __hmul2(pair a, pair b) { return a * b; }                                  \
  static inline pair __hfma2(pair a, pair b, pair c) {                                          \
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};                                      \
  }                                                                                             \
  static inline pair __hmax2(pair a, pair b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }   \
  static inline pair __hmin2(pair a, pair b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
