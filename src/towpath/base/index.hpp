// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace towpath {

// A number that counts from zero, as an index of a container.
//
//   chips[index(link.from)]
//
// Wrong: a number that may be negative. Check it first.
constexpr std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }

}  // namespace towpath
