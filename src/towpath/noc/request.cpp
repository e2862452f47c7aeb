// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/request.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "towpath/noc/chip_network.hpp"
#include "towpath/sim/invariant.hpp"

namespace towpath::noc {

std::string_view name_of(RequestKind kind) {
  switch (kind) {
    case RequestKind::read: return "read";
    case RequestKind::write: return "write";
    case RequestKind::inline_write: return "inline write";
    case RequestKind::atomic_increment: return "atomic increment";
  }
  return "request";
}

namespace {

template <typename... Arguments>
[[noreturn]] void refuse(const Request& request, fmt::format_string<Arguments...> format,
                         Arguments&&... arguments) {
  throw std::invalid_argument(
      fmt::format("core ({}, {}), NoC {}: {} of {} bytes {}", request.core.x, request.core.y,
                  request.noc, name_of(request.kind), request.size_bytes,
                  fmt::format(format, std::forward<Arguments>(arguments)...)));
}

}  // namespace

void ChipNetwork::check(const Request& request) const {
  if (request.noc != 0 && request.noc != 1)
    refuse(request, "names NoC {}; there are 0 and 1", request.noc);
  if (!chip_->holds(request.core)) {
    refuse(request, "comes from outside of the {} x {} grid", chip_->width, chip_->height);
  }
  const Group* own = group_of(request.core);
  if (own == nullptr || is_dram(request.core)) {
    refuse(request, "comes from a {} tile, which issues nothing",
           machine::name_of(chip_->tile(request.core).kind));
  }
  if (request.initiator < 0 || request.initiator >= chip_->niu.initiators) {
    refuse(request, "names initiator {}; 0 to {} are possible", request.initiator,
           chip_->niu.initiators - 1);
  }
  TOWPATH_CHECK(is_ready(request.noc, request.core, request.initiator),
                "initiator {} of core ({}, {}) still has a request that has won no VC",
                request.initiator, request.core.x, request.core.y);
  if (request.transaction_id < 0 || request.transaction_id >= chip_->niu.transaction_ids) {
    refuse(request, "names transaction id {}; 0 to {} are possible", request.transaction_id,
           chip_->niu.transaction_ids - 1);
  }
  const int first_vc = request.is_multicast ? 4 : 0;
  const int last_vc = request.is_multicast ? 5 : 3;
  if (request.vc < first_vc || request.vc > last_vc) {
    refuse(request, "names VC {}; {} to {} are for {}", request.vc, first_vc, last_vc,
           request.is_multicast ? "multicasts" : "unicasts");
  }
  const bool is_data = request.kind == RequestKind::read || request.kind == RequestKind::write;
  if (is_data && request.size_bytes == 0) refuse(request, "moves nothing");
  if (is_data && (request.local_offset > own->memory.size_bytes() ||
                  request.size_bytes > own->memory.size_bytes() - request.local_offset)) {
    refuse(request, "leaves the core's own memory at offset {}; it has {} bytes",
           request.local_offset, own->memory.size_bytes());
  }
  check_remote(request);
}

void ChipNetwork::check_remote(const Request& request) const {
  const machine::Coordinate at = request.remote.tile;
  if (!chip_->holds(at) || (request.is_multicast && !chip_->holds(request.last_tile))) {
    refuse(request, "goes to ({}, {}), outside of the {} x {} grid", at.x, at.y, chip_->width,
           chip_->height);
  }
  const bool is_data = request.kind == RequestKind::read || request.kind == RequestKind::write;
  std::uint64_t memory_bytes = chip_->l1_bytes;
  if (request.is_multicast) {
    if (request.kind == RequestKind::read) refuse(request, "cannot be a multicast");
    if (request.last_tile.x < at.x || request.last_tile.y < at.y) {
      refuse(request, "goes to the rectangle ({}, {}) to ({}, {}), whose corners are swapped", at.x,
             at.y, request.last_tile.x, request.last_tile.y);
    }
  } else {
    const Group* group = group_of(at);
    if (group == nullptr) {
      refuse(request, "goes to ({}, {}), a {} tile without memory", at.x, at.y,
             machine::name_of(chip_->tile(at).kind));
    }
    memory_bytes = group->memory.size_bytes();
  }
  const std::uint64_t size_bytes = is_data ? request.size_bytes : 4;
  if (request.remote.offset > memory_bytes || size_bytes > memory_bytes - request.remote.offset) {
    refuse(request, "leaves the memory of ({}, {}) at offset {}; it has {} bytes", at.x, at.y,
           request.remote.offset, memory_bytes);
  }
  if (!is_data) {
    if (request.remote.offset % 4 != 0) {
      refuse(request, "goes to offset {}; it must be a multiple of 4", request.remote.offset);
    }
    if (request.kind == RequestKind::atomic_increment && !request.is_multicast && is_dram(at)) {
      refuse(request, "goes to DRAM tile ({}, {}); atomics act on L1 only", at.x, at.y);
    }
    return;
  }
  const machine::Alignment& alignment = chip_->alignment;
  const auto step =
      static_cast<std::uint64_t>(request.is_multicast || !is_dram(at) ? alignment.l1_bytes
                                 : request.kind == RequestKind::read  ? alignment.dram_read_bytes
                                                                      : alignment.dram_write_bytes);
  if (request.remote.offset % step != request.local_offset % step) {
    refuse(request, "has offsets {} and {}, which must be equal modulo {}", request.local_offset,
           request.remote.offset, step);
  }
  if (request.size_bytes > packet_bytes_max() && request.remote.offset % 16 != 0) {
    refuse(request, "is split into packets of {} bytes, so its offsets must be multiples of 16",
           packet_bytes_max());
  }
}

}  // namespace towpath::noc
