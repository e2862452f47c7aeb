// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

// Operands and signals of a one-sided step. Stored next to the steps of a thread block, because
// most schedules have none.

namespace towpath::collective {

enum class Buffer : std::uint8_t { input, output, scratch };
inline constexpr int kBuffers = 3;

// The owner of an operand's memory: the step's rank, one peer, or a group of ranks behind one
// switch. The switch combines loads and multicasts stores.
enum class Holder : std::uint8_t { own, peer, group };

struct Operand {
  Holder holder = Holder::own;
  Buffer buffer = Buffer::input;
  bool is_packet = false;    // each word carries a flag for its reader (LL)
  std::int32_t number = -1;  // peer rank, or index in Schedule::groups
  std::uint32_t chunk = 0;

  bool operator==(const Operand&) const = default;
};

// One end of a signal path between two ranks.
struct SignalEnd {
  std::int32_t peer = -1;
  std::int32_t channel = 0;

  bool operator==(const SignalEnd&) const = default;
};

struct Access {
  // direct: combines the sources in this order and stores the result to each destination.
  std::vector<Operand> sources;
  std::vector<Operand> destinations;
  std::uint32_t part = 0;   // of `parts` equal parts of the ranges,
  std::uint32_t parts = 1;  // one per thread block of a group
  bool is_port = false;     // an adapter or copy engine moves the bytes asynchronously

  // signal, wait, flush; direct through a port: the path of each destination or source.
  std::vector<SignalEnd> ends;
  bool is_relaxed = false;  // signal, wait: orders no memory
  bool signals = false;     // direct: raises the signal of each end after its bytes
  bool flushes = false;     // direct: blocks until its bytes are at the peer

  std::vector<std::uint32_t> semaphores;  // acquire, release
  std::uint32_t barrier = 0;
  std::uint32_t barrier_blocks = 0;  // number of participants

  // pipeline: the steps process `chunks` chunks in pieces of unit_bytes.
  std::uint64_t unit_bytes = 0;
  std::uint32_t chunks = 0;

  bool operator==(const Access&) const = default;
};

}  // namespace towpath::collective
