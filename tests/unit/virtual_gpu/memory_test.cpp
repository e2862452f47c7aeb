// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/memory.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

namespace towpath::virtual_gpu {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

volatile int& word(std::uintptr_t address) { return *reinterpret_cast<volatile int*>(address); }

TEST(VirtualMemory, IsZeroAndTakesNoMemoryUntilItIsTouched) {
  Memory memory;
  const auto address = memory.allocate(kMiB << 20, MemoryKind::device, 3);  // 1 TiB
  ASSERT_TRUE(address);
  EXPECT_EQ(word(*address + (kMiB << 19)), 0);
  EXPECT_EQ(memory.find(*address + 5)->device, 3);
  EXPECT_TRUE(memory.free(*address));
  EXPECT_FALSE(memory.free(*address));
  EXPECT_FALSE(memory.find(*address));
}

TEST(VirtualMemory, ABlockShowsTheSameBytesWhereverItIsMapped) {
  Memory memory;
  const auto handle = memory.create(4 * kMiB, 0, 1, false);
  const auto one = memory.reserve(4 * kMiB, 2 * kMiB);
  const auto other = memory.reserve(2 * kMiB, 2 * kMiB);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(*one % (2 * kMiB), 0);
  ASSERT_TRUE(memory.map(*one, 4 * kMiB, 0, handle));
  ASSERT_TRUE(memory.map(*other, 2 * kMiB, 2 * kMiB, handle));
  ASSERT_TRUE(memory.set_access(*one, 4 * kMiB, true));
  ASSERT_TRUE(memory.set_access(*other, 2 * kMiB, true));
  word(*one + 2 * kMiB) = 7;
  EXPECT_EQ(word(*other), 7);
  EXPECT_EQ(memory.handle_at(*other), handle);
  memory.clear(*other, 2 * kMiB);
  EXPECT_EQ(word(*one + 2 * kMiB), 0);
}

TEST(VirtualMemory, ClearsPartsOfPagesAndNothingBeside) {
  Memory memory;
  const auto address = memory.allocate(5 * 4096, MemoryKind::device, 0);
  for (std::uintptr_t byte = 0; byte < 5 * 4096; byte += 4) word(*address + byte) = 9;
  memory.clear(*address + 4, 3 * 4096);
  EXPECT_EQ(word(*address), 9);
  for (std::uintptr_t byte = 4; byte < 4 + 3 * 4096; byte += 4) {
    ASSERT_EQ(word(*address + byte), 0) << byte;
  }
  EXPECT_EQ(word(*address + 4 + 3 * 4096), 9);
}

TEST(VirtualMemory, RefusesWhatDoesNotFit) {
  Memory memory;
  EXPECT_FALSE(memory.reserve(kMiB, 3));
  EXPECT_EQ(memory.create(5, 0, 0, false), 0);
  const auto handle = memory.create(kMiB, 0, 0, false);
  const auto range = memory.reserve(kMiB, 0);
  EXPECT_FALSE(memory.map(*range, 2 * kMiB, 0, handle));
  EXPECT_FALSE(memory.map(*range, kMiB, 4096, handle));
  EXPECT_FALSE(memory.map(*range, kMiB, 0, handle + 1));
  EXPECT_FALSE(memory.unmap(*range, kMiB));
  EXPECT_FALSE(memory.unreserve(*range, 4096));
  EXPECT_TRUE(memory.unreserve(*range, kMiB));
}

TEST(VirtualMemory, AnotherProcessOpensWhatIsShared) {
  Memory memory;
  const auto address = memory.allocate(kMiB, MemoryKind::device, 0);
  const auto shared = memory.share_allocation(*address);
  ASSERT_TRUE(shared);
  const pid_t child = fork();
  if (child == 0) {
    Memory own;
    const auto handle = own.open(*shared);
    const auto range = own.reserve(kMiB, 0);
    if (handle == 0 || !own.map(*range, kMiB, 0, handle)) _exit(1);
    own.set_access(*range, kMiB, true);
    word(*range + 8) = 42;
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(word(*address + 8), 42);
}

}  // namespace
}  // namespace towpath::virtual_gpu
