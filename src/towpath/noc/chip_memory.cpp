// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "towpath/noc/chip_network.hpp"

// Memories behind the tiles: access checks, wake-ups, and sources that must not change.

namespace towpath::noc {

const ChipNetwork::Group& ChipNetwork::checked_group(machine::Coordinate tile) const {
  if (!chip_->holds(tile)) {
    throw std::invalid_argument(fmt::format("({}, {}) is outside of the {} x {} grid", tile.x,
                                            tile.y, chip_->width, chip_->height));
  }
  const Group* group = group_of(tile);
  if (group == nullptr) {
    throw std::invalid_argument(fmt::format("({}, {}) is a {} tile, which has no memory", tile.x,
                                            tile.y, machine::name_of(chip_->tile(tile).kind)));
  }
  return *group;
}

ChipNetwork::Group& ChipNetwork::checked_group(machine::Coordinate tile) {
  return const_cast<Group&>(std::as_const(*this).checked_group(tile));
}

const ChipNetwork::Group& ChipNetwork::checked_group(machine::Coordinate core, std::uint64_t offset,
                                                     std::uint64_t size_bytes) const {
  const Group& group = checked_group(core);
  const std::uint64_t memory_bytes = group.memory.size_bytes();
  if (offset > memory_bytes || size_bytes > memory_bytes - offset) {
    throw std::invalid_argument(
        fmt::format("core ({}, {}) touches {} bytes at offset {} of its memory, which has {}",
                    core.x, core.y, size_bytes, offset, memory_bytes));
  }
  return group;
}

Memory& ChipNetwork::memory(machine::Coordinate tile) { return checked_group(tile).memory; }

void ChipNetwork::load(machine::Coordinate core, std::uint64_t offset,
                       std::span<std::byte> to) const {
  checked_group(core, offset, to.size()).memory.read(offset, to);
}

void ChipNetwork::store(machine::Coordinate core, std::uint64_t offset,
                        std::span<const std::byte> from) {
  static_cast<void>(checked_group(core, offset, from.size()));
  if (options_.carries_data || from.size() == kWordBytes) change(core, offset, from, {});
}

std::uint32_t ChipNetwork::load_word(machine::Coordinate core, std::uint64_t offset) const {
  const Group& group = checked_group(core, offset, kWordBytes);
  if (offset % kWordBytes != 0) {
    throw std::invalid_argument(fmt::format(
        "core ({}, {}) touches a word at offset {} of its memory; words are at multiples of {}",
        core.x, core.y, offset, kWordBytes));
  }
  return group.memory.load_word(offset);
}

void ChipNetwork::store_word(machine::Coordinate core, std::uint64_t offset, std::uint32_t value) {
  static_cast<void>(load_word(core, offset));  // for its checks
  store(core, offset, std::as_bytes(std::span(&value, 1)));
}

void ChipNetwork::deliver(machine::Coordinate core, std::uint64_t offset,
                          std::span<const std::byte> from) {
  change(core, offset, from, {.is_outside = true});
}

void ChipNetwork::wake_on_write(machine::Coordinate core, std::uint64_t offset,
                                sim::Process& process, std::uint64_t size_bytes) {
  group_of(core)->waiting.push_back({offset, size_bytes, &process});
}

void ChipNetwork::stop_waking(machine::Coordinate core, const sim::Process& process) {
  const auto is_it = [&](const auto& waiting) { return waiting.process == &process; };
  std::erase_if(group_of(core)->waiting, is_it);
  for (int noc = 0; noc < 2; ++noc) std::erase_if(niu(noc, core).waiting, is_it);
}

std::uint64_t ChipNetwork::writes_to(machine::Coordinate core) const {
  return group_of(core)->writes;
}

void ChipNetwork::change(machine::Coordinate tile, std::uint64_t offset,
                         std::span<const std::byte> bytes, Writer writer) {
  Group& group = *group_of(tile);
  if (!group.sources.empty()) check_sources(group, tile, offset, bytes, writer);
  group.memory.write(offset, bytes);
  changed(group, offset, bytes.size());
}

void ChipNetwork::changed(Group& group, std::uint64_t offset, std::uint64_t size_bytes) {
  ++group.writes;
  std::erase_if(group.waiting, [&](const WriteWaiting& waiting) {
    if (waiting.offset + waiting.size_bytes <= offset || waiting.offset >= offset + size_bytes) {
      return false;
    }
    simulation_.wake(*waiting.process);
    return true;
  });
}

// Bytes that keep their value are allowed.
void ChipNetwork::check_sources(const Group& group, machine::Coordinate tile, std::uint64_t offset,
                                std::span<const std::byte> bytes, Writer writer) const {
  for (const Source& source : group.sources) {
    const std::uint64_t first = std::max(source.offset, offset);
    const std::uint64_t last = std::min(source.offset + source.size_bytes, offset + bytes.size());
    if (first >= last) continue;
    std::vector<std::byte> before(last - first);
    group.memory.read(first, before);
    if (std::ranges::equal(before, bytes.subspan(first - offset, last - first))) continue;
    const Transaction& send = transactions_[source.transaction];
    std::string who = "another chip";
    if (const Request* request = writer.request; request != nullptr) {
      who = fmt::format("{} ({}, {})'s {}", group_of(request->core) == nullptr ? "tile" : "core",
                        request->core.x, request->core.y, describe(*request));
    } else if (!writer.is_outside) {
      who = fmt::format("core ({}, {}) itself", tile.x, tile.y);
    }
    throw std::runtime_error(fmt::format(
        "cycle {}: {} changes bytes {} to {} of core ({}, {})'s memory, which its {}, issued in "
        "cycle {}, has yet to read",
        cycle(), who, first, last - 1, tile.x, tile.y, describe(send.request), send.issued));
  }
}

}  // namespace towpath::noc
