// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Kernels on virtual GPUs. The source step makes of a kernel what is written out here.
#define TOWPATH_DEVICE_CODE
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath_ptx.h"
#include "virtual_gpus.hpp"

namespace {

using towpath::virtual_gpu::kStoppedStatus;
using towpath_ptx::Site;

unsigned load(const unsigned* address) {
  return towpath_ptx::load<towpath_ptx::m_volatile, towpath_ptx::m_sys, towpath_ptx::m_global,
                           towpath_ptx::u32, 1>(reinterpret_cast<std::uintptr_t>(address), 0,
                                                Site{})
      .item[0];
}
void store(unsigned* address, unsigned value) {
  towpath_ptx::store<towpath_ptx::m_volatile, towpath_ptx::m_sys, towpath_ptx::m_global,
                     towpath_ptx::u32>(Site{}, reinterpret_cast<std::uintptr_t>(address), 0, value);
}

// Adds one to each word that the other GPU has written, in turns.
void pass(unsigned* own, unsigned* peer, unsigned turns, unsigned first) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned turn = first; turn < turns; turn += 2) {
    while (load(own + i) < turn) {
    }
    store(peer + i, turn + 1);
  }
}
// The lanes of a warp vote until the word of the last one has come.
void vote(const unsigned* words, unsigned* results) {
  bool is_missing = false;
  do {
    is_missing = threadIdx.x == 31 && load(words + threadIdx.x) == 0;
  } while (__any_sync(~0U, is_missing));
  results[threadIdx.x] = load(words + threadIdx.x);
}
// Each half of the block has a barrier. The last threads end before.
void halves(unsigned* order, unsigned* next) {
  if (threadIdx.x >= 96) return;
  const unsigned half = threadIdx.x / 48;
  towpath_ptx::bar_sync(Site{}, 1 + half, 48U);
  order[threadIdx.x] = atomicAdd(next, 1U);
  __syncthreads();
  if (__syncthreads_count(threadIdx.x % 3 == 0) != 32) order[0] = ~0U;
}
// The threads of a block take turns until the last block has come.
void come_and_sleep(unsigned* count, unsigned blocks) {
  if (threadIdx.x == 0) atomicAdd(count, 1U);
  while (load(count) < blocks) __nanosleep(100);
}
void set(unsigned* word, unsigned value) { *word = value; }
// The same place of the dynamic shared memory, before and after a wait.
void find_dynamic_shared(unsigned* flag, unsigned* words) {
  *static_cast<unsigned*>(towpath_gpu::dynamic_shared()) = 5;
  words[0] = 1;
  while (load(flag) == 0) {
  }
  words[1] = *static_cast<unsigned*>(towpath_gpu::dynamic_shared());
}
// NOLINTNEXTLINE(misc-no-recursion)
int recurse(int depth) {
  return depth == 0 ? 0 : recurse(depth - 1) + *static_cast<volatile int*>(&depth);
}
void recurse_far(unsigned* word, int depth) { *word = static_cast<unsigned>(recurse(depth)); }
void fill_a_large_array(unsigned* word) {
  volatile unsigned char bytes[17 << 10];
  for (auto& each : bytes) each = 1;
  *word = bytes[5];
}
void store_to_nothing(unsigned* word) { *(word + 4) = 1; }

const towpath_gpu::Registration kPass("pass", pass);
const towpath_gpu::Registration kVote("vote", vote);
const towpath_gpu::Registration kHalves("halves", halves);
const towpath_gpu::Registration kComeAndSleep("come_and_sleep", come_and_sleep);
const towpath_gpu::Registration kSet("set", set);
const towpath_gpu::Registration kFindDynamicShared("find_dynamic_shared", find_dynamic_shared);
const towpath_gpu::Registration kRecurseFar("recurse_far", recurse_far);
const towpath_gpu::Registration kFillALargeArray("fill_a_large_array", fill_a_large_array);
const towpath_gpu::Registration kStoreToNothing("store_to_nothing", store_to_nothing);

using VirtualKernels = VirtualGpus;

