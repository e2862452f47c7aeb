// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/dispatch/dispatch_tunnel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "towpath/tenstorrent/device/device.hpp"

namespace towpath::tenstorrent {

namespace map = ethernet_memory_map;
using machine::EthernetEnd;

namespace {

// Source: tt-metal until 2025, impl/device/device.cpp: a tunneller's queue has 64 KiB. If lanes
// of several chips share an L1, they divide it.
constexpr std::uint64_t kQueueBytesMax = 64 << 10;
constexpr std::uint64_t kQueueBytesMin = 1024;
constexpr std::uint64_t kLaneWordsBytes = 64;
constexpr std::uint64_t kLanesBase = rounded_up(map::kAllocatedBase, 64);
// Source: packet_queue.hpp, DEFAULT_MAX_ETH_SEND_WORDS.
constexpr std::uint64_t kSendBytesMax = 32 << 10;
// Source: vc_eth_tunneler.cpp, SWITCH_THRESHOLD: rounds without a move until the base firmware has
// its turn.
constexpr std::int64_t kRoundsPerContextSwitch = 16;
// Words that each lane polls in a round: bytes in the queue, room in the next one, and bytes that
// it has sent and freed. Counted in packet_queue.hpp. The rest is assumed to take no time.
constexpr int kPollsPerLane = 3;
// Source: packet_queue.hpp: three stream registers per queue.
enum Counter : int { kPut, kSent, kFreed, kCounters };
constexpr std::uint64_t counter_at(int lane, int counter) {
  return EthernetTile::kCountersBase +
         static_cast<std::uint64_t>(lane * kCounters + counter) * EthernetTile::kCounterStride;
}

KernelConfig config_of(const Device& device, const EthernetTile& tile) {
  return {.core = tile.core(), .name = "tunneller", .chip = device.id()};
}

}  // namespace

// --- the kernel ----------------------------------------------------------------------------------

Tunneller::Tunneller(Device& device, EthernetTile& tile, int lanes_max)
    : device_(device),
      tile_(tile),
      core_(device.network(), config_of(device, tile), tile),
      lanes_max_(lanes_max) {
  device.network().simulation().spawn(fmt::format("tunneller of {}", tile.name()),
                                      [this] { run(); });
}

LaneEnd Tunneller::lane_end(int number) const {
  const std::uint64_t all = device_.chip().ethernet_l1_bytes - kLanesBase;
  const std::uint64_t each =
      all / static_cast<std::uint64_t>(lanes_max_) / kLaneWordsBytes * kLaneWordsBytes;
  const std::uint64_t size = std::bit_floor(each - std::min(each, kLaneWordsBytes));
  if (size < kQueueBytesMin) {
    throw std::invalid_argument(fmt::format(
        "{} would serve {} chips in {} bytes of L1; a queue of its tunneller needs at least {}",
        tile_.name(), lanes_max_ / 2, all, kQueueBytesMin));
  }
  const std::uint64_t base = kLanesBase + static_cast<std::uint64_t>(number) * each;
  const std::uint64_t words = base + std::min(size, kQueueBytesMax);
  return {.number = number,
          .queue = {base, std::min(size, kQueueBytesMax)},
          .count_word = words,
          .freed_word = words + kRingUnitBytes,
          .staging_word = words + 2 * kRingUnitBytes};
}

void Tunneller::send_over_link(const LaneEnd& lane, const NocAddress& freed) {
  add({.end = lane, .goes_over_link = true, .freed = freed, .writer = nullptr});
}

void Tunneller::send_over_noc(const LaneEnd& lane, const RingPlace& next) {
  add({.end = lane,
       .freed = {},
       .writer = std::make_unique<RingWriter>(core_, next,
                                              ProducerWords{lane.freed_word, lane.staging_word})});
}

void Tunneller::add(Lane lane) {
  lanes_.push_back(std::move(lane));
  tile_.wake_kernel();
}

void Tunneller::run() {
  core_.take_core();
  for (;;) {
    bool has_moved = false;
    for (Lane& lane : lanes_) has_moved |= step(lane);
    const auto polls =
        static_cast<noc::Cycle>(kPollsPerLane * std::max<std::size_t>(lanes_.size(), 1));
    if (!has_moved) core_.idle(polls * kPollCycles, kRoundsPerContextSwitch);
  }
}

bool Tunneller::step(Lane& lane) {
  const bool has_sent = send(lane);
  return free(lane) || has_sent;
}

std::uint64_t Tunneller::count(const Lane& lane, int counter) {
  return tile_.counter(counter_at(lane.end.number, counter)) * kRingUnitBytes;
}

// Adds to a counter of the far end, after earlier sends.
void Tunneller::notify(const Lane& lane, int counter, std::uint64_t bytes) {
  core_.eth_write_remote_reg(0, counter_at(lane.end.number, counter),
                             static_cast<std::uint32_t>(bytes / kRingUnitBytes));
}

bool Tunneller::send(Lane& lane) {
  const Ring& queue = lane.end.queue;
  const std::uint64_t put = lane.goes_over_link
                                ? core_.load_word(lane.end.count_word) * kRingUnitBytes
                                : count(lane, kPut);
  // The queue at the far end has the same layout, and bytes have the same position in it.
  const std::uint64_t room = lane.goes_over_link
                                 ? queue.size_bytes - (lane.sent_bytes - count(lane, kFreed))
                                 : lane.writer->room_bytes();
  const std::uint64_t bytes = std::min(
      {put - lane.sent_bytes, room, queue.contiguous_bytes(lane.sent_bytes), kSendBytesMax});
  if (bytes == 0) return false;
  core_.work(noc::Cycle{kPollsPerLane} * kPollCycles);
  const std::uint64_t word = queue.at(lane.sent_bytes) / kRingUnitBytes;
  if (lane.goes_over_link) {
    core_.eth_send_packet(0, word, word, bytes / kRingUnitBytes);
    notify(lane, kPut, bytes);
  } else {
    lane.writer->put(queue, lane.sent_bytes, bytes);
    notify(lane, kSent, bytes);
    lane.writer->announce();
  }
  lane.sent_bytes += bytes;
  return true;
}

// Over the NoC, space is free when its bytes have left the core. announce() waits for that.
bool Tunneller::free(Lane& lane) {
  const std::uint64_t freed = lane.goes_over_link ? count(lane, kSent) : lane.sent_bytes;
  const std::uint64_t bytes = freed - lane.freed_bytes;
  if (bytes == 0) return false;
  if (lane.goes_over_link) {
    send_count(core_, freed, lane.end.staging_word, lane.freed);
  } else {
    notify(lane, kFreed, bytes);
  }
  lane.freed_bytes = freed;
  return true;
}

// --- ways through it -----------------------------------------------------------------------------

std::vector<DispatchTunnel::Link> DispatchTunnel::links_to(int chip) const {
  std::vector<Link> links;
  for (int at = chip; routes_.to(at).links > 0; at = routes_.to(at).near.chip) {
    links.push_back({routes_.to(at).near, routes_.to(at).far});
  }
  std::ranges::reverse(links);
  return links;
}

// Two for each chip with a route over that link.
int DispatchTunnel::lanes_max(EthernetEnd end) const {
  int lanes = 0;
  for (int chip = 0; chip < static_cast<int>(cluster_.chips.size()); ++chip) {
    for (const Link& link : links_to(chip)) {
      if (link.from == end || link.to == end) lanes += 2;
    }
  }
  return lanes;
}

Tunneller& DispatchTunnel::tunneller(EthernetEnd end) {
  std::unique_ptr<Tunneller>& tunneller = tunnellers_[end];
  if (tunneller == nullptr) {
    Device& device = *devices_[static_cast<std::size_t>(end.chip)];
    tunneller =
        std::make_unique<Tunneller>(device, device.ethernet_tile({0, end.channel}), lanes_max(end));
  }
  return *tunneller;
}

DispatchTunnel::Way DispatchTunnel::way(const std::vector<Link>& links, NocAddress freed,
                                        const RingPlace& to) {
  std::vector<LaneEnd> lanes;
  for (const Link& link : links) {
    lanes.push_back(tunneller(link.from).lane_end(lanes_[*cluster_.link_at(link.from)]++));
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    Tunneller& near = tunneller(links[i].from);
    Tunneller& far = tunneller(links[i].to);
    near.send_over_link(lanes[i], freed);
    const bool is_last = i + 1 == links.size();
    far.send_over_noc(lanes[i], is_last ? to
                                        : RingPlace{tunneller(links[i + 1].from).tile().core(),
                                                    lanes[i + 1].queue, lanes[i + 1].count_word});
    freed = {far.tile().core(), lanes[i].freed_word};
  }
  return {
      {tunneller(links.front().from).tile().core(), lanes.front().queue, lanes.front().count_word},
      freed};
}

DispatchTunnel::Way DispatchTunnel::way_to(int chip, const NocAddress& freed, const RingPlace& to) {
  return way(links_to(chip), freed, to);
}

DispatchTunnel::Way DispatchTunnel::way_from(int chip, const NocAddress& freed,
                                             const RingPlace& to) {
  std::vector<Link> links = links_to(chip);
  std::ranges::reverse(links);
  for (Link& link : links) std::swap(link.from, link.to);
  return way(links, freed, to);
}

}  // namespace towpath::tenstorrent
