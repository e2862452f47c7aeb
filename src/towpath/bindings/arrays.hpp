// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace towpath::bindings {

namespace nb = nanobind;

using Column = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

// An array that owns its values.
template <typename Array>
Array owned(std::vector<std::int64_t> values, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<std::int64_t>(std::move(values));
  nb::capsule owner(kept,
                    [](void* p) noexcept { delete static_cast<std::vector<std::int64_t>*>(p); });
  return Array(kept->data(), shape, owner);
}

inline Column column_of(std::vector<std::int64_t> values) {
  const std::size_t size = values.size();
  return owned<Column>(std::move(values), {size});
}

}  // namespace towpath::bindings
