// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/tenstorrent/core/data_movement_core.hpp"

// API of a worker that sends messages to a data mover or receives from it. It may be the sender of
// one channel and the receiver of another. A channel serves one worker at either end.
//
//   DataMoverWorker channel = ...;  // from DataMoverBuilder
//   [=](DataMovementCore& core) { data_mover_sender(core, channel, {{0x1000, 4096}}); }
//
// Wrong: two kernels that send over the same channel. The mover notifies only one of them of a free
// buffer. The other one waits forever or overwrites data of the first.

namespace towpath::tenstorrent::kernels {

// A worker's view of one end of a channel.
struct DataMoverWorker {
  struct Slot {
    std::uint64_t end = 0;            // of the buffer, in the mover's L1
    std::size_t mover_semaphore = 0;  // ids
    std::size_t semaphore = 0;
  };
  machine::Coordinate mover;
  std::uint64_t message_bytes_max = 0;
  std::optional<std::uint64_t> messages{};  // none: until the sender's stop
  std::vector<Slot> slots{};
};

// A message in the worker's L1: a multiple of 16 bytes, at a multiple of 16.
struct DataMoverMessage {
  std::uint64_t offset = 0;
  std::uint32_t size_bytes = 0;
};

// --- kernels ------------------------------------------------------------------------------------
// Sends the messages in order, then stop if the channel has no fixed count. Throws
// std::invalid_argument if their number differs from the channel's.
void data_mover_sender(DataMovementCore& core, const DataMoverWorker& channel,
                       std::span<const DataMoverMessage> messages);
// Receives all messages, stores them consecutively at `offset`, and returns them in order.
std::vector<DataMoverMessage> data_mover_receiver(DataMovementCore& core,
                                                  const DataMoverWorker& channel,
                                                  std::uint64_t offset);

// --- their parts; messages are numbered from 0 --------------------------------------------------
// Waits until the message's buffer is free.
void wait_for_buffer(DataMovementCore& core, const DataMoverWorker& channel, std::uint64_t number);
// The source may change after noc_async_writes_flushed().
void push_message(DataMovementCore& core, const DataMoverWorker& channel, std::uint64_t number,
                  const DataMoverMessage& message);
// Sends stop after the last message, using a buffer like any message, and waits for the mover's
// last notification.
void push_stop(DataMovementCore& core, const DataMoverWorker& channel, std::uint64_t number);

// Waits for a message and returns its size, or kStop.
std::uint32_t wait_for_message(DataMovementCore& core, const DataMoverWorker& channel,
                               std::uint64_t number);
// Copies a message into the worker's L1.
void pull_message(DataMovementCore& core, const DataMoverWorker& channel, std::uint64_t number,
                  const DataMoverMessage& message);
// Returns a message's buffer to the mover.
void release_message(DataMovementCore& core, const DataMoverWorker& channel, std::uint64_t number);

}  // namespace towpath::tenstorrent::kernels
