// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "towpath/base/invariant.hpp"
#include "towpath/noc/chip_network.hpp"

// Refusal of requests that a chip cannot carry out, and descriptions of what requests wait for.

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

std::string describe(const Request& request) {
  const machine::Coordinate at = request.remote.tile;
  std::string text = std::string(name_of(request.kind));
  if (moves_data(request.kind)) text += fmt::format(" of {} bytes", request.size_bytes);
  text += request.kind == RequestKind::read ? " from" : " to";
  if (!request.is_multicast) return text + fmt::format(" ({}, {})", at.x, at.y);
  return text + fmt::format(" the rectangle ({}, {}) to ({}, {})", at.x, at.y, request.last_tile.x,
                            request.last_tile.y);
}

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

void ChipNetwork::check_place(const Request& request) const {
  if (request.noc != 0 && request.noc != 1) refuse(request, "must use NoC 0 or 1");
  if (!chip_->holds(request.core)) {
    refuse(request, "comes from outside of the {} x {} grid", chip_->width, chip_->height);
  }
}

// What holds for requests of cores and of others.
void ChipNetwork::check_way(const Request& request) const {
  const int first_vc = request.is_multicast ? 4 : 0;
  const int last_vc = request.is_multicast ? 5 : 3;
  if (request.vc < first_vc || request.vc > last_vc) {
    refuse(request, "names VC {}; {} to {} are for {}", request.vc, first_vc, last_vc,
           request.is_multicast ? "multicasts" : "unicasts");
  }
  if (request.kind == RequestKind::read && request.is_posted) {
    refuse(request, "is posted; a read is always answered");
  }
}

void ChipNetwork::check(const Request& request) const {
  check_place(request);
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
  check_way(request);
  check_own_memory(request);
  check_remote(request);
  check_alignment(request);
}

void ChipNetwork::check_outside(const Request& request, const OutsideRequest& outside) const {
  check_place(request);
  const Group* own = group_of(request.core);
  TOWPATH_CHECK(moves_data(request.kind) && !request.is_multicast && request.initiator == 0,
                "only reads and writes of one tile are issued from outside the chip");
  TOWPATH_CHECK(own == nullptr, "tile ({}, {}) has memory, so its requests are its core's",
                request.core.x, request.core.y);
  TOWPATH_CHECK(request.kind == RequestKind::read || !outside.carries_data ||
                    outside.data.size() == request.size_bytes,
                "a write of {} bytes is given {}", request.size_bytes, outside.data.size());
  if (request.size_bytes == 0) refuse(request, "moves nothing");
  check_way(request);
  check_remote(request);
}

void ChipNetwork::check_own_memory(const Request& request) const {
  const Group* own = group_of(request.core);
  if (own == nullptr || is_dram(request.core)) {
    refuse(request, "comes from a {} tile, which issues nothing",
           machine::name_of(chip_->tile(request.core).kind));
  }
  if (!moves_data(request.kind)) return;
  if (request.size_bytes == 0) refuse(request, "moves nothing");
  if (!fits(request.local_offset, request.size_bytes, own->memory.size_bytes())) {
    refuse(request, "leaves the core's own memory at offset {}; it has {} bytes",
           request.local_offset, own->memory.size_bytes());
  }
}

void ChipNetwork::check_remote(const Request& request) const {
  const machine::Coordinate at = request.remote.tile;
  if (!chip_->holds(at) || (request.is_multicast && !chip_->holds(request.last_tile))) {
    refuse(request, "leaves the {} x {} grid", chip_->width, chip_->height);
  }
  std::uint64_t memory_bytes = chip_->l1_bytes;
  if (request.is_multicast) {
    check_multicast(request);
  } else if (attached_to(at) != nullptr) {
    return check_attached(request);
  } else {
    const Group* group = group_of(at);
    if (group == nullptr) {
      refuse(request, "reaches a {} tile, which has no memory",
             machine::name_of(chip_->tile(at).kind));
    }
    memory_bytes = group->memory.size_bytes();
    if (!moves_data(request.kind) && is_dram(at)) {
      refuse(request, "reaches a dram tile; only L1 takes one");
    }
  }
  const std::uint64_t size_bytes = moves_data(request.kind) ? request.size_bytes : kWordBytes;
  if (!fits(request.remote.offset, size_bytes, memory_bytes)) {
    refuse(request, "leaves the memory there at offset {}; it has {} bytes", request.remote.offset,
           memory_bytes);
  }
}

