// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>

#include "towpath/collective/execute/executor.hpp"
#include "towpath/collective/schedule/plan.hpp"
#include "towpath/transport/reduction.hpp"

namespace towpath::bindings {

namespace nb = nanobind;

// Any contiguous array of bytes. The caller ensures its type and its size (Plan.input_bytes).
using ByteArray = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Throws std::invalid_argument if a buffer does not have the size in the plan.
inline collective::Buffers checked(const collective::Plan& plan, std::span<const std::byte> input,
                                   std::span<std::byte> output) {
  const auto require = [](const char* which, std::uint64_t is, std::uint64_t needed) {
    if (is != needed) {
      throw std::invalid_argument(
          fmt::format("the {} array has {} bytes; the plan needs {}", which, is, needed));
    }
  };
  require("input", input.size(), plan.input_bytes());
  require("output", output.size(), plan.output_bytes());
  return {input.data(), output.data()};
}

inline std::span<std::byte> bytes_of(const ByteArray& array) {
  return {reinterpret_cast<std::byte*>(array.data()), array.size()};
}

inline collective::Buffers checked(const collective::Plan& plan, const ByteArray& input,
                                   const ByteArray& output) {
  return checked(plan, bytes_of(input), bytes_of(output));
}

// Throws std::invalid_argument for an unknown name.
inline transport::Reduction reduction_from(std::string_view type, std::string_view operation) {
  const auto data_type = transport::data_type_from(type);
  if (!data_type) throw std::invalid_argument(fmt::format("'{}' is not a data type", type));
  const auto reduction = transport::reduction_operation_from(operation);
  if (!reduction) throw std::invalid_argument(fmt::format("'{}' is not a reduction", operation));
  return {*data_type, *reduction};
}

}  // namespace towpath::bindings
