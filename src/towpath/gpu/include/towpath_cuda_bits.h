// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath_ptx.h"

// Functions of CUDA that are one PTX instruction: bits, products, addresses, loads and stores with
// hints to caches.

static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned count) {
  return towpath_ptx::shf<towpath_ptx::m_l, towpath_ptx::m_wrap>(low, high, count);
}
static inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned count) {
  return towpath_ptx::shf<towpath_ptx::m_l, towpath_ptx::m_clamp>(low, high, count);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned count) {
  return towpath_ptx::shf<towpath_ptx::m_r, towpath_ptx::m_wrap>(low, high, count);
}
static inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned count) {
  return towpath_ptx::shf<towpath_ptx::m_r, towpath_ptx::m_clamp>(low, high, count);
}
// Bit 3 of a selector has no effect here, as on a GPU.
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selectors) {
  return towpath_ptx::prmt<towpath_ptx::m_index>(a, b, selectors & 0x7777u);
}
static inline unsigned __brev(unsigned value) { return towpath_ptx::brev<towpath_ptx::u32>(value); }
static inline unsigned long long __brevll(unsigned long long value) {
  return towpath_ptx::brev<towpath_ptx::u64>(value);
}
// The position of the offset-th one of `mask` from bit `base` on, upward or downward. All ones if
// there is none.
static inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  const int step = offset < 0 ? -1 : 1;
  int left = offset < 0 ? -offset : offset;
  for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step) {
    if ((mask >> at & 1) != 0 && --left <= 0) return static_cast<unsigned>(at);
    if (offset == 0) break;
  }
  return ~0u;
}
static inline int __mulhi(int a, int b) {
  return towpath_ptx::mul_hi<int>(static_cast<unsigned>(a), static_cast<unsigned>(b));
}
static inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return towpath_ptx::mul_hi<towpath_ptx::u64>(a, b);
}
static inline int __mul24(int a, int b) {
  return towpath_ptx::mul24_lo<int>(static_cast<unsigned>(a), static_cast<unsigned>(b));
}
static inline unsigned __umul24(unsigned a, unsigned b) {
  return towpath_ptx::mul24_lo<unsigned>(a, b);
}
static inline int __dp4a(int a, int b, int c) {
  return static_cast<int>(towpath_ptx::dp4a<int, int>(
      static_cast<unsigned>(a), static_cast<unsigned>(b), static_cast<unsigned>(c)));
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  return towpath_ptx::dp4a<unsigned, unsigned>(a, b, c);
}
static inline long long __double_as_longlong(double value) {
  return towpath_ptx::cast_bits<long long>(value);
}
static inline double __longlong_as_double(long long bits) {
  return towpath_ptx::cast_bits<double>(bits);
}

// Floats as integers: to the nearest, to zero, upward or downward. Values that do not fit become the
// nearest that does.
#define TOWPATH_TO_INTEGER(name, type, mode)                                                       \
  static inline type __float2##name(float value) {                                                 \
    return towpath_ptx::cvt<type, float, towpath_ptx::mode, false, false, false>(                  \
        towpath_ptx::cast_bits<towpath_ptx::u32>(value));                                          \
  }
#define TOWPATH_TO_INTEGERS(prefix, type)       \
  TOWPATH_TO_INTEGER(prefix##_rn, type, m_rni)  \
  TOWPATH_TO_INTEGER(prefix##_rz, type, m_rzi)  \
  TOWPATH_TO_INTEGER(prefix##_ru, type, m_rpi)  \
  TOWPATH_TO_INTEGER(prefix##_rd, type, m_rmi)
TOWPATH_TO_INTEGERS(int, int)
TOWPATH_TO_INTEGERS(uint, unsigned)
TOWPATH_TO_INTEGERS(ll, long long)
TOWPATH_TO_INTEGERS(ull, unsigned long long)

template <typename T>
unsigned __match_all_sync(unsigned mask, T value, int* are_equal, TOWPATH_SITE) {
  TOWPATH_SITE_OF("__match_all_sync");
  bool found = false;
  const unsigned lanes = towpath_ptx::match_all<towpath_ptx::Bits<sizeof(T)>>(
      found, towpath_site, towpath_ptx::cast_bits<towpath_ptx::Bits<sizeof(T)>>(value), mask);
  *are_equal = found ? 1 : 0;
  return lanes;
}

// --- addresses ----------------------------------------------------------------------------------
static inline size_t __cvta_generic_to_shared(const void* address) {
  return towpath_ptx::cvta_to_shared(reinterpret_cast<std::uintptr_t>(address));
}
static inline void* __cvta_shared_to_generic(size_t address) {
  return reinterpret_cast<void*>(towpath_ptx::cvta_shared(address));
}
static inline size_t __cvta_generic_to_global(const void* address) {
  return reinterpret_cast<size_t>(address);
}
static inline void* __cvta_global_to_generic(size_t address) {
  return reinterpret_cast<void*>(address);
}
static inline size_t __cvta_generic_to_local(const void* address) {
  return reinterpret_cast<size_t>(address);
}
static inline size_t __cvta_generic_to_constant(const void* address) {
  return reinterpret_cast<size_t>(address);
}
#define TOWPATH_IS_SPACE(name, space)                                              \
  static inline unsigned name(const void* address) {                               \
    return towpath_ptx::isspacep<towpath_ptx::space>(                              \
               reinterpret_cast<std::uintptr_t>(address))                          \
               ? 1                                                                 \
               : 0;                                                                \
  }
TOWPATH_IS_SPACE(__isShared, m_shared)
TOWPATH_IS_SPACE(__isGlobal, m_global)
TOWPATH_IS_SPACE(__isLocal, m_local)
TOWPATH_IS_SPACE(__isConstant, m_const)
#undef TOWPATH_IS_SPACE

// --- loads and stores ---------------------------------------------------------------------------
template <typename T>
T __ldca(const T* address) {
  return *address;
}
template <typename T>
T __ldlu(const T* address) {
  return *address;
}
template <typename T>
void __stwb(T* address, T value) {
  *address = value;
}
template <typename T>
void __stwt(T* address, T value) {
  *address = value;
}
