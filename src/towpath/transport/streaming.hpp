// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace towpath::transport {

// Copies past the caches to memory, where another processor finds the bytes sooner than in a cache
// far from its own. They are there when it returns: what is stored afterwards with release order
// announces them. What was not in a cache need not be read into one first, either. Where the
// processor has no such stores it is a plain copy.
void stream_copy(std::byte* to, const std::byte* from, std::uint64_t size_bytes);

}  // namespace towpath::transport
