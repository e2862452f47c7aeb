// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/memory/tile_memories.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "towpath/base/index.hpp"

namespace towpath::noc {

using machine::TileKind;

TileMemories::TileMemories(const machine::Chip& chip)
    : chip_(chip), of_tile_(chip.tiles.size(), nullptr) {
  for (std::size_t number = 0; number < chip.tiles.size(); ++number) {
    const TileKind kind = chip.tiles[number].kind;
    if (kind != TileKind::worker && kind != TileKind::ethernet) continue;
    memories_.push_back(std::make_unique<TileMemory>(
        kind == TileKind::worker ? chip.l1_bytes : chip.ethernet_l1_bytes));
    of_tile_[number] = memories_.back().get();
  }
  const int channels = chip.dram.channels_per_group;
  if (channels == 0) return;
  for (const auto& tiles : chip.dram_groups) {
    memories_.push_back(std::make_unique<TileMemory>(chip.dram.channel_bytes *
                                                     static_cast<std::uint64_t>(channels)));
    for (const machine::Coordinate tile : tiles) {
      of_tile_[index(chip.number_of(tile))] = memories_.back().get();
    }
  }
}

TileMemory& TileMemories::checked(machine::Coordinate tile) const {
  if (!chip_.holds(tile)) {
    throw std::invalid_argument(fmt::format("({}, {}) is outside the {} x {} grid", tile.x, tile.y,
                                            chip_.width, chip_.height));
  }
  TileMemory* const memory = of(tile);
  if (memory == nullptr) {
    throw std::invalid_argument(fmt::format("({}, {}) is a {} tile, which has no memory", tile.x,
                                            tile.y, machine::name_of(chip_.tile(tile).kind)));
  }
  return *memory;
}

TileMemory& TileMemories::checked(machine::Coordinate core, std::uint64_t offset,
                                  std::uint64_t size_bytes) const {
  TileMemory& memory = checked(core);
  const std::uint64_t memory_bytes = memory.bytes.size_bytes();
  if (offset > memory_bytes || size_bytes > memory_bytes - offset) {
    throw std::invalid_argument(
        fmt::format("core ({}, {}) accesses {} bytes at offset {} of its memory, which has {}",
                    core.x, core.y, size_bytes, offset, memory_bytes));
  }
  return memory;
}

TileMemory& TileMemories::checked_word(machine::Coordinate core, std::uint64_t offset) const {
  TileMemory& memory = checked(core, offset, kWordBytes);
  if (offset % kWordBytes != 0) {
    throw std::invalid_argument(fmt::format(
        "core ({}, {}) accesses a word at offset {} of its memory; it must be at a multiple of {}",
        core.x, core.y, offset, kWordBytes));
  }
  return memory;
}

void TileMemories::stop_waking(machine::Coordinate core, const sim::Process& process) {
  std::erase_if(of(core)->waiting,
                [&](const auto& waiting) { return waiting.process == &process; });
}

void TileMemories::written(TileMemory& memory, std::uint64_t offset, std::uint64_t size_bytes,
                           sim::Simulation& simulation) {
  ++memory.writes;
  std::erase_if(memory.waiting, [&](const TileMemory::WriteWaiting& waiting) {
    if (waiting.offset + waiting.size_bytes <= offset || waiting.offset >= offset + size_bytes) {
      return false;
    }
    simulation.wake(*waiting.process);
    return true;
  });
}

}  // namespace towpath::noc
