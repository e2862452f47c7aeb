// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

// Message authentication with a shared secret. Uses the system's libcrypto.

namespace towpath::os {

using KeyedDigest = std::array<std::byte, 32>;

// HMAC-SHA-256. Throws std::runtime_error if the system has no libcrypto.
KeyedDigest keyed_digest(std::string_view key, std::span<const std::byte> message);

// Constant time for digests of equal length.
bool is_same(std::span<const std::byte> one, std::span<const std::byte> other);

// Uses the system's random source.
void fill_random(std::span<std::byte> bytes);

}  // namespace towpath::os
