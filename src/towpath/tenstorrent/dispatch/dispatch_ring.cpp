// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/dispatch/dispatch_ring.hpp"

namespace towpath::tenstorrent {

namespace {

constexpr std::uint32_t units(std::uint64_t bytes) {
  return static_cast<std::uint32_t>((bytes + kRingUnitBytes - 1) / kRingUnitBytes);
}

}  // namespace

void send_count(DataMovementCore& core, std::uint64_t bytes, std::uint64_t staging,
                const NocAddress& to) {
  core.noc_async_writes_flushed();
  core.store_word(staging, units(bytes));
  core.noc_async_write(staging, to, noc::kWordBytes);
}

std::uint64_t RingWriter::room_bytes() {
  const std::uint64_t freed = core_.load_word(words_.freed) * kRingUnitBytes;
  return to_.ring.size_bytes - (put_bytes_ - freed);
}

void RingWriter::wait_for_room(std::uint64_t size_bytes) {
  const std::uint64_t end = put_bytes_ + size_bytes;
  if (end <= to_.ring.size_bytes) return;
  core_.noc_semaphore_wait_min(words_.freed, units(end - to_.ring.size_bytes));
}

void RingWriter::put(const Ring& from, std::uint64_t position, std::uint64_t size_bytes) {
  from.for_each_part(
      position, size_bytes, [&](std::uint64_t source, std::uint64_t done, std::uint64_t bytes) {
        to_.ring.for_each_part(put_bytes_ + done, bytes,
                               [&](std::uint64_t target, std::uint64_t before, std::uint64_t part) {
                                 core_.noc_async_write(source + before, {to_.core, target}, part);
                               });
      });
  put_bytes_ += size_bytes;
}

void RingWriter::announce() {
  send_count(core_, put_bytes_, words_.staging, {to_.core, to_.count_word});
}

void RingReader::wait_for(std::uint64_t position) {
  core_.noc_semaphore_wait_min(from_.count_word, units(position));
}

void RingReader::load(std::uint64_t position, std::span<std::byte> to) {
  from_.ring.for_each_part(position, to.size(),
                           [&](std::uint64_t at, std::uint64_t done, std::uint64_t bytes) {
                             core_.load(at, to.subspan(done, bytes));
                           });
}

void RingReader::free(std::uint64_t position) { send_count(core_, position, staging_, freed_); }

}  // namespace towpath::tenstorrent