TEST_F(VirtualKernels, KernelsOfTwoGpusWaitForEachOther) {
  unsigned* const first = device_words(256);
  unsigned* const second = device_words(256);
  const Stream streams[] = {Stream(0), Stream(1)};
  cudaSetDevice(0);
  launch(pass, 4, 64, streams[0], first, second, 20U, 0U);
  EXPECT_EQ(cudaStreamQuery(streams[0]), cudaErrorNotReady);
  cudaSetDevice(1);
  launch(pass, 4, 64, streams[1], second, first, 20U, 1U);
  EXPECT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(streams[1]), cudaSuccess);
  EXPECT_EQ(std::vector<unsigned>(first, first + 256), std::vector<unsigned>(256, 20));
  EXPECT_EQ(std::vector<unsigned>(second, second + 256), std::vector<unsigned>(256, 19));
}

TEST_F(VirtualKernels, BlocksThatTakeTurnsWaitForOnesThatStartLater) {
  unsigned* const count = device_words(1);
  launch(come_and_sleep, 40, 32, nullptr, count, 40U);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(*count, 40U);
}

TEST_F(VirtualKernels, AWarpThatVotesInALoopSeesWhatTheHostWrites) {
  unsigned* const given = device_words(32);
  unsigned* const results = device_words(32);
  const Stream stream(0);
  launch(vote, 1, 32, stream, const_cast<const unsigned*>(given), results);
  for (unsigned i = 0; i < 32; ++i) reinterpret_cast<volatile unsigned*>(given)[i] = i + 1;
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(results[0], 1U);
  EXPECT_EQ(results[31], 32U);
}

TEST_F(VirtualKernels, ThreadsContinueInTheOrderOfTheirNumbers) {
  unsigned* const order = device_words(96);
  unsigned* const next = device_words(1);
  launch(halves, 1, 128, nullptr, order, next);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  std::vector<unsigned> expected(96);
  std::iota(expected.begin(), expected.end(), 0U);
  EXPECT_EQ(std::vector<unsigned>(order, order + 96), expected);
}

