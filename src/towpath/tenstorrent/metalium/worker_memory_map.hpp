// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/tenstorrent/core/ethernet_memory_map.hpp"
#include "towpath/tenstorrent/metalium/kernel_include/towpath_kernel.h"

// Memory map of L1 for kernels in source form. Memory that a kernel reads and writes by a pointer
// is at 64 KiB and above: lower addresses cannot be mapped on every system (vm.mmap_min_addr).

namespace towpath::tenstorrent::metalium {

inline constexpr int kCircularBuffers = 32;
inline constexpr int kSemaphores = 16;
inline constexpr std::uint64_t kSemaphoreBytes = 16;

namespace worker_memory_map {

// One word each for the received and acknowledged pages of each circular buffer.
inline constexpr std::uint64_t kCircularBufferWords = 0x8000;
constexpr std::uint64_t pages_received_at(int buffer) {
  return kCircularBufferWords + static_cast<std::uint64_t>(buffer) * 8;
}
constexpr std::uint64_t pages_acked_at(int buffer) { return pages_received_at(buffer) + 4; }
// Memory of each connection to a router, by Ethernet channel: the words of fabric::Connection, and
// then headers in flight, which are used in turn.
inline constexpr std::uint64_t kConnections = 0x8200;
inline constexpr std::uint64_t kConnectionBytes = 0x7e0;
inline constexpr int kConnectionsMax = 16;
constexpr std::uint64_t connection_at(std::uint32_t channel) {
  return kConnections + channel * kConnectionBytes;
}
inline constexpr std::uint64_t kSemaphoreBase = 0x10000;
static_assert(kConnections + kConnectionsMax * kConnectionBytes == kSemaphoreBase);
// 512 zero bytes, then packet headers of both processors and of the user, to the end.
inline constexpr std::uint64_t kPacketHeaders = TOWPATH_PACKET_HEADERS;
inline constexpr std::uint64_t kUnreservedBase = 0x10e00;
static_assert(kSemaphoreBase + kSemaphores * kSemaphoreBytes + 512 <= kPacketHeaders);

}  // namespace worker_memory_map

// Semaphores of an Ethernet core are after erisc_info, below the memory of the user.
inline constexpr std::uint64_t kEthernetSemaphoreBase =
    (ethernet_memory_map::bytes_sent_at(ethernet_memory_map::kChannels) + 63) / 64 * 64;
static_assert(kEthernetSemaphoreBase + kSemaphores * kSemaphoreBytes <=
              ethernet_memory_map::kUnreservedBase);

}  // namespace towpath::tenstorrent::metalium
