// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Each GPU fills an array with its number plus one. After an all-reduce all arrays have the sum.
// usage: sum [FLOATS]

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void fill(float* array, int size, float value) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) {
    array[i] = value;
  }
}

int main(int count, char** words) {
  const int size = count > 1 ? std::atoi(words[1]) : 100'000;
  int gpus = 0;
  cudaGetDeviceCount(&gpus);
  std::vector<ncclComm_t> communicators(gpus);
  if (ncclCommInitAll(communicators.data(), gpus, nullptr) != ncclSuccess) return 2;
  std::vector<cudaStream_t> streams(gpus);
  std::vector<float*> arrays(gpus);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    cudaSetDevice(gpu);
    cudaStreamCreate(&streams[gpu]);
    cudaMalloc(reinterpret_cast<void**>(&arrays[gpu]), size * sizeof(float));
    fill<<<32, 128, 0, streams[gpu]>>>(arrays[gpu], size, gpu + 1);
  }
  ncclGroupStart();
  for (int gpu = 0; gpu < gpus; ++gpu) {
    ncclAllReduce(arrays[gpu], arrays[gpu], size, ncclFloat, ncclSum, communicators[gpu],
                  streams[gpu]);
  }
  if (ncclGroupEnd() != ncclSuccess) return 2;
  int wrong = 0;
  std::vector<float> result(size);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    cudaSetDevice(gpu);
    cudaStreamSynchronize(streams[gpu]);
    cudaMemcpy(result.data(), arrays[gpu], size * sizeof(float), cudaMemcpyDeviceToHost);
    for (const float value : result) wrong += value != gpus * (gpus + 1) / 2;
  }
  std::printf("%d GPUs, %d floats: %d wrong\n", gpus, size, wrong);
  return wrong == 0 ? 0 : 1;
}
