// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/request_rules.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "towpath/base/invariant.hpp"
#include "towpath/noc/niu/transactions.hpp"

namespace towpath::noc {

namespace {

template <typename... Arguments>
[[noreturn]] void refuse(const Request& request, fmt::format_string<Arguments...> format,
                         Arguments&&... arguments) {
  throw std::invalid_argument(
      fmt::format("core ({}, {}), NoC {}: the {} {}", request.core.x, request.core.y, request.noc,
                  describe(request), fmt::format(format, std::forward<Arguments>(arguments)...)));
}

bool fits(std::uint64_t offset, std::uint64_t size_bytes, std::uint64_t memory_bytes) {
  return offset <= memory_bytes && size_bytes <= memory_bytes - offset;
}

}  // namespace

std::vector<machine::Coordinate> receivers_of(const machine::Chip& chip, const Request& request) {
  const MulticastRectangle rectangle = request.rectangle();
  std::vector<machine::Coordinate> tiles;
  for (int number = 0; number < static_cast<int>(chip.tiles.size()); ++number) {
    const machine::Coordinate at = chip.coordinate_of(number);
    if (!rectangle.holds(at)) continue;
    if (chip.tile(at).kind != machine::TileKind::worker) continue;
    if (at == request.core && !request.includes_source) continue;
    tiles.push_back(at);
  }
  return tiles;
}

void RequestRules::check_place(const Request& request) const {
  if (request.noc != 0 && request.noc != 1) refuse(request, "must use NoC 0 or 1");
  if (!chip_.holds(request.core)) {
    refuse(request, "comes from outside the {} x {} grid", chip_.width, chip_.height);
  }
}

void RequestRules::check_vc(const Request& request) const {
  const int first_vc = request.is_multicast ? 4 : 0;
  const int last_vc = request.is_multicast ? 5 : 3;
  if (request.vc < first_vc || request.vc > last_vc) {
    refuse(request, "uses VC {}; it must be {} to {} for {}", request.vc, first_vc, last_vc,
           request.is_multicast ? "multicasts" : "unicasts");
  }
  if (request.kind == RequestKind::read && request.is_posted) {
    refuse(request, "is posted, but a read always has an answer");
  }
}

void RequestRules::check(const Request& request) const {
  check_place(request);
  if (request.initiator < 0 || request.initiator >= chip_.niu.initiators) {
    refuse(request, "uses initiator {}; it must be 0 to {}", request.initiator,
           chip_.niu.initiators - 1);
  }
  if (request.transaction_id < 0 || request.transaction_id >= chip_.niu.transaction_ids) {
    refuse(request, "uses transaction id {}; it must be 0 to {}", request.transaction_id,
           chip_.niu.transaction_ids - 1);
  }
  check_vc(request);
  check_own_memory(request);
  check_remote(request);
  check_alignment(request);
}

void RequestRules::check_outside(const Request& request) const {
  check_place(request);
  const TileMemory* own = memories_.of(request.core);
  TOWPATH_CHECK(moves_data(request.kind) && !request.is_multicast && request.initiator == 0,
                "only reads and writes of one tile are issued from outside the chip");
  TOWPATH_CHECK(own == nullptr, "tile ({}, {}) has memory, so its requests are its core's",
                request.core.x, request.core.y);
  if (request.size_bytes == 0) refuse(request, "moves nothing");
  check_vc(request);
  check_remote(request);
}

void RequestRules::check_own_memory(const Request& request) const {
  const TileMemory* own = memories_.of(request.core);
  if (own == nullptr || memories_.is_dram(request.core)) {
    refuse(request, "comes from a {} tile, which cannot issue requests",
           machine::name_of(chip_.tile(request.core).kind));
  }
  if (!moves_data(request.kind)) return;
  if (request.size_bytes == 0) refuse(request, "moves nothing");
  if (!fits(request.local_offset, request.size_bytes, own->bytes.size_bytes())) {
    refuse(request, "leaves the core's own memory at offset {}; it has {} bytes",
           request.local_offset, own->bytes.size_bytes());
  }
}

void RequestRules::check_remote(const Request& request) const {
  const machine::Coordinate at = request.remote.tile;
  if (!chip_.holds(at) || (request.is_multicast && !chip_.holds(request.last_tile))) {
    refuse(request, "leaves the {} x {} grid", chip_.width, chip_.height);
  }
  std::uint64_t memory_bytes = chip_.l1_bytes;
  if (request.is_multicast) {
    check_multicast(request);
  } else if (const OutsideMemory* outside = attached_.at(at); outside != nullptr) {
    return check_attached(request, *outside);
  } else {
    const TileMemory* memory = memories_.of(at);
    if (memory == nullptr) {
      refuse(request, "reaches a {} tile, which has no memory",
             machine::name_of(chip_.tile(at).kind));
    }
    memory_bytes = memory->bytes.size_bytes();
    if (!moves_data(request.kind) && memories_.is_dram(at)) {
      refuse(request, "reaches a dram tile; only L1 accepts it");
    }
  }
  const std::uint64_t size_bytes = moves_data(request.kind) ? request.size_bytes : kWordBytes;
  if (!fits(request.remote.offset, size_bytes, memory_bytes)) {
    refuse(request, "leaves the memory there at offset {}; it has {} bytes", request.remote.offset,
           memory_bytes);
  }
}

void RequestRules::check_attached(const Request& request, const OutsideMemory& memory) const {
  if (!moves_data(request.kind)) {
    refuse(request, "reaches memory outside the chip; only reads and writes can");
  }
  const std::string obstacle = memory.obstacle(request.remote.offset, request.size_bytes);
  if (!obstacle.empty()) refuse(request, "{}", obstacle);
}

void RequestRules::check_multicast(const Request& request) const {
  if (request.kind == RequestKind::read) refuse(request, "cannot be a multicast");
  if (receivers_of(chip_, request).empty()) refuse(request, "reaches no worker");
  const auto& linked = linked_.before(request);
  if (linked && *linked != LinkedPaths::rectangle_of(request)) {
    refuse(request,
           "follows a linked multicast to the rectangle ({}, {}) to ({}, {}) and must reach the "
           "same workers",
           linked->first.x, linked->first.y, linked->last.x, linked->last.y);
  }
}

void RequestRules::check_alignment(const Request& request) const {
  if (!moves_data(request.kind)) {
    if (request.remote.offset % kWordBytes != 0) {
      refuse(request, "is at offset {}; it must be a multiple of {}", request.remote.offset,
             kWordBytes);
    }
    return;
  }
  const machine::Alignment& alignment = chip_.alignment;
  // The PCIe tile has the alignment of DRAM tiles. Source: tt-metal, noc_parameters.h.
  const bool is_wide = !request.is_multicast && (memories_.is_dram(request.remote.tile) ||
                                                 attached_.at(request.remote.tile) != nullptr);
  const auto step =
      static_cast<std::uint64_t>(!is_wide                            ? alignment.l1_bytes
                                 : request.kind == RequestKind::read ? alignment.dram_read_bytes
                                                                     : alignment.dram_write_bytes);
  if (request.remote.offset % step != request.local_offset % step) {
    refuse(request, "has local offset {} and remote offset {}, which must be equal modulo {}",
           request.local_offset, request.remote.offset, step);
  }
  const auto split_step = static_cast<std::uint64_t>(alignment.l1_bytes);
  if (request.size_bytes > PacketSizes(chip_).max_bytes() &&
      request.remote.offset % split_step != 0) {
    refuse(request, "is split into packets of {} bytes; its offsets must be multiples of {}",
           PacketSizes(chip_).max_bytes(), split_step);
  }
}

void LinkedPaths::update(const Request& multicast) {
  auto& path = paths_[place_of(multicast.noc, multicast.core)][multicast.vc & 1];
  path.reset();
  if (multicast.is_linked) path = rectangle_of(multicast);
}

std::string LinkedPaths::describe(int noc, machine::Coordinate core) const {
  for (const std::optional<Rectangle>& path : paths_[place_of(noc, core)]) {
    if (!path) continue;
    return fmt::format(
        "the path of its linked multicast to the rectangle ({}, {}) to ({}, {}) is still reserved",
        path->first.x, path->first.y, path->last.x, path->last.y);
  }
  return "";
}

std::string LinkedPaths::describe_any() const {
  for (int noc = 0; noc < 2; ++noc) {
    for (int number = 0; number < static_cast<int>(chip_.tiles.size()); ++number) {
      const machine::Coordinate core = chip_.coordinate_of(number);
      const std::string path = describe(noc, core);
      if (!path.empty()) return fmt::format("core ({}, {}): {}", core.x, core.y, path);
    }
  }
  return "";
}

}  // namespace towpath::noc
