// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace towpath::transport {

// Copies to memory past the caches, from where another processor reads sooner than from a distant
// cache. The bytes have arrived on return: later stores with release order announce them. Target
// lines need not be read into a cache first. On processors without such stores it is a plain copy.
void stream_copy(std::byte* to, const std::byte* from, std::uint64_t size_bytes);

}  // namespace towpath::transport
