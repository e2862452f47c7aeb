// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Multicast objects as a program makes them, and kernels that use their addresses.
#define TOWPATH_DEVICE_CODE
#include <cuda.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/memory.hpp"
#include "towpath_ptx.h"
#include "virtual_gpus.hpp"

namespace {

using towpath::virtual_gpu::kGranularityBytes;
using towpath::virtual_gpu::kStoppedStatus;
using namespace towpath_ptx;

void store_word(unsigned* address, unsigned value) {
  store<m_volatile, m_sys, m_global, u32>(Site{}, reinterpret_cast<std::uintptr_t>(address), 0,
                                          value);
}
void store_plainly(unsigned* address) { *address = 1; }
void add_to_all(unsigned* address, unsigned value) {
  multimem_store<m_relaxed, m_sys, m_add, u32>(Site{nullptr, 0, "multimem.red"},
                                               reinterpret_cast<std::uintptr_t>(address), 0, value);
}
void sum_of_all(unsigned* address, unsigned* result) {
  *result =
      multimem_load<m_relaxed, m_sys, m_add, u32, 1>(Site{nullptr, 0, "multimem.ld_reduce"},
                                                     reinterpret_cast<std::uintptr_t>(address), 0)
          .item[0];
}

const towpath_gpu::Registration kStoreWord("store_word", store_word);
const towpath_gpu::Registration kStorePlainly("store_plainly", store_plainly);
const towpath_gpu::Registration kAddToAll("add_to_all", add_to_all);
const towpath_gpu::Registration kSumOfAll("sum_of_all", sum_of_all);

CUmemGenericAllocationHandle new_object() {
  const CUmulticastObjectProp properties{
      .numDevices = 2, .size = kGranularityBytes, .handleTypes = 0, .flags = 0};
  CUmemGenericAllocationHandle object = 0;
  EXPECT_EQ(cuMulticastCreate(&object, &properties), CUDA_SUCCESS);
  return object;
}
CUmemGenericAllocationHandle new_block(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemGenericAllocationHandle block = 0;
  EXPECT_EQ(cuMemCreate(&block, kGranularityBytes, &properties, 0), CUDA_SUCCESS);
  return block;
}
CUdeviceptr reserved(std::size_t pieces) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAddressReserve(&address, pieces * kGranularityBytes, 0, 0, 0), CUDA_SUCCESS);
  return address;
}
unsigned* mapped(CUmemGenericAllocationHandle handle, CUdeviceptr address) {
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EXPECT_EQ(cuMemMap(address, kGranularityBytes, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemSetAccess(address, kGranularityBytes, &access, 1), CUDA_SUCCESS);
  return reinterpret_cast<unsigned*>(address);
}
void bind(CUmemGenericAllocationHandle object, CUmemGenericAllocationHandle block) {
  ASSERT_EQ(cuMulticastBindMem(object, 0, block, 0, kGranularityBytes, 0), CUDA_SUCCESS);
}

using VirtualMulticast = VirtualGpus;

TEST_F(VirtualMulticast, AStoreReachesAllMemoryThatIsBoundAtThatTime) {
  const auto object = new_object();
  unsigned* const all = mapped(object, reserved(1));
  std::array<unsigned*, 2> own{};
  for (int device : {0, 1}) {
    const auto block = new_block(device);
    own.at(static_cast<std::size_t>(device)) = mapped(block, reserved(1));
    bind(object, block);
    launch(store_word, 1, 1, nullptr, all, 7U);
    launch(add_to_all, 1, 1, nullptr, all, 1U);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  EXPECT_EQ(*own[0], 8U);
  EXPECT_EQ(*own[1], 8U);
  unsigned* const result = device_words(1);
  launch(sum_of_all, 1, 1, nullptr, all, result);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(*result, 16U);
  EXPECT_EQ(cuMulticastUnbind(object, 1, 0, kGranularityBytes), CUDA_SUCCESS);
  launch(store_word, 1, 1, nullptr, all, 9U);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(*own[0], 9U);
  EXPECT_EQ(*own[1], 8U);
}

TEST_F(VirtualMulticast, MemoryBetweenTwoObjectsIsOrdinaryMemory) {
  const CUdeviceptr first = reserved(3);
  std::array<unsigned*, 2> own{};
  for (std::size_t i : {0U, 1U}) {
    const auto object = new_object();
    const auto block = new_block(0);
    mapped(object, first + 2 * i * kGranularityBytes);
    own.at(i) = mapped(block, reserved(1));
    bind(object, block);
  }
  unsigned* const between = mapped(new_block(0), first + kGranularityBytes);
  launch(store_word, 1, 1, nullptr, between, 5U);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(*between, 5U);
  EXPECT_EQ(*own[0] + *own[1], 0U);
}

TEST_F(VirtualMulticast, PlacesOfUnboundMemoryAreTakenAgain) {
  const auto object = new_object();
  const auto block = new_block(0);
  for (int i = 0; i < 3000; ++i) {
    bind(object, block);
    ASSERT_EQ(cuMulticastUnbind(object, 0, 0, kGranularityBytes), CUDA_SUCCESS);
  }
}

TEST_F(VirtualMulticast, MemoryThatAProcessHasBoundEndsWithTheProcess) {
  const auto object = new_object();
  const auto block = new_block(0);
  unsigned* const own = mapped(block, reserved(1));
  bind(object, block);
  unsigned* const all = mapped(object, reserved(1));
  const pid_t other = fork();
  if (other == 0) {
    bind(object, new_block(1));
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  ASSERT_EQ(status, 0);
  launch(store_word, 1, 1, nullptr, all, 7U);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(*own, 7U);
}

TEST_F(VirtualMulticast, APlainStoreToMulticastMemoryIsASentence) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const auto object = new_object();
        bind(object, new_block(0));
        launch(store_plainly, 1, 1, nullptr, mapped(object, reserved(1)));
        cudaDeviceSynchronize();
      },
      testing::ExitedWithCode(kStoppedStatus),
      "stores to address .* no memory is mapped for plain accesses; use multimem for multicast");
}

TEST_F(VirtualMulticast, TooMuchBoundMemoryAndOrdinaryAddressesAreSentences) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const auto object = new_object();
        unsigned* const all = mapped(object, reserved(1));
        const auto block = new_block(0);
        for (int i = 0; i < 65; ++i) bind(object, block);
        launch(store_word, 1, 1, nullptr, all, 1U);
        cudaDeviceSynchronize();
      },
      testing::ExitedWithCode(kStoppedStatus), "more than 64 pieces of memory are bound");
  EXPECT_EXIT(
      {
        launch(add_to_all, 1, 1, nullptr, device_words(1), 1U);
        cudaDeviceSynchronize();
      },
      testing::ExitedWithCode(kStoppedStatus),
      "block 0 of add_to_all on GPU 0: an address that is not of multicast memory in multimem.red");
}

}  // namespace
