// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/collective/schedule/schedule.hpp"

// How a message of a given size is cut: array -> chunks -> transfers -> slices -> FIFO slots.
//
// The array is cut into schedule.chunks chunks (each part of it separately where the collective
// works on parts, so that a chunk never crosses from one rank's part into the next). A chunk that
// is larger than a transfer may be is walked in pieces, all steps once per piece (an *iteration*);
// otherwise up to chunks_per_transfer chunks of a step travel together. A transfer is sent in one
// or more slices, each signalled by itself, and takes slots_per_transfer slots of its connection.
// Verifier, simulator and live executor all use this one description.
//
// One-sided steps take their chunks whole, in one iteration, unless the schedule has FIFOs, too. A
// pipeline goes through them in pieces of its own.

namespace towpath::collective {

// The FIFO of one connection. Slot sizes and counts are NCCL's defaults: 8 slots; buffers of 4 MiB
// (Simple), 512 KiB (LL, half of it payload) and 4,915,200 bytes (LL128, 15/16 payload). Simple
// moves half of the FIFO per transfer, in two slices.
struct FifoLimits {
  std::uint32_t slots = 8;
  std::uint32_t slots_per_transfer = 1;
  std::uint32_t slices_per_transfer = 1;
  std::uint64_t transfer_bytes_max = 0;  // payload
  std::uint64_t slice_bytes_min = 0;     // a smaller transfer is one slice
};
FifoLimits fifo_limits(Protocol protocol);

inline constexpr std::uint32_t kChunksPerTransferMax = 71;

// A contiguous piece of one buffer, in elements.
struct Range {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;  // what exists of it: less than asked for at the ragged end
};

// Which elements of its ranges a one-sided step works on.
struct Piece {
  std::uint64_t iteration = 0;
  std::uint32_t part = 0;  // of `parts` equal ones
  std::uint32_t parts = 1;
  std::uint64_t unit_elements = 0;  // of a pipeline; 0: all
  std::uint64_t loop = 0;           // how many units went before
};

struct Slice {
  std::uint64_t offset = 0;  // elements from the start of the transfer
  std::uint64_t count = 0;   // nominal; the ragged end may hold fewer
  std::uint32_t slots = 0;
};

class Chunking {
 public:
  // `elements` is the size of the whole array (nccl-tests' size divided by the element size).
  // Throws std::invalid_argument unless it is a positive multiple of element_granularity().
  Chunking(const Schedule& schedule, std::uint64_t elements, std::uint64_t element_bytes);

  std::uint64_t elements() const { return elements_; }
  std::uint64_t part_elements() const { return part_elements_; }
  std::uint64_t element_bytes() const { return element_bytes_; }
  std::uint64_t chunk_elements() const { return chunk_elements_; }
  // None is shorter than another at the ragged end of the array or of a part.
  bool has_equal_chunks() const { return chunk_elements_ * chunks_per_part_ == part_elements_; }
  std::uint64_t iterations() const { return iterations_; }
  std::uint32_t chunks_per_transfer() const { return chunks_per_transfer_; }
  const FifoLimits& fifo() const { return fifo_; }

  // Transfers that a step of `count` chunks makes in each iteration.
  std::uint32_t transfers(std::uint32_t count) const {
    return (count + chunks_per_transfer_ - 1) / chunks_per_transfer_;
  }
  // Elements that a transfer of `count` chunks carries in `iteration`, ragged ends not considered.
  std::uint64_t nominal(std::uint32_t count, std::uint64_t iteration) const;
  // Where `count` chunks from `chunk` on lie in a buffer, in `iteration`.
  Range range(Buffer buffer, std::uint32_t chunk, std::uint32_t count,
              std::uint64_t iteration) const;

  // A piece of that range. A unit that the range does not reach is empty.
  Range range(Buffer buffer, std::uint32_t chunk, std::uint32_t count, const Piece& piece) const;

  std::uint32_t slices(std::uint64_t transfer_elements) const;
  Slice slice(std::uint64_t transfer_elements, std::uint32_t index) const;

  std::uint64_t scratch_elements(std::uint32_t scratch_chunks) const {
    return scratch_chunks * scratch_chunk_elements_;
  }
  // Elements that a scratch chunk has room for; fewer than a chunk's where it is used again.
  std::uint64_t scratch_chunk_elements() const { return scratch_chunk_elements_; }

 private:
  void limit_scratch(const Schedule& schedule);

  std::uint64_t elements_ = 0;
  std::uint64_t element_bytes_ = 1;
  std::uint64_t parts_ = 1;
  std::uint64_t part_elements_ = 0;
  std::uint64_t chunks_per_part_ = 1;
  std::uint64_t chunk_elements_ = 0;
  std::uint64_t scratch_chunk_elements_ = 0;
  std::uint64_t piece_elements_ = 0;  // of a chunk, per iteration
  std::uint64_t iterations_ = 1;
  std::uint32_t chunks_per_transfer_ = 1;
  FifoLimits fifo_;
};

// The array is cut at rank boundaries for these.
bool works_on_parts(Collective collective);

// What the number of elements must be a multiple of: the number of ranks where the collective works
// on parts, of chunks if moreover several chunks travel in one step, otherwise one.
std::uint64_t element_granularity(const Schedule& schedule);

// The smallest array, in elements, whose chunks have `chunk_elements` (at least 1).
std::uint64_t smallest_elements_with_chunk(const Schedule& schedule, std::uint64_t chunk_elements);

// The smallest array, in elements, for which chunks_per_transfer() is at most what is asked for.
std::uint64_t smallest_elements_for(const Schedule& schedule, std::uint64_t element_bytes,
                                    std::uint32_t chunks_per_transfer);

}  // namespace towpath::collective
