// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/verify/cell_grid.hpp"

#include <algorithm>

#include "towpath/collective/schedule/one_sided.hpp"

namespace towpath::collective {

CellGrid::CellGrid(const Schedule& schedule, const Chunking& chunking)
    : chunking_(chunking), per_chunk_(chunking.fifo().slices_per_transfer) {
  std::uint64_t unit = 0;
  for (const RankProgram& program : schedule.ranks) {
    for (const ThreadBlock& block : program.blocks) {
      const Access* pipeline = nullptr;
      std::size_t end = 0;
      for (std::size_t s = 0; s < block.steps.size(); ++s) {
        const Step& step = block.steps[s];
        if (!is_one_sided(step.type)) continue;
        const Access& access = block.access(step);
        if (step.type == StepType::pipeline) {
          pipeline = &access;
          end = s + step.count;
          unit = unit_elements(access, chunking.element_bytes());
        }
        if (step.type == StepType::direct) add_cuts(step, access, s > end ? nullptr : pipeline);
      }
    }
  }
  if (cuts_.empty()) return;
  if (chunking.scratch_chunk_elements() < chunking.chunk_elements()) repeat_cuts(unit);
  cuts_.push_back(0);
  std::sort(cuts_.begin(), cuts_.end());
  cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
  per_chunk_ = static_cast<std::uint32_t>(cuts_.size());
}

void CellGrid::add_cuts(const Step& step, const Access& access, const Access* pipeline) {
  const std::uint64_t chunk = chunking_.chunk_elements();
  const std::uint64_t share = step.count * chunk / access.parts;
  const std::uint64_t begin = access.part * share;
  if (access.parts > 1) cuts_.insert(cuts_.end(), {begin % chunk, (begin + share) % chunk});
  if (pipeline == nullptr) return;
  const std::uint64_t unit = unit_elements(*pipeline, chunking_.element_bytes());
  if (share / unit > kCellsPerChunkMax) {
    cuts_.resize(kCellsPerChunkMax + 1, 0);
    for (std::size_t i = 0; i < cuts_.size(); ++i) cuts_[i] = i;  // too many in any case
    return;
  }
  for (std::uint64_t from = unit; from < share; from += unit) {
    cuts_.push_back((begin + from) % chunk);
  }
  if (cuts_.size() < 4096) return;
  std::sort(cuts_.begin(), cuts_.end());
  cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
}

// Scratch is reused every few units, so all units must be divided equally.
void CellGrid::repeat_cuts(std::uint64_t unit) {
  std::vector<std::uint64_t> repeated;
  for (const std::uint64_t cut : cuts_) {
    for (std::uint64_t at = cut % unit; at < chunking_.chunk_elements(); at += unit) {
      repeated.push_back(at);
    }
    std::sort(repeated.begin(), repeated.end());
    repeated.erase(std::unique(repeated.begin(), repeated.end()), repeated.end());
  }
  cuts_ = std::move(repeated);
}

std::uint32_t CellGrid::cell_at(std::uint64_t element) const {
  const std::uint64_t chunk = chunking_.chunk_elements();
  const auto cut = std::lower_bound(cuts_.begin(), cuts_.end(), element % chunk);
  return static_cast<std::uint32_t>(element / chunk) * per_chunk_ +
         static_cast<std::uint32_t>(cut - cuts_.begin());
}

CellSpan CellGrid::span(const Operand& operand, const Step& step, const Piece& piece) const {
  if (cuts_.empty()) return {0, step.count * per_chunk_};
  const Range range = chunking_.range(operand.buffer, operand.chunk, step.count, piece);
  const std::uint64_t chunk = operand.buffer == Buffer::scratch ? chunking_.scratch_chunk_elements()
                                                                : chunking_.chunk_elements();
  const std::uint64_t from = range.offset - operand.chunk * chunk;
  const std::uint32_t first = cell_at(from);
  return {first, cell_at(from + range.count) - first};
}

}  // namespace towpath::collective
