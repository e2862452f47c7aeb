// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/keyed_digest.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace towpath::os {
namespace {

std::string hex(const KeyedDigest& digest) {
  std::string text;
  for (const std::byte byte : digest) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

// RFC 4231, case 2.
TEST(KeyedDigest, IsHmacSha256) {
  const std::string message = "what do ya want for nothing?";
  EXPECT_EQ(hex(keyed_digest("Jefe", std::as_bytes(std::span(message)))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(KeyedDigest, IsSameComparesAllBytes) {
  KeyedDigest one{};
  KeyedDigest other{};
  EXPECT_TRUE(is_same(one, other));
  other.back() = std::byte{1};
  EXPECT_FALSE(is_same(one, other));
  EXPECT_FALSE(is_same(one, std::span(one).first(31)));
}

}  // namespace
}  // namespace towpath::os
