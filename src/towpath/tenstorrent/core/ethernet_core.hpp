// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "towpath/tenstorrent/core/data_movement_core.hpp"
#include "towpath/tenstorrent/core/ethernet_memory_map.hpp"
#include "towpath/tenstorrent/core/ethernet_tile.hpp"

// Additional API of a kernel on an Ethernet core: the Ethernet data movement interface under its
// documented names (tt-metal, hw/inc/ethernet/dataflow_api.h and tunneling.h at 97b21652). Sources
// are offsets in the core's L1, destinations in the L1 at the other end of the link. Offsets
// and sizes are multiples of 16.
//
// Flow control is software: a channel is a sync word of 16 bytes at either end, bytes_sent and
// receiver_ack. The sender writes bytes_sent at both ends. The receiver answers with receiver_ack
// (arrived: the source may change) and with bytes_sent = 0 (used: the target may be overwritten).
//
//   // sender                                          // receiver
//   core.eth_send_bytes_over_channel(a, b, 4096, 1,    core.eth_wait_for_bytes_on_channel(4096, 1);
//                                    4096, 256);       ...
//   core.eth_wait_for_receiver_channel_done(1);        core.eth_receiver_channel_done(1);
//
// A wait that is documented to yield to the base firmware does. Only then can a link that went down
// be trained. The tests (eth_is_..., eth_bytes_are_available_...) take the time of a poll.
//
// Wrong: while (!core.eth_bytes_are_available_on_channel(1)) {}    Correct, but every poll costs
// the simulator an event, and a hang is not detected. Use a wait, or poll all channels in a loop
// that ends in idle().

namespace towpath::tenstorrent {

class EthernetCore : public DataMovementCore {
 public:
  // Polls per context switch of a kernel that never yields.
  static constexpr std::int64_t kNever = 0;
  static constexpr std::int64_t kPollsPerContextSwitch = 100'000;

  EthernetCore(noc::ChipNetwork& network, KernelConfig config, EthernetTile& tile,
               CoreObserver* observer = nullptr)
      : DataMovementCore(network, std::move(config), observer), tile_(tile) {}

  // Number of its channel among the chip's Ethernet cores.
  int channel() const { return tile_.end().channel; }
  static constexpr std::uint64_t bytes_sent_at(int channel) {
    return ethernet_memory_map::bytes_sent_at(channel);
  }
  static constexpr std::uint64_t receiver_ack_at(int channel) {
    return ethernet_memory_map::receiver_ack_at(channel);
  }
  // Offset that both ends of a link may write at any time: 16 bytes for a handshake.
  static constexpr std::uint64_t handshake_scratch() {
    return ethernet_memory_map::kUnreservedBase;
  }

  // --- transmit queues --------------------------------------------------------------------------
  bool eth_txq_is_busy(int queue = 0);
  // Sends words of 16 bytes. Waits until the queue accepts the command.
  void eth_send_packet(int queue, std::uint64_t source_word, std::uint64_t destination_word,
                       std::uint64_t words);
  // Submits to a queue that is not busy. The cost of the surrounding work is the caller's.
  void eth_send_packet_bytes_unsafe(int queue, std::uint64_t source, std::uint64_t destination,
                                    std::uint64_t size_bytes);
  // Takes its time at the queue and over the link, but has no effect unless the register is one of
  // EthernetTile's counters: others control hardware that is not modeled.
  void eth_write_remote_reg(int queue, std::uint64_t address, std::uint32_t value);

  // --- channel 0, as a one-shot -----------------------------------------------------------------
  // Sends in packets of `bytes_per_send`. The next announcement sends the sum of their bytes_sent.
  void eth_send_bytes(std::uint64_t source, std::uint64_t destination, std::uint64_t size_bytes,
                      std::uint64_t bytes_per_send = 16, std::uint64_t words_per_send = 1);
  void eth_wait_for_receiver_done();
  // The same in two calls.
  void eth_send_done();
  void eth_wait_receiver_done();
  void eth_wait_for_bytes(std::uint32_t size_bytes);
  void eth_receiver_done();
  void eth_receiver_acknowledge(int channel = 0);
  void eth_wait_receiver_acknowledge(int channel = 0);
  // Notifies the far end, fetches the next data from the core's sibling in the meantime, and waits.
  void eth_wait_for_remote_receiver_done_and_get_local_receiver_data(
      std::uint64_t sender_semaphore, const NocAddress& receiver_semaphore,
      const NocAddress& receiver_data, std::uint64_t local_offset, std::uint64_t size_bytes);

