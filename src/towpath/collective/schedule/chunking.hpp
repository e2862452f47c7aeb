// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/collective/schedule/schedule.hpp"

// Splits a message of a given size: array -> chunks -> transfers -> slices -> FIFO slots.
//
// The array has schedule.chunks chunks. If the collective works on parts, each part is split
// separately, so no chunk crosses from one rank's part into the next. A chunk above the maximum
// transfer size is processed in pieces, all steps once per piece (an *iteration*). Otherwise up to
// chunks_per_transfer chunks of a step share a transfer. A transfer has one or more slices, each
// with its signal, and takes slots_per_transfer slots of its connection. Verifier, simulator and
// live executor share this description.
//
// One-sided steps process whole chunks in one iteration, unless the schedule also has FIFOs. A
// pipeline divides them into pieces.

namespace towpath::collective {

// The FIFO of one connection. Slot sizes and counts are NCCL's defaults: 8 slots, with buffers of 4
// MiB (Simple), 512 KiB (LL, half of it payload) and 4,915,200 bytes (LL128, 15/16 payload). Simple
// moves half of the FIFO per transfer, in two slices.
struct FifoLimits {
  std::uint32_t slots = 8;
  std::uint32_t slots_per_transfer = 1;
  std::uint32_t slices_per_transfer = 1;
  std::uint64_t transfer_bytes_max = 0;  // payload
  std::uint64_t slice_bytes_min = 0;     // smaller transfers have one slice
};
FifoLimits fifo_limits(Protocol protocol);
FifoLimits fifo_limits(const Schedule& schedule);

inline constexpr std::uint32_t kChunksPerTransferMax = 71;

// A contiguous range of one buffer, in elements.
struct Range {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;  // existing elements; fewer than requested at the ragged end
};

// The elements of its ranges that a one-sided step processes.
struct Piece {
  std::uint64_t iteration = 0;
  std::uint32_t part = 0;  // of `parts` equal parts
  std::uint32_t parts = 1;
  std::uint64_t unit_elements = 0;  // of a pipeline; 0: all
  std::uint64_t loop = 0;           // number of earlier units
};

struct Slice {
  std::uint64_t offset = 0;  // in elements from the start of the transfer
  std::uint64_t count = 0;   // nominal; the ragged end may have fewer
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
  // The length of the chunk at the ragged end of the array or of a part.
  std::uint64_t shortest_chunk_elements() const {
    const std::uint64_t before = chunk_elements_ * (chunks_per_part_ - 1);
    return before < part_elements_ ? part_elements_ - before : 0;
  }
  // True if no chunk is shorter at the ragged end of the array or of a part.
  bool has_equal_chunks() const { return chunk_elements_ * chunks_per_part_ == part_elements_; }
  std::uint64_t iterations() const { return iterations_; }
  std::uint32_t chunks_per_transfer() const { return chunks_per_transfer_; }
  const FifoLimits& fifo() const { return fifo_; }

  // Transfers per iteration of a step of `count` chunks.
  std::uint32_t transfers(std::uint32_t count) const {
    return (count + chunks_per_transfer_ - 1) / chunks_per_transfer_;
  }
  // Elements of a transfer of `count` chunks in `iteration`, ignoring ragged ends.
  std::uint64_t nominal(std::uint32_t count, std::uint64_t iteration) const;
  // The range of `count` chunks starting at `chunk` in a buffer, in `iteration`.
  Range range(Buffer buffer, std::uint32_t chunk, std::uint32_t count,
              std::uint64_t iteration) const;

  // A piece of that range. Empty if the range ends before the unit.
  Range range(Buffer buffer, std::uint32_t chunk, std::uint32_t count, const Piece& piece) const;

  std::uint32_t slices(std::uint64_t transfer_elements) const;
  Slice slice(std::uint64_t transfer_elements, std::uint32_t index) const;

  std::uint64_t scratch_elements(std::uint32_t scratch_chunks) const {
    return scratch_chunks * scratch_chunk_elements_;
  }
  // Capacity of a scratch chunk in elements; less than a full chunk if scratch is reused.
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

// True if the array is divided at rank boundaries.
bool works_on_parts(Collective collective);

// Required divisor of the element count: the number of ranks if the collective works on parts, the
// number of chunks if also several chunks travel in one step, otherwise 1.
std::uint64_t element_granularity(const Schedule& schedule);

// The smallest array, in elements, whose chunks have `chunk_elements` (at least 1).
std::uint64_t smallest_elements_with_chunk(const Schedule& schedule, std::uint64_t chunk_elements);

// The smallest array, in elements, with at most the given chunks_per_transfer().
std::uint64_t smallest_elements_for(const Schedule& schedule, std::uint64_t element_bytes,
                                    std::uint32_t chunks_per_transfer);

}  // namespace towpath::collective
