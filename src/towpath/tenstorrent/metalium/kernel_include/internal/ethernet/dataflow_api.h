// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/dataflow/dataflow_api.h"
#include "internal/ethernet/tunneling.h"

// The Ethernet data movement interface for kernels: its names, arguments and defaults (tt-metal,
// hw/inc/ethernet/dataflow_api.h at 97b21652, and today's). Waits yield to the base firmware as
// documented; after how many polls is the simulator's.

inline bool eth_txq_is_busy() { return internal_::eth_txq_is_busy(0); }

// The document passes words of L1 by address and by pointer.
inline std::uint32_t towpath_word(std::uint32_t address) { return address; }
inline std::uint32_t towpath_word(const volatile std::uint32_t* address) {
  return towpath_offset_of(address);
}
template <typename Word>
inline void eth_noc_semaphore_wait(Word sem_addr, std::uint32_t val, std::uint32_t wait_min = 0) {
  towpath_ethernet(kTowpathSemaphoreWait, towpath_word(sem_addr), val);
}
template <typename Word>
inline void eth_noc_semaphore_wait_min(Word sem_addr, std::uint32_t val,
                                       std::uint32_t wait_min = 0) {
  towpath_ethernet(kTowpathSemaphoreWaitMin, towpath_word(sem_addr), val);
}
inline void noc_semaphore_wait(std::uint32_t sem_addr, std::uint32_t val) {
  TOWPATH_CALL(semaphore_wait, sem_addr, val, 0);
}
inline void eth_noc_async_read_barrier() { towpath_ethernet(kTowpathReadBarrier, noc_index); }
inline void eth_noc_async_write_barrier() { towpath_ethernet(kTowpathWriteBarrier, noc_index); }

// --- channel 0, as a one-shot -------------------------------------------------------------------

inline void eth_send_bytes(std::uint32_t src_addr, std::uint32_t dst_addr, std::uint32_t num_bytes,
                           std::uint32_t num_bytes_per_send = 16,
                           std::uint32_t num_bytes_per_send_word_size = 1) {
  towpath_ethernet(kTowpathSendBytes, src_addr, dst_addr, num_bytes, num_bytes_per_send,
                   num_bytes_per_send_word_size);
}
inline void eth_wait_for_receiver_done(std::uint32_t wait_min = 0) {
  towpath_ethernet(kTowpathWaitForReceiverDone);
}
inline void eth_send_done() { towpath_ethernet(kTowpathSendDone); }
inline void eth_wait_receiver_done(std::uint32_t wait_min = 0) {
  towpath_ethernet(kTowpathWaitReceiverDone);
}
inline void eth_wait_for_bytes(std::uint32_t num_bytes, std::uint32_t wait_min = 0) {
  towpath_ethernet(kTowpathWaitForBytes, num_bytes);
}
inline void eth_receiver_done() { towpath_ethernet(kTowpathReceiverDone); }
inline void eth_receiver_acknowledge(std::uint8_t channel = 0) {
  towpath_ethernet(kTowpathReceiverAcknowledge, channel);
}
inline void eth_wait_receiver_acknowledge(std::uint8_t channel = 0) {
  towpath_ethernet(kTowpathWaitReceiverAcknowledge, channel);
}

// --- channels -----------------------------------------------------------------------------------

inline void eth_send_bytes_over_channel_payload_only(std::uint32_t src_addr,
                                                     std::uint32_t dst_addr,
                                                     std::uint32_t num_bytes,
                                                     std::uint32_t num_bytes_per_send = 16,
                                                     std::uint32_t word_size = 1) {
  towpath_ethernet(kTowpathSendPayloadOnly, src_addr, dst_addr, num_bytes, num_bytes_per_send,
                   word_size);
}
inline void eth_send_bytes_over_channel_payload_only_unsafe(std::uint32_t src_addr,
                                                            std::uint32_t dst_addr,
                                                            std::uint32_t num_bytes,
                                                            std::uint32_t num_bytes_per_send = 16,
                                                            std::uint32_t word_size = 1) {
  eth_send_bytes_over_channel_payload_only(src_addr, dst_addr, num_bytes, num_bytes_per_send,
                                           word_size);
}
inline void eth_send_bytes_over_channel_payload_only_unsafe_one_packet(std::uint32_t src_addr,
                                                                       std::uint32_t dst_addr,
                                                                       std::uint32_t num_bytes) {
  internal_::eth_send_packet_bytes_unsafe(0, src_addr, dst_addr, num_bytes);
}
inline void eth_send_payload_complete_signal_over_channel(std::uint32_t channel,
                                                          std::uint32_t num_bytes) {
  towpath_ethernet(kTowpathSendPayloadComplete, channel, num_bytes);
}
inline void eth_send_bytes_over_channel(std::uint32_t src_addr, std::uint32_t dst_addr,
                                        std::uint32_t num_bytes, std::uint32_t channel,
                                        std::uint32_t num_bytes_per_send = 16,
                                        std::uint32_t word_size = 1) {
  towpath_ethernet(kTowpathSendBytesOverChannel, src_addr, dst_addr, num_bytes, channel,
                   num_bytes_per_send, word_size);
}
inline bool eth_is_receiver_channel_send_acked(std::uint32_t channel) {
  return towpath_ethernet(kTowpathIsSendAcked, channel) != 0;
}
inline bool eth_is_receiver_channel_send_done(std::uint32_t channel) {
  return towpath_ethernet(kTowpathIsSendDone, channel) != 0;
}
inline bool eth_is_receiver_channel_done(std::uint32_t channel) {
  return eth_is_receiver_channel_send_done(channel);
}
inline void eth_wait_for_receiver_channel_done(std::uint32_t channel) {
  towpath_ethernet(kTowpathWaitForChannelDone, channel);
}
inline void eth_clear_sender_channel_ack(std::uint32_t channel) {
  towpath_ethernet(kTowpathClearSenderAck, channel);
}
inline bool eth_bytes_are_available_on_channel(std::uint8_t channel) {
  return towpath_ethernet(kTowpathBytesAreAvailable, channel) != 0;
}
inline void eth_wait_for_bytes_on_channel(std::uint32_t num_bytes, std::uint8_t channel,
                                          std::uint32_t wait_min = 1'000'000) {
  towpath_ethernet(kTowpathWaitForBytesOnChannel, num_bytes, channel);
}
inline void eth_receiver_channel_ack(std::uint32_t channel,
                                     std::uint32_t eth_transaction_ack_word_addr) {
  towpath_ethernet(kTowpathChannelAck, channel, eth_transaction_ack_word_addr);
}
inline void eth_receiver_channel_done(std::uint32_t channel) {
  towpath_ethernet(kTowpathChannelDone, channel);
}
inline void eth_write_remote_reg(std::uint32_t reg_addr, std::uint32_t value) {
  internal_::eth_write_remote_reg(0, reg_addr, value);
}
inline std::uint64_t eth_read_wall_clock() { return get_timestamp(); }
