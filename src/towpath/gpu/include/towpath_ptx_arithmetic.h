// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath_ptx.h"

// Integers, bits and predicates.

namespace towpath_ptx {

// The type with twice the bits. 128 bits hold the product of two 64-bit numbers.
template <typename T>
using Wide = std::conditional_t<
    std::is_signed_v<T>,
    std::conditional_t<sizeof(T) == 2, s32, std::conditional_t<sizeof(T) == 4, s64, __int128>>,
    std::conditional_t<sizeof(T) == 2, u32, std::conditional_t<sizeof(T) == 4, u64, u128>>>;

template <typename T>
inline constexpr int kBits = static_cast<int>(8 * sizeof(T));

template <typename T>
inline constexpr T kLeast = std::is_signed_v<T> ? T(T(1) << (kBits<T> - 1)) : T(0);
template <typename T>
inline constexpr T kMost = std::is_signed_v<T> ? T(~kLeast<T>) : T(~T(0));

// Without undefined overflow.
template <typename T>
TOWPATH_PTX T wrap(Wide<T> value) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(value));
}
template <typename T>
TOWPATH_PTX T saturate(Wide<T> value) {
  if (value < Wide<T>(kLeast<T>)) return kLeast<T>;
  if (value > Wide<T>(kMost<T>)) return kMost<T>;
  return static_cast<T>(value);
}

#define TOWPATH_PTX_BINARY(name, expression)            \
  template <typename T, typename A, typename B>         \
  TOWPATH_PTX T name(A first, B second) {               \
    const Wide<T> a = as<T>(first), b = as<T>(second);  \
    return expression;                                  \
  }
TOWPATH_PTX_BINARY(add, wrap<T>(a + b))
TOWPATH_PTX_BINARY(sub, wrap<T>(a - b))
TOWPATH_PTX_BINARY(add_sat, saturate<T>(a + b))
TOWPATH_PTX_BINARY(sub_sat, saturate<T>(a - b))
TOWPATH_PTX_BINARY(mul_lo, wrap<T>(a * b))
TOWPATH_PTX_BINARY(mul_hi, wrap<T>((a * b) >> kBits<T>))
TOWPATH_PTX_BINARY(min, static_cast<T>(b < a ? b : a))
TOWPATH_PTX_BINARY(max, static_cast<T>(a < b ? b : a))
// A GPU gives all bits for a division by zero.
TOWPATH_PTX_BINARY(div, b == 0 ? static_cast<T>(~T(0)) : wrap<T>(a / b))
TOWPATH_PTX_BINARY(rem, b == 0 ? static_cast<T>(a) : wrap<T>(a % b))

template <typename T, typename A, typename B>
TOWPATH_PTX Wide<T> mul_wide(A first, B second) {
  return static_cast<Wide<T>>(as<T>(first)) * as<T>(second);
}
template <typename T, typename A, typename B, typename C>
TOWPATH_PTX T mad_lo(A a, B b, C c) {
  return add<T>(mul_lo<T>(a, b), as<T>(c));
}
template <typename T, typename A, typename B, typename C>
TOWPATH_PTX T mad_hi(A a, B b, C c) {
  return add<T>(mul_hi<T>(a, b), as<T>(c));
}
template <typename T, typename A, typename B, typename C>
TOWPATH_PTX T mad_hi_sat(A a, B b, C c) {
  return add_sat<T>(mul_hi<T>(a, b), as<T>(c));
}
template <typename T, typename A, typename B, typename C>
TOWPATH_PTX Wide<T> mad_wide(A a, B b, C c) {
  return add<Wide<T>>(mul_wide<T>(a, b), as<Wide<T>>(c));
}
// The low 24 bits of each operand, sign-extended if the type is signed.
template <typename T, typename A>
TOWPATH_PTX s64 low24(A a) {
  const s64 bits = as<u32>(a) & 0xffffffu;
  return std::is_signed_v<T> && (bits & 0x800000) != 0 ? bits - 0x1000000 : bits;
}
template <typename T, typename A, typename B>
TOWPATH_PTX T mul24_lo(A a, B b) {
  return static_cast<T>(static_cast<u32>(low24<T>(a) * low24<T>(b)));
}
template <typename T, typename A, typename B>
TOWPATH_PTX T mul24_hi(A a, B b) {
  return static_cast<T>(static_cast<u32>(low24<T>(a) * low24<T>(b) >> 16));
}
template <typename T, typename A, typename B, typename C>
TOWPATH_PTX T mad24_lo(A a, B b, C c) {
  return add<T>(mul24_lo<T>(a, b), as<T>(c));
}
template <typename T, typename A, typename B, typename C>
TOWPATH_PTX T mad24_hi(A a, B b, C c) {
  return add<T>(mul24_hi<T>(a, b), as<T>(c));
}
template <typename T, typename A, typename B, typename C>
TOWPATH_PTX T sad(A a, B b, C c) {
  const Wide<T> x = as<T>(a), y = as<T>(b);
  return add<T>(as<T>(c), wrap<T>(x < y ? y - x : x - y));
}
template <typename T, typename A>
TOWPATH_PTX T neg(A a) {
  return wrap<T>(-static_cast<Wide<T>>(as<T>(a)));
}
template <typename T, typename A>
TOWPATH_PTX T abs(A a) {
  const Wide<T> value = as<T>(a);
  return wrap<T>(value < 0 ? -value : value);
}

