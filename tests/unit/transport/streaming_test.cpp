// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/streaming.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace towpath::transport {
namespace {

// Lines begin and end anywhere, and nothing beside the copy is touched.
TEST(Streaming, CopiesAnyBytesToAnyPlace) {
  constexpr std::size_t kLine = 64;
  constexpr auto kUntouched = std::byte{0xee};
  std::vector<std::byte> from(8 * kLine), to(8 * kLine);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 37 % 251);
  for (std::size_t first = 0; first <= kLine; ++first) {
    for (const std::size_t size : {0U, 1U, 31U, 63U, 64U, 65U, 127U, 128U, 200U, 300U}) {
      const std::size_t source = first * 5 % 67;
      to.assign(to.size(), kUntouched);
      stream_copy(to.data() + first, from.data() + source, size);
      for (std::size_t i = 0; i < to.size(); ++i) {
        const bool is_inside = i >= first && i < first + size;
        ASSERT_EQ(to[i], is_inside ? from[source + i - first] : kUntouched)
            << size << " bytes to " << first << ", at " << i;
      }
    }
  }
}

}  // namespace
}  // namespace towpath::transport
