// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "towpath/tenstorrent/core/call_costs.hpp"
#include "towpath/tenstorrent/metalium/kernel_clock.hpp"
#include "towpath/tenstorrent/metalium/kernel_runtime.hpp"

namespace towpath::tenstorrent::metalium {

KernelBuffers::KernelBuffers(DataMovementCore& core, const CircularBuffers& buffers)
    : core_(core), buffers_(buffers) {
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
    refuse(core_,
           fmt::format("{} pages from offset {} go beyond the end of the circular buffer at {}; "
                       "what is pushed and popped at once must divide its {} pages",
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
  core_.wait_for_word_min("cb_reserve_back",
                          worker_memory_map::pages_acked_at(static_cast<int>(number)),
                          needed - pages_of(cb));
}

void KernelBuffers::push_back(std::uint32_t number, std::uint32_t pages) {
  const CircularBuffer& cb = at(number);
  Pointers& pointers = pointers_[number];
  pointers.write = advance(pointers.write, pages, cb);
  pointers.received += pages;
  core_.store_word(worker_memory_map::pages_received_at(static_cast<int>(number)),
                   pointers.received);
}

void KernelBuffers::wait_front(std::uint32_t number, std::uint32_t pages) {
  const CircularBuffer& cb = at(number);
  if (pages > pages_of(cb)) {
    refuse(core_, fmt::format("it waits for {} pages of circular buffer {}, which has {}", pages,
                              number, pages_of(cb)));
  }
  core_.wait_for_word_min("cb_wait_front",
                          worker_memory_map::pages_received_at(static_cast<int>(number)),
                          pointers_[number].acked + pages);
}

void KernelBuffers::pop_front(std::uint32_t number, std::uint32_t pages) {
  const CircularBuffer& cb = at(number);
  Pointers& pointers = pointers_[number];
  pointers.read = advance(pointers.read, pages, cb);
  pointers.acked += pages;
  core_.store_word(worker_memory_map::pages_acked_at(static_cast<int>(number)), pointers.acked);
}

bool KernelBuffers::are_pages(std::uint32_t number, std::uint32_t pages, bool at_front) {
  const CircularBuffer& cb = at(number);
  const auto cb_number = static_cast<int>(number);
  core_.work(kPollCycles);
  if (at_front) {
    const std::uint32_t received = core_.load_word(worker_memory_map::pages_received_at(cb_number));
    return received - pointers_[number].acked >= pages;
  }
  const std::uint32_t acked = core_.load_word(worker_memory_map::pages_acked_at(cb_number));
  return pages_of(cb) - (pointers_[number].received - acked) >= pages;
}

}  // namespace towpath::tenstorrent::metalium
