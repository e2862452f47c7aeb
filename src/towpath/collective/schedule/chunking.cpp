// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/chunking.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "towpath/base/index.hpp"
#include "towpath/collective/schedule/one_sided.hpp"
#include "towpath/collective/schedule/symmetry.hpp"

namespace towpath::collective {
namespace {

constexpr std::uint64_t minus_or_zero(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : 0;
}

bool has_pipeline(const Schedule& schedule) {
  for (const RankProgram& program : schedule.ranks) {
    for (const ThreadBlock& block : program.blocks) {
      for (const Access& access : block.accesses) {
        if (access.unit_bytes > 0) return true;
      }
    }
  }
  return false;
}

bool uses_scratch(const Access& access) {
  const auto is_scratch = [](const Operand& operand) { return operand.buffer == Buffer::scratch; };
  return std::any_of(access.sources.begin(), access.sources.end(), is_scratch) ||
         std::any_of(access.destinations.begin(), access.destinations.end(), is_scratch);
}

bool uses_scratch(const ThreadBlock& block, const Step& step) {
  if (step.type == StepType::direct) return uses_scratch(block.access(step));
  if (is_one_sided(step.type)) return false;
  return (reads_source(step.type) && step.source == Buffer::scratch) ||
         (writes_destination(step.type) && step.destination == Buffer::scratch);
}

// Adds the units of pipelines whose steps use scratch, in elements. Adds 0 for scratch use outside
// a pipeline, or not chunk by chunk.
void add_scratch_units(const ThreadBlock& block, std::uint64_t element_bytes,
                       std::set<std::uint64_t>& units) {
  const Access* pipeline = nullptr;
  std::size_t end = 0;  // of the pipeline
  for (std::size_t s = 0; s < block.steps.size(); ++s) {
    const Step& step = block.steps[s];
    if (step.type == StepType::pipeline) {
      pipeline = &block.access(step);
      end = s + step.count;
    }
    if (!uses_scratch(block, step)) continue;
    const bool is_piece = pipeline != nullptr && s <= end && pipeline->chunks == 1 &&
                          step.type == StepType::direct && step.count == 1 &&
                          block.access(step).parts == 1;
    units.insert(is_piece ? unit_elements(*pipeline, element_bytes) : 0);
  }
}

// The common unit, in elements, of the pipelines around all steps with scratch; 0 if there is none.
std::uint64_t unit_of_all_scratch_steps(const Schedule& schedule, std::uint64_t element_bytes) {
  std::set<std::uint64_t> units;
  for (const RankProgram& program : schedule.ranks) {
    for (const ThreadBlock& block : program.blocks) add_scratch_units(block, element_bytes, units);
  }
  return units.size() == 1 ? *units.begin() : 0;
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

FifoLimits fifo_limits(const Schedule& schedule) {
  const FifoLimits whole = fifo_limits(schedule.protocol);
  if (!schedule.has_half_blocks) return whole;
  return {whole.slots, 1, 1, whole.transfer_bytes_max / whole.slots_per_transfer, 0};
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
  if (has_one_sided_steps(schedule)) {
    const std::uint64_t parts = common_parts(schedule);
    if (parts > 1 || has_pipeline(schedule)) return schedule.chunks * parts;
  }
  if (!works_on_parts(schedule.collective)) return 1;
  const bool has_several = any_distinct_steps(schedule, [](const ThreadBlock& block) {
    for (const Step& step : block.steps) {
      if (step.count > 1) return true;
    }
    return false;
  });
  return has_several ? schedule.chunks : schedule.ranks.size();
}

Chunking::Chunking(const Schedule& schedule, std::uint64_t elements, std::uint64_t element_bytes)
    : elements_(elements), element_bytes_(element_bytes), fifo_(fifo_limits(schedule)) {
  const std::uint64_t granularity = element_granularity(schedule);
  if (elements == 0 || elements % granularity != 0) {
    throw std::invalid_argument(
        fmt::format("schedule '{}' cannot divide {} elements; use a positive multiple of {}",
                    schedule.name, elements, granularity));
  }
  const std::uint64_t transfer_elements =
      element_bytes == 0 ? 0 : fifo_.transfer_bytes_max / element_bytes;
  if (transfer_elements == 0) {
    throw std::invalid_argument(
        fmt::format("an element has {} bytes; it must have 1 to {}, the size of a transfer",
                    element_bytes, fifo_.transfer_bytes_max));
  }
  if (works_on_parts(schedule.collective)) parts_ = schedule.ranks.size();
  part_elements_ = elements / parts_;
  chunks_per_part_ = schedule.chunks / parts_;
  chunk_elements_ = divide_up(part_elements_, chunks_per_part_);

  scratch_chunk_elements_ = chunk_elements_;
  limit_scratch(schedule);
  if (has_one_sided_steps(schedule) && !has_fifo_steps(schedule)) {
    piece_elements_ = chunk_elements_;
    chunks_per_transfer_ = kChunksPerTransferMax;
    return;
  }
  piece_elements_ = std::min(chunk_elements_, transfer_elements);
  iterations_ = divide_up(chunk_elements_, piece_elements_);
  chunks_per_transfer_ = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(transfer_elements / chunk_elements_, 1, kChunksPerTransferMax));
}

// Pieces of a pipeline reuse the same scratch, so they must fit into it without other users.
void Chunking::limit_scratch(const Schedule& schedule) {
  if (schedule.scratch_bytes_max == 0) return;
  std::uint64_t chunks = 1;
  for (const RankProgram& program : schedule.ranks) {
    chunks = std::max<std::uint64_t>(chunks, program.scratch_chunks);
  }
  const std::uint64_t room = schedule.scratch_bytes_max / element_bytes_ / chunks;
  if (chunk_elements_ <= room) return;
  const std::uint64_t unit = unit_of_all_scratch_steps(schedule, element_bytes_);
  if (unit == 0 || unit > room) {
    throw std::invalid_argument(fmt::format(
        "schedule '{}' has chunks of {} bytes at this size and a scratch with room for {} of each; "
        "use a smaller array, or pipelines with one unit for all steps that use scratch",
        schedule.name, chunk_elements_ * element_bytes_, room * element_bytes_));
  }
  scratch_chunk_elements_ = room / unit * unit;
}

std::uint64_t Chunking::nominal(std::uint32_t count, std::uint64_t iteration) const {
  return count * std::min(piece_elements_, chunk_elements_ - iteration * piece_elements_);
}

Range Chunking::range(Buffer buffer, std::uint32_t chunk, std::uint32_t count,
                      std::uint64_t iteration) const {
  const std::uint64_t from = iteration * piece_elements_;
  const std::uint64_t asked = nominal(count, iteration);
  if (buffer == Buffer::scratch) return {chunk * chunk_elements_ + from, asked};
  // Several chunks share a transfer only if no chunk is ragged or the array is one part. Their
  // elements are then contiguous and end with the array.
  const std::uint64_t part = chunk / chunks_per_part_;
  const std::uint64_t in_part = (chunk % chunks_per_part_) * chunk_elements_ + from;
  const std::uint64_t start = part * part_elements_ + std::min(in_part, part_elements_);
  const std::uint64_t end = count > 1 ? elements_ : (part + 1) * part_elements_;
  return {start, std::min(asked, minus_or_zero(end, start))};
}

Range Chunking::range(Buffer buffer, std::uint32_t chunk, std::uint32_t count,
                      const Piece& piece) const {
  Range whole = range(buffer, chunk, count, piece.iteration);
  if (piece.parts == 1 && piece.unit_elements == 0) {
    if (buffer == Buffer::scratch) {
      whole.offset = chunk * scratch_chunk_elements_ + piece.iteration * piece_elements_;
    }
    return whole;
  }
  // Chunks are whole here; see element_granularity.
  const std::uint64_t share = count * chunk_elements_ / piece.parts;
  const std::uint64_t from = piece.loop * piece.unit_elements;
  const std::uint64_t left = minus_or_zero(share, from);
  const std::uint64_t size = piece.unit_elements == 0 ? share : std::min(left, piece.unit_elements);
  const std::uint64_t part = piece.part * share;
  if (buffer != Buffer::scratch) return {whole.offset + part + std::min(from, share), size};
  const bool is_reused = scratch_chunk_elements_ < chunk_elements_;
  const std::uint64_t in_chunk = is_reused ? from % scratch_chunk_elements_ : std::min(from, share);
  return {chunk * scratch_chunk_elements_ + part + in_chunk, size};
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
  if (has_one_sided_steps(schedule)) {
    const std::uint64_t granularity = element_granularity(schedule);
    if (granularity >= schedule.chunks) {
      return divide_up(chunk_elements * schedule.chunks, granularity) * granularity;
    }
  }
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
  const std::uint64_t transfer = fifo_limits(schedule).transfer_bytes_max / element_bytes;
  return smallest_elements_with_chunk(schedule, transfer / (chunks_per_transfer + 1) + 1);
}

}  // namespace towpath::collective
