// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

// Combining two operands element by element, with the vector unit of the host.

namespace towpath::transport {

enum class DataType : std::uint8_t {
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64
};
inline constexpr int kDataTypes = 10;
// avg is a sum. The executor divides it by the number of ranks at the end.
enum class ReductionOperation : std::uint8_t { sum, prod, min, max, avg };
inline constexpr int kReductionOperations = 5;

struct Reduction {
  DataType type = DataType::float32;
  ReductionOperation operation = ReductionOperation::sum;
};

std::size_t size_of(DataType type);
std::string_view name_of(DataType type);                 // "float32"
std::string_view name_of(ReductionOperation operation);  // "sum"
std::optional<DataType> data_type_from(std::string_view name);
std::optional<ReductionOperation> reduction_operation_from(std::string_view name);

// result[i] = a[i] op b[i]. `result` may be `a` or `b`. Other overlaps are not allowed. size_bytes
// is a multiple of the element size. The pointers need no alignment. 16-bit floats are combined in
// float32 and rounded to nearest even. Integers wrap around. The min or max of a NaN is a NaN. avg
// combines as sum. Throws std::invalid_argument if size_bytes is not a whole number of elements.
void reduce(std::byte* result, const std::byte* a, const std::byte* b, std::uint64_t size_bytes,
            Reduction reduction);

// data[i] = data[i] / divisor, for a positive divisor. Integers truncate toward zero.
void divide(std::byte* data, std::uint64_t size_bytes, DataType type, std::int64_t divisor);

}  // namespace towpath::transport
