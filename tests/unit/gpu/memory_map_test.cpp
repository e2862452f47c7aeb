// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/memory_map.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "towpath/gpu/device_memory.hpp"
#include "towpath/gpu/shared_memory.hpp"

namespace towpath::gpu {
namespace {

constexpr abi::Site kMade{"file.cu", 3, "cudaMalloc"};
constexpr abi::Site kFreed{"file.cu", 9, "cudaFree"};

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

TEST(MemoryMap, FindsTheAllocationOfAnAddress) {
  MemoryMap map;
  map.add({1000, 24, MemoryKind::device, kMade, {}});
  map.add({2000, 8, MemoryKind::managed, kMade, {}});
  EXPECT_EQ(map.find(999), nullptr);
  EXPECT_EQ(map.find(1000)->size_bytes, 24);
  EXPECT_EQ(map.find(1023)->size_bytes, 24);
  EXPECT_EQ(map.find(1024), nullptr);
  EXPECT_EQ(map.find(2004)->kind, MemoryKind::managed);
}

TEST(MemoryMap, AnAccessIsInsideWithAllItsBytes) {
  const Allocation allocation{1000, 24, MemoryKind::device, kMade, {}};
  EXPECT_TRUE(allocation.holds(1000, 24));
  EXPECT_TRUE(allocation.holds(1020, 4));
  EXPECT_FALSE(allocation.holds(1021, 4));
  EXPECT_FALSE(allocation.holds(996, 4));
  EXPECT_FALSE(allocation.holds(1000, 25));
  EXPECT_FALSE(allocation.holds(~std::uintptr_t{0} - 3, 16));
}

TEST(MemoryMap, NamesTheNearestAllocationOrTheFreedOne) {
  const abi::Range all{0, 10000};
  MemoryMap map;
  map.add({1000, 24, MemoryKind::device, kMade, {}});
  map.add({2000, 8, MemoryKind::device, kMade, {}});
  EXPECT_EQ(map.nearest(1030, all)->begin, 1000);
  EXPECT_EQ(map.nearest(1990, all)->begin, 2000);
  EXPECT_EQ(map.nearest(900, all)->begin, 1000);
  EXPECT_EQ(map.nearest(900, {0, 950}), nullptr);
  EXPECT_TRUE(map.free(1000, kFreed));
  EXPECT_FALSE(map.free(1000, kFreed));
  EXPECT_EQ(map.nearest(1010, all)->freed.line, 9);
  EXPECT_EQ(map.nearest(1030, all)->begin, 2000);
}

TEST(MemoryMap, AnAllocationTakesThePlaceOfStaleOnes) {
  MemoryMap map;
  map.add({1000, 24, MemoryKind::of_kernel, kMade, {}});
  map.add({1040, 24, MemoryKind::of_kernel, kMade, {}});
  map.add({990, 60, MemoryKind::of_kernel, kMade, {}});
  EXPECT_EQ(map.find(1010)->begin, 990);
  EXPECT_EQ(map.find(1055), nullptr);
}

TEST(DeviceMemory, AllocationsLieApartAndFreedMemoryIsGivenAgainLate) {
  MemoryMap map;
  DeviceMemory memory(map);
  std::vector<std::uintptr_t> begins;
  for (int i = 0; i < 3; ++i) {
    begins.push_back(number_of(memory.allocate(4096, MemoryKind::device, kMade)));
  }
  EXPECT_GE(begins[0], memory.range().begin + 256);
  EXPECT_GE(begins[1], begins[0] + 4096 + 256);
  EXPECT_TRUE(memory.free(reinterpret_cast<void*>(begins[1]), kFreed));
  EXPECT_FALSE(memory.free(reinterpret_cast<void*>(begins[1]), kFreed));
  EXPECT_NE(number_of(memory.allocate(4096, MemoryKind::device, kMade)), begins[1]);
}

TEST(DeviceMemory, AllOfItCanBeAllocatedButTheGap) {
  MemoryMap map;
  DeviceMemory memory(map);
  const std::uint64_t most = DeviceMemory::kBytes - 512;
  EXPECT_EQ(memory.allocate(most + 256, MemoryKind::device, kMade), nullptr);
  void* const all = memory.allocate(most, MemoryKind::device, kMade);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(memory.allocate(1, MemoryKind::device, kMade), nullptr);
  EXPECT_TRUE(memory.free(all, kFreed));
  EXPECT_NE(memory.allocate(most, MemoryKind::device, kMade), nullptr);
}

TEST(SharedMemory, VariablesLieApart) {
  const char keys[3] = {};
  SharedMemory memory(100);
  const std::uintptr_t dynamic = number_of(memory.dynamic());
  const std::uintptr_t sums = number_of(memory.variable({&keys[0], "sums", 40, 8}));
  const std::uintptr_t means = number_of(memory.variable({&keys[1], "means", 6, 2}));
  EXPECT_EQ(number_of(memory.variable({&keys[0], "sums", 40, 8})), sums);
  EXPECT_EQ(memory.around(dynamic + 96, 4).size, 100);
  EXPECT_EQ(memory.around(dynamic + 97, 4).size, 0);
  EXPECT_EQ(memory.around(dynamic - 1, 1).size, 0);
  EXPECT_EQ(memory.around(sums + 32, 8).begin, sums);
  EXPECT_EQ(memory.around(sums + 40, 1).size, 0);
  EXPECT_EQ(memory.nearest(means + 7).name, "__shared__ means");
  EXPECT_TRUE(memory.range().contains(dynamic - 1));
}

TEST(SharedMemory, GapsDoNotCountAgainstTheLimit) {
  const std::vector<char> keys(SharedMemory::kStaticBytes / 4 + 1);
  SharedMemory memory(0);
  for (std::size_t i = 0; i + 1 < keys.size(); i += 16) {
    ASSERT_NE(memory.variable({&keys[i], "part", 64, 4}), nullptr) << i;
  }
  EXPECT_EQ(memory.variable({&keys.back(), "last", 4, 4}), nullptr);
}

}  // namespace
}  // namespace towpath::gpu
