// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/kernels/handshake.hpp"

namespace towpath::tenstorrent::kernels {

using ethernet_memory_map::kWordBytes;

namespace {

constexpr int kPollsPerSend = 100;  // of the master, before it resends its word

void send_word(EthernetCore& core, std::uint64_t from) {
  core.eth_send_packet(0, from / kWordBytes, EthernetCore::handshake_scratch() / kWordBytes, 1);
}

bool is_answered(EthernetCore& core, std::uint32_t magic) {
  for (int poll = 0; poll < kPollsPerSend; ++poll) {
    core.work(kPollCycles);
    if (core.load_word(EthernetCore::handshake_scratch()) == magic) return true;
  }
  return false;
}

}  // namespace

void handshake(EthernetCore& core, bool is_master) {
  const std::uint64_t scratch = EthernetCore::handshake_scratch();
  if (is_master) {
    core.eth_send_bytes(scratch, scratch, kWordBytes);
    core.eth_wait_for_receiver_done();
  } else {
    core.eth_wait_for_bytes(kWordBytes);
    core.eth_receiver_channel_done(0);
  }
}

void handshake_with_magic(EthernetCore& core, bool is_master, std::uint64_t scratch,
                          std::uint32_t magic) {
  core.store_word(EthernetCore::handshake_scratch(), 0);
  core.store_word(scratch, magic);
  if (is_master) {
    do {
      send_word(core, scratch);
    } while (!is_answered(core, magic));
  } else {
    core.eth_noc_semaphore_wait(EthernetCore::handshake_scratch(), magic);
    send_word(core, scratch);
  }
}

void teardown(EthernetCore& core, int first_channel, int channels) {
  for (int channel = first_channel; channel < first_channel + channels; ++channel) {
    core.eth_wait_for_receiver_channel_done(channel);
  }
}

}  // namespace towpath::tenstorrent::kernels
