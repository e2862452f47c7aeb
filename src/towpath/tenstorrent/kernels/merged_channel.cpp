// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/kernels/merged_channel.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace towpath::tenstorrent::kernels {

using ethernet_memory_map::kWordBytes;

namespace {

// bytes_sent and receiver_ack.
void set_sync(EthernetCore& core, const MergedChannel& channel, std::uint32_t bytes_sent) {
  core.store_word(channel.sync(), bytes_sent);
  core.store_word(channel.sync() + 4, 0);
}

void send_from(EthernetCore& core, std::uint64_t first, std::uint64_t end) {
  core.eth_send_packet(0, first / kWordBytes, first / kWordBytes, (end - first) / kWordBytes);
}

}  // namespace

void clear(EthernetCore& core, const MergedChannel& channel) { set_sync(core, channel, 0); }

void send(EthernetCore& core, const MergedChannel& channel) {
  set_sync(core, channel, static_cast<std::uint32_t>(channel.size_bytes));
  send_from(core, channel.offset, channel.end());
}

bool is_free(EthernetCore& core, const MergedChannel& channel) {
  return core.load_word(channel.sync()) == 0;
}

void wait_until_free(EthernetCore& core, const MergedChannel& channel) {
  core.noc_semaphore_wait(channel.sync(), 0);
}

bool has_payload(EthernetCore& core, const MergedChannel& channel) {
  return core.load_word(channel.sync()) != 0;
}

void wait_for_payload(EthernetCore& core, const MergedChannel& channel) {
  core.noc_semaphore_wait_min(channel.sync(), 1);
}

void ack_done(EthernetCore& core, const MergedChannel& channel) {
  set_sync(core, channel, 0);
  send_from(core, channel.sync(), channel.end());
}

void return_payload(EthernetCore& core, const MergedChannel& channel) {
  set_sync(core, channel, 0);
  send_from(core, channel.offset, channel.end());
}

std::vector<MergedChannel> merged_channels(std::uint64_t offset, std::uint64_t size_bytes,
                                           int channels) {
  if (offset % kWordBytes != 0 || size_bytes % kWordBytes != 0 || size_bytes == 0) {
    throw std::invalid_argument(fmt::format(
        "channels have {} bytes at offset {}; both must be multiples of {}, and the size above 0",
        size_bytes, offset, kWordBytes));
  }
  std::vector<MergedChannel> result;
  for (int i = 0; i < channels; ++i) {
    result.push_back({offset, size_bytes});
    offset = result.back().end();
  }
  return result;
}

}  // namespace towpath::tenstorrent::kernels
