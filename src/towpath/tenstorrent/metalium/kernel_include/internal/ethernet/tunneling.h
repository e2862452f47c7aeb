// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "eth_l1_address_map.h"
#include "towpath_prelude.h"

// The transmit queues of an Ethernet core, its sync words and its base firmware, under their names
// (tt-metal, hw/inc/ethernet/tunneling.h).

template <typename... Arguments>
inline std::uint32_t towpath_ethernet(int call, Arguments... arguments) {
  const std::uint32_t values[] = {static_cast<std::uint32_t>(arguments)..., 0};
  return TOWPATH_CALL(ethernet, call, values);
}

struct eth_channel_sync_t {
  volatile std::uint32_t bytes_sent;
  volatile std::uint32_t receiver_ack;
  volatile std::uint32_t src_id;
  std::uint32_t reserved_2;
};

struct erisc_info_t {
  volatile std::uint32_t launch_user_kernel;
  volatile std::uint32_t unused_arg0;
  volatile std::uint32_t unused_arg1;
  volatile std::uint32_t unused_arg2;
  volatile eth_channel_sync_t channels[8];
};

inline erisc_info_t* const erisc_info = reinterpret_cast<erisc_info_t*>(
    static_cast<std::uintptr_t>(eth_l1_mem::address_map::ERISC_APP_SYNC_INFO_BASE));

inline void run_routing() { towpath_ethernet(kTowpathRunRouting); }
inline void risc_context_switch() { run_routing(); }
inline void RISC_POST_STATUS(std::uint32_t) {}

namespace internal_ {

inline bool eth_txq_is_busy(std::uint32_t q_num) {
  return towpath_ethernet(kTowpathTxqIsBusy, q_num) != 0;
}
template <bool ctx_switch = true>
inline void eth_send_packet(std::uint32_t q_num, std::uint32_t src_word_addr,
                            std::uint32_t dest_word_addr, std::uint32_t num_words) {
  towpath_ethernet(kTowpathSendPacket, q_num, src_word_addr, dest_word_addr, num_words);
}
inline void eth_send_packet_unsafe(std::uint32_t q_num, std::uint32_t src_word_addr,
                                   std::uint32_t dest_word_addr, std::uint32_t num_words) {
  towpath_ethernet(kTowpathSendPacketUnsafe, q_num, src_word_addr << 4, dest_word_addr << 4,
                   num_words << 4);
}
inline void eth_send_packet_bytes_unsafe(std::uint32_t q_num, std::uint32_t src_addr,
                                         std::uint32_t dest_addr, std::uint32_t num_bytes) {
  towpath_ethernet(kTowpathSendPacketUnsafe, q_num, src_addr, dest_addr, num_bytes);
}
template <bool ctx_switch = true>
inline void eth_write_remote_reg(std::uint32_t q_num, std::uint32_t reg_addr, std::uint32_t val) {
  towpath_ethernet(kTowpathWriteRemoteRegister, q_num, reg_addr, val);
}
inline void check_and_context_switch() { towpath_ethernet(kTowpathContextSwitch); }
inline void risc_context_switch() { ::run_routing(); }

}  // namespace internal_

using internal_::eth_send_packet;
