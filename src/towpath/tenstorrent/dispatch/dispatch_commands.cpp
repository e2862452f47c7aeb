// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/dispatch/dispatch_commands.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "towpath/base/invariant.hpp"
#include "towpath/tenstorrent/dispatch/dispatch_ring.hpp"

namespace towpath::tenstorrent {

using machine::Coordinate;

namespace {

// Source: tt-metal, cq_commands.hpp: targets of one command with data for each.
constexpr std::size_t kLargeTargetsMax = 35;
// Alignment of a target's data, required by the NoC (L1 alignment in the source).
constexpr std::uint64_t kDataAlignmentBytes = 16;
// Source: tt-metal, device_command_calculator.hpp: words of the command that sets them.
constexpr int kWriteOffsets = 4;

constexpr std::uint64_t kHeaderBytes = sizeof(PrefetchCommand) + sizeof(DispatchCommand);

UnicastTarget target_of(Coordinate tile) {
  return {static_cast<std::uint16_t>(tile.x), static_cast<std::uint16_t>(tile.y)};
}

bool holds(Coordinate first, Coordinate last, Coordinate tile) {
  return tile.x >= first.x && tile.x <= last.x && tile.y >= first.y && tile.y <= last.y;
}

bool are_all_among(const machine::Chip& chip, Coordinate first, Coordinate last,
                   const std::vector<Coordinate>& some) {
  return std::ranges::all_of(chip.workers, [&](Coordinate worker) {
    return !holds(first, last, worker) || std::ranges::find(some, worker) != some.end();
  });
}

}  // namespace

// Each rectangle grows to the right, then down.
std::vector<MulticastTarget> rectangles_of(const machine::Chip& chip,
                                           std::vector<Coordinate> workers) {
  std::vector<MulticastTarget> rectangles;
  std::ranges::sort(workers, {}, [](Coordinate at) { return std::pair(at.y, at.x); });
  while (!workers.empty()) {
    const Coordinate first = workers.front();
    Coordinate last = first;
    const auto grow = [&](int Coordinate::*side) {
      Coordinate farthest = last;
      for (const Coordinate worker : workers) {
        Coordinate corner = last;
        corner.*side = worker.*side;
        if (corner.*side > farthest.*side && are_all_among(chip, first, corner, workers)) {
          farthest = corner;
        }
      }
      last = farthest;
    };
    grow(&Coordinate::x);
    grow(&Coordinate::y);
    rectangles.push_back({target_of(first), target_of(last)});
    std::erase_if(workers, [&](Coordinate worker) { return holds(first, last, worker); });
  }
  return rectangles;
}

// Reads from the host have the alignment of reads from DRAM.
CommandWriter::CommandWriter(const machine::Chip& chip)
    : alignment_bytes_(static_cast<std::uint64_t>(chip.alignment.dram_read_bytes)) {}

void CommandWriter::set_write_offsets() {
  begin({.kind = DispatchCommand::Kind::set_write_offsets});
  add(std::array<std::uint32_t, kWriteOffsets>{});
  end();
}

void CommandWriter::wait_for_writes() {
  begin({.kind = DispatchCommand::Kind::wait, .flags = kWaitsForWrites});
  end();
}

void CommandWriter::wait_for_cores(std::uint32_t ended, bool stalls_prefetcher) {
  const int flags = kWaitsForWrites | (stalls_prefetcher ? kNotifiesPrefetcher : 0);
  begin({.kind = DispatchCommand::Kind::wait,
         .flags = static_cast<std::uint8_t>(flags),
         .value = ended});
  end();
  if (!stalls_prefetcher) return;
  Bytes& command = commands_.back();
  const PrefetchCommand stall{.kind = PrefetchCommand::Kind::stall,
                              .stride_bytes = static_cast<std::uint32_t>(alignment_bytes_)};
  const std::size_t at = command.size();
  command.resize(at + alignment_bytes_);
  std::memcpy(command.data() + at, &stall, sizeof(stall));
}

void CommandWriter::write_linear(Coordinate tile, std::uint64_t offset,
                                 std::span<const std::byte> data) {
  const std::uint64_t most = (kPrefetchBytesMax - kHeaderBytes - sizeof(LinearTarget)) /
                                 alignment_bytes_ * alignment_bytes_ -
                             alignment_bytes_;
  for (std::uint64_t done = 0; done < data.size();) {
    const std::uint64_t part = std::min(most, data.size() - done);
    begin({.kind = DispatchCommand::Kind::write_linear,
           .size_bytes = static_cast<std::uint32_t>(part)});
    add(LinearTarget{tile.x, tile.y, offset + done});
    add_bytes(data.subspan(done, part));
    end();
    done += part;
  }
}

template <typename Target, typename DataOf>
void CommandWriter::write_packed_parts(std::span<const Target> targets, DispatchCommand command,
                                       std::size_t targets_max, const DataOf& data_of) {
  const std::uint64_t each = sizeof(Target) + rounded_up(command.size_bytes, kDataAlignmentBytes);
  const std::uint64_t room = kPrefetchBytesMax - kHeaderBytes - kDataAlignmentBytes;
  const std::size_t most = std::min<std::size_t>(targets_max, room / each);
  TOWPATH_CHECK(most > 0, "{} bytes for a core do not fit into what is fetched at once",
                command.size_bytes);
  for (std::size_t done = 0; done < targets.size();) {
    const std::size_t part = std::min(most, targets.size() - done);
    command.count = static_cast<std::uint16_t>(part);
    begin(command);
    for (const Target& target : targets.subspan(done, part)) add(target);
    for (std::size_t i = 0; i < part; ++i) {
      align(kDataAlignmentBytes);
      add_bytes(data_of(done + i));
    }
    end();
    done += part;
  }
}

void CommandWriter::write_packed(std::span<const Coordinate> cores, std::uint64_t offset,
                                 std::span<const Bytes> data) {
  if (cores.empty() || data.front().empty()) return;
  std::vector<UnicastTarget> targets;
  for (const Coordinate core : cores) targets.push_back(target_of(core));
  write_packed_parts(std::span<const UnicastTarget>(targets),
                     {.kind = DispatchCommand::Kind::write_packed,
                      .size_bytes = static_cast<std::uint32_t>(data.front().size()),
                      .value = static_cast<std::uint32_t>(offset)},
                     std::numeric_limits<std::uint16_t>::max(),
                     [&](std::size_t number) -> const Bytes& { return data[number]; });
}

void CommandWriter::write_packed(std::span<const MulticastTarget> rectangles, std::uint64_t offset,
                                 std::span<const std::byte> data) {
  write_packed_parts(rectangles,
                     {.kind = DispatchCommand::Kind::write_packed,
                      .flags = kGoesToRectangles,
                      .size_bytes = static_cast<std::uint32_t>(data.size()),
                      .value = static_cast<std::uint32_t>(offset)},
                     std::numeric_limits<std::uint16_t>::max(), [&](std::size_t) { return data; });
}

void CommandWriter::write_packed_large(std::span<const MulticastTarget> rectangles,
                                       std::uint64_t offset, std::span<const std::byte> data) {
  if (data.empty()) return;
  std::vector<LargeTarget> targets;
  for (const MulticastTarget& rectangle : rectangles) {
    targets.push_back({rectangle, static_cast<std::uint32_t>(offset)});
  }
  write_packed_parts(std::span<const LargeTarget>(targets),
                     {.kind = DispatchCommand::Kind::write_packed_large,
                      .flags = kGoesToRectangles,
                      .size_bytes = static_cast<std::uint32_t>(data.size())},
                     kLargeTargetsMax, [&](std::size_t) { return data; });
}

void CommandWriter::go_signal(std::span<const MulticastTarget> rectangles, std::uint64_t offset,
                              std::uint32_t word) {
  if (rectangles.empty()) return;
  begin({.kind = DispatchCommand::Kind::go_signal,
         .flags = kGoesToRectangles,
         .count = static_cast<std::uint16_t>(rectangles.size()),
         .size_bytes = word,
         .value = static_cast<std::uint32_t>(offset)});
  for (const MulticastTarget& rectangle : rectangles) add(rectangle);
  end();
}

void CommandWriter::go_signal(std::span<const Coordinate> cores, std::uint64_t offset,
                              std::uint32_t word) {
  if (cores.empty()) return;
  begin({.kind = DispatchCommand::Kind::go_signal,
         .count = static_cast<std::uint16_t>(cores.size()),
         .size_bytes = word,
         .value = static_cast<std::uint32_t>(offset)});
  for (const Coordinate core : cores) add(target_of(core));
  end();
}

// Source of its 16 bytes of payload: tt-metal, dispatch_settings.hpp, EVENT_PADDED_SIZE.
void CommandWriter::write_host(std::uint32_t events) {
  begin({.kind = DispatchCommand::Kind::write_host, .value = events});
  add(std::array<std::uint32_t, 4>{events});
  end();
}

std::vector<CommandWriter::Bytes> CommandWriter::take_entries() {
  std::vector<Bytes> entries;
  for (Bytes& command : std::exchange(commands_, {})) {
    const bool fits =
        !entries.empty() && entries.back().size() + command.size() <= kPrefetchBytesMax;
    if (!fits) entries.emplace_back();
    entries.back().insert(entries.back().end(), command.begin(), command.end());
  }
  return entries;
}

void CommandWriter::begin(const DispatchCommand& command) {
  add(PrefetchCommand{});
  add(command);
}

void CommandWriter::add_bytes(std::span<const std::byte> bytes) {
  current_.insert(current_.end(), bytes.begin(), bytes.end());
}

void CommandWriter::align(std::uint64_t unit_bytes) {
  current_.resize(rounded_up(current_.size(), unit_bytes));
}

void CommandWriter::end() {
  const std::uint64_t length = current_.size() - sizeof(PrefetchCommand);
  align(alignment_bytes_);
  const PrefetchCommand relay{.length_bytes = static_cast<std::uint32_t>(length),
                              .stride_bytes = static_cast<std::uint32_t>(current_.size())};
  std::memcpy(current_.data(), &relay, sizeof(relay));
  DispatchCommand command;
  std::memcpy(&command, current_.data() + sizeof(relay), sizeof(command));
  command.length_bytes = static_cast<std::uint32_t>(length);
  std::memcpy(current_.data() + sizeof(relay), &command, sizeof(command));
  commands_.push_back(std::exchange(current_, {}));
}

}  // namespace towpath::tenstorrent
