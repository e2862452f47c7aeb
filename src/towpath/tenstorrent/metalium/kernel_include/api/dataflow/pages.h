// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads and writes of whole pages, included by dataflow_api.h.

template <typename AddrGen>
inline std::uint32_t towpath_page_bytes(const AddrGen& addrgen) {
  if constexpr (requires { addrgen.page_size; }) {
    return addrgen.page_size;
  } else if constexpr (requires { addrgen.log_base_2_of_page_size; }) {
    return 1u << addrgen.log_base_2_of_page_size;
  } else {
    return addrgen.get_aligned_page_size();
  }
}

template <typename AddrGen, bool enable_noc_tracing = true>
inline void noc_async_read_page(std::uint32_t id, const AddrGen& addrgen,
                                std::uint32_t dst_local_l1_addr, std::uint32_t offset = 0,
                                noc_index_t noc = noc_index) {
  noc_async_read(addrgen.get_noc_addr(id, offset, noc), dst_local_l1_addr,
                 towpath_page_bytes(addrgen), noc);
}
template <typename AddrGen, bool enable_noc_tracing = true, bool posted = false>
inline void noc_async_write_page(std::uint32_t id, const AddrGen& addrgen,
                                 std::uint32_t src_local_l1_addr, std::uint32_t size = 0,
                                 std::uint32_t offset = 0, noc_index_t noc = noc_index) {
  noc_async_write<NOC_MAX_BURST_SIZE + 1, enable_noc_tracing, posted>(
      src_local_l1_addr, addrgen.get_noc_addr(id, offset, noc),
      size == 0 ? towpath_page_bytes(addrgen) : size, noc);
}
template <typename AddrGen>
inline void noc_async_read_tile(std::uint32_t id, const AddrGen& addrgen,
                                std::uint32_t dst_local_l1_addr, std::uint32_t offset = 0,
                                noc_index_t noc = noc_index) {
  noc_async_read_page(id, addrgen, dst_local_l1_addr, offset, noc);
}
template <typename AddrGen>
inline void noc_async_write_tile(std::uint32_t id, const AddrGen& addrgen,
                                 std::uint32_t src_local_l1_addr, noc_index_t noc = noc_index) {
  noc_async_write_page(id, addrgen, src_local_l1_addr, 0, 0, noc);
}
