// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fenv.h>
#include <math.h>

#include "towpath_ptx_arithmetic.h"

// Floating point. A NaN has the bits that a GPU gives it. Approximations are
// the exact functions, rounded once.

namespace towpath_ptx {

// --- conversions of 16-bit types ----------------------------------------------------------------
// Without _Float16, which older compilers do not have on every processor.
TOWPATH_PTX float widen(f16 value) {
  const u32 sign = (value.bits & 0x8000u) << 16, magnitude = (value.bits & 0x7fffu) << 13;
  const bool is_finite = magnitude < 0x7c00u << 13;
  const float wide = cast_bits<float>(magnitude) * 0x1p112f;
  return cast_bits<float>(sign | (is_finite ? cast_bits<u32>(wide) : 0x7f800000u | magnitude));
}
TOWPATH_PTX float widen(bf16 value) { return cast_bits<float>(static_cast<u32>(value.bits) << 16); }
TOWPATH_PTX float widen(float value) { return value; }
TOWPATH_PTX double widen(double value) { return value; }
TOWPATH_PTX float comparable(f16 value) { return widen(value); }
TOWPATH_PTX float comparable(bf16 value) { return widen(value); }

// To float so that a second rounding to fewer bits is right: an inexact result gets an odd last bit.
TOWPATH_PTX float to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (nearest != nearest || static_cast<double>(nearest) == value) return nearest;
  u32 bits = cast_bits<u32>(nearest);
  const bool is_beyond = fabs(static_cast<double>(nearest)) > fabs(value);
  if (is_beyond) --bits;
  return cast_bits<float>(bits | 1);
}

template <typename T>
TOWPATH_PTX T canonical(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return value != value ? cast_bits<float>(0x7fffffffu) : value;
  } else {
    return value;
  }
}