  // --- channels: the sender ---------------------------------------------------------------------
  void eth_send_bytes_over_channel(std::uint64_t source, std::uint64_t destination,
                                   std::uint64_t size_bytes, int channel,
                                   std::uint64_t bytes_per_send = 16,
                                   std::uint64_t words_per_send = 1);
  void eth_send_bytes_over_channel_payload_only(std::uint64_t source, std::uint64_t destination,
                                                std::uint64_t size_bytes, int channel,
                                                std::uint64_t bytes_per_send = 16,
                                                std::uint64_t words_per_send = 1);
  void eth_send_payload_complete_signal_over_channel(int channel, std::uint32_t size_bytes);
  bool eth_is_receiver_channel_send_acked(int channel);
  bool eth_is_receiver_channel_send_done(int channel);
  void eth_wait_for_receiver_channel_done(int channel);
  void eth_clear_sender_channel_ack(int channel);

  // --- channels: the receiver -------------------------------------------------------------------
  bool eth_bytes_are_available_on_channel(int channel);
  void eth_wait_for_bytes_on_channel(std::uint32_t size_bytes, int channel);
  // `ack_word` contains bytes_sent = receiver_ack = 1, and is not the sync word of a channel.
  void eth_receiver_channel_ack(int channel, std::uint64_t ack_word);
  void eth_receiver_channel_done(int channel);

  // --- the NoC, yielding to the base firmware during waits ---------------------------------------
  void eth_noc_semaphore_wait(std::uint64_t semaphore, std::uint32_t value);
  void eth_noc_semaphore_wait_min(std::uint64_t semaphore, std::uint32_t value);
  void eth_noc_async_read_barrier(int noc = kKernelNoc);
  void eth_noc_async_write_barrier(int noc = kKernelNoc);

  // --- the base firmware ------------------------------------------------------------------------
  // Gives it one turn, or turns for 100,000 cycles.
  void run_routing();
  void check_and_context_switch();
  // Adds one to the dispatcher's count of finished kernels. noc_async_atomic_barrier() waits for
  // its answer.
  void notify_dispatch_core_done(const NocAddress& dispatcher);

  // --- polling many conditions ------------------------------------------------------------------
  // Ends a loop that polls many conditions, none of which holds: the kernel continues at a
  // multiple of poll_cycles from now once anything has changed since the last idle() returned, in
  // its L1, at its queues, on the NoC or on the link. The base firmware has its turn after every
  // polls_per_context_switch polls. The result equals polling, for the price of one event.
  void idle(noc::Cycle poll_cycles, std::int64_t polls_per_context_switch = kPollsPerContextSwitch);

  // --- for the caller that runs the kernel -------------------------------------------------------
  // Takes the core, once the base firmware has finished its current work.
  void take_core();

 private:
  struct Polling {
    noc::Cycle poll_cycles = 1;
    std::int64_t polls_per_context_switch = kNever;
    // Duration of a turn of the firmware without work.
    noc::Cycle routing_cycles = 0;
  };
  // Causes that can make a condition true.
  enum class Cause : std::uint8_t { word, port, anything };

  template <typename Condition>
  void poll_until(const Polling& polling, const Wait& wait, Cause cause, Condition holds);
  static noc::Cycle poll_end(const Polling& polling, noc::Cycle waited);
  static noc::Cycle next_turn(const Polling& polling, noc::Cycle waited);
  static noc::Cycle turn_end(const Polling& polling, noc::Cycle waited);
  // Lets the base firmware do its work, which takes time only if there is some.
  void yield_to_firmware();
  Wait firmware_wait() const;
  void suspend_until_turn(noc::Cycle turn);
  Polling polling(std::int64_t polls_per_context_switch) const;
  void wait_for_word(std::uint64_t word, std::uint32_t value, std::string_view relation,
                     std::int64_t polls_per_context_switch);
  void wait_for_counters(noc::ChipNetwork::Condition condition, int noc);

  void submit(int queue, const ethernet::Command& command);
  void check_queue(int queue) const;
  void send_packets(std::uint64_t source, std::uint64_t destination, std::uint64_t size_bytes,
                    std::uint64_t bytes_per_send, std::uint64_t words_per_send);
  void send_channel_word(int channel, std::uint64_t from);
  // Writes the sync word at both ends.
  void set_channel(int channel, std::uint32_t bytes_sent, std::uint32_t receiver_ack);
  void check_channel(int channel) const;
  // Reads a word of L1, which takes a poll.
  std::uint32_t poll(std::uint64_t word);

  EthernetTile& tile_;
  std::uint64_t changes_seen_ = 0;
};

using EthernetKernel = std::function<void(EthernetCore&)>;

}  // namespace towpath::tenstorrent
