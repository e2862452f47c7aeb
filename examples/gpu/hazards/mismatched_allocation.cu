// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Wrong: the PEs allocate different sizes, and their heaps differ from then on. Right: the same
// calls with the same sizes in the same order on every PE.
#include <nvshmem.h>

int main() {
  nvshmem_init();
  nvshmem_malloc(1024 + 512 * static_cast<size_t>(nvshmem_my_pe()));
  return 0;
}
