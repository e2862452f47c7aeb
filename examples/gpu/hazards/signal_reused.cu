// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Wrong: each call sets the same signal to 1, and each PE clears its own when it has seen it. A PE
// that is early sets it again before its peer has cleared it, and that signal is lost. Right: a
// higher value with each call and NVSHMEM_CMP_GE, or nvshmem_barrier_all() between the calls.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void exchange(float* destination, float* source, uint64_t* signal, int peer) {
  nvshmemx_putmem_signal_block(destination, source, 4096, signal, 1, NVSHMEM_SIGNAL_SET, peer);
  if (threadIdx.x == 0) {
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
    *signal = 0;
  }
}

int main() {
  nvshmem_init();
  float* const destination = static_cast<float*>(nvshmem_malloc(4096));
  float* const source = static_cast<float*>(nvshmem_calloc(1, 4096));
  uint64_t* const signal = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  for (int call = 0; call < 2; ++call) {
    exchange<<<1, 128>>>(destination, source, signal, nvshmem_my_pe() ^ 1);
  }
  nvshmem_barrier_all();
  return 0;
}
