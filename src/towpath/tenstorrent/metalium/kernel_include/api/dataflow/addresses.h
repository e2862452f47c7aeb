// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "api/alignment.h"
#include "noc_parameters.h"
#include "tensix_types.h"
#include "towpath_prelude.h"

// NoC addresses, and where the pages of interleaved buffers are: page i is in bank i % banks.

extern std::uint16_t dram_bank_to_noc_xy[2][NUM_DRAM_BANKS];
extern std::int32_t bank_to_dram_offset[NUM_DRAM_BANKS];
extern std::uint16_t l1_bank_to_noc_xy[2][NUM_L1_BANKS];
extern std::int32_t bank_to_l1_offset[NUM_L1_BANKS];

inline std::uint64_t get_noc_addr(std::uint32_t noc_x, std::uint32_t noc_y, std::uint32_t addr,
                                  std::uint8_t noc = noc_index) {
  return NOC_XY_ADDR(noc_x, noc_y, addr);
}
inline std::uint64_t get_noc_addr(std::uint32_t addr, std::uint8_t noc = noc_index) {
  return NOC_XY_ADDR(my_x[noc], my_y[noc], addr);
}
inline std::uint64_t get_noc_addr_helper(std::uint32_t noc_xy, std::uint32_t addr) {
  return (static_cast<std::uint64_t>(noc_xy) << NOC_ADDR_COORD_SHIFT) | addr;
}
inline std::uint64_t get_noc_multicast_addr(std::uint32_t noc_x_start, std::uint32_t noc_y_start,
                                            std::uint32_t noc_x_end, std::uint32_t noc_y_end,
                                            std::uint32_t addr, std::uint8_t noc = noc_index) {
  return NOC_MULTICAST_ADDR(noc_x_start, noc_y_start, noc_x_end, noc_y_end, addr);
}

#ifdef TOWPATH_HOST_ADDRESS
// A page of the host's memory, by its place in the chip's window to the host.
inline std::uint64_t get_system_memory_noc_addr(std::uint32_t id, std::uint32_t page_size,
                                                std::uint32_t base_addr, std::uint32_t offset = 0,
                                                std::uint8_t noc = noc_index) {
  return NOC_XY_PCIE_ENCODING(PCIE_NOC_X, PCIE_NOC_Y) | (base_addr + page_size * id + offset);
}
#endif

namespace interleaved_addr_gen {

template <bool DRAM>
constexpr std::uint32_t banks() {
  return DRAM ? NUM_DRAM_BANKS : NUM_L1_BANKS;
}
template <bool DRAM>
constexpr std::uint32_t get_bank_offset_index(std::uint32_t id) {
  return id / banks<DRAM>();
}
template <bool DRAM>
constexpr std::uint32_t get_bank_index(std::uint32_t id, std::uint32_t bank_offset_index) {
  return id - bank_offset_index * banks<DRAM>();
}
template <bool DRAM>
inline std::uint32_t get_noc_xy(std::uint32_t bank_index, std::uint8_t noc = noc_index) {
  return DRAM ? dram_bank_to_noc_xy[noc][bank_index] : l1_bank_to_noc_xy[noc][bank_index];
}
template <bool DRAM>
inline std::uint32_t get_bank_offset(std::uint32_t bank_index) {
  return DRAM ? bank_to_dram_offset[bank_index] : bank_to_l1_offset[bank_index];
}
template <bool DRAM>
constexpr std::uint32_t get_allocator_alignment() {
  return DRAM ? DRAM_ALIGNMENT : L1_ALIGNMENT;
}

}  // namespace interleaved_addr_gen

template <bool DRAM>
inline std::uint64_t towpath_page_address(std::uint32_t id, std::uint32_t stride_bytes,
                                          std::uint32_t base, std::uint32_t offset,
                                          std::uint8_t noc) {
  const std::uint32_t row = interleaved_addr_gen::get_bank_offset_index<DRAM>(id);
  const std::uint32_t bank = interleaved_addr_gen::get_bank_index<DRAM>(id, row);
  return get_noc_addr_helper(interleaved_addr_gen::get_noc_xy<DRAM>(bank, noc),
                             row * stride_bytes + base + offset +
                                 interleaved_addr_gen::get_bank_offset<DRAM>(bank));
}

template <std::uint32_t tile_hw = 1024>
constexpr std::uint32_t MUL_WITH_TILE_SIZE(unsigned format, unsigned index) {
  return index * towpath_tile_bytes(static_cast<DataFormat>(format), tile_hw);
}

