// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/compute/engine.h"
#include "api/dataflow/dataflow_api.h"

// Tiles between L1 and the engine: numbers in single precision, rounded to a tile's own format when
// they are packed. A tile in L1 is four faces of 16 x 16, row by row; what is not tiled has its
// rows one behind the other.

namespace towpath::compute {

#define TOWPATH_PLAIN __attribute__((noinline, no_sanitize("thread")))

[[noreturn]] inline void refuse(const char* sentence) {
  TOWPATH_CALL(refuse, sentence);
  __builtin_unreachable();
}

inline std::uint32_t element_bytes(DataFormat format) {
  switch (format) {
    case DataFormat::Float32: return 4;
    case DataFormat::Float16_b: return 2;
    case DataFormat::Bfp8_b: return 1;
    default: refuse("compute kernels have tiles of Float32, Float16_b and Bfp8_b");
  }
}

TOWPATH_PLAIN inline std::uint32_t index_in_faces(std::uint32_t row, std::uint32_t column) {
  const std::uint32_t face = row / kFaceSide * 2 + column / kFaceSide;
  return face * kFaceSide * kFaceSide + row % kFaceSide * kFaceSide + column % kFaceSide;
}

// Bytes of one tile as they are in L1.
struct Raw {
  alignas(8) std::uint8_t bytes[kElements * 4];
};

TOWPATH_PLAIN inline float number_of(const Raw& raw, DataFormat format, std::uint32_t i) {
  if (format == DataFormat::Float32) return reinterpret_cast<const float*>(raw.bytes)[i];
  if (format == DataFormat::Float16_b) {
    const std::uint32_t bits = reinterpret_cast<const std::uint16_t*>(raw.bytes)[i];
    return __builtin_bit_cast(float, bits << 16);
  }
  // An exponent for 16 elements, then a sign and seven bits of each with no hidden one.
  const std::uint32_t element = raw.bytes[kElements / 16 + i];
  const float magnitude = static_cast<float>(element & 0x7f) / 64;
  const float scaled = __builtin_ldexpf(magnitude, static_cast<int>(raw.bytes[i / 16]) - 127);
  return (element & 0x80) != 0 ? -scaled : scaled;
}

TOWPATH_PLAIN inline void put_block(Raw& raw, const float* numbers, std::uint32_t first) {
  int exponent = -127;
  for (std::uint32_t i = 0; i < 16; ++i) {
    if (numbers[i] != 0) exponent = std::max(exponent, __builtin_ilogbf(numbers[i]));
  }
  raw.bytes[first / 16] = static_cast<std::uint8_t>(exponent + 127);
  for (std::uint32_t i = 0; i < 16; ++i) {
    const float magnitude = __builtin_ldexpf(__builtin_fabsf(numbers[i]), 6 - exponent);
    const auto element = static_cast<std::uint32_t>(std::min(127.0f, __builtin_rintf(magnitude)));
    const std::uint32_t sign = numbers[i] < 0 ? 0x80 : 0;
    raw.bytes[kElements / 16 + first + i] = static_cast<std::uint8_t>(sign | element);
  }
}

// Numbers in the order of L1.
TOWPATH_PLAIN inline void put_numbers(Raw& raw, DataFormat format, const float* numbers,
                                      std::uint32_t count = kElements) {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (format == DataFormat::Float32) {
      reinterpret_cast<float*>(raw.bytes)[i] = numbers[i];
    } else if (format == DataFormat::Float16_b) {
      const auto bits = __builtin_bit_cast(std::uint32_t, numbers[i]);
      reinterpret_cast<std::uint16_t*>(raw.bytes)[i] =
          static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    } else if (i % 16 == 0) {
      put_block(raw, numbers + i, i);
    }
  }
}

inline void load_raw(std::uint32_t address, Raw& raw, std::uint32_t bytes) {
  TOWPATH_CALL(load, address, raw.bytes, bytes, nullptr);
}

inline std::uint32_t tile_address(std::uint32_t buffer, std::uint32_t tile) {
  element_bytes(get_dataformat(buffer));
  return get_read_ptr(buffer) + tile * get_tile_size(buffer);
}

// A tile at the front of a buffer, row by row.
TOWPATH_PLAIN inline void read_tile(std::uint32_t buffer, std::uint32_t tile, float* numbers) {
  static Raw raw;
  const DataFormat format = get_dataformat(buffer);
  load_raw(tile_address(buffer, tile), raw, get_tile_size(buffer));
  for (std::uint32_t row = 0; row < kSide; ++row) {
    for (std::uint32_t column = 0; column < kSide; ++column) {
      numbers[row * kSide + column] = number_of(raw, format, index_in_faces(row, column));
    }
  }
}

TOWPATH_PLAIN inline void write_tile(std::uint32_t buffer, std::uint32_t address,
                                     const float* numbers) {
  static Raw raw;
  static float in_faces[kElements];
  const DataFormat format = get_dataformat(buffer);
  element_bytes(format);
  for (std::uint32_t row = 0; row < kSide; ++row) {
    for (std::uint32_t column = 0; column < kSide; ++column) {
      in_faces[index_in_faces(row, column)] = numbers[row * kSide + column];
    }
  }
  put_numbers(raw, format, in_faces);
  TOWPATH_CALL(store, address, raw.bytes, get_tile_size(buffer), nullptr);
}

// A register that a call of the matrix engine writes.
inline float* destination(std::uint32_t index) {
  if (engine.state != Registers::acquired) {
    refuse("a compute call needs tile_regs_acquire before it, and tile_regs_commit after it");
  }
  if (index >= kRegistersMax) refuse("a compute call names a tile register above 15");
  engine.is_written[index] = true;
  return engine.registers[index];
}

inline void unpack_one(std::uint32_t buffer) {
  unpack(get_tile_size(buffer), kUnpackBytesPerCycle);
}
inline void unpack_two(std::uint32_t first, std::uint32_t second) {
  unpack(get_tile_size(first) + get_tile_size(second), kUnpackTwoBytesPerCycle);
}

}  // namespace towpath::compute
