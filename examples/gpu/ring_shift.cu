// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Every PE gives its number to the next one.
//
//   towpath kernel run ring_shift.cu --machine dgx-h100 --pes 16
//   towpath kernel run ring_shift.cu --live --pes 4
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdio>

__global__ void shift(int* destination) {
  const int pe = nvshmem_my_pe();
  if (threadIdx.x == 0) nvshmem_int_p(destination, pe, (pe + 1) % nvshmem_n_pes());
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), pes = nvshmem_n_pes();
  int* const destination = static_cast<int*>(nvshmem_malloc(sizeof(int)));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  shift<<<1, 32, 0, stream>>>(destination);
  nvshmemx_barrier_all_on_stream(stream);
  int received = -1;
  cudaMemcpyAsync(&received, destination, sizeof(int), cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  printf("PE %d received %d\n", pe, received);
  nvshmem_free(destination);
  nvshmem_finalize();
  return received == (pe + pes - 1) % pes ? 0 : 1;
}
