// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/collective/schedule/chunking.hpp"
#include "towpath/collective/schedule/schedule.hpp"

namespace towpath::collective {

// Cells of an operand, counted from the first one of its first chunk.
struct CellSpan {
  std::uint32_t first = 0;
  std::uint32_t cells = 0;
};

// Internal to the verifier: the division of chunks into cells, equal for all chunks. A chunk has
// two cells if transfers have two slices. If thread blocks share ranges or pipelines process them,
// every piece is a whole number of cells.
class CellGrid {
 public:
  CellGrid(const Schedule& schedule, const Chunking& chunking);

  std::uint32_t per_chunk() const { return per_chunk_; }
  CellSpan span(const Operand& operand, const Step& step, const Piece& piece) const;

 private:
  void add_cuts(const Step& step, const Access& access, const Access* pipeline);
  void repeat_cuts(std::uint64_t unit);
  std::uint32_t cell_at(std::uint64_t element) const;

  const Chunking& chunking_;
  std::uint32_t per_chunk_ = 1;
  std::vector<std::uint64_t> cuts_;  // offsets of the cells in a chunk, in elements; empty: halves
};

// Maximum number of cells per chunk.
inline constexpr std::uint32_t kCellsPerChunkMax = 1 << 16;

}  // namespace towpath::collective
