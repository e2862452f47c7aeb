// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/core/ethernet_core.hpp"

#include <algorithm>
#include <utility>

// Sends and channels.

#include "towpath/tenstorrent/core/call_costs.hpp"

namespace towpath::tenstorrent {

namespace map = ethernet_memory_map;

// --- transmit queues ----------------------------------------------------------------------------

bool EthernetCore::eth_txq_is_busy(int queue) {
  begin_call(__func__);
  work(kPollCycles);
  return named([&] { return tile_.port().is_busy(queue); });
}

void EthernetCore::eth_send_packet(int queue, std::uint64_t source_word,
                                   std::uint64_t destination_word, std::uint64_t words) {
  begin_call(__func__);
  const auto word_bytes = static_cast<std::uint64_t>(network().chip().ethernet.word_bytes);
  submit(queue, {.source = source_word * word_bytes,
                 .destination = destination_word * word_bytes,
                 .size_bytes = words * word_bytes});
  for (int channel = 0; channel < map::kChannels; ++channel) {  // it may concern any of them
    observer().sending_payload(channel, words * word_bytes);
  }
}

void EthernetCore::eth_send_packet_bytes_unsafe(int queue, std::uint64_t source,
                                                std::uint64_t destination,
                                                std::uint64_t size_bytes) {
  begin_call(__func__);
  check_queue(queue);
  const ethernet::Command command{
      .source = source, .destination = destination, .size_bytes = size_bytes};
  named([&] { tile_.port().send(queue, command); });
  observer().sending(queue, command);
  for (int channel = 0; channel < map::kChannels; ++channel) {  // it may concern any of them
    observer().sending_payload(channel, size_bytes);
  }
}

void EthernetCore::eth_write_remote_reg(int queue, std::uint64_t address, std::uint32_t value) {
  begin_call(__func__);
  submit(queue,
         {.kind = ethernet::Command::Kind::register_write, .destination = address, .value = value});
}

void EthernetCore::send_packets(std::uint64_t source, std::uint64_t destination,
                                std::uint64_t size_bytes, std::uint64_t bytes_per_send,
                                std::uint64_t words_per_send) {
  const auto word_bytes = static_cast<std::uint64_t>(network().chip().ethernet.word_bytes);
  if (bytes_per_send == 0 || words_per_send == 0) {
    refuse("its packets have {} bytes and {} words; both must be at least 1", bytes_per_send,
           words_per_send);
  }
  for (std::uint64_t sent = 0; sent < size_bytes; sent += bytes_per_send) {
    submit(0, {.source = source + sent,
               .destination = destination + sent,
               .size_bytes = words_per_send * word_bytes});
  }
}

void EthernetCore::check_channel(int channel) const {
  if (channel < 0 || channel >= map::kChannels) {
    refuse("there is no channel {}; it must be 0 to {}", channel, map::kChannels - 1);
  }
}

// Sends a sync word to the same offset at the far end.
void EthernetCore::send_channel_word(int channel, std::uint64_t from) {
  submit(0, {.source = from,
             .destination = map::bytes_sent_at(channel),
             .size_bytes = map::kChannelSyncBytes});
}

void EthernetCore::set_channel(int channel, std::uint32_t bytes_sent, std::uint32_t receiver_ack) {
  change(map::bytes_sent_at(channel), bytes_sent);
  change(map::receiver_ack_at(channel), receiver_ack);
  send_channel_word(channel, map::bytes_sent_at(channel));
}

std::uint32_t EthernetCore::poll(std::uint64_t word) {
  work(kPollCycles);
  return look(word);
}

// --- channel 0, as a one-shot -------------------------------------------------------------------

void EthernetCore::eth_send_bytes(std::uint64_t source, std::uint64_t destination,
                                  std::uint64_t size_bytes, std::uint64_t bytes_per_send,
                                  std::uint64_t words_per_send) {
  begin_call(__func__);
  send_packets(source, destination, size_bytes, bytes_per_send, words_per_send);
  change(map::bytes_sent_at(0),
         look(map::bytes_sent_at(0)) + static_cast<std::uint32_t>(size_bytes));
}

void EthernetCore::eth_wait_for_receiver_done() {
  begin_call(__func__);
  send_channel_word(0, map::bytes_sent_at(0));
  wait_for_word(map::bytes_sent_at(0), 0, "", 1);
}

void EthernetCore::eth_send_done() {
  begin_call(__func__);
  send_channel_word(0, map::bytes_sent_at(0));
}

void EthernetCore::eth_wait_receiver_done() {
  begin_call(__func__);
  wait_for_word(map::bytes_sent_at(0), 0, "", 1);
}

void EthernetCore::eth_wait_for_bytes(std::uint32_t size_bytes) {
  begin_call(__func__);
  wait_for_word(map::bytes_sent_at(0), size_bytes, "", 1);
}

void EthernetCore::eth_receiver_done() {
  begin_call(__func__);
  change(map::bytes_sent_at(0), 0);
  send_channel_word(0, map::bytes_sent_at(0));
}

void EthernetCore::eth_receiver_acknowledge(int channel) {
  begin_call(__func__);
  check_channel(channel);
  set_channel(channel, 1, 1);
}

void EthernetCore::eth_wait_receiver_acknowledge(int channel) {
  begin_call(__func__);
  check_channel(channel);
  wait_for_word(map::bytes_sent_at(channel), 1, "", 1);
}

void EthernetCore::eth_wait_for_remote_receiver_done_and_get_local_receiver_data(
    std::uint64_t sender_semaphore, const NocAddress& receiver_semaphore,
    const NocAddress& receiver_data, std::uint64_t local_offset, std::uint64_t size_bytes) {
  begin_call(__func__);
  send_channel_word(0, map::bytes_sent_at(0));
  eth_noc_semaphore_wait(sender_semaphore, 1);
  noc_async_read(receiver_data, local_offset, size_bytes);
  noc_semaphore_set(sender_semaphore, 0);
  eth_noc_async_read_barrier();
  noc_semaphore_inc(receiver_semaphore, 1);
  eth_wait_receiver_done();
}

// --- channels -----------------------------------------------------------------------------------

void EthernetCore::eth_send_bytes_over_channel_payload_only(std::uint64_t source,
                                                            std::uint64_t destination,
                                                            std::uint64_t size_bytes, int channel,
                                                            std::uint64_t bytes_per_send,
                                                            std::uint64_t words_per_send) {
  begin_call(__func__);
  check_channel(channel);
  send_packets(source, destination, size_bytes, bytes_per_send, words_per_send);
  observer().sending_payload(channel, size_bytes);
}

void EthernetCore::eth_send_payload_complete_signal_over_channel(int channel,
                                                                 std::uint32_t size_bytes) {
  begin_call(__func__);
  check_channel(channel);
  observer().announcing(channel, size_bytes);
  set_channel(channel, size_bytes, 0);
}

void EthernetCore::eth_send_bytes_over_channel(std::uint64_t source, std::uint64_t destination,
                                               std::uint64_t size_bytes, int channel,
                                               std::uint64_t bytes_per_send,
                                               std::uint64_t words_per_send) {
  begin_call(__func__);
  check_channel(channel);
  send_packets(source, destination, size_bytes, bytes_per_send, words_per_send);
  set_channel(channel, static_cast<std::uint32_t>(size_bytes), 0);
}

bool EthernetCore::eth_is_receiver_channel_send_acked(int channel) {
  begin_call(__func__);
  check_channel(channel);
  return poll(map::receiver_ack_at(channel)) != 0;
}

bool EthernetCore::eth_is_receiver_channel_send_done(int channel) {
  begin_call(__func__);
  check_channel(channel);
  return poll(map::bytes_sent_at(channel)) == 0;
}

void EthernetCore::eth_wait_for_receiver_channel_done(int channel) {
  begin_call(__func__);
  check_channel(channel);
  wait_for_word(map::bytes_sent_at(channel), 0, "", kPollsPerContextSwitch);
}

void EthernetCore::eth_clear_sender_channel_ack(int channel) {
  begin_call(__func__);
  check_channel(channel);
  change(map::receiver_ack_at(channel), 0);
}

bool EthernetCore::eth_bytes_are_available_on_channel(int channel) {
  begin_call(__func__);
  check_channel(channel);
  return poll(map::bytes_sent_at(channel)) != 0;
}

void EthernetCore::eth_wait_for_bytes_on_channel(std::uint32_t, int channel) {
  begin_call(__func__);
  check_channel(channel);
  wait_for_word(map::bytes_sent_at(channel), 1, "at least ", 10 * kPollsPerContextSwitch);
}

void EthernetCore::eth_receiver_channel_ack(int channel, std::uint64_t ack_word) {
  begin_call(__func__);
  check_channel(channel);
  observer().acknowledging(channel, ack_word);
  const std::uint32_t bytes_sent = look(ack_word);
  const std::uint32_t receiver_ack = look(ack_word + 4);
  if (bytes_sent != 1 || receiver_ack != 1) {
    refuse("the word at offset {} has bytes_sent = {}, receiver_ack = {}; both must be 1", ack_word,
           bytes_sent, receiver_ack);
  }
  send_channel_word(channel, ack_word);
}

void EthernetCore::eth_receiver_channel_done(int channel) {
  begin_call(__func__);
  check_channel(channel);
  set_channel(channel, 0, 0);
}

}  // namespace towpath::tenstorrent
