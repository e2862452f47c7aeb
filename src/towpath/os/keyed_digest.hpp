// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

// Proof that somebody knows a secret, without saying it. From the system's libcrypto.

namespace towpath::os {

using KeyedDigest = std::array<std::byte, 32>;

// HMAC-SHA-256. Throws std::runtime_error, one sentence, where the system has no libcrypto.
KeyedDigest keyed_digest(std::string_view key, std::span<const std::byte> message);

// Takes the same time for all digests of a length.
bool is_same(std::span<const std::byte> one, std::span<const std::byte> other);

// From the system's source of randomness.
void fill_random(std::span<std::byte> bytes);

}  // namespace towpath::os
