// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "api/dataflow/dataflow_api.h"

// Addresses on another chip (tt-metal, tt_metal/fabric/hw/inc/noc_addr.h). Coordinates are those of
// NoC 0 on every chip and either NoC.

namespace tt::tt_fabric {

struct WorkerXY {
  std::uint16_t x;
  std::uint16_t y;
  constexpr WorkerXY(std::uint16_t x_, std::uint16_t y_) : x(x_), y(y_) {}
  constexpr std::uint32_t to_uint32() const { return static_cast<std::uint32_t>(y) << 16 | x; }
  static constexpr WorkerXY from_uint32(std::uint32_t value) {
    return WorkerXY(value & 0xffff, value >> 16);
  }
};

}  // namespace tt::tt_fabric

inline std::uint64_t safe_get_noc_addr(std::uint8_t dest_noc_x, std::uint8_t dest_noc_y,
                                       std::uint32_t dest_bank_addr,
                                       std::uint8_t noc_id = noc_index) {
  return get_noc_addr(dest_noc_x, dest_noc_y, dest_bank_addr, noc_id);
}
inline std::pair<tt::tt_fabric::WorkerXY, std::uint32_t> get_noc_address_components(
    std::uint64_t noc_addr) {
  return {tt::tt_fabric::WorkerXY(NOC_UNICAST_ADDR_X(noc_addr), NOC_UNICAST_ADDR_Y(noc_addr)),
          static_cast<std::uint32_t>(NOC_LOCAL_ADDR_OFFSET(noc_addr))};
}
