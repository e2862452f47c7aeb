// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "data_mover_worker.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "data_mover.hpp"
#include "towpath/tenstorrent/core/ethernet_memory_map.hpp"

namespace towpath::tenstorrent::kernels {

using ethernet_memory_map::kWordBytes;

namespace {

const DataMoverWorker::Slot& slot_of(const DataMoverWorker& channel, std::uint64_t number) {
  return channel.slots[number % channel.slots.size()];
}

// Cleared before the mover is notified.
std::uint32_t take(DataMovementCore& core, const DataMoverWorker::Slot& slot) {
  const std::uint64_t semaphore = core.get_semaphore(slot.semaphore);
  core.noc_semaphore_wait_min(semaphore, 1);
  const std::uint32_t value = core.load_word(semaphore);
  core.noc_semaphore_set(semaphore, 0);
  return value;
}

void tell_mover(DataMovementCore& core, const DataMoverWorker& channel, std::uint64_t number,
                std::uint32_t increment) {
  const std::uint64_t semaphore = core.get_semaphore(slot_of(channel, number).mover_semaphore);
  core.noc_semaphore_inc({channel.mover, semaphore}, increment);
}

}  // namespace

// --- sending ------------------------------------------------------------------------------------

void wait_for_buffer(DataMovementCore& core, const DataMoverWorker& channel, std::uint64_t number) {
  take(core, slot_of(channel, number));
}

void push_message(DataMovementCore& core, const DataMoverWorker& channel, std::uint64_t number,
                  const DataMoverMessage& message) {
  if (message.size_bytes == 0 || message.size_bytes % kWordBytes != 0 ||
      message.size_bytes > channel.message_bytes_max) {
    throw std::invalid_argument(fmt::format(
        "{}: message {} has {} bytes; its channel takes multiples of {} up to {}", core.where(),
        number, message.size_bytes, kWordBytes, channel.message_bytes_max));
  }
  // Both on the same static VC, which preserves their order.
  const std::uint64_t begin = slot_of(channel, number).end - message.size_bytes;
  core.noc_async_write(message.offset, {channel.mover, begin}, message.size_bytes);
  tell_mover(core, channel, number, message.size_bytes);
}

void push_stop(DataMovementCore& core, const DataMoverWorker& channel, std::uint64_t number) {
  wait_for_buffer(core, channel, number);
  tell_mover(core, channel, number, kStop);
  for (std::uint64_t other = 1; other < channel.slots.size(); ++other) {
    wait_for_buffer(core, channel, number + other);
  }
}

void data_mover_sender(DataMovementCore& core, const DataMoverWorker& channel,
                       std::span<const DataMoverMessage> messages) {
  if (channel.messages && *channel.messages != messages.size()) {
    throw std::invalid_argument(fmt::format("{}: has {} messages for a channel of {}", core.where(),
                                            messages.size(), *channel.messages));
  }
  std::uint64_t number = 0;
  for (const DataMoverMessage& message : messages) {
    wait_for_buffer(core, channel, number);
    push_message(core, channel, number++, message);
  }
  if (!channel.messages) push_stop(core, channel, number);
  core.noc_async_write_barrier();
  core.noc_async_atomic_barrier();
}

// --- receiving ----------------------------------------------------------------------------------

std::uint32_t wait_for_message(DataMovementCore& core, const DataMoverWorker& channel,
                               std::uint64_t number) {
  return take(core, slot_of(channel, number));
}

void pull_message(DataMovementCore& core, const DataMoverWorker& channel, std::uint64_t number,
                  const DataMoverMessage& message) {
  const std::uint64_t begin = slot_of(channel, number).end - message.size_bytes;
  core.noc_async_read({channel.mover, begin}, message.offset, message.size_bytes);
  core.noc_async_read_barrier();
}

void release_message(DataMovementCore& core, const DataMoverWorker& channel, std::uint64_t number) {
  tell_mover(core, channel, number, 1);
}

std::vector<DataMoverMessage> data_mover_receiver(DataMovementCore& core,
                                                  const DataMoverWorker& channel,
                                                  std::uint64_t offset) {
  std::vector<DataMoverMessage> messages;
  while (!channel.messages || messages.size() < *channel.messages) {
    const std::uint64_t number = messages.size();
    const std::uint32_t size_bytes = wait_for_message(core, channel, number);
    if (size_bytes == kStop) {
      release_message(core, channel, number);
      break;
    }
    messages.push_back({offset, size_bytes});
    pull_message(core, channel, number, messages.back());
    release_message(core, channel, number);
    offset += size_bytes;
  }
  core.noc_async_atomic_barrier();
  return messages;
}

}  // namespace towpath::tenstorrent::kernels
