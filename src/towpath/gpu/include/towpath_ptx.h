// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "towpath_gpu_launch.h"

// PTX instructions as functions. The source step translates an asm statement into calls of them.
// A PTX register is a container of bits: an unsigned integer of its width, or bool for .pred. An
// instruction takes the low bits of its operands as its type. put() extends its result to the
// width of the destination, with the sign of a signed type.

namespace towpath_ptx {

using towpath_gpu::Site;

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;
using u128 = unsigned __int128;
using s8 = signed char;
using s16 = short;
using s32 = int;
using s64 = long long;
using b8 = u8;
using b16 = u16;
using b32 = u32;
using b64 = u64;
using b128 = u128;
using f32 = float;
using f64 = double;
using pred = bool;
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
struct f16x2 {
  f16 low, high;
};
struct bf16x2 {
  bf16 low, high;
};

// Modifiers.
enum Rounding { m_rn, m_rz, m_rm, m_rp, m_rni, m_rzi, m_rmi, m_rpi };
enum Order { m_weak, m_volatile, m_relaxed, m_acquire, m_release, m_acq_rel, m_mmio };
enum Reach { m_cta, m_cluster, m_gpu, m_sys };
enum Space { m_generic, m_global, m_shared, m_local, m_const };
enum Relation {
  m_eq, m_ne, m_lt, m_le, m_gt, m_ge, m_lo, m_ls, m_hi, m_hs,
  m_equ, m_neu, m_ltu, m_leu, m_gtu, m_geu, m_num, m_nan,
};
enum Combination { m_none, m_and, m_or, m_xor, m_add, m_min, m_max, m_inc, m_dec, m_exch, m_cas };
enum Direction { m_l, m_r, m_up, m_down, m_bfly, m_idx, m_clamp, m_wrap };
enum Permutation { m_index, m_f4e, m_b4e, m_rc8, m_ecl, m_ecr, m_rc16 };

// A decimal floating-point immediate.
struct Number {
  double value;
};

template <unsigned Bytes>
using Bits = std::conditional_t<
    Bytes == 1, u8,
    std::conditional_t<Bytes == 2, u16,
                       std::conditional_t<Bytes == 4, u32, std::conditional_t<Bytes == 8, u64, u128>>>>;

#define TOWPATH_PTX __attribute__((always_inline)) inline

template <typename T, typename From>
TOWPATH_PTX T cast_bits(From from) {
  static_assert(sizeof(T) == sizeof(From));
  return __builtin_bit_cast(T, from);
}

template <typename T, typename Register>
TOWPATH_PTX T as(Register value) {
  if constexpr (std::is_same_v<Register, Number>) {
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<T>(value.value);
    } else {
      return T{};
    }
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else {
    return cast_bits<T>(static_cast<Bits<sizeof(T)>>(value));
  }
}

template <typename Register, typename T>
TOWPATH_PTX void put(Register& to, T value) {
  if constexpr (std::is_integral_v<T> || std::is_same_v<T, u128>) {
    to = static_cast<Register>(value);
  } else {
    to = static_cast<Register>(cast_bits<Bits<sizeof(T)>>(value));
  }
}

// The container of an operand of the statement, and back.
template <typename Register, typename T>
TOWPATH_PTX Register take(const T& value) {
  using Plain = std::remove_cv_t<T>;
  if constexpr (std::is_pointer_v<Plain> || std::is_array_v<Plain>) {
    return static_cast<Register>(reinterpret_cast<std::uintptr_t>(&*value));
  } else if constexpr (std::is_integral_v<Plain> || std::is_enum_v<Plain> ||
                       std::is_same_v<Plain, u128> || std::is_same_v<Plain, __int128>) {
    return static_cast<Register>(value);
  } else if constexpr (sizeof(Plain) == sizeof(Register)) {
    return cast_bits<Register>(value);
  } else {
    static_assert(std::is_class_v<Plain> && sizeof(Plain) < sizeof(Register),
                  "the operand of a PTX statement is wider than its constraint");
    return cast_bits<Bits<sizeof(Plain)>>(value);
  }
}
template <typename T, typename Register>
TOWPATH_PTX void give(T& to, Register value) {
  using Plain = std::remove_cv_t<T>;
  if constexpr (std::is_pointer_v<Plain>) {
    to = reinterpret_cast<Plain>(static_cast<std::uintptr_t>(value));
  } else if constexpr (std::is_integral_v<Plain> || std::is_enum_v<Plain> ||
                       std::is_same_v<Plain, u128> || std::is_same_v<Plain, __int128>) {
    to = static_cast<Plain>(value);
  } else {
    to = cast_bits<Plain>(static_cast<Bits<sizeof(Plain)>>(value));
  }
}
// The same for constraints f and d.
template <typename Float, typename T>
TOWPATH_PTX Bits<sizeof(Float)> take_float(const T& value) {
  return cast_bits<Bits<sizeof(Float)>>(static_cast<Float>(value));
}
template <typename Float, typename T>
TOWPATH_PTX void give_float(T& to, Bits<sizeof(Float)> value) {
  to = cast_bits<Float>(value);
}

// An instruction that is not modeled ends the run when it is executed.
[[noreturn]] inline void refuse(const char* sentence, const Site& site) {
  towpath_gpu::table().fail(towpath_gpu::table().self, sentence, &site);
  __builtin_unreachable();
}

}  // namespace towpath_ptx

#include "towpath_ptx_arithmetic.h"
#include "towpath_ptx_float.h"
#include "towpath_ptx_memory.h"
#include "towpath_ptx_threads.h"
