// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/process.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <vector>

namespace towpath::os {
namespace {

TEST(Process, KnowsWhereItHasMemory) {
  const std::vector<std::byte> bytes(100000);
  EXPECT_TRUE(is_mapped(bytes.data(), bytes.size()));
  EXPECT_FALSE(is_mapped(nullptr, 1));
  EXPECT_FALSE(is_mapped(bytes.data(), ~std::uint64_t{0}));
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const mapped = ::mmap(nullptr, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  ::munmap(static_cast<std::byte*>(mapped) + page, page);
  EXPECT_TRUE(is_mapped(mapped, page));
  EXPECT_FALSE(is_mapped(mapped, page + 1));
  ::munmap(mapped, page);
}

}  // namespace
}  // namespace towpath::os