// --- carries: the condition code is a bit of the statement ---------------------------------------
template <typename T, typename A, typename B>
TOWPATH_PTX T add_cc(bool& carry, A a, B b) {
  using U = std::make_unsigned_t<T>;
  const Wide<U> sum = static_cast<Wide<U>>(as<U>(a)) + as<U>(b);
  carry = (sum >> kBits<T> & 1) != 0;
  return static_cast<T>(static_cast<U>(sum));
}
template <typename T, bool Sets, typename A, typename B>
TOWPATH_PTX T addc(bool& carry, A a, B b) {
  using U = std::make_unsigned_t<T>;
  const Wide<U> sum = static_cast<Wide<U>>(as<U>(a)) + as<U>(b) + (carry ? 1 : 0);
  if constexpr (Sets) carry = (sum >> kBits<T> & 1) != 0;
  return static_cast<T>(static_cast<U>(sum));
}
// The condition code holds the borrow.
template <typename T, typename A, typename B>
TOWPATH_PTX T sub_cc(bool& borrow, A a, B b) {
  using U = std::make_unsigned_t<T>;
  borrow = as<U>(a) < as<U>(b);
  return sub<T>(as<T>(a), as<T>(b));
}
template <typename T, bool Sets, typename A, typename B>
TOWPATH_PTX T subc(bool& borrow, A a, B b) {
  using U = std::make_unsigned_t<T>;
  const Wide<U> subtrahend = static_cast<Wide<U>>(as<U>(b)) + (borrow ? 1 : 0);
  const Wide<U> minuend = as<U>(a);
  if constexpr (Sets) borrow = minuend < subtrahend;
  return static_cast<T>(static_cast<U>(minuend - subtrahend));
}
template <typename T, bool IsHigh, typename A, typename B, typename C>
TOWPATH_PTX T mad_cc(bool& carry, A a, B b, C c) {
  const T product = IsHigh ? mul_hi<T>(a, b) : mul_lo<T>(a, b);
  return add_cc<T>(carry, static_cast<std::make_unsigned_t<T>>(product), c);
}
template <typename T, bool IsHigh, bool Sets, typename A, typename B, typename C>
TOWPATH_PTX T madc(bool& carry, A a, B b, C c) {
  const T product = IsHigh ? mul_hi<T>(a, b) : mul_lo<T>(a, b);
  return addc<T, Sets>(carry, static_cast<std::make_unsigned_t<T>>(product), c);
}

// --- bits ---------------------------------------------------------------------------------------
#define TOWPATH_PTX_BITWISE(name, expression)     \
  template <typename T, typename A, typename B>   \
  TOWPATH_PTX T name(A first, B second) {         \
    const T a = as<T>(first), b = as<T>(second);  \
    return static_cast<T>(expression);            \
  }
