// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Where things are in an Ethernet core's L1. The numbers are the simulator's
// (ethernet_memory_map.hpp) and come as definitions.

namespace eth_l1_mem {

struct address_map {
  static constexpr std::int32_t MAX_SIZE = TOWPATH_ETHERNET_L1_BYTES;
  static constexpr std::int32_t MAX_NUM_CONCURRENT_TRANSACTIONS = 8;
  static constexpr std::int32_t ERISC_APP_SYNC_INFO_BASE = TOWPATH_ERISC_INFO_BASE;
  static constexpr std::int32_t ERISC_L1_UNRESERVED_BASE = TOWPATH_ERISC_UNRESERVED_BASE;
  static constexpr std::int32_t ERISC_L1_UNRESERVED_SIZE = MAX_SIZE - ERISC_L1_UNRESERVED_BASE;
};

}  // namespace eth_l1_mem
