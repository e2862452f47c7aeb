// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/shared_noc_path.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "towpath/pcie/link_rate.hpp"
#include "towpath/pcie/noc_way.hpp"
#include "towpath/pcie/posted_writes.hpp"
#include "towpath/pcie/tile_requests.hpp"
#include "towpath/sim/hardware_priority.hpp"

namespace towpath::pcie {

// --- by the processor ----------------------------------------------------------------------------

void SharedNocPath::write(Account& account, const Piece& piece, std::span<const std::byte> data) {
  sim::Simulation& simulation = ends_.simulation;
  const Stores cut(ends_.host.core, piece);
  simulation.sleep_until(account.now());
  Time stores;
  for (std::uint64_t at = 0; at < piece.size_bytes;) {
    const std::uint64_t size_bytes = cut.size_at(piece, at);
    const Time store = cut.time_of(size_bytes);
    simulation.sleep(store);
    stores += store;
    NocWrites::Write line{{piece.tile, piece.address + at}, size_bytes, {}, piece.ordering};
    if (ends_.carries_data) {
      const std::span<const std::byte> bytes = data.subspan(at, size_bytes);
      line.data.assign(bytes.begin(), bytes.end());
    }
    lines_.pass(std::move(line));
    at += size_bytes;
  }
  account.spend(cut.part_name(), stores);
  account.spend(kStall, simulation.now() - account.now());
}

void SharedNocPath::read(Account& account, const Piece& piece, std::span<std::byte> to,
                         const Loads& loads) {
  sim::Simulation& simulation = ends_.simulation;
  const Time one_way = ends_.one_way();
  simulation.sleep_until(account.now());
  const Time arrives = simulation.now() + one_way;
  lines_.wait_for_all();
  std::optional<Time> on_noc = std::max(simulation.now(), arrives);
  account.spend(kEarlierWrites, *on_noc - arrives);
  NocReads reads(network_, {loads.overlapping, one_way, one_way});
  for (std::uint64_t at = 0; at < piece.size_bytes; on_noc.reset()) {
    const std::uint64_t size_bytes = loads.size_at(piece, at);
    reads.begin({piece.tile, piece.address + at}, size_bytes,
                to.empty() ? to : to.subspan(at, size_bytes), on_noc);
    at += size_bytes;
  }
  reads.finish();
  spend_round_trips(ends_, account, piece, loads);
  account.spend("traffic on the NoC", simulation.now() - account.now());
}

// --- by the DMA engine ---------------------------------------------------------------------------

// The engine reads host memory in requests, a fixed number at a time. Each occupies its place until
// its bytes have left for the NoC, in bursts. With strict ordering, a request is written only after
// the previous one is done.
void SharedNocPath::write_by_dma(Account& account, const DmaPart& part,
                                 std::span<const std::byte> data) {
  const machine::Host& host = ends_.host;
  const machine::Chip& chip = ends_.chip;
  sim::Simulation& simulation = ends_.simulation;
  const auto request = static_cast<std::uint64_t>(host.link.read_request_bytes_max);
  const auto burst = static_cast<std::uint64_t>(chip.pcie.axi_burst_bytes);
  const std::size_t bursts_of_request = (request + burst - 1) / burst;
  const auto requests_max = static_cast<std::size_t>(host.link.device_reads_outstanding);
  const bool is_strict = part.ordering == Ordering::strict;
  const Rate rate = answer_rate(host, chip);
  const Time answer = host.link.read_time + chip.pcie.tile_time + translation_time(host);
  Time& free = link_free_.to_device;
  sim::Process& self = *simulation.current();
  NocWrites writes(network_, Time(), [&] { simulation.wake(self); });
  const auto wait_until_at_most = [&](std::size_t count, auto pending) {
    while (pending() > count) simulation.suspend("bytes of a DMA transfer");
  };
  for (std::uint64_t at = 0; at < part.size_bytes; at += request) {
    wait_until_at_most((requests_max - 1) * bursts_of_request, [&] { return writes.waiting(); });
    const std::uint64_t end = std::min(part.size_bytes, at + request);
    free = std::max(free, simulation.now() + answer);
    for (std::uint64_t begin = at; begin < end; begin += burst) {
      const std::uint64_t size_bytes = std::min(burst, end - begin);
      NocWrites::Write write{{part.address.tile, part.address.offset + begin},
                             size_bytes,
                             {},
                             is_strict ? Ordering::standard : part.ordering,
                             is_strict && begin == at};
      if (!data.empty()) {
        const std::span<const std::byte> bytes = data.subspan(begin, size_bytes);
        write.data.assign(bytes.begin(), bytes.end());
      }
      free += transfer_time(Bytes(size_bytes), rate);
      writes.arrive(free, std::move(write));
    }
  }
  wait_until_at_most(0, [&] { return writes.unfinished(); });
  spend_stream(account, part, Direction::to_device);
}

// The engine reads the tile's memory in payloads, a fixed number at a time, and sends each to the
// host on arrival. With strict ordering, a read is issued only after the answer to the previous
// one.
void SharedNocPath::read_by_dma(Account& account, const DmaPart& part, std::span<std::byte> to) {
  const machine::Host& host = ends_.host;
  const machine::Chip& chip = ends_.chip;
  sim::Simulation& simulation = ends_.simulation;
  const auto payload = static_cast<std::uint64_t>(host.link.payload_bytes_max);
  const bool is_strict = part.ordering == Ordering::strict;
  const Time half = Time::from_ps(chip.pcie.tile_time.ps() / 2);
  const Rate rate = write_rate(host, chip);
  Time& free = link_free_.from_device;
  const auto came = [&](std::uint64_t size_bytes) {
    free = std::max(free, simulation.now()) + transfer_time(Bytes(size_bytes), rate);
  };
  NocReads::Way way{chip.pcie.dma_reads_outstanding, half, half};
  if (is_strict) way = {1, Time(), Time()};
  if (is_strict) simulation.sleep(half);
  NocReads reads(network_, way, came);
  for (std::uint64_t at = 0; at < part.size_bytes; at += payload) {
    const std::uint64_t size_bytes = std::min(payload, part.size_bytes - at);
    reads.begin({part.address.tile, part.address.offset + at}, size_bytes,
                to.empty() ? to : to.subspan(at, size_bytes));
  }
  reads.finish();
  const Time last = std::max(free, simulation.now()) + (is_strict ? half : Time());
  simulation.sleep_until(last + translation_time(host) +
                         Time::from_ps(host.link.read_time.ps() / 2));
  spend_stream(account, part, Direction::from_device);
}

// The time since the account's, divided in the proportions of a transfer of only the first bytes.
void SharedNocPath::spend_stream(Account& account, const DmaPart& part, Direction direction) const {
  const Time latency = dma_stream(ends_.host, ends_.chip, noc_way(ends_.chip, part.address.tile),
                                  direction, {.ordering = part.ordering, .limits = {}})
                           .latency;
  const Time spent = ends_.simulation.now() - account.now();
  account.spend(kLatency, std::min(latency, spent));
  account.spend(kStream, ends_.simulation.now() - account.now());
}

LineQueue::LineQueue(const machine::Host& host, noc::ChipNetwork& network)
    : simulation_(network.simulation()),
      places_(static_cast<std::size_t>(host.core.posted_writes_max)),
      chip_places_(std::max<std::size_t>(
          network.chip().pcie.posted_buffer_bytes / PostedWrites::kLineBytes, 1)),
      interval_(host.core.posted_write_interval),
      link_rate_(raw_rate(negotiated(host.link, network.chip().pcie))),
      way_(Time::from_ps(host.link.read_time.ps() / 2) +
           Time::from_ps(network.chip().pcie.tile_time.ps() / 2)),
      noc_(network, network.chip().pcie.strict_time, [this] { changed(); }) {}

void LineQueue::wait() {
  waiting_.push_back(simulation_.current());
  simulation_.suspend("posted writes to leave");
}

void LineQueue::pass(NocWrites::Write line) {
  while (lines_.size() >= places_) wait();
  lines_.push_back(std::move(line));
  send();
}

void LineQueue::wait_for_all() {
  while (!is_empty()) wait();
}

void LineQueue::changed() {
  send();
  for (sim::Process* process : std::exchange(waiting_, {})) simulation_.wake(*process);
}

// Sends the first line if the link is free and the chip has room.
void LineQueue::send() {
  if (is_leaving_ || lines_.empty() || noc_.waiting() >= chip_places_) return;
  is_leaving_ = true;
  NocWrites::Write& line = lines_.front();
  const Time on_link = transfer_time(Bytes(line.size_bytes + kWriteOverheadBytes), link_rate_);
  simulation_.after(std::max(interval_, on_link), &LineQueue::left, this, sim::kHardwarePriority);
  noc_.arrive(simulation_.now() + on_link + way_, std::move(line));
}

void LineQueue::left(void* context) {
  auto& self = *static_cast<LineQueue*>(context);
  self.lines_.pop_front();
  self.is_leaving_ = false;
  self.changed();
}

}  // namespace towpath::pcie