TOWPATH_PTX_BITWISE(bit_and, a & b)
TOWPATH_PTX_BITWISE(bit_or, a | b)
TOWPATH_PTX_BITWISE(bit_xor, a ^ b)
template <typename T, typename A>
TOWPATH_PTX T bit_not(A a) {
  if constexpr (std::is_same_v<T, bool>) {
    return !as<T>(a);
  } else {
    return static_cast<T>(~as<T>(a));
  }
}
template <typename T, typename A>
TOWPATH_PTX T cnot(A a) {
  return as<T>(a) == 0 ? 1 : 0;
}
// Shifts beyond the width leave nothing, or the sign.
template <typename T, typename A, typename B>
TOWPATH_PTX T shl(A a, B b) {
  const u32 count = as<u32>(b);
  return count >= kBits<T> ? T(0) : static_cast<T>(as<T>(a) << count);
}
template <typename T, typename A, typename B>
TOWPATH_PTX T shr(A a, B b) {
  const u32 count = as<u32>(b);
  const u32 most = static_cast<u32>(kBits<T>) - 1;
  if (!std::is_signed_v<T> && count > most) return T(0);
  return static_cast<T>(as<T>(a) >> (count > most ? most : count));
}
template <Direction To, Direction Mode, typename A, typename B, typename C>
TOWPATH_PTX u32 shf(A low, B high, C by) {
  const u32 asked = as<u32>(by);
  const u32 count = Mode == m_wrap ? asked % 32 : (asked < 32 ? asked : 32);
  const u64 both = static_cast<u64>(as<u32>(high)) << 32 | as<u32>(low);
  return To == m_l ? static_cast<u32>(both << count >> 32) : static_cast<u32>(both >> count);
}
template <typename T, typename A>
TOWPATH_PTX u32 popc(A a) {
  return static_cast<u32>(__builtin_popcountll(as<T>(a)));
}
template <typename T, typename A>
TOWPATH_PTX u32 clz(A a) {
  const T value = as<T>(a);
  return value == 0 ? kBits<T> : static_cast<u32>(__builtin_clzll(value)) - (64 - kBits<T>);
}
template <typename T, bool IsShift, typename A>
TOWPATH_PTX u32 bfind(A a) {
  using U = std::make_unsigned_t<T>;
  const T value = as<T>(a);
  const U bits = static_cast<U>(value < 0 ? static_cast<T>(~value) : value);
  if (bits == 0) return ~0u;
  const u32 zeros = clz<U>(bits);
  return IsShift ? zeros : kBits<T> - 1 - zeros;
}
template <typename T, typename A>
TOWPATH_PTX T brev(A a) {
  const T value = as<T>(a);
  T reversed = 0;
  for (int i = 0; i < kBits<T>; ++i) reversed = static_cast<T>(reversed << 1 | (value >> i & 1));
  return reversed;
}
template <typename T, typename A, typename B, typename C>
TOWPATH_PTX T bfe(A a, B b, C c) {
  using U = std::make_unsigned_t<T>;
  const u32 position = as<u32>(b) & 0xff, length = as<u32>(c) & 0xff;
  const u32 most = kBits<T> - 1;
  const U bits = static_cast<U>(as<T>(a));
  const u32 last = position + length - 1 < most ? position + length - 1 : most;
  const bool sign = std::is_signed_v<T> && length != 0 && (bits >> last & 1) != 0;
  U field = 0;
  for (u32 i = 0; i <= most; ++i) {
    const bool is_inside = i < length && position + i <= most;
    const bool bit = is_inside ? (bits >> (position + i) & 1) != 0 : sign;
    if (bit) field = static_cast<U>(field | U(1) << i);
  }
  return static_cast<T>(field);
}
template <typename T, typename A, typename B, typename C, typename D>
TOWPATH_PTX T bfi(A a, B b, C c, D d) {
  const u32 position = as<u32>(c) & 0xff, length = as<u32>(d) & 0xff;
  const T from = as<T>(a);
  T field = as<T>(b);
  for (u32 i = 0; i < length && position + i < kBits<T>; ++i) {
    const T bit = T(1) << (position + i);
    field = (from >> i & 1) != 0 ? field | bit : field & ~bit;
  }
  return field;
}
template <typename A, typename B, typename C, typename D>
TOWPATH_PTX u32 lop3(A first, B second, C third, D table) {
  const u32 a = as<u32>(first), b = as<u32>(second), c = as<u32>(third), lut = as<u32>(table);
  u32 result = 0;
  for (u32 i = 0; i < 8; ++i) {
    if ((lut >> i & 1) == 0) continue;
    result |= ((i & 4) != 0 ? a : ~a) & ((i & 2) != 0 ? b : ~b) & ((i & 1) != 0 ? c : ~c);
  }
  return result;
}
// The byte of eight that a mode selects for each byte of the result.
template <Permutation Mode>
TOWPATH_PTX u32 permuted_byte(u32 selector, u32 i) {
  const u32 first = selector & 3;
  switch (Mode) {
    case m_f4e: return first + i;
    case m_b4e: return (first - i) & 7;
    case m_rc8: return first;
    case m_ecl: return i > first ? i : first;
    case m_ecr: return i < first ? i : first;
    case m_rc16: return (first & 1) * 2 + i % 2;
    default: return selector >> 4 * i & 7;
  }
}
template <Permutation Mode, typename A, typename B, typename C>
TOWPATH_PTX u32 prmt(A a, B b, C c) {
  const u64 bytes = static_cast<u64>(as<u32>(b)) << 32 | as<u32>(a);
  const u32 selector = as<u32>(c);
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) {
    u32 byte = static_cast<u32>(bytes >> 8 * permuted_byte<Mode>(selector, i)) & 0xff;
    const bool copies_sign = Mode == m_index && (selector >> (4 * i + 3) & 1) != 0;
    if (copies_sign) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return result;
}
// The products of four bytes, added.
template <typename Left, typename Right, typename A, typename B, typename C>
TOWPATH_PTX u32 dp4a(A a, B b, C c) {
  using LeftByte = std::conditional_t<std::is_signed_v<Left>, s8, u8>;
  using RightByte = std::conditional_t<std::is_signed_v<Right>, s8, u8>;
  u32 sum = as<u32>(c);
  for (u32 i = 0; i < 4; ++i) {
    const s32 left = static_cast<LeftByte>(as<u32>(a) >> 8 * i);
    const s32 right = static_cast<RightByte>(as<u32>(b) >> 8 * i);
    sum += static_cast<u32>(left * right);
  }
  return sum;
}

