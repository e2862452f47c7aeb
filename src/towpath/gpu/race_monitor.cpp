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
           .number = ++events_,
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
    if (!conflicts) continue;
    const bool is_known = now.of->knows(before.moment, before.time);
    if (before.is_store && (is_known || has_looked(before, now)) && !is_released(before, now)) {
      refuse_fence(before, now, block);
    }
    if (!is_known) refuse(before, now, block);
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

void RaceMonitor::note_release(const Block& block, abi::FenceScope scope) {
  Order& order = orders_[block.history()];
  order.releases.push_back(++events_);
  if (scope == abi::FenceScope::system) order.system_releases.push_back(events_);
}

void RaceMonitor::note_flag(const Block& block, std::uintptr_t address, std::uint64_t size_bytes) {
  ++events_;
  for (std::uintptr_t at = address; at < address + size_bytes; at += kCellBytes) {
    flags_[at / kCellBytes] = {block.history(), events_};
  }
}

void RaceMonitor::note_look(const Block& block, std::uintptr_t address, std::uint64_t size_bytes) {
  Order& order = orders_[block.history()];
  ++events_;
  for (std::uintptr_t at = address; at < address + size_bytes; at += kCellBytes) {
    const auto flag = flags_.find(at / kCellBytes);
    const Flag seen = flag == flags_.end() ? Flag{} : flag->second;
    order.looks[seen.of] = {events_, seen.number};
  }
}

bool RaceMonitor::has_looked(const Seen& before, const Seen& now) const {
  const auto reader = orders_.find(now.of);
  if (reader == orders_.end()) return false;
  return std::any_of(reader->second.looks.begin(), reader->second.looks.end(),
                     [&](const auto& look) { return look.second.number > before.number; });
}

// True if a fence is between the store and the store of a flag that the other block has seen, or if
// the store is in the past of the other block by more than its own looks. After a look at the flag
// of a third block, any fence before that look counts.
bool RaceMonitor::is_released(const Seen& before, const Seen& now) const {
  const auto writer = orders_.find(before.of);
  const auto reader = orders_.find(now.of);
  if (writer != orders_.end() && reader != orders_.end()) {
    const auto& releases =
        before.pe == now.pe ? writer->second.releases : writer->second.system_releases;
    const auto next = std::upper_bound(releases.begin(), releases.end(), before.number);
    for (const auto& [of, look] : reader->second.looks) {
      const std::uint64_t limit = of == before.of ? look.flag : look.number;
      if (next != releases.end() && *next < limit) return true;
    }
  }
  return now.of->knows_without_looks(before.moment, before.time);
}

namespace {

std::string described(const std::string& place, int thread, const abi::Index3& index,
                      const char* kernel, int pe) {
  return fmt::format("thread {} of block ({},{},{}) of kernel {} on PE {}{}{}", thread, index.x,
                     index.y, index.z, kernel, pe, place.empty() ? "" : " at ", place);
}

}  // namespace

void RaceMonitor::refuse_fence(const Seen& before, const Seen& now, const Block& block) {
  const auto describe = [&](const Seen& seen) {
    return described(block.pe().object().place_of(seen.where), seen.thread, seen.index, seen.kernel,
                     seen.pe);
  };
  const bool is_of_peer = before.pe != now.pe;
  throw KernelError(
      Hazard::missing_fence,
      fmt::format("missing fence: {} {} a word that {} stores to, after a look at memory that the "
                  "other block changes later, and no fence of {} orders the two stores; put {} "
                  "between them, or store with .release{}",
                  describe(now), now.is_store ? "stores to" : "loads", describe(before),
                  is_of_peer ? "the system" : "the GPU",
                  is_of_peer ? "__threadfence_system or fence.acq_rel.sys"
                             : "__threadfence or fence.acq_rel.gpu",
                  is_of_peer ? ".sys" : ""));
}

void RaceMonitor::refuse(const Seen& before, const Seen& now, const Block& block) {
  const auto describe = [&](const Seen& seen) {
    return described(block.pe().object().place_of(seen.where), seen.thread, seen.index, seen.kernel,
                     seen.pe);
  };
  throw KernelError(
      Hazard::block_race,
      fmt::format("race of blocks: {} {} a word that {} {}, and the two are not ordered; use an "
                  "atomic, give the word to one block, or add a signal or a barrier between them",
                  describe(now), now.is_store ? "stores to" : "loads", describe(before),
                  before.is_store ? "stores to" : "loads"));
}

void note_release(const Block& block, abi::FenceScope scope) {
  RaceMonitor* const races = block.pe().run().races;
  if (races != nullptr) races->note_release(block, scope);
}

}  // namespace towpath::gpu
