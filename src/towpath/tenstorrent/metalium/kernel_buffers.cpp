// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "towpath/tenstorrent/core/call_costs.hpp"
#include "towpath/tenstorrent/metalium/kernel_clock.hpp"
#include "towpath/tenstorrent/metalium/kernel_runtime.hpp"

namespace towpath::tenstorrent::metalium {

KernelBuffers::KernelBuffers(DataMovementCore& core, OwnArrivals& arrivals,
                             const CircularBuffers& buffers)
    : core_(core), arrivals_(arrivals), buffers_(buffers) {
  for (std::size_t number = 0; number < buffers.size(); ++number) {
    pointers_[number] = {.read = buffers[number].offset, .write = buffers[number].offset};
  }
}

const CircularBuffer& KernelBuffers::at(std::uint32_t number) const {
  const std::size_t count = buffers_.size();
  if (number >= count || buffers_[number].page_bytes == 0) {
    refuse(core_, fmt::format("there is no circular buffer {} on this core", number));
  }
  return buffers_[number];
}

std::uint32_t KernelBuffers::advance(std::uint32_t offset, std::uint32_t pages,
                                     const CircularBuffer& buffer) const {
  const std::uint32_t next = offset + pages * buffer.page_bytes;
  const std::uint32_t end = buffer.offset + pages_of(buffer) * buffer.page_bytes;
  if (next > end) {
    refuse(core_, fmt::format("{} pages from offset {} go beyond the end of the circular buffer at "
                              "{}; the number pushed or popped at once must divide its {} pages",
                              pages, offset, end, pages_of(buffer)));
  }
  return next == end ? buffer.offset : next;
}

void KernelBuffers::reserve_back(std::uint32_t number, std::uint32_t pages) {
  const CircularBuffer& cb = at(number);
  if (pages > pages_of(cb)) {
    refuse(core_, fmt::format("it reserves {} pages of circular buffer {}, which has {}", pages,
                              number, pages_of(cb)));
  }
  const std::uint32_t needed = pointers_[number].received + pages;
  if (needed <= pages_of(cb)) return;
  const std::uint64_t acked_at = worker_memory_map::pages_acked_at(static_cast<int>(number));
  core_.wait_for_word_min("cb_reserve_back", acked_at, needed - pages_of(cb));
  arrivals_.see_word(acked_at);
}

std::uint32_t KernelBuffers::word(std::uint64_t offset) const {
  return core_.network().load_word(core_.config().core, offset);
}

// More pages than the buffer has would make the counters meaningless.
void KernelBuffers::check_push(std::uint32_t number, std::uint32_t pages) {
  const CircularBuffer& cb = at(number);
  const Pointers& pointers = pointers_[number];
  core_.leave_call(core_.place());
  const std::uint32_t acked = word(worker_memory_map::pages_acked_at(static_cast<int>(number)));
  const std::uint32_t free = pages_of(cb) - (pointers.received - acked);
  if (pages > free) {
    refuse(core_, fmt::format("it pushes pages of circular buffer {}: {}, with room for {}; "
                              "cb_reserve_back waits for room",
                              number, pages, free));
  }
  const std::uint64_t begin = pointers.write;
  arrivals_.push({begin, begin + std::uint64_t{pages} * cb.page_bytes});
}

void KernelBuffers::check_pop(std::uint32_t number, std::uint32_t pages) {
  const CircularBuffer& cb = at(number);
  const Pointers& pointers = pointers_[number];
  core_.leave_call(core_.place());
  const std::uint32_t received =
      word(worker_memory_map::pages_received_at(static_cast<int>(number)));
  if (pages > received - pointers.acked) {
    refuse(core_, fmt::format("it pops pages of circular buffer {}: {}, with {} pushed; "
                              "cb_wait_front waits for them",
                              number, pages, received - pointers.acked));
  }
  const std::uint64_t begin = pointers.read;
  arrivals_.pop({begin, begin + std::uint64_t{pages} * cb.page_bytes});
}

void KernelBuffers::push_back(std::uint32_t number, std::uint32_t pages) {
  const CircularBuffer& cb = at(number);
  check_push(number, pages);
  Pointers& pointers = pointers_[number];
  pointers.write = advance(pointers.write, pages, cb);
  pointers.received += pages;
  const std::uint64_t received_at = worker_memory_map::pages_received_at(static_cast<int>(number));
  core_.store_word(received_at, pointers.received);
  arrivals_.store_word(received_at, pointers.received);
}

void KernelBuffers::wait_front(std::uint32_t number, std::uint32_t pages) {
  const CircularBuffer& cb = at(number);
  if (pages > pages_of(cb)) {
    refuse(core_, fmt::format("it waits for {} pages of circular buffer {}, which has {}", pages,
                              number, pages_of(cb)));
  }
  const std::uint64_t received_at = worker_memory_map::pages_received_at(static_cast<int>(number));
  core_.wait_for_word_min("cb_wait_front", received_at, pointers_[number].acked + pages);
  arrivals_.see_word(received_at);
}

void KernelBuffers::pop_front(std::uint32_t number, std::uint32_t pages) {
  const CircularBuffer& cb = at(number);
  check_pop(number, pages);
  Pointers& pointers = pointers_[number];
  pointers.read = advance(pointers.read, pages, cb);
  pointers.acked += pages;
  const std::uint64_t acked_at = worker_memory_map::pages_acked_at(static_cast<int>(number));
  core_.store_word(acked_at, pointers.acked);
  arrivals_.store_word(acked_at, pointers.acked);
}

bool KernelBuffers::are_pages(std::uint32_t number, std::uint32_t pages, bool at_front) {
  const CircularBuffer& cb = at(number);
  const auto cb_number = static_cast<int>(number);
  core_.work(kPollCycles);
  if (at_front) {
    const std::uint64_t received_at = worker_memory_map::pages_received_at(cb_number);
    const std::uint32_t received = core_.load_word(received_at);
    arrivals_.see_word(received_at);
    return received - pointers_[number].acked >= pages;
  }
  const std::uint64_t acked_at = worker_memory_map::pages_acked_at(cb_number);
  const std::uint32_t acked = core_.load_word(acked_at);
  arrivals_.see_word(acked_at);
  return pages_of(cb) - (pointers_[number].received - acked) >= pages;
}

}  // namespace towpath::tenstorrent::metalium