TEST_F(VirtualKernels, AStreamWaitsForAnEventOfAnother) {
  unsigned* const word = device_words(1);
  unsigned* const flag = device_words(1);
  const Stream first(0);
  const Stream second(0);
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  launch(pass, 1, 1, first, flag, word, 2U, 1U);  // until the host sets the flag
  EXPECT_EQ(cudaEventRecord(event, first), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
  launch(set, 1, 1, second, word, 7U);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
  *reinterpret_cast<volatile unsigned*>(flag) = 1;
  EXPECT_EQ(cudaStreamSynchronize(second), cudaSuccess);
  EXPECT_EQ(*word, 7U);
  cudaEventDestroy(event);
}

TEST_F(VirtualKernels, WorkOfTheDefaultStreamWaitsForBlockingStreams) {
  unsigned* const word = device_words(1);
  unsigned* const flag = device_words(1);
  cudaSetDevice(0);
  cudaStream_t blocking = nullptr;
  cudaStreamCreate(&blocking);
  launch(pass, 1, 1, blocking, flag, word, 2U, 1U);
  launch(set, 1, 1, nullptr, word, 9U);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  *reinterpret_cast<volatile unsigned*>(flag) = 1;
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(*word, 9U);
  cudaStreamDestroy(blocking);
}

TEST_F(VirtualKernels, AHostFunctionRunsInItsTurn) {
  static std::atomic<unsigned> seen;
  unsigned* const word = device_words(1);
  const Stream stream(0);
  launch(set, 1, 1, stream, word, 5U);
  cudaLaunchHostFunc(stream, [](void* of) { seen = *static_cast<unsigned*>(of); }, word);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(seen, 5U);
}

TEST_F(VirtualKernels, AConfigurationWithoutThreadsIsAnError) {
  unsigned value = 0;
  unsigned* word = device_words(1);
  void* arguments[] = {&word, &value};
  const auto* const kernel = reinterpret_cast<const void*>(&set);
  EXPECT_EQ(cudaLaunchKernel(kernel, 1, 0, arguments, 0, nullptr), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaLaunchKernel(kernel, 1, 1025, arguments, 0, nullptr),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
}

TEST_F(VirtualKernels, AGridBeyondTheLimitsOfCudaIsAnError) {
  unsigned value = 0;
  unsigned* word = device_words(1);
  void* arguments[] = {&word, &value};
  const auto* const kernel = reinterpret_cast<const void*>(&set);
  for (const dim3 grid : {dim3(65536, 65536, 1), dim3(1, 1, 65536), dim3(0x80000000U, 1, 1)}) {
    EXPECT_EQ(cudaLaunchKernel(kernel, grid, 1, arguments, 0, nullptr),
              cudaErrorInvalidConfiguration);
  }
  EXPECT_EQ(cudaLaunchKernel(kernel, 1, dim3(1, 1, 65), arguments, 0, nullptr),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaLaunchKernel(kernel, dim3(3, 50000, 1), 1, arguments, 0, nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(VirtualKernels, ALibraryThatIsLoadedMeanwhileDoesNotMoveSharedMemory) {
  unsigned* const flag = device_words(1);
  unsigned* const seen = device_words(2);
  const Stream stream(0);
  void* arguments[] = {const_cast<unsigned**>(&flag), const_cast<unsigned**>(&seen)};
  ASSERT_EQ(cudaLaunchKernel(reinterpret_cast<const void*>(&find_dynamic_shared), 1, 1, arguments,
                             64, stream),
            cudaSuccess);
  while (reinterpret_cast<volatile unsigned*>(seen)[0] == 0) std::this_thread::yield();
  // As the initialization of a library with __shared__ variables does.
  towpath_virtual_gpu_shared_offset(nullptr, 4096, 16);
  *reinterpret_cast<volatile unsigned*>(flag) = 1;
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(seen[1], 5U);
}

TEST_F(VirtualKernels, FreedMemoryWaitsForTheKernelsOfItsGpu) {
  unsigned* const flag = device_words(1);
  cudaSetDevice(1);
  unsigned* const word = device_words(1);
  const Stream stream(1);
  launch(pass, 1, 1, stream, flag, word, 2U, 1U);  // until the host sets the flag
  cudaSetDevice(0);
  std::thread host([=] { *reinterpret_cast<volatile unsigned*>(flag) = 1; });
  EXPECT_EQ(cudaFree(word), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  host.join();
}

TEST_F(VirtualKernels, AFullStackAndAnAddressWithoutMemoryAreSentences) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto ended = testing::ExitedWithCode(kStoppedStatus);
  const char* const full = "of .* on GPU 0 uses more than the 16 KiB of its stack";
  EXPECT_EXIT(
      (launch(recurse_far, 2, 64, nullptr, device_words(1), 1 << 30), cudaDeviceSynchronize()),
      ended, full);
  EXPECT_EXIT(
      (launch(fill_a_large_array, 1, 64, nullptr, device_words(1)), cudaDeviceSynchronize()), ended,
      full);
  EXPECT_EXIT((launch(store_to_nothing, 1, 1, nullptr, static_cast<unsigned*>(nullptr)),
               cudaDeviceSynchronize()),
              ended,
              "thread 0 of block 0 of store_to_nothing on GPU 0 stores to address 0x10, where no "
              "memory is mapped");
  static const unsigned constants[8] = {1, 2, 3};
  EXPECT_EXIT((launch(store_to_nothing, 1, 1, nullptr, const_cast<unsigned*>(constants)),
               cudaDeviceSynchronize()),
              ended, "store_to_nothing on GPU 0 stores to address 0x.*, where it has no access");
  EXPECT_EXIT((launch(store_to_nothing, 1, 1, nullptr,
                      reinterpret_cast<unsigned*>(std::uintptr_t{1} << 63)),
               cudaDeviceSynchronize()),
              ended, "store_to_nothing on GPU 0 uses an address that no memory can have");
}

TEST_F(VirtualKernels, ASettingThatIsNotANumberIsASentence) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  setenv("TOWPATH_VIRTUAL_GPU_WORKERS", "two", 1);
  EXPECT_EXIT((launch(set, 1, 1, nullptr, device_words(1), 1U), cudaDeviceSynchronize()),
              testing::ExitedWithCode(kStoppedStatus),
              "TOWPATH_VIRTUAL_GPU_WORKERS is 'two'; it must be a number from 1 to 32");
  unsetenv("TOWPATH_VIRTUAL_GPU_WORKERS");
}

}  // namespace
