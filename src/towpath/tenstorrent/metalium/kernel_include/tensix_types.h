// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Formats of the elements of a tile, with the hardware's numbers.
enum class DataFormat : std::uint8_t {
  Float32 = 0,
  Float16 = 1,
  Bfp8 = 2,
  Bfp4 = 3,
  Tf32 = 4,
  Float16_b = 5,
  Bfp8_b = 6,
  Bfp4_b = 7,
  Int32 = 8,
  UInt16 = 9,
  Lf8 = 10,
  Bfp2 = 11,
  Int8 = 14,
  Bfp2_b = 15,
  UInt32 = 24,
  UInt8 = 30,
  Invalid = 0xff,
};

namespace tt {
using ::DataFormat;
}

// Bytes of a tile: a block format has an exponent per 16 elements.
constexpr std::uint32_t towpath_tile_bytes(DataFormat format, std::uint32_t elements = 1024) {
  switch (format) {
    case DataFormat::Float32:
    case DataFormat::Tf32:
    case DataFormat::Int32:
    case DataFormat::UInt32: return elements * 4;
    case DataFormat::Float16:
    case DataFormat::Float16_b:
    case DataFormat::UInt16: return elements * 2;
    case DataFormat::UInt8:
    case DataFormat::Int8:
    case DataFormat::Lf8: return elements;
    case DataFormat::Bfp4:
    case DataFormat::Bfp4_b: return elements / 2 + elements / 16;
    case DataFormat::Bfp2:
    case DataFormat::Bfp2_b: return elements / 4 + elements / 16;
    default: return elements + elements / 16;
  }
}