void ChipNetwork::check_attached(const Request& request) const {
  if (!moves_data(request.kind)) {
    refuse(request, "reaches memory that is not on the chip; only reads and writes do");
  }
  const std::string obstacle = attached_->obstacle(request.remote.offset, request.size_bytes);
  if (!obstacle.empty()) refuse(request, "{}", obstacle);
}

void ChipNetwork::check_multicast(const Request& request) const {
  const machine::Coordinate at = request.remote.tile;
  if (request.kind == RequestKind::read) refuse(request, "cannot be a multicast");
  if (request.last_tile.x < at.x || request.last_tile.y < at.y) {
    refuse(request, "has its corners swapped; the first has the least x and y, on either NoC");
  }
  if (receivers_of(request).empty()) refuse(request, "reaches no worker");
  const auto& linked =
      niu(request.noc, request.core).linked[static_cast<std::size_t>(request.vc & 1)];
  if (linked && *linked != rectangle_of(request)) {
    refuse(request,
           "follows a linked multicast to the rectangle ({}, {}) to ({}, {}) and must reach the "
           "same workers",
           linked->first.x, linked->first.y, linked->last.x, linked->last.y);
  }
}

void ChipNetwork::check_alignment(const Request& request) const {
  if (!moves_data(request.kind)) {
    if (request.remote.offset % kWordBytes != 0) {
      refuse(request, "is at offset {}; it must be a multiple of {}", request.remote.offset,
             kWordBytes);
    }
    return;
  }
  const machine::Alignment& alignment = chip_->alignment;
  // Those of the PCIe tile are those of DRAM tiles (tt-metal, noc_parameters.h of both chips).
  const bool is_wide = !request.is_multicast && (is_dram(request.remote.tile) ||
                                                 attached_to(request.remote.tile) != nullptr);
  const auto step =
      static_cast<std::uint64_t>(!is_wide                            ? alignment.l1_bytes
                                 : request.kind == RequestKind::read ? alignment.dram_read_bytes
                                                                     : alignment.dram_write_bytes);
  if (request.remote.offset % step != request.local_offset % step) {
    refuse(request, "has local offset {} and remote offset {}, which must be equal modulo {}",
           request.local_offset, request.remote.offset, step);
  }
  const auto split_step = static_cast<std::uint64_t>(alignment.l1_bytes);
  if (request.size_bytes > packet_bytes_max() && request.remote.offset % split_step != 0) {
    refuse(request, "is split into packets of {} bytes; its offsets must be multiples of {}",
           packet_bytes_max(), split_step);
  }
}

std::string ChipNetwork::describe_unanswered(int noc, machine::Coordinate core) const {
  const Transaction* first = nullptr;
  for (const Transaction& transaction : transactions_) {
    const bool is_open =
        transaction.uses_left > 0 && (transaction.to_leave > 0 || transaction.answers_left > 0);
    if (!is_open || transaction.request.noc != noc || transaction.request.core != core) continue;
    if (first == nullptr || transaction.issued < first->issued) first = &transaction;
  }
  if (first == nullptr) return describe_linked(niu(noc, core));
  const std::string text =
      fmt::format("its {}, issued in cycle {},", describe(first->request), first->issued);
  if (first->to_leave > 0) {
    return text + fmt::format(" has {} of {} packets to send", first->to_leave, first->packets);
  }
  return text + fmt::format(" lacks {} answer{}", first->answers_left,
                            first->answers_left == 1 ? "" : "s");
}

std::string ChipNetwork::describe_linked(const Niu& niu) {
  for (const std::optional<Rectangle>& linked : niu.linked) {
    if (!linked) continue;
    return fmt::format(
        "the path of its linked multicast to the rectangle ({}, {}) to ({}, {}) is still reserved",
        linked->first.x, linked->first.y, linked->last.x, linked->last.y);
  }
  return "";
}

std::vector<std::string> ChipNetwork::deadlock_cycle() const {
  for (const auto& network : networks_) {
    std::vector<std::string> cycle = network->deadlock_cycle();
    if (!cycle.empty()) return cycle;
  }
  return {};
}

std::string ChipNetwork::describe_deadlock() const {
  for (const auto& network : networks_) {
    const std::string cycle = network->describe_deadlock();
    if (!cycle.empty()) return cycle;
  }
  for (const std::vector<Niu>& nius : nius_) {
    for (std::size_t number = 0; number < nius.size(); ++number) {
      const std::string linked = describe_linked(nius[number]);
      if (linked.empty()) continue;
      const machine::Coordinate core = chip_->coordinate_of(static_cast<int>(number));
      return fmt::format("core ({}, {}): {}", core.x, core.y, linked);
    }
  }
  return "";
}

}  // namespace towpath::noc
