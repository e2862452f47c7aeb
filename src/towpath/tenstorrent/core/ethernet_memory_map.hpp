// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Memory map of the L1 of an Ethernet core, in bytes. Source: tt-metal,
// hw/inc/wormhole/eth_l1_address_map.h and hw/inc/ethernet/tunneling.h at 97b21652: firmware 32 KiB
// from 0x9000, its command queue 4 KiB, its data buffers 24 KiB, then barrier (32 bytes), routing
// info (48) and sync info, which is erisc_info.

namespace towpath::tenstorrent::ethernet_memory_map {

// Sizes and offsets of transfers over a link are multiples of this value.
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
// The channel of the sync word that contains an offset, or -1.
constexpr int channel_of(std::uint64_t offset) {
  if (offset < bytes_sent_at(0) || offset >= bytes_sent_at(kChannels)) return -1;
  return static_cast<int>((offset - bytes_sent_at(0)) / kChannelSyncBytes);
}
constexpr bool lies_in(std::uint64_t offset, std::uint64_t size_bytes, std::uint64_t begin,
                       std::uint64_t end) {
  return offset >= begin && offset + size_bytes <= end;
}
// True if the bytes are part of erisc_info, with the sync words of all channels.
constexpr bool is_sync_word(std::uint64_t offset, std::uint64_t size_bytes) {
  return lies_in(offset, size_bytes, kEriscInfoBase, bytes_sent_at(kChannels));
}
// Handshakes use the sync word of channel 0.
constexpr bool is_handshake_word(std::uint64_t offset, std::uint64_t size_bytes) {
  return lies_in(offset, size_bytes, bytes_sent_at(0), bytes_sent_at(1));
}

// Code and arguments that a launch writes, and their largest size. Chosen here.
inline constexpr std::uint64_t kLaunchBase = 0x18400;
inline constexpr std::uint64_t kLaunchBytesMax = 8192;

// Memory of the kernel, to the end: about 150 KB (multichip guide, "Ethernet core". The exact place
// differs between releases). Its first 16 bytes are for handshakes. Any kernel may write them at
// any time, before a handshake and after the end.
inline constexpr std::uint64_t kUnreservedBase = 0x1a800;
inline constexpr std::uint64_t kHandshakeBytes = kWordBytes;
constexpr bool is_handshake_area(std::uint64_t offset, std::uint64_t size_bytes) {
  return lies_in(offset, size_bytes, kUnreservedBase, kUnreservedBase + kHandshakeBytes);
}
// The source of first-level acknowledgments. It is the same in every program, because the last one
// is not acknowledged itself.
inline constexpr std::uint64_t kAcknowledgementWord = kUnreservedBase + kHandshakeBytes;
// Start of the memory that programs allocate.
inline constexpr std::uint64_t kAllocatedBase = kAcknowledgementWord + kChannelSyncBytes;

static_assert(bytes_sent_at(0) % kWordBytes == 0 && kUnreservedBase % 32 == 0);
static_assert(bytes_sent_at(kChannels) < kLaunchBase);
static_assert(kLaunchBase + kLaunchBytesMax <= kUnreservedBase);

}  // namespace towpath::tenstorrent::ethernet_memory_map
