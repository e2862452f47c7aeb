// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "towpath/collective/execute/executor.hpp"
#include "towpath/collective/schedule/plan.hpp"

namespace towpath::bindings {

namespace nb = nanobind;

// Any contiguous array of bytes; the caller sees to type and size with Plan.input_bytes.
using ByteArray = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Throws std::invalid_argument when an array does not have the size that the plan needs.
inline collective::Buffers checked(const collective::Plan& plan, const ByteArray& input,
                                   const ByteArray& output) {
  const auto require = [](const char* which, std::uint64_t is, std::uint64_t needed) {
    if (is != needed) {
      throw std::invalid_argument(
          fmt::format("the {} array has {} bytes; the plan needs {}", which, is, needed));
    }
  };
  require("input", input.size(), plan.input_bytes());
  require("output", output.size(), plan.output_bytes());
  return {reinterpret_cast<const std::byte*>(input.data()),
          reinterpret_cast<std::byte*>(output.data())};
}

}  // namespace towpath::bindings
