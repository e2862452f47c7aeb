// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

// Two virtual GPUs, which all tests of a process share.
class VirtualGpus : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // The first call of CUDA reads the file.
    const std::string path = testing::TempDir() + "virtual_gpus-" + std::to_string(getpid());
    std::ofstream file(path);
    for (const char* bus : {"0000:18:00.0", "0000:2a:00.0"}) {
      file << "device bus=" << bus
           << " name=H100 major=9 minor=0 multiprocessors=132 memory_bytes=85899345920 "
              "shared_bytes=232448 multicast=1 fabric_handles=0 cluster=none clique=0\n";
    }
    file.close();
    setenv("TOWPATH_VIRTUAL_GPU_FILE", path.c_str(), 1);
    int count = 0;
    ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
    ASSERT_EQ(count, 2);
    cudaSetDevice(0);
    std::filesystem::remove(path);
  }
};

// Some words of device memory, all zero.
inline unsigned* device_words(std::size_t count) {
  void* address = nullptr;
  EXPECT_EQ(cudaMalloc(&address, count * sizeof(unsigned)), cudaSuccess);
  return static_cast<unsigned*>(address);
}

// Gives a kernel to a stream of the current device.
template <typename Kernel, typename... Arguments>
void launch(Kernel kernel, unsigned blocks, unsigned threads, cudaStream_t stream,
            Arguments... arguments) {
  void* addresses[] = {&arguments..., nullptr};
  ASSERT_EQ(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), blocks, threads, addresses, 0,
                             stream),
            cudaSuccess);
}

// A stream that does not wait for the default one.
class Stream {
 public:
  explicit Stream(int device) {
    cudaSetDevice(device);
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }  // NOLINT(google-explicit-constructor)

 private:
  cudaStream_t stream_ = nullptr;
};
