// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "fabric/packet_header.h"

// Headers in L1 for the kernels of a core (tt-metal, tt_metal/fabric/hw/inc/packet_header_pool.h):
// each of its two processors has its own.

inline constexpr std::uint32_t PACKET_HEADER_MAX_SIZE = 144;
inline constexpr std::uint32_t NUM_PACKET_HEADERS = 16;
inline constexpr std::uint32_t MEM_PACKET_HEADER_POOL_BASE = TOWPATH_PACKET_HEADERS;
inline constexpr std::uint32_t MEM_PACKET_HEADER_POOL_SIZE =
    PACKET_HEADER_MAX_SIZE * NUM_PACKET_HEADERS;

class PacketHeaderPool {
 public:
  using Header = volatile tt_l1_ptr PACKET_HEADER_TYPE;

  static void reset() { headers_ = routes_ = 0; }
  static Header* allocate_header(std::uint8_t num_headers = 1) {
    if (headers_ + num_headers > kHeaders || routes_ == kHeaders) {
      TOWPATH_CALL(refuse, "it allocates more than the 8 packet headers that a processor has");
    }
    auto* const first = reinterpret_cast<Header*>(
        static_cast<std::uintptr_t>(kBase + headers_ * PACKET_HEADER_MAX_SIZE));
    headers_ += num_headers;
    header_table[routes_++] = {first, num_headers};
    return first;
  }
  // Number of a group of headers.
  static std::uint8_t allocate_header_n(std::uint8_t num_headers) {
    allocate_header(num_headers);
    return static_cast<std::uint8_t>(routes_ - 1);
  }
  template <typename Action>
  static void for_each_header(std::uint8_t route_id, Action&& action) {
    ASSERT(route_id < routes_);
    Header* header = header_table[route_id].first;
    for (std::uint8_t i = 0; i < header_table[route_id].second; ++i) action(header++, i);
  }
  static std::uint8_t get_num_headers(std::uint8_t route_id) {
    return route_id < routes_ ? header_table[route_id].second : 0;
  }

 private:
  static constexpr std::uint32_t kHeaders = NUM_PACKET_HEADERS / 2;
  static constexpr std::uint32_t kBase =
      MEM_PACKET_HEADER_POOL_BASE +
      (TOWPATH_IS_DATA_MOVEMENT_1 ? kHeaders * PACKET_HEADER_MAX_SIZE : 0);
  static inline std::uint32_t headers_ = 0;
  static inline std::uint32_t routes_ = 0;

 public:
  static inline std::pair<Header*, std::uint8_t> header_table[kHeaders] = {};
};
