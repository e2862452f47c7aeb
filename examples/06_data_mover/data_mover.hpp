// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/tenstorrent/core/ethernet_core.hpp"

// The ERISC data mover (EDM): one kernel on an Ethernet core that moves messages of several
// channels over its link, in both directions, for workers at either end (tt-metal, tech report "CCL
// developer guide"). DataMoverBuilder lays out both ends of a link. data_mover_worker.hpp is the
// workers' API.
//
// A channel is unidirectional and has slots. A slot is a buffer and a sync word at either end, plus
// four semaphores. It holds one message at a time: message m uses slot m modulo the number of
// slots:
//
//   sender's worker     waits for "free", clears it, writes the message into the sender's buffer,
//                       adds its size to the sender's semaphore
//   sender              clears that, sends message and sync word
//   receiver            sees bytes_sent; acknowledges (the sender's buffer is free again), adds the
//                       size to its worker's semaphore
//   receiver's worker   clears that, reads the buffer to the end, signals the receiver
//   receiver            clears that, reports done: bytes_sent = 0 (its buffer is free again)
//   sender              adds one to its worker's "free"
//
// A kernel clears a semaphore before it notifies its partner, so that no notification is lost. A
// message ends at the end of its buffer, so a merged sync word always follows it.

namespace towpath::tenstorrent::kernels {

enum class ChannelSync : std::uint8_t {
  separate,  // a second command, to channel 1 or higher of erisc_info
  merged     // after the message, in the same command
};

// Sent in place of a message's size: the sender's worker has no more messages. It passes through
// the channel like a message.
inline constexpr std::uint32_t kStop = 1U << 30;

struct DataMoverSlot {
  std::uint64_t end = 0;             // of this end's buffer; a merged sync word follows
  std::uint64_t far_end = 0;         // of the buffer at the far end
  int sync_channel = 0;              // of erisc_info, if separate
  std::size_t semaphore = 0;         // of this end
  std::size_t worker_semaphore = 0;  // of its worker
};

struct DataMoverChannel {
  bool is_sender = false;
  machine::Coordinate worker{};
  std::uint64_t message_bytes_max = 0;
  std::optional<std::uint64_t> messages{};  // none: until the worker's stop
  std::vector<DataMoverSlot> slots{};
};

struct DataMoverConfig {
  ChannelSync sync = ChannelSync::merged;
  // Whether receivers acknowledge a message on arrival, before their workers have it.
  bool acknowledges = true;
  std::uint64_t acknowledgement_word = 0;  // 16 bytes of the core's L1 for the acknowledgement
  bool is_handshake_master = false;        // set at one end of the link
  std::int64_t polls_per_context_switch = 0;
  std::vector<DataMoverChannel> channels;
};

// The kernel: handshake, then messages until all channels have ended and all credits are back.
void data_mover(EthernetCore& core, const DataMoverConfig& config);

// The parts before and after handshake(). `prepare` must finish before the peer may send.
void data_mover_prepare(EthernetCore& core, const DataMoverConfig& config);
void data_mover_run(EthernetCore& core, const DataMoverConfig& config);

}  // namespace towpath::tenstorrent::kernels