template <bool DRAM>
struct InterleavedAddrGen {
  static constexpr bool is_dram = DRAM;
  std::uint32_t bank_base_address;
  const std::uint32_t page_size;
  const std::uint32_t aligned_page_size =
      align_power_of_2(page_size, interleaved_addr_gen::get_allocator_alignment<DRAM>());

  std::uint64_t get_noc_addr(std::uint32_t id, std::uint32_t offset = 0,
                             std::uint8_t noc = noc_index) const {
    return towpath_page_address<DRAM>(id, aligned_page_size, bank_base_address, offset, noc);
  }
};

template <bool DRAM>
struct InterleavedPow2AddrGen {
  static constexpr bool is_dram = DRAM;
  const std::uint32_t bank_base_address;
  const std::uint32_t log_base_2_of_page_size;

  std::uint64_t get_noc_addr(std::uint32_t id, std::uint32_t offset = 0,
                             std::uint8_t noc = noc_index) const {
    const std::uint32_t stride =
        align_power_of_2(1u << log_base_2_of_page_size,
                         interleaved_addr_gen::get_allocator_alignment<DRAM>());
    return towpath_page_address<DRAM>(id, stride, bank_base_address, offset, noc);
  }
};
template <bool DRAM>
struct InterleavedPow2AddrGenFast : InterleavedPow2AddrGen<DRAM> {};

template <bool DRAM, std::uint32_t tile_hw = 1024>
struct InterleavedAddrGenFast {
  static constexpr bool is_dram = DRAM;
  std::uint32_t bank_base_address;
  std::uint32_t page_size;
  DataFormat data_format;

  std::uint64_t get_noc_addr(std::uint32_t id, std::uint32_t offset = 0,
                             std::uint8_t noc = noc_index) const {
    const std::uint32_t stride = MUL_WITH_TILE_SIZE<tile_hw>(static_cast<unsigned>(data_format), 1);
    return towpath_page_address<DRAM>(id, stride, bank_base_address, offset, noc);
  }
};

template <typename AddrGen, typename = decltype(std::declval<const AddrGen&>().get_noc_addr(0u))>
inline std::uint64_t get_noc_addr(std::uint32_t id, const AddrGen& addrgen,
                                  std::uint32_t offset = 0, std::uint8_t noc = noc_index) {
  return addrgen.get_noc_addr(id, offset, noc);
}
template <bool DRAM>
inline std::uint64_t get_noc_addr_from_bank_id(std::uint32_t bank_id,
                                               std::uint32_t bank_address_offset,
                                               std::uint8_t noc = noc_index) {
  return get_noc_addr_helper(
      interleaved_addr_gen::get_noc_xy<DRAM>(bank_id, noc),
      bank_address_offset + (DRAM ? bank_to_dram_offset[bank_id] : 0));
}
inline std::uint64_t get_dram_noc_addr(std::uint32_t id, std::uint32_t page_size,
                                       std::uint32_t bank_base_address, std::uint32_t offset = 0,
                                       std::uint8_t noc = noc_index) {
  return towpath_page_address<true>(id, align_power_of_2(page_size, DRAM_ALIGNMENT),
                                    bank_base_address, offset, noc);
}
inline std::uint64_t get_l1_noc_addr(std::uint32_t id, std::uint32_t page_size,
                                     std::uint32_t bank_base_address, std::uint32_t offset = 0,
                                     std::uint8_t noc = noc_index) {
  return towpath_page_address<false>(id, align_power_of_2(page_size, L1_ALIGNMENT),
                                     bank_base_address, offset, noc);
}
template <bool DRAM, std::uint32_t page_size>
inline auto get_interleaved_addr_gen(std::uint32_t base_addr) {
  return InterleavedAddrGen<DRAM>{.bank_base_address = base_addr, .page_size = page_size};
}
template <bool DRAM, bool is_size_pow2>
inline auto get_interleaved_addr_gen(std::uint32_t base_addr, std::uint32_t page_size,
                                     std::uint32_t log2_page_size) {
  if constexpr (is_size_pow2) {
    return InterleavedPow2AddrGen<DRAM>{base_addr, log2_page_size};
  } else {
    return InterleavedAddrGen<DRAM>{.bank_base_address = base_addr, .page_size = page_size};
  }
}

// --- tensors ------------------------------------------------------------------------------------

// Compile-time arguments that describe a tensor: what it is, then the bytes from one page to the
// next in its bank. Only interleaved tensors have an accessor here.
namespace tensor_accessor {
inline constexpr std::uint32_t kSharded = 1;
inline constexpr std::uint32_t kIsDram = 2;
}  // namespace tensor_accessor
