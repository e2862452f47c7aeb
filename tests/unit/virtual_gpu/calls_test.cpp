// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// CUDA's functions as a program calls them.
#include <cuda.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/system.hpp"
#include "towpath_gpu_launch.h"
#include "virtual_gpus.hpp"

namespace towpath::virtual_gpu {
namespace {

void kernel_of_test() {}

int seen_argument = 0;
void kernel_with_argument(int value) { seen_argument = value; }
const towpath_gpu::Registration kWithArgument("kernel_with_argument", kernel_with_argument);

using VirtualCalls = VirtualGpus;

TEST_F(VirtualCalls, DevicesAreThoseOfTheDescription) {
  char bus[32];
  EXPECT_EQ(cudaDeviceGetPCIBusId(bus, sizeof bus, 1), cudaSuccess);
  EXPECT_STREQ(bus, "0000:2a:00.0");
  int device = -1;
  EXPECT_EQ(cudaDeviceGetByPCIBusId(&device, "0000:2A:00.0"), cudaSuccess);
  EXPECT_EQ(device, 1);
  int value = 0;
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0), cudaSuccess);
  EXPECT_EQ(value, 9);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(VirtualCalls, EachThreadHasItsDevice) {
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  int seen = -1;
  std::thread([&seen] { cudaGetDevice(&seen); }).join();
  EXPECT_EQ(seen, 0);
  cudaGetDevice(&seen);
  EXPECT_EQ(seen, 1);
  cudaSetDevice(0);
}

TEST_F(VirtualCalls, CopiesAreDoneWhenTheyAreGiven) {
  int* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 4096), cudaSuccess);
  const std::vector<int> sent = {1, 2, 3};
  std::vector<int> received(3);
  EXPECT_EQ(cudaMemcpyAsync(memory, sent.data(), 12, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(received.data(), memory, 12, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(received, sent);
  cudaPointerAttributes attributes;
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, memory + 1), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
}

TEST_F(VirtualCalls, AnExportedHandleOpensTheSameMemory) {
  const std::size_t size = kGranularityBytes;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  CUmemGenericAllocationHandle handle = 0, opened = 0;
  ASSERT_EQ(cuMemCreate(&handle, size, &properties, 0), CUDA_SUCCESS);
  int file = -1;
  ASSERT_EQ(
      cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      CUDA_SUCCESS);
  ASSERT_EQ(cuMemImportFromShareableHandle(
                &opened, reinterpret_cast<void*>(static_cast<std::uintptr_t>(file)),
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  CUdeviceptr one = 0, other = 0;
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  for (auto [address, own] : {std::pair{&one, handle}, std::pair{&other, opened}}) {
    ASSERT_EQ(cuMemAddressReserve(address, size, 0, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemMap(*address, size, 0, own, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemSetAccess(*address, size, &access, 1), CUDA_SUCCESS);
  }
  *reinterpret_cast<volatile int*>(one) = 5;
  EXPECT_EQ(*reinterpret_cast<volatile int*>(other), 5);
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  EXPECT_EQ(cuMemCreate(&handle, size, &properties, 0), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(VirtualCalls, ALaunchGoesToTheObserver) {
  Launch seen{};
  towpath::virtual_gpu::system().observe_launches([&seen](const Launch& launch) { seen = launch; });
  const auto kernel = reinterpret_cast<const void*>(&kernel_of_test);
  EXPECT_EQ(cudaLaunchKernel(kernel, {24, 1, 1}, {512, 1, 1}, nullptr, 64, nullptr), cudaSuccess);
  EXPECT_EQ(seen.function, kernel);
  EXPECT_EQ(seen.grid.x, 24);
  EXPECT_EQ(seen.block.x, 512);
  EXPECT_EQ(seen.shared_bytes, 64);
  towpath::virtual_gpu::system().observe_launches({});
}

TEST_F(VirtualCalls, ALaunchWithoutArgumentsIsAnErrorIfTheKernelHasSome) {
  const auto function = reinterpret_cast<CUfunction>(&kernel_with_argument);
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  int value = 5;
  void* arguments[] = {&value};
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(seen_argument, 5);
}

TEST_F(VirtualCalls, ACallWithoutAnAnswerEndsTheProcessWithItsName) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  void* function = nullptr;
  EXPECT_EXIT(cudaGetDriverEntryPoint("cuNotYet", &function, 0),
              testing::ExitedWithCode(kStoppedStatus), "virtual GPUs do not answer cuNotYet");
  EXPECT_EXIT(cudaGraphAddHostNode(nullptr, nullptr, nullptr, 0, nullptr),
              testing::ExitedWithCode(kStoppedStatus), "do not answer cudaGraphAddHostNode");
  int value = 0;
  EXPECT_EXIT(cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, 0),
              testing::ExitedWithCode(kStoppedStatus), "do not answer device attribute 13");
  EXPECT_EQ(cudaGetDriverEntryPoint("cuMemCreate", &function, 0), cudaSuccess);
  EXPECT_EQ(function, reinterpret_cast<void*>(&cuMemCreate));
}

}  // namespace
}  // namespace towpath::virtual_gpu
