// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "dataflow_api.h"

// Reads pages of a DRAM buffer, doubles every word in L1, writes them to another.
void kernel_main() {
  const uint32_t source = get_arg_val<uint32_t>(0);
  const uint32_t target = get_arg_val<uint32_t>(1);
  const uint32_t first = get_arg_val<uint32_t>(2);
  const uint32_t pages = get_arg_val<uint32_t>(3);
  constexpr auto source_args = TensorAccessorArgs<0>();
  constexpr auto target_args = TensorAccessorArgs<source_args.next_compile_time_args_offset()>();
  const auto from = TensorAccessor(source_args, source);
  const auto to = TensorAccessor(target_args, target);
  const uint32_t page = get_write_ptr(tt::CBIndex::c_0);
  volatile tt_l1_ptr uint32_t* words = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(page);
  for (uint32_t number = first; number < first + pages; ++number) {
    noc_async_read_page(number, from, page);
    noc_async_read_barrier();
    for (uint32_t i = 0; i < from.get_aligned_page_size() / sizeof(uint32_t); ++i) words[i] *= 2;
    noc_async_write_page(number, to, page);
    noc_async_write_barrier();
  }
}
