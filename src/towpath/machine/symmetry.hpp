// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "towpath/machine/machine.hpp"

namespace towpath::machine {

// Maps each link to its image if each device of `images` (first) is replaced by another (second).
// All other devices follow by the order of their links. Returns an empty optional unless every
// device and link maps to an equivalent one, and no two to the same.
std::optional<std::vector<int>> moved_links(const Machine& machine,
                                            std::span<const std::pair<int, int>> images);

}  // namespace towpath::machine