// --- comparisons --------------------------------------------------------------------------------
template <Relation How, typename T>
TOWPATH_PTX bool holds(T a, T b) {
  switch (How) {
    case m_eq: return a == b;
    case m_ne: return a == a && b == b && a != b;
    case m_lt: case m_lo: return a < b;
    case m_le: case m_ls: return a <= b;
    case m_gt: case m_hi: return a > b;
    case m_ge: case m_hs: return a >= b;
    case m_equ: return !(a < b) && !(a > b);
    case m_neu: return a != b;
    case m_ltu: return !(a >= b);
    case m_leu: return !(a > b);
    case m_gtu: return !(a <= b);
    case m_geu: return !(a < b);
    case m_num: return a == a && b == b;
    case m_nan: return a != a || b != b;
  }
  return false;
}
template <Combination How>
TOWPATH_PTX bool combined(bool a, bool b) {
  switch (How) {
    case m_and: return a && b;
    case m_or: return a || b;
    case m_xor: return a != b;
    default: return a;
  }
}
// A type that C++ compares.
template <typename T>
TOWPATH_PTX auto comparable(T value) {
  return value;
}
float comparable(f16 value);
float comparable(bf16 value);

template <Relation How, Combination With, bool Flushes, typename T, typename A, typename B>
TOWPATH_PTX bool setp(bool& other, A a, B b, bool c = true);
template <typename T, typename A, typename B, typename P>
TOWPATH_PTX T selp(A a, B b, P p) {
  return p ? as<T>(a) : as<T>(b);
}
template <typename T, typename A, typename B, typename C>
TOWPATH_PTX T slct(A a, B b, C c) {
  return as<s32>(c) >= 0 ? as<T>(a) : as<T>(b);
}

// --- moves --------------------------------------------------------------------------------------
template <typename T, typename A>
TOWPATH_PTX T mov(A a) {
  return as<T>(a);
}
// A vector as one register, and back. Elements have equal widths.
template <typename T, typename... Parts>
TOWPATH_PTX T pack(Parts... parts) {
  constexpr unsigned kPart = kBits<T> / sizeof...(Parts);
  T whole = 0;
  unsigned at = 0;
  ((whole |= static_cast<T>(static_cast<T>(as<Bits<kPart / 8>>(parts)) << at), at += kPart), ...);
  return whole;
}
template <typename T, typename A>
TOWPATH_PTX T part(A whole, unsigned index) {
  return static_cast<T>(as<A>(whole) >> index * kBits<T>);
}

}  // namespace towpath_ptx
