// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/tenstorrent/core/ethernet_core.hpp"

// A channel with its sync word after the buffer, so that payload and word are one command
// (tt-metal, Basic Ethernet Multichip, "End-to-End Flow Control"). The word arrives last, so it
// implies the payload. Both ends have the channel at the same offset.
//
//   // sender                            // receiver
//   send(core, channel);                 wait_for_payload(core, channel);
//   ...                                  ...
//   wait_until_free(core, channel);      ack_done(core, channel);
//
// For the sync words of erisc_info, use EthernetCore::eth_send_bytes_over_channel().

namespace towpath::tenstorrent::kernels {

struct MergedChannel {
  static constexpr std::uint64_t kSyncBytes = ethernet_memory_map::kChannelSyncBytes;

  std::uint64_t offset = 0;      // a multiple of 16
  std::uint64_t size_bytes = 0;  // payload; a multiple of 16

  std::uint64_t sync() const { return offset + size_bytes; }
  std::uint64_t end() const { return sync() + kSyncBytes; }
};

// Marks the channel empty, before the handshake.
void clear(EthernetCore& core, const MergedChannel& channel);

void send(EthernetCore& core, const MergedChannel& channel);
// True if the far end has released it. The check takes no simulated time.
bool is_free(EthernetCore& core, const MergedChannel& channel);
void wait_until_free(EthernetCore& core, const MergedChannel& channel);

bool has_payload(EthernetCore& core, const MergedChannel& channel);
void wait_for_payload(EthernetCore& core, const MergedChannel& channel);
// Releases the buffer to the sender. return_payload() also sends the payload back.
void ack_done(EthernetCore& core, const MergedChannel& channel);
void return_payload(EthernetCore& core, const MergedChannel& channel);

// Consecutive channels from `offset`. Throws std::invalid_argument unless they consist of whole
// words.
std::vector<MergedChannel> merged_channels(std::uint64_t offset, std::uint64_t size_bytes,
                                           int channels);

}  // namespace towpath::tenstorrent::kernels