TOWPATH_PTX f16 narrow_to(f16, double value) {
  if (value != value) return {0x7fff};
  const u32 bits = cast_bits<u32>(to_odd(value));
  const u32 magnitude = bits & 0x7fffffffu;
  u32 narrowed;
  if (magnitude >= 0x47800000u) {
    narrowed = 0x7c00;
  } else if (magnitude < 0x38800000u) {
    // The sum has the unit of a subnormal.
    narrowed = cast_bits<u32>(cast_bits<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    narrowed = (magnitude + 0xfffu + (magnitude >> 13 & 1) - 0x38000000u) >> 13;
  }
  return {static_cast<u16>((bits >> 16 & 0x8000u) | narrowed)};
}
TOWPATH_PTX bf16 narrow_to(bf16, double value) {
  if (value != value) return {0x7fff};
  const u32 bits = cast_bits<u32>(to_odd(value));
  return {static_cast<u16>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
}
TOWPATH_PTX float narrow_to(float, double value) { return canonical(static_cast<float>(value)); }
TOWPATH_PTX double narrow_to(double, double value) { return value; }
template <typename T>
TOWPATH_PTX T narrow(double value) {
  return narrow_to(T{}, value);
}

// A subnormal float becomes a zero of its sign.
template <bool Flushes, typename T>
TOWPATH_PTX T flush(T value) {
  if constexpr (Flushes && std::is_same_v<T, float>) {
    const u32 bits = cast_bits<u32>(value);
    return (bits & 0x7f800000u) == 0 ? cast_bits<float>(bits & 0x80000000u) : value;
  } else if constexpr (Flushes && std::is_same_v<T, f16>) {
    return (value.bits & 0x7c00) == 0 ? f16{static_cast<u16>(value.bits & 0x8000)} : value;
  } else {
    return value;
  }
}
template <bool Saturates, typename T>
TOWPATH_PTX T clamp(T value) {
  if constexpr (Saturates) {
    const auto wide = widen(value);
    if (!(wide > 0)) return narrow<T>(0);
    return wide > 1 ? narrow<T>(1) : value;
  } else {
    return value;
  }
}

// --- rounding -----------------------------------------------------------------------------------
template <Rounding Mode, typename Function>
__attribute__((noinline, no_sanitize("thread"))) auto in_direction(Function function) {
  constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  fesetround(kModes[Mode]);
  const auto result = function();
  fesetround(FE_TONEAREST);
  return result;
}
// The compiler does not move volatile accesses out of a rounding mode.
template <Rounding Mode, typename T, typename Function>
TOWPATH_PTX T rounded(Function function, T a, T b) {
  if constexpr (Mode == m_rn) {
    return function(a, b);
  } else {
    return in_direction<Mode>([=]() -> T {
      volatile T x = a, y = b;
      volatile T result = function(static_cast<T>(x), static_cast<T>(y));
      return result;
    });
  }
}

template <typename T>
inline constexpr bool is_wide = std::is_same_v<T, float> || std::is_same_v<T, double>;

// Applies a function to the operands, or to both halves of pairs.
template <typename T, typename Function, typename... Registers>
TOWPATH_PTX T each(Function function, Registers... registers) {
  if constexpr (std::is_same_v<T, f16x2> || std::is_same_v<T, bf16x2>) {
    return {function(as<T>(registers).low...), function(as<T>(registers).high...)};
  } else {
    return function(as<T>(registers)...);
  }
}

// --- arithmetic ---------------------------------------------------------------------------------
#define TOWPATH_PTX_FLOAT_BINARY(name, operation)                                                 \
  template <typename T, Rounding Mode, bool Flushes, bool Saturates, typename A, typename B>      \
  TOWPATH_PTX T name(A first, B second) {                                                         \
    return each<T>(                                                                               \
        [](auto x, auto y) {                                                                      \
          using E = decltype(x);                                                                  \
          const auto a = flush<Flushes>(x), b = flush<Flushes>(y);                                \
          E result;                                                                               \
          if constexpr (is_wide<E>) {                                                             \
            result = canonical(rounded<Mode>([](E p, E q) { return p operation q; }, a, b));      \
          } else {                                                                                \
            result = narrow<E>(static_cast<double>(widen(a)) operation static_cast<double>(widen(b))); \
          }                                                                                       \
          return clamp<Saturates>(flush<Flushes>(result));                                        \
        },                                                                                        \
        first, second);                                                                           \
  }
TOWPATH_PTX_FLOAT_BINARY(fadd, +)
TOWPATH_PTX_FLOAT_BINARY(fsub, -)
TOWPATH_PTX_FLOAT_BINARY(fmul, *)
TOWPATH_PTX_FLOAT_BINARY(fdiv, /)

// A sum of doubles whose last bit tells that it is inexact.
TOWPATH_PTX double odd_sum(double a, double b) {
  const double sum = a + b;
  const double part_of_b = sum - a;
  const double error = (a - (sum - part_of_b)) + (b - part_of_b);
  if (!(error != 0) || !(fabs(sum) <= 1.7976931348623157e308)) return sum;
  u64 bits = cast_bits<u64>(sum);
  const bool is_beyond = (error < 0) == (sum > 0);
  if ((bits & 1) == 0) bits = is_beyond ? bits - 1 : bits + 1;
  return cast_bits<double>(bits);
}
template <typename T, Rounding Mode, bool Flushes, bool Saturates, bool IsRectified, typename A,
          typename B, typename C>
TOWPATH_PTX T fma(A first, B second, C third) {
  return each<T>(
      [](auto x, auto y, auto z) {
        using E = decltype(x);
        const auto a = flush<Flushes>(x), b = flush<Flushes>(y), c = flush<Flushes>(z);
        E result;
        if constexpr (std::is_same_v<E, float>) {
          result = canonical(rounded<Mode>([=](E p, E q) { return ::fmaf(p, q, c); }, a, b));
        } else if constexpr (std::is_same_v<E, double>) {
          result = rounded<Mode>([=](E p, E q) { return ::fma(p, q, c); }, a, b);
        } else {
          const double product = static_cast<double>(widen(a)) * static_cast<double>(widen(b));
          result = narrow<E>(odd_sum(product, widen(c)));
        }
        if (IsRectified && widen(result) < 0) result = narrow<E>(0);
        return clamp<Saturates>(flush<Flushes>(result));
      },
      first, second, third);
}

// A single NaN is ignored. A negative zero is less than a positive one.
template <typename E, bool IsMax, bool Flushes, bool PropagatesNan>
TOWPATH_PTX E extreme(E first, E second) {
  const E a = flush<Flushes>(first), b = flush<Flushes>(second);
  const auto x = widen(a), y = widen(b);
  const bool a_is_nan = x != x, b_is_nan = y != y;
  if ((a_is_nan && b_is_nan) || (PropagatesNan && (a_is_nan || b_is_nan))) {
    return narrow<E>(__builtin_nan(""));
  }
  if (a_is_nan) return b;
  if (b_is_nan) return a;
  const bool is_less = x < y || (x == y && __builtin_signbit(x) != 0);
  return is_less != IsMax ? a : b;
}
template <typename T, bool Flushes, bool PropagatesNan, typename A, typename B>
TOWPATH_PTX T fmin(A a, B b) {
  return each<T>(
      [](auto x, auto y) { return extreme<decltype(x), false, Flushes, PropagatesNan>(x, y); }, a, b);
}
template <typename T, bool Flushes, bool PropagatesNan, typename A, typename B>
TOWPATH_PTX T fmax(A a, B b) {
  return each<T>(
      [](auto x, auto y) { return extreme<decltype(x), true, Flushes, PropagatesNan>(x, y); }, a, b);
}

template <typename E>
TOWPATH_PTX E with_sign(E value, bool flips) {
  using U = Bits<sizeof(E)>;
  constexpr U kSign = static_cast<U>(U(1) << (8 * sizeof(E) - 1));
  const U bits = cast_bits<U>(value);
  return cast_bits<E>(static_cast<U>(flips ? bits ^ kSign : bits & ~kSign));
}
template <typename T, bool Flushes, typename A>
TOWPATH_PTX T fneg(A a) {
  return each<T>([](auto x) { return with_sign(flush<Flushes>(x), true); }, a);
}
template <typename T, bool Flushes, typename A>
TOWPATH_PTX T fabs_of(A a) {
  return each<T>([](auto x) { return with_sign(flush<Flushes>(x), false); }, a);
}
template <typename T, typename A, typename B>
TOWPATH_PTX T copysign_of(A sign, B magnitude) {
  return __builtin_signbit(as<T>(sign)) != 0 ? with_sign(with_sign(as<T>(magnitude), false), true)
                                             : with_sign(as<T>(magnitude), false);
}

#define TOWPATH_PTX_FUNCTION(name, expression)                                            \
  template <typename T, bool Flushes, typename A>                                         \
  TOWPATH_PTX T name(A first) {                                                           \
    return each<T>(                                                                       \
        [](auto value) {                                                                  \
          using E = decltype(value);                                                      \
          const double x = widen(flush<Flushes>(value));                                  \
          return flush<Flushes>(narrow<E>(expression));                                   \
        },                                                                                \
        first);                                                                           \
  }
TOWPATH_PTX_FUNCTION(ex2, ::exp2(x))
TOWPATH_PTX_FUNCTION(lg2, ::log2(x))
TOWPATH_PTX_FUNCTION(sin, ::sin(x))
TOWPATH_PTX_FUNCTION(cos, ::cos(x))
TOWPATH_PTX_FUNCTION(tanh, ::tanh(x))
TOWPATH_PTX_FUNCTION(rcp, 1.0 / x)
TOWPATH_PTX_FUNCTION(rsqrt, 1.0 / ::sqrt(x))
TOWPATH_PTX_FUNCTION(sqrt, ::sqrt(x))
template <typename T, Rounding Mode, bool Flushes, typename A>
TOWPATH_PTX T rcp_in(A a) {
  return fdiv<T, Mode, Flushes, false>(cast_bits<Bits<sizeof(T)>>(T(1)), a);
}
template <typename T, Rounding Mode, bool Flushes, typename A>
TOWPATH_PTX T sqrt_in(A a) {
  const T value = flush<Flushes>(as<T>(a));
  return flush<Flushes>(
      canonical(rounded<Mode>([](T x, T) { return static_cast<T>(std::sqrt(x)); }, value, value)));
}

// --- comparisons --------------------------------------------------------------------------------
template <Relation How, Combination With, bool Flushes, typename T, typename A, typename B>
TOWPATH_PTX bool setp(bool& other, A a, B b, bool c) {
  bool result;
  if constexpr (is_wide<T>) {
    result = holds<How>(flush<Flushes>(as<T>(a)), flush<Flushes>(as<T>(b)));
  } else {
    result = holds<How>(comparable(as<T>(a)), comparable(as<T>(b)));
  }
  other = combined<With>(!result, c);
  return combined<With>(result, c);
}
template <typename Result, Relation How, Combination With, bool Flushes, typename T, typename A,
          typename B>
TOWPATH_PTX Result set(A a, B b, bool c = true) {
  bool other;
  const bool result = setp<How, With, Flushes, T>(other, a, b, c);
  if constexpr (std::is_same_v<Result, float>) {
    return result ? 1.0f : 0.0f;
  } else {
    return result ? static_cast<Result>(~Result(0)) : Result(0);
  }
}
enum FloatClass { m_finite, m_infinite, m_number, m_notanumber, m_normal, m_subnormal };
template <FloatClass Class, typename T, typename A>
TOWPATH_PTX bool testp(A a) {
  const int found = std::fpclassify(as<T>(a));
  switch (Class) {
    case m_finite: return found != FP_INFINITE && found != FP_NAN;
    case m_infinite: return found == FP_INFINITE;
    case m_number: return found != FP_NAN;
    case m_notanumber: return found == FP_NAN;
    case m_normal: return found == FP_NORMAL || found == FP_ZERO;
    case m_subnormal: return found == FP_SUBNORMAL;
  }
  return false;
}

// --- conversions --------------------------------------------------------------------------------
template <typename T>
inline constexpr bool is_integer = std::is_integral_v<T>;

// Numbers beyond the range become its end.
template <typename To>
TOWPATH_PTX To integer_from(double value, bool is_wide_conversion) {
  if (value != value) {
    return is_wide_conversion ? static_cast<To>(std::make_unsigned_t<To>(1) << (kBits<To> - 1)) : To(0);
  }
  const double end = ::ldexp(1.0, kBits<To> - (std::is_signed_v<To> ? 1 : 0));
  if (value >= end) return kMost<To>;
  if (value < (std::is_signed_v<To> ? -end : 0.0)) return kLeast<To>;
  return static_cast<To>(value);
}
template <Rounding Mode>
TOWPATH_PTX double integral(double value) {
  switch (Mode) {
    case m_rzi: return ::trunc(value);
    case m_rmi: return ::floor(value);
    case m_rpi: return ::ceil(value);
    default: return ::nearbyint(value);
  }
}
// An integer as a double whose last bit tells that it is inexact.
template <typename From>
TOWPATH_PTX double odd_double(From value) {
  const auto high = static_cast<double>(value / 4096 * 4096);
  return odd_sum(high, static_cast<double>(value % 4096));
}
// Moves a rounded number to its neighbor if it lies on the wrong side of the exact one.
template <Rounding Mode, typename To>
TOWPATH_PTX To directed(To nearest, double exact) {
  const double found = widen(nearest);
  if (Mode == m_rn || !(found != exact) || exact != exact) return nearest;
  using U = Bits<sizeof(To)>;
  constexpr U kSign = static_cast<U>(U(1) << (8 * sizeof(To) - 1));
  const bool is_above = found > exact;
  const bool goes_down = Mode == m_rm || (Mode == m_rz && exact > 0);
  if (is_above != goes_down) return nearest;
  const U bits = cast_bits<U>(nearest);
  if ((bits & ~kSign) == 0) return cast_bits<To>(static_cast<U>(goes_down ? kSign | 1 : 1));
  const bool is_negative = (bits & kSign) != 0;
  return cast_bits<To>(static_cast<U>(is_negative == goes_down ? bits + 1 : bits - 1));
}
template <typename To, typename From, Rounding Mode, bool Flushes, bool Saturates, bool IsRectified,
          typename A>
TOWPATH_PTX To cvt(A register_value) {
  const From from = flush<Flushes>(as<From>(register_value));
  if constexpr (is_integer<To> && is_integer<From>) {
    if constexpr (Saturates) {
      if (from < 0 && kLeast<To> == 0) return 0;
      if (from < 0) return static_cast<s64>(from) < static_cast<s64>(kLeast<To>) ? kLeast<To> : static_cast<To>(from);
      return static_cast<u64>(from) > static_cast<u64>(kMost<To>) ? kMost<To> : static_cast<To>(from);
    } else {
      return static_cast<To>(from);
    }
  } else if constexpr (is_integer<To>) {
    return integer_from<To>(integral<Mode>(widen(from)), sizeof(From) == 8 || sizeof(To) == 8);
  } else if constexpr (is_integer<From>) {
    if constexpr (is_wide<To> && Mode == m_rn) {
      return static_cast<To>(from);
    } else if constexpr (is_wide<To>) {
      return in_direction<Mode>([=]() -> To {
        volatile From exact = from;
        volatile To result = static_cast<To>(exact);
        return result;
      });
    } else {
      return directed<Mode>(narrow<To>(odd_double(from)), odd_double(from));
    }
  } else {
    const double exact = widen(from);
    To result;
    if constexpr (Mode == m_rni || Mode == m_rzi || Mode == m_rmi || Mode == m_rpi) {
      result = narrow<To>(integral<Mode>(exact));
    } else {
      result = directed<Mode>(narrow<To>(exact), exact);
    }
    if (IsRectified && widen(result) < 0) result = narrow<To>(0);
    return clamp<Saturates>(flush<Flushes>(result));
  }
}
// Two floats as a pair. The first operand becomes the high half.
template <typename Pair, Rounding Mode, bool IsRectified, typename A, typename B>
TOWPATH_PTX Pair cvt_pair(A high, B low) {
  using Half = decltype(Pair::low);
  return {cvt<Half, float, Mode, false, false, IsRectified>(low),
          cvt<Half, float, Mode, false, false, IsRectified>(high)};
}
// To the 10 bits of a fraction that tensor cores use, ties away from zero.
template <typename A>
TOWPATH_PTX u32 cvt_tf32(A a) {
  const u32 bits = as<u32>(a);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu;
  return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
}

}  // namespace towpath_ptx
