// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/race_monitor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "towpath/gpu/pe.hpp"

namespace towpath::gpu {

void RaceMonitor::check(const MemoryAccess& access, bool is_store, const Block& block) {
  if (block.grid().launch().is_internal) return;
  Seen now{.of = block.history(),
           .moment = block.history()->now(),
           .time = block.pe().simulation().now(),
           .kernel = block.grid().launch().name,
           .index = block.pe().current().block,
           .pe = block.pe().rank(),
           .thread = block.running_index(),
           .where = access.where,
           .bytes = 0,
           .is_store = is_store};
  const std::uintptr_t end = access.address + access.size_bytes;
  for (std::uintptr_t at = access.address; at < end;) {
    const std::uintptr_t cell = at / kCellBytes * kCellBytes;
    const std::uintptr_t cell_end = std::min(end, cell + kCellBytes);
    const std::uintptr_t first = at - cell;
    const std::uintptr_t count = cell_end - at;
    now.bytes = static_cast<std::uint8_t>(((1u << count) - 1) << first);
    check_cell(cells_[cell], now, block);
    at = cell_end;
  }
}

void RaceMonitor::check_cell(std::vector<Seen>& cell, const Seen& now, const Block& block) const {
  for (const Seen& before : cell) {
    const bool conflicts =
        before.of != now.of && (before.bytes & now.bytes) != 0 && (before.is_store || now.is_store);
    if (conflicts && !now.of->knows(before.moment, before.time)) refuse(before, now, block);
  }
  const auto same = std::find_if(cell.begin(), cell.end(), [&](const Seen& before) {
    return before.of == now.of && before.bytes == now.bytes && before.is_store == now.is_store;
  });
  if (same != cell.end()) {
    *same = now;
    return;
  }
  if (cell.size() == kSeenMax) cell.erase(cell.begin());
  cell.push_back(now);
}

void RaceMonitor::refuse(const Seen& before, const Seen& now, const Block& block) {
  const auto describe = [&](const Seen& seen) {
    const std::string place = block.pe().object().place_of(seen.where);
    return fmt::format("thread {} of block ({},{},{}) of kernel {} on PE {}{}{}", seen.thread,
                       seen.index.x, seen.index.y, seen.index.z, seen.kernel, seen.pe,
                       place.empty() ? "" : " at ", place);
  };
  throw KernelError(
      Hazard::block_race,
      fmt::format("race of blocks: {} {} a word that {} {}, and the two are not ordered; use an "
                  "atomic, give the word to one block, or add a signal or a barrier between them",
                  describe(now), now.is_store ? "stores to" : "loads", describe(before),
                  before.is_store ? "stores to" : "loads"));
}

}  // namespace towpath::gpu
