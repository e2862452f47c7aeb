// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "towpath/machine/machine.hpp"

namespace towpath::machine {

// Link -> the link in whose place it comes when each device of `images` (first) takes the place of
// another (second): all other devices follow by the order of their links. Empty optional unless
// every device and link comes in the place of one that is like it, and no two in the same place.
std::optional<std::vector<int>> moved_links(const Machine& machine,
                                            std::span<const std::pair<int, int>> images);

}  // namespace towpath::machine
