// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/chunking.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace towpath::collective {
namespace {

constexpr std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

constexpr std::uint64_t minus_or_zero(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : 0;
}

}  // namespace

FifoLimits fifo_limits(Protocol protocol) {
  constexpr std::uint64_t kSimpleSlot = 4'194'304 / 8;
  constexpr std::uint64_t kLlSlot = 524'288 / 8;
  constexpr std::uint64_t kLl128Slot = 4'915'200 / 8;
  switch (protocol) {
    case Protocol::simple: return {8, 4, 2, 4 * kSimpleSlot, kSimpleSlot / 16};
    case Protocol::ll: return {8, 1, 1, kLlSlot / 2, 0};
    case Protocol::ll128: return {8, 1, 1, kLl128Slot / 16 * 15, 0};
  }
  return {};
}

bool works_on_parts(Collective collective) {
  switch (collective) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter:
    case Collective::all_to_all_v: return true;
    case Collective::all_reduce:
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::send_recv:
    case Collective::barrier: return false;
  }
  return false;
}

std::uint64_t element_granularity(const Schedule& schedule) {
  if (!works_on_parts(schedule.collective)) return 1;
  for (const RankProgram& program : schedule.ranks) {
    for (const ThreadBlock& block : program.blocks) {
      for (const Step& step : block.steps) {
        if (step.count > 1) return schedule.chunks;
      }
    }
  }
  return schedule.ranks.size();
}

Chunking::Chunking(const Schedule& schedule, std::uint64_t elements, std::uint64_t element_bytes)
    : elements_(elements), element_bytes_(element_bytes), fifo_(fifo_limits(schedule.protocol)) {
  const std::uint64_t granularity = element_granularity(schedule);
  if (elements == 0 || elements % granularity != 0) {
    throw std::invalid_argument(
        fmt::format("schedule '{}' cannot cut {} elements; allowed are positive multiples of {}",
                    schedule.name, elements, granularity));
  }
  const std::uint64_t transfer_elements =
      element_bytes == 0 ? 0 : fifo_.transfer_bytes_max / element_bytes;
  if (transfer_elements == 0) {
    throw std::invalid_argument(
        fmt::format("elements of {} bytes; allowed are 1 to {}, what a transfer holds",
                    element_bytes, fifo_.transfer_bytes_max));
  }
  if (works_on_parts(schedule.collective)) parts_ = schedule.ranks.size();
  part_elements_ = elements / parts_;
  chunks_per_part_ = schedule.chunks / parts_;
  chunk_elements_ = divide_up(part_elements_, chunks_per_part_);

  piece_elements_ = std::min(chunk_elements_, transfer_elements);
  iterations_ = divide_up(chunk_elements_, piece_elements_);
  chunks_per_transfer_ = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(transfer_elements / chunk_elements_, 1, kChunksPerTransferMax));
}

std::uint64_t Chunking::nominal(std::uint32_t count, std::uint64_t iteration) const {
  return count * std::min(piece_elements_, chunk_elements_ - iteration * piece_elements_);
}

Range Chunking::range(Buffer buffer, std::uint32_t chunk, std::uint32_t count,
                      std::uint64_t iteration) const {
  const std::uint64_t from = iteration * piece_elements_;
  const std::uint64_t asked = nominal(count, iteration);
  if (buffer == Buffer::scratch) return {chunk * chunk_elements_ + from, asked};
  // Several chunks travel together only where nothing is ragged or the array is one part, so what
  // exists of them is contiguous and ends with the array.
  const std::uint64_t part = chunk / chunks_per_part_;
  const std::uint64_t in_part = (chunk % chunks_per_part_) * chunk_elements_ + from;
  const std::uint64_t start = part * part_elements_ + std::min(in_part, part_elements_);
  const std::uint64_t end = count > 1 ? elements_ : (part + 1) * part_elements_;
  return {start, std::min(asked, minus_or_zero(end, start))};
}

std::uint32_t Chunking::slices(std::uint64_t transfer_elements) const {
  const std::uint64_t bytes = transfer_elements * element_bytes_;
  return bytes <= fifo_.slice_bytes_min ? 1 : fifo_.slices_per_transfer;
}

Slice Chunking::slice(std::uint64_t transfer_elements, std::uint32_t index) const {
  const std::uint32_t count = slices(transfer_elements);
  const std::uint64_t elements = divide_up(transfer_elements, count);
  const std::uint64_t offset = std::min(index * elements, transfer_elements);
  return {offset, std::min(elements, transfer_elements - offset), fifo_.slots_per_transfer / count};
}

std::uint64_t smallest_elements_with_chunk(const Schedule& schedule, std::uint64_t chunk_elements) {
  // A single element in the last chunk of a part, unless chunks must not be ragged.
  if (!works_on_parts(schedule.collective)) return (chunk_elements - 1) * schedule.chunks + 1;
  const std::uint64_t parts = schedule.ranks.size();
  if (element_granularity(schedule) > parts) return chunk_elements * schedule.chunks;
  return (chunk_elements - 1) * schedule.chunks + parts;
}

std::uint64_t smallest_elements_for(const Schedule& schedule, std::uint64_t element_bytes,
                                    std::uint32_t chunks_per_transfer) {
  if (chunks_per_transfer >= kChunksPerTransferMax) {
    return smallest_elements_with_chunk(schedule, 1);
  }
  // floor(transfer / chunk) <= c  <=>  chunk > transfer / (c + 1).
  const std::uint64_t transfer = fifo_limits(schedule.protocol).transfer_bytes_max / element_bytes;
  return smallest_elements_with_chunk(schedule, transfer / (chunks_per_transfer + 1) + 1);
}

}  // namespace towpath::collective
