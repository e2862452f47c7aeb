// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

// What a one-sided step needs and a step of a FIFO does not. It is kept beside the steps of a
// thread block, because most schedules have none.

namespace towpath::collective {

enum class Buffer : std::uint8_t { input, output, scratch };
inline constexpr int kBuffers = 3;

// Whose memory an operand is in: that of the step's own rank, of one peer, or of a group of ranks
// behind one switch, which combines what is loaded and copies what is stored.
enum class Holder : std::uint8_t { own, peer, group };

struct Operand {
  Holder holder = Holder::own;
  Buffer buffer = Buffer::input;
  bool is_packet = false;    // each word carries a flag, so that its reader waits for it (LL)
  std::int32_t number = -1;  // the peer's rank, or the place in Schedule::groups
  std::uint32_t chunk = 0;

  bool operator==(const Operand&) const = default;
};

// One end of the way that signals take between two ranks.
struct SignalEnd {
  std::int32_t peer = -1;
  std::int32_t channel = 0;

  bool operator==(const SignalEnd&) const = default;
};

struct Access {
  // direct: the sources are combined in this order, the result is stored to each destination.
  std::vector<Operand> sources;
  std::vector<Operand> destinations;
  std::uint32_t part = 0;   // of `parts` equal ones of the ranges, which a group of thread blocks
  std::uint32_t parts = 1;  // shares
  bool is_port = false;     // an adapter or copy engine moves the bytes; the block goes on

  // signal, wait, flush; of a direct step through a port: the way of each destination, or source.
  std::vector<SignalEnd> ends;
  bool is_relaxed = false;  // signal, wait: orders no memory
  bool signals = false;     // direct: raises the signal of each end behind its bytes
  bool flushes = false;     // direct: the block waits until its bytes are at the peer

  std::vector<std::uint32_t> semaphores;  // acquire, release
  std::uint32_t barrier = 0;
  std::uint32_t barrier_blocks = 0;  // that take part

  // pipeline: the steps go through `chunks` chunks in pieces of so many bytes.
  std::uint64_t unit_bytes = 0;
  std::uint32_t chunks = 0;

  bool operator==(const Access&) const = default;
};

}  // namespace towpath::collective
