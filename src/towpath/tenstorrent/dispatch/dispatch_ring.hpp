// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "towpath/tenstorrent/core/data_movement_core.hpp"

// Bytes on their way from core to core through rings in L1, the basis of fast dispatch. A producer
// writes bytes into a ring of the consumer, and then their count into a word next to it. The
// consumer writes the count of bytes that it has freed into a word of the producer. Both counts
// start at zero, in units of 16 bytes. Writes of one core on one static VC arrive in order, so a
// count never arrives before its bytes.

namespace towpath::tenstorrent {

inline constexpr std::uint64_t kRingUnitBytes = 16;

constexpr std::uint64_t rounded_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// A ring of bytes in an L1. Positions count all bytes since the start.
struct Ring {
  std::uint64_t base = 0;
  std::uint64_t size_bytes = 0;

  std::uint64_t at(std::uint64_t position) const { return base + position % size_bytes; }
  // Bytes from there to the end of the memory.
  std::uint64_t contiguous_bytes(std::uint64_t position) const {
    return size_bytes - position % size_bytes;
  }
  // Calls part(offset in L1, bytes done, bytes) for each contiguous part.
  template <typename Part>
  void for_each_part(std::uint64_t position, std::uint64_t size, const Part& part) const {
    for (std::uint64_t done = 0; done < size;) {
      const std::uint64_t bytes = std::min(size - done, contiguous_bytes(position + done));
      part(at(position + done), done, bytes);
      done += bytes;
    }
  }
};

// A ring of a core, and the word with the count of its bytes.
struct RingPlace {
  machine::Coordinate core;
  Ring ring;
  std::uint64_t count_word = 0;
};

// The producer's words: the count of freed bytes, and the source of the counts that it sends.
struct ProducerWords {
  std::uint64_t freed = 0;
  std::uint64_t staging = 0;
};

class RingWriter {
 public:
  RingWriter(DataMovementCore& core, const RingPlace& to, const ProducerWords& words)
      : core_(core), to_(to), words_(words) {}

  // Bytes that fit now.
  std::uint64_t room_bytes();
  // Waits until this number of bytes fits.
  void wait_for_room(std::uint64_t size_bytes);
  // Writes bytes of a ring in its L1.
  void put(const Ring& from, std::uint64_t position, std::uint64_t size_bytes);
  // Pads to a multiple of `unit_bytes`.
  void skip_to(std::uint64_t unit_bytes) { put_bytes_ = rounded_up(put_bytes_, unit_bytes); }
  // Announces the bytes to the consumer when all have left the core, and their source may change.
  void announce();

 private:
  DataMovementCore& core_;
  RingPlace to_;
  ProducerWords words_;
  std::uint64_t put_bytes_ = 0;
};

class RingReader {
 public:
  // `freed` is the word of the producer, `staging` one of the consumer.
  RingReader(DataMovementCore& core, const RingPlace& from, const NocAddress& freed,
             std::uint64_t staging)
      : core_(core), from_(from), freed_(freed), staging_(staging) {}

  const Ring& ring() const { return from_.ring; }
  // Waits until all bytes before a position have arrived.
  void wait_for(std::uint64_t position);
  void load(std::uint64_t position, std::span<std::byte> to);
  // Frees all bytes before a position.
  void free(std::uint64_t position);

 private:
  DataMovementCore& core_;
  RingPlace from_;
  NocAddress freed_;
  std::uint64_t staging_;
};

// Sends a count from a word of the core's L1, after all earlier writes of the core.
void send_count(DataMovementCore& core, std::uint64_t bytes, std::uint64_t staging,
                const NocAddress& to);

}  // namespace towpath::tenstorrent
