// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "towpath_prelude.h"

// Printing from a kernel. It takes no time; the host sees each piece with the core's name.

struct ENDL {};
struct F32 {
  float value;
  explicit F32(float number) : value(number) {}
};
struct BF16 {
  std::uint16_t value;
  explicit BF16(std::uint16_t bits) : value(bits) {}
};
struct U32 {
  std::uint32_t value;
  explicit U32(std::uint32_t number) : value(number) {}
};
struct SETW {
  int width;
  explicit SETW(int columns, bool = true) : width(columns) {}
};
struct SETPRECISION {
  int digits;
  explicit SETPRECISION(int number) : digits(number) {}
};
struct HEX {};
struct DEC {};
struct OCT {};
struct FIXED {};
struct DEFAULTFLOAT {};

class DebugPrinter {
 public:
  template <typename Value>
  DebugPrinter& operator<<(const Value& value) {
    char text[64];
    if constexpr (std::is_same_v<Value, ENDL>) {
      TOWPATH_CALL(print, "\n");
    } else if constexpr (std::is_same_v<Value, HEX>) {
      base_ = 16;
    } else if constexpr (std::is_same_v<Value, DEC>) {
      base_ = 10;
    } else if constexpr (std::is_same_v<Value, OCT>) {
      base_ = 8;
    } else if constexpr (std::is_same_v<Value, SETW>) {
      width_ = value.width;
    } else if constexpr (std::is_same_v<Value, SETPRECISION>) {
      digits_ = value.digits;
    } else if constexpr (std::is_same_v<Value, FIXED> || std::is_same_v<Value, DEFAULTFLOAT>) {
      is_fixed_ = std::is_same_v<Value, FIXED>;
    } else if constexpr (std::is_same_v<Value, BF16>) {
      return *this << F32(__builtin_bit_cast(float, std::uint32_t{value.value} << 16));
    } else if constexpr (std::is_same_v<Value, F32>) {
      return *this << value.value;
    } else if constexpr (std::is_same_v<Value, U32>) {
      return *this << value.value;
    } else if constexpr (std::is_floating_point_v<Value>) {
      TOWPATH_CALL(write_real, text, sizeof(text), form(), static_cast<double>(value));
      print(text);
    } else if constexpr (std::is_same_v<Value, char>) {
      text[0] = value;
      text[1] = '\0';
      print(text);
    } else if constexpr (std::is_integral_v<Value> || std::is_enum_v<Value>) {
      TOWPATH_CALL(write_whole, text, sizeof(text), form(), static_cast<std::int64_t>(value));
      print(text);
    } else if constexpr (std::is_convertible_v<Value, const char*>) {
      print(value);
    } else if constexpr (std::is_pointer_v<Value>) {
      text[0] = '0';
      text[1] = 'x';
      TOWPATH_CALL(write_whole, text + 2, sizeof(text) - 2, TowpathForm{.base = 16},
                   static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(value)));
      print(text);
    } else {
      static_assert(std::is_void_v<Value>, "DPRINT cannot print a value of this type");
    }
    return *this;
  }

 private:
  TowpathForm form() const {
    return {.width = width_, .digits = digits_, .base = base_, .is_fixed = is_fixed_ ? 1 : 0};
  }
  void print(const char* text) {
    TOWPATH_CALL(print, text);
    width_ = 0;
  }
  int base_ = 10;
  int width_ = 0;
  int digits_ = 6;
  bool is_fixed_ = false;
};

#define DPRINT DebugPrinter()
#define DPRINT_DATA0(...) \
  if constexpr (TOWPATH_IS_DATA_MOVEMENT_0) { __VA_ARGS__; }
#define DPRINT_DATA1(...) \
  if constexpr (TOWPATH_IS_DATA_MOVEMENT_1) { __VA_ARGS__; }
// The three compute processors of a core run as one.
#define DPRINT_UNPACK(...) __VA_ARGS__
#define DPRINT_MATH(...) __VA_ARGS__
#define DPRINT_PACK(...) __VA_ARGS__
