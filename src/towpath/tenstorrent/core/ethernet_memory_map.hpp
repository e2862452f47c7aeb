// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Where things lie in the L1 of an Ethernet core, in bytes. Source: tt-metal,
// hw/inc/wormhole/eth_l1_address_map.h and hw/inc/ethernet/tunneling.h at 97b21652: firmware 32 KiB
// from 0x9000, its command queue 4 KiB, its data buffers 24 KiB, then barrier (32 bytes), routing
// info (48) and sync info, which is erisc_info.

namespace towpath::tenstorrent::ethernet_memory_map {

// What goes over a link is a multiple of it, in size and place.
inline constexpr std::uint64_t kWordBytes = 16;

inline constexpr std::uint64_t kFirmwareBase = 0x9000;
inline constexpr std::uint64_t kCommandQueueBase = kFirmwareBase + 32 * 1024;
inline constexpr std::uint64_t kDataBufferBase = kCommandQueueBase + 4 * 1024;
inline constexpr std::uint64_t kBarrierBase = kDataBufferBase + 24 * 1024;
inline constexpr std::uint64_t kRoutingInfoBase = kBarrierBase + 32;
inline constexpr std::uint64_t kEriscInfoBase = kRoutingInfoBase + 48;

// erisc_info_t: launch_user_kernel and three words of padding, then a sync word of 16 bytes for
// each channel.
inline constexpr int kChannels = 8;
inline constexpr std::uint64_t kChannelSyncBytes = kWordBytes;
// eth_channel_sync_t: bytes_sent, receiver_ack, two words reserved.
constexpr std::uint64_t bytes_sent_at(int channel) {
  return kEriscInfoBase + 16 + static_cast<std::uint64_t>(channel) * kChannelSyncBytes;
}
constexpr std::uint64_t receiver_ack_at(int channel) { return bytes_sent_at(channel) + 4; }
// In whose sync word an offset lies; -1: in none.
constexpr int channel_of(std::uint64_t offset) {
  if (offset < bytes_sent_at(0) || offset >= bytes_sent_at(kChannels)) return -1;
  return static_cast<int>((offset - bytes_sent_at(0)) / kChannelSyncBytes);
}

// Where slow dispatch puts what a kernel needs, and how much of it there may be. Chosen here.
inline constexpr std::uint64_t kLaunchBase = 0x18400;
inline constexpr std::uint64_t kLaunchBytesMax = 8192;

// The kernel's, to the end: about 150 KB (multichip guide, "Ethernet core"; the exact place differs
// from one release to the next). Its first 16 bytes are for handshakes, which anybody may overwrite
// at any time.
inline constexpr std::uint64_t kUnreservedBase = 0x1a800;
inline constexpr std::uint64_t kHandshakeBytes = kWordBytes;
// What first-level acknowledgements are sent from: always the same, in every program, because
// nobody tells the sender of the last one that it has left.
inline constexpr std::uint64_t kAcknowledgementWord = kUnreservedBase + kHandshakeBytes;
// What programs allocate begins here.
inline constexpr std::uint64_t kAllocatedBase = kAcknowledgementWord + kChannelSyncBytes;

static_assert(bytes_sent_at(0) % kWordBytes == 0 && kUnreservedBase % 32 == 0);
static_assert(bytes_sent_at(kChannels) < kLaunchBase);
static_assert(kLaunchBase + kLaunchBytesMax <= kUnreservedBase);

}  // namespace towpath::tenstorrent::ethernet_memory_map
