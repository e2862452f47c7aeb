// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath_kernel.h"

// Constants of the NoC under their names. Sizes come from the chip that the kernel is compiled for.

inline constexpr std::uint32_t NOC_UNICAST_WRITE_VC = 1;
inline constexpr std::uint32_t NOC_MULTICAST_WRITE_VC = 4;
inline constexpr std::uint32_t NOC_DISPATCH_MULTICAST_WRITE_VC = 5;

#define NOC_ADDR_LOCAL_BITS TOWPATH_COORDINATE_SHIFT
#define NOC_ADDR_NODE_ID_BITS TOWPATH_COORDINATE_BITS
#define NOC_ADDR_COORD_SHIFT TOWPATH_COORDINATE_SHIFT
#define NOC_COORD_REG_OFFSET TOWPATH_COORDINATE_SHIFT
#define NOC_LOCAL_ADDR_OFFSET(address) \
  ((address) & ((std::uint64_t{1} << NOC_ADDR_LOCAL_BITS) - 1))
#define NOC_LOCAL_ADDR(address) NOC_LOCAL_ADDR_OFFSET(address)
#define NOC_UNICAST_ADDR_X(address) (((address) >> NOC_ADDR_LOCAL_BITS) & 0x3f)
#define NOC_UNICAST_ADDR_Y(address) (((address) >> (NOC_ADDR_LOCAL_BITS + 6)) & 0x3f)
#define NOC_XY_ENCODING(x, y) \
  ((static_cast<std::uint32_t>(y) << NOC_ADDR_NODE_ID_BITS) | static_cast<std::uint32_t>(x))
#define NOC_MULTICAST_ENCODING(x_start, y_start, x_end, y_end) \
  ((static_cast<std::uint32_t>(x_start) << (2 * NOC_ADDR_NODE_ID_BITS)) |  \
   (static_cast<std::uint32_t>(y_start) << (3 * NOC_ADDR_NODE_ID_BITS)) |  \
   (static_cast<std::uint32_t>(y_end) << NOC_ADDR_NODE_ID_BITS) | static_cast<std::uint32_t>(x_end))
#define NOC_XY_ADDR(x, y, address) \
  ((static_cast<std::uint64_t>(NOC_XY_ENCODING(x, y)) << NOC_ADDR_COORD_SHIFT) | \
   static_cast<std::uint64_t>(address))
#define NOC_MULTICAST_ADDR(x_start, y_start, x_end, y_end, address)                          \
  ((static_cast<std::uint64_t>(NOC_MULTICAST_ENCODING(x_start, y_start, x_end, y_end))       \
    << NOC_ADDR_COORD_SHIFT) |                                                               \
   static_cast<std::uint64_t>(address))
// An address of the host begins with this and goes on with the place in the chip's window to it.
#define NOC_XY_PCIE_ENCODING(x, y) \
  ((static_cast<std::uint64_t>(NOC_XY_ENCODING(x, y)) << NOC_ADDR_COORD_SHIFT) | \
   std::uint64_t{TOWPATH_HOST_ADDRESS})
// Coordinates are those of NoC 0 on either NoC.
#define DYNAMIC_NOC_X(noc, x) (x)
#define DYNAMIC_NOC_Y(noc, y) (y)
#define NOC_X(x) (x)
#define NOC_Y(y) (y)

inline constexpr std::uint32_t NOC_CLEAR_OUTSTANDING_REQ_MASK = 0xffff;
inline constexpr std::uint32_t NOC_MAX_TRANSACTION_ID = 0xf;
inline constexpr std::uint32_t NOC_L1_READ_ALIGNMENT_BYTES = L1_ALIGNMENT;
inline constexpr std::uint32_t NOC_L1_WRITE_ALIGNMENT_BYTES = L1_ALIGNMENT;
inline constexpr std::uint32_t NOC_DRAM_READ_ALIGNMENT_BYTES = DRAM_ALIGNMENT;
inline constexpr std::uint32_t NOC_DRAM_WRITE_ALIGNMENT_BYTES = DRAM_WRITE_ALIGNMENT;
inline constexpr std::uint32_t NOC_PCIE_READ_ALIGNMENT_BYTES = DRAM_ALIGNMENT;
inline constexpr std::uint32_t NOC_PCIE_WRITE_ALIGNMENT_BYTES = DRAM_WRITE_ALIGNMENT;
inline constexpr std::uint32_t PCIE_ALIGNMENT = DRAM_ALIGNMENT;
inline constexpr std::uint32_t NUM_NOCS = 2;
// Zeros in L1 that kernels read (worker_memory_map.hpp).
inline constexpr std::uint32_t MEM_ZEROS_BASE = 0x10200;
inline constexpr std::uint32_t MEM_ZEROS_SIZE = 512;
