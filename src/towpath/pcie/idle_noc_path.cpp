// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/idle_noc_path.hpp"

#include <algorithm>
#include <iterator>

#include "towpath/pcie/noc_way.hpp"
#include "towpath/sim/hardware_priority.hpp"

namespace towpath::pcie {

namespace {
// Granularity of arrivals in, and reads from, the chip's memory: each block at the time of its last
// byte.
constexpr std::uint64_t kLandingBytes = 4096;
}  // namespace

// --- by the processor ----------------------------------------------------------------------------

void IdleNocPath::write(Account& account, const Piece& piece, std::span<const std::byte> data) {
  const NocWay way = noc_way(ends_.chip, piece.tile);
  const Stores cut(ends_.host.core, piece);
  Time stores;
  Time stalls;
  Time now = account.now();
  std::uint64_t landing_from = 0;
  for (std::uint64_t at = 0; at < piece.size_bytes;) {
    const std::uint64_t size_bytes = cut.size_at(piece, at);
    const Time store = cut.time_of(size_bytes);
    const PostedWrites::Passed line = posted_.pass(now + store, size_bytes, way, piece.ordering);
    stores += store;
    stalls += line.taken - now - store;
    now = line.taken;
    at += size_bytes;
    if (at == piece.size_bytes || (piece.address + at) % kLandingBytes == 0) {
      land(line.landed, {piece.tile, piece.address + landing_from},
           data.subspan(landing_from, at - landing_from));
      landing_from = at;
    }
  }
  account.spend(cut.part_name(), stores);
  account.spend(kStall, stalls);
}

void IdleNocPath::land(Time when, noc::Address to, std::span<const std::byte> bytes) {
  if (!ends_.carries_data) return;
  landings_.push_back({this, to, {bytes.begin(), bytes.end()}, {}});
  landings_.back().place = std::prev(landings_.end());
  ends_.simulation.at(when, &landed, &landings_.back(), sim::kHardwarePriority);
}

void IdleNocPath::landed(void* landing) {
  auto& self = *static_cast<Landing*>(landing);
  self.path->memory_.write(self.to.tile, self.to.offset, self.bytes);
  self.path->landings_.erase(self.place);
}

// Reads are not posted: the first one also waits for earlier writes.
void IdleNocPath::read(Account& account, const Piece& piece, std::span<std::byte> to,
                       const Loads& loads) {
  const Time arrives = account.now() + ends_.one_way();
  if (posted_.all_done() > arrives) account.spend(kEarlierWrites, posted_.all_done() - arrives);
  spend_round_trips(ends_, account, piece, loads);
  if (to.empty()) return;
  ends_.simulation.sleep_until(account.now());
  memory_.read(piece.tile, piece.address, to);
}

// --- by the DMA engine ---------------------------------------------------------------------------

void IdleNocPath::write_by_dma(Account& account, const DmaPart& part,
                               std::span<const std::byte> data) {
  spend_stream(account, part, Direction::to_device);
  if (data.empty()) return;
  ends_.simulation.sleep_until(account.now());
  memory_.write(part.address.tile, part.address.offset, data);
}

void IdleNocPath::read_by_dma(Account& account, const DmaPart& part, std::span<std::byte> to) {
  spend_stream(account, part, Direction::from_device);
  if (to.empty()) return;
  ends_.simulation.sleep_until(account.now());
  memory_.read(part.address.tile, part.address.offset, to);
}

// The bytes of a part follow the bytes of another channel, because they share the engine, the link
// and the tile, one of which limits the rate.
void IdleNocPath::spend_stream(Account& account, const DmaPart& part, Direction direction) {
  const Stream stream = dma_stream(ends_.host, ends_.chip, noc_way(ends_.chip, part.address.tile),
                                   direction, {.ordering = part.ordering, .limits = limits_});
  Time& free = link_free_.of(direction);
  const Time first = account.now() + stream.latency;
  const Time begins = std::max(first, free);
  free = begins + (stream.time_of(part.size_bytes) - stream.latency);
  account.spend(kLatency, stream.latency);
  account.spend(kStream, free - first);
}

}  // namespace towpath::pcie
