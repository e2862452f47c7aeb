// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/dispatch/fast_dispatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "towpath/tenstorrent/device/device.hpp"

namespace towpath::tenstorrent {

using machine::Coordinate;
using Bytes = CommandWriter::Bytes;

namespace {

// Memory of the host for the commands of a chip. Chosen here, so that the chips of a board have
// room in a Wormhole's window, in which it is a part of a hugepage.
constexpr std::uint64_t kCommandsBytes = 1 << 20;
constexpr std::uint64_t kEventsBytes = 4096;
static_assert(kEventSlots * kEventSlotBytes + kEventSlotBytes <= kEventsBytes);
// Offset of the rings of the dispatcher's cores on a worker.
constexpr std::uint64_t kWorkerBase = 0x10000;

// The rate of a copy into pinned memory.
Rate copy_rate(const machine::Host& host, std::uint64_t size_bytes) {
  const machine::HostDriverParameters& driver = host.driver;
  return 2 * size_bytes <= driver.cache_bytes ? driver.bounce_write_rate
                                              : driver.bounce_write_rate_uncached;
}

}  // namespace

// --- the host's side -----------------------------------------------------------------------------

void CommandQueue::lock() {
  sim::Process& self = *simulation_.current();
  if (!is_locked_) {
    is_locked_ = true;
    return;
  }
  waiting_.push_back(&self);
  simulation_.suspend("another process that submits commands");
}

// Passes it to the process that has waited longest.
void CommandQueue::unlock() {
  if (waiting_.empty()) {
    is_locked_ = false;
    return;
  }
  sim::Process& next = *waiting_.front();
  waiting_.pop_front();
  simulation_.wake(next);
}

void CommandQueue::submit(std::vector<Bytes> entries, bool& is_waiting) {
  is_waiting = true;
  lock();
  is_waiting = false;
  for (const Bytes& entry : entries) submit_one(entry, is_waiting);
  unlock();
}

void CommandQueue::submit_one(std::span<const std::byte> entry, bool& is_waiting) {
  const std::uint64_t all_bytes = places_.queue.commands_bytes;
  const std::uint64_t at = place_of_batch(host_at_, entry.size(), all_bytes);
  const std::uint64_t left_out = at == host_at_ ? 0 : all_bytes - host_at_;
  wait_for_room(put_bytes_ + left_out + entry.size(), is_waiting);
  simulation_.sleep(
      transfer_time(towpath::Bytes(entry.size()), copy_rate(places_.link->host(), entry.size())));
  std::ranges::copy(entry, memory().subspan(at).begin());
  const auto units = static_cast<std::uint32_t>(entry.size() / kRingUnitBytes);
  is_waiting = true;
  places_.link->write_window(places_.window,
                             places_.queue.entries + entries_ % kPrefetchEntries * noc::kWordBytes,
                             std::as_bytes(std::span(&units, 1)));
  is_waiting = false;
  ++entries_;
  put_bytes_ += left_out + entry.size();
  host_at_ = at + entry.size();
}

// Polls the prefetcher's progress until there is space for one more entry.
void CommandQueue::wait_for_room(std::uint64_t end_bytes, bool& is_waiting) {
  const auto is_there = [&] {
    return entries_ - fetched_entries_ < kPrefetchEntries &&
           end_bytes - fetched_bytes_ <= places_.queue.commands_bytes;
  };
  is_waiting = true;
  while (!is_there()) {
    std::array<std::uint32_t, 2> counts{};
    places_.link->read_window(places_.window, places_.queue.fetched,
                              std::as_writable_bytes(std::span(counts)));
    fetched_entries_ = counts[0];
    fetched_bytes_ = counts[1] * kRingUnitBytes;
  }
  is_waiting = false;
}

void CommandQueue::wait_for_events(std::uint32_t wanted, bool& is_waiting) {
  is_waiting = true;
  for (;;) {
    std::uint32_t there = 0;
    std::memcpy(&there, memory().subspan(places_.queue.commands_bytes).data(), sizeof(there));
    if (there >= wanted) break;
    places_.link->wake_at_landing(*simulation_.current());
    simulation_.suspend("an event of the dispatcher");
  }
  is_waiting = false;
}

// --- the cores -----------------------------------------------------------------------------------

CommandQueue& FastDispatch::queue(int chip) {
  if (!queues_.contains(chip)) make_queue(chip);
  return *queues_.at(chip);
}

void FastDispatch::check(int chip) const {
  if (!routes_.is_reached(chip)) {
    throw std::invalid_argument(fmt::format(
        "fast dispatch cannot reach chip {}: no link leads to it from a chip on PCIe", chip));
  }
  const HostRoutes::Route& route = routes_.to(chip);
  if (route.links == route.reserved_links) return;
  throw std::invalid_argument(fmt::format(
      "fast dispatch to chip {}: of the {} links on the path, the dispatcher has {}; reserve more "
      "links of cluster '{}' for it, or use slow_dispatch, which needs none",
      chip, route.links, route.reserved_links, cluster_.name));
}

FastDispatch::Core FastDispatch::take_core(Device& device, std::string name) {
  const machine::Chip& chip = device.chip();
  std::vector<Coordinate> candidates;
  for (std::size_t channel = 0; channel < chip.ethernet_cores.size(); ++channel) {
    if (cluster_.link_at({device.id(), static_cast<int>(channel)})) continue;
    candidates.push_back(chip.ethernet_cores[channel]);
  }
  candidates.insert(candidates.end(), chip.workers.rbegin(), chip.workers.rend());
  for (const Coordinate core : candidates) {
    if (device.is_used(core) || !taken_.emplace(device.id(), core).second) continue;
    const bool is_ethernet = chip.tile(core).kind == machine::TileKind::ethernet;
    cores_.push_back(std::make_unique<DataMovementCore>(
        device.network(),
        KernelConfig{.core = core, .name = std::move(name), .chip = device.id()}));
    return {cores_.back().get(),
            L1Layout(is_ethernet ? ethernet_memory_map::kAllocatedBase : kWorkerBase)};
  }
  throw std::invalid_argument(
      fmt::format("fast dispatch needs a core of chip {} that no program uses, but there is none; "
                  "use slow_dispatch, which needs none",
                  device.id()));
}

void FastDispatch::make_queue(int chip) {
  check(chip);
  const bool is_remote = routes_.to(chip).links > 0;
  Device& host_side = device(is_remote ? routes_.gateway(chip).chip : chip);
  Core prefetcher = take_core(host_side, "prefetcher");
  const HostQueuePlaces queue = make_host_queue(chip, prefetcher);
  if (is_remote) return serve_remote(chip, prefetcher, queue);
  serve_local(prefetcher, take_core(host_side, "dispatcher"), queue);
}

HostQueuePlaces FastDispatch::make_host_queue(int chip, Core& prefetcher) {
  const KernelConfig& config = prefetcher.core->config();
  const machine::Chip& described = device(config.chip).chip();
  pcie::HostLink& link = link_of_(config.chip);
  const std::size_t buffer = link.take_pinned_buffer(kCommandsBytes + kEventsBytes);
  const auto address = link.sysmem_buffer(buffer).noc_address;
  if (!address) {
    throw std::invalid_argument(
        fmt::format("fast dispatch to chip {}: the window of the cores of chip {} to the host has "
                    "no room for {} bytes of commands",
                    chip, config.chip, kCommandsBytes));
  }
  const HostQueuePlaces queue{.pcie_tile = described.pcie_tiles.front(),
                              .commands = *address,
                              .commands_bytes = kCommandsBytes,
                              .entries = prefetcher.l1.take(kPrefetchEntries * noc::kWordBytes),
                              .fetched = prefetcher.l1.take(kRingUnitBytes)};
  const pcie::Window window{
      .size_bytes = described.pcie.dynamic_window_bytes, .tile = config.core, .address = 0};
  queues_[chip] = std::make_unique<CommandQueue>(
      device(chip).network().simulation(),
      CommandQueue::Places{.link = &link, .buffer = buffer, .window = window, .queue = queue});
  return queue;
}

namespace {

EventPlaces events_of(const HostQueuePlaces& queue, std::uint64_t staging) {
  const std::uint64_t events = queue.commands + queue.commands_bytes;
  return {queue.pcie_tile, events, events + kEventSlotBytes, staging};
}

// A batch is sent in parts that fit, each announced after it has left.
void send_batch(RingWriter& writer, const Ring& from, HostFetcher::Batch batch,
                std::uint64_t part_bytes) {
  for (const std::uint64_t end = batch.position + batch.size_bytes; batch.position < end;) {
    const std::uint64_t part = std::min(part_bytes, end - batch.position);
    writer.wait_for_room(part);
    writer.put(from, batch.position, part);
    writer.announce();
    batch.position += part;
  }
}

}  // namespace

FastDispatch::DispatcherPlaces FastDispatch::share(Core& prefetcher, Core& dispatcher) {
  const Ring ring = dispatcher.l1.take_ring(kDispatchRingBytes);
  return {.commands = {dispatcher.core->config().core, ring, dispatcher.l1.take(kRingUnitBytes)},
          .prefetcher_words = prefetcher.l1.take_producer_words(),
          .stall_word = prefetcher.at(prefetcher.l1.take(kRingUnitBytes))};
}

void FastDispatch::run_dispatcher(Core& dispatcher, const DispatcherPlaces& places,
                                  OnEvent on_event) {
  DataMovementCore& core = *dispatcher.core;
  Device& device = this->device(core.config().chip);
  const Dispatcher::Places own{.ended_word = dispatcher.l1.take(kRingUnitBytes),
                               .go_word = dispatcher.l1.take(kRingUnitBytes),
                               .stall_word = places.stall_word};
  const std::uint64_t staging = dispatcher.l1.take(kRingUnitBytes);
  device.set_dispatcher(dispatcher.at(own.ended_word));
  spawn(core, [&core, &device, places, own, staging, on_event = std::move(on_event)] {
    RingReader reader(core, places.commands,
                      {places.stall_word.tile, places.prefetcher_words.freed}, staging);
    Dispatcher(core, reader, own, device.monitor()).run([&](std::uint64_t position) {
      on_event(core, reader.ring(), position);
    });
  });
}

void FastDispatch::serve_local(Core prefetcher, Core dispatcher, const HostQueuePlaces& queue) {
  const DispatcherPlaces places = share(prefetcher, dispatcher);
  const EventPlaces events = events_of(queue, dispatcher.l1.take(kRingUnitBytes));
  run_dispatcher(dispatcher, places,
                 [events](DataMovementCore& core, const Ring& ring, std::uint64_t position) {
                   write_event(core, ring.at(position), events);
                 });
  DataMovementCore& core = *prefetcher.core;
  const Ring ring = prefetcher.l1.take_ring(kPrefetchRingBytes);
  spawn(core, [&core, ring, queue, places] {
    HostFetcher fetcher(core, ring, queue, 0);
    RingWriter writer(core, places.commands, places.prefetcher_words);
    CommandRelay relay(core, writer, places.stall_word.offset);
    for (;;) {
      const HostFetcher::Batch batch = fetcher.next();
      relay.relay(ring, batch.position, batch.size_bytes);
    }
  });
}

// Four cores, two of them on the chip itself, and lanes in both directions.
void FastDispatch::serve_remote(int chip, Core host_prefetcher, const HostQueuePlaces& queue) {
  Device& remote = device(chip);
  Core host_dispatcher = take_core(device(host_prefetcher.core->config().chip), "host dispatcher");
  Core prefetcher = take_core(remote, "prefetcher");
  Core dispatcher = take_core(remote, "dispatcher");

  const Ring batches = prefetcher.l1.take_ring(kRemotePrefetchRingBytes);
  const RingPlace batches_at{prefetcher.core->config().core, batches,
                             prefetcher.l1.take(kRingUnitBytes)};
  const NocAddress batches_freed = relay_to_tunnel(chip, host_prefetcher, queue, batches_at);
  const DispatcherPlaces places = share(prefetcher, dispatcher);
  relay_commands(prefetcher, batches_at, batches_freed, places);

  const Ring answers = host_dispatcher.l1.take_ring(kDispatchRingBytes);
  const RingPlace answers_at{host_dispatcher.core->config().core, answers,
                             host_dispatcher.l1.take(kRingUnitBytes)};
  const ProducerWords words = dispatcher.l1.take_producer_words();
  const DispatchTunnel::Way way = tunnel_.way_from(chip, dispatcher.at(words.freed), answers_at);
  const auto writer = std::make_shared<RingWriter>(*dispatcher.core, way.first, words);
  run_dispatcher(dispatcher, places,
                 [writer](DataMovementCore&, const Ring& ring, std::uint64_t position) {
                   send_batch(*writer, ring, {position, kEventBytes}, kEventBytes);
                 });
  relay_events(host_dispatcher, answers_at, way.freed, queue);
}

NocAddress FastDispatch::relay_to_tunnel(int chip, Core& prefetcher, const HostQueuePlaces& queue,
                                         const RingPlace& to) {
  DataMovementCore& core = *prefetcher.core;
  const ProducerWords words = prefetcher.l1.take_producer_words();
  const Ring ring = prefetcher.l1.take_ring(kPrefetchRingBytes);
  const DispatchTunnel::Way way = tunnel_.way_to(chip, prefetcher.at(words.freed), to);
  const auto header_bytes =
      static_cast<std::uint64_t>(core.network().chip().alignment.dram_read_bytes);
  spawn(core, [&core, ring, queue, way, words, header_bytes] {
    HostFetcher fetcher(core, ring, queue, header_bytes);
    RingWriter writer(core, way.first, words);
    for (;;) {
      const HostFetcher::Batch batch = fetcher.next();
      const RelayHeader header{batch.size_bytes};
      core.store(ring.at(batch.position), std::as_bytes(std::span(&header, 1)));
      send_batch(writer, ring, batch, way.first.ring.size_bytes / 2);
    }
  });
  return way.freed;
}

// The prefetcher of a remote chip.
void FastDispatch::relay_commands(Core& prefetcher, const RingPlace& from, const NocAddress& freed,
                                  const DispatcherPlaces& to) {
  DataMovementCore& core = *prefetcher.core;
  const std::uint64_t staging = prefetcher.l1.take(kRingUnitBytes);
  const auto header_bytes =
      static_cast<std::uint64_t>(core.network().chip().alignment.dram_read_bytes);
  spawn(core, [&core, from, freed, staging, to, header_bytes] {
    RingReader reader(core, from, freed, staging);
    RingWriter writer(core, to.commands, to.prefetcher_words);
    CommandRelay relay(core, writer, to.stall_word.offset);
    for (std::uint64_t position = 0;;) {
      RelayHeader header;
      reader.wait_for(position + header_bytes);
      reader.load(position, std::as_writable_bytes(std::span(&header, 1)));
      reader.wait_for(position + header.length_bytes);
      relay.relay(from.ring, position + header_bytes, header.length_bytes - header_bytes);
      position += header.length_bytes;
      reader.free(position);
    }
  });
}

// The dispatcher on the host's chip that writes a remote chip's events.
void FastDispatch::relay_events(Core& dispatcher, const RingPlace& from, const NocAddress& freed,
                                const HostQueuePlaces& queue) {
  DataMovementCore& core = *dispatcher.core;
  const std::uint64_t staging = dispatcher.l1.take(kRingUnitBytes);
  const EventPlaces events = events_of(queue, dispatcher.l1.take(kRingUnitBytes));
  spawn(core, [&core, from, freed, staging, events] {
    RingReader reader(core, from, freed, staging);
    for (std::uint64_t position = 0;;) {
      reader.wait_for(position + kEventBytes);
      write_event(core, from.ring.at(position), events);
      position += kEventBytes;
      reader.free(position);
    }
  });
}

// --- calls of the host ---------------------------------------------------------------------------

void FastDispatch::launch(int chip, const Program& program, bool& is_waiting) {
  CommandQueue& queue = this->queue(chip);
  std::vector<Bytes> entries = launch_commands(device(chip), program, queue.cores);
  queue.cores += program.cores_that_end();
  queue.submit(std::move(entries), is_waiting);
}

void FastDispatch::write(int chip, const NocAddress& to, std::span<const std::byte> bytes,
                         bool& is_waiting) {
  CommandQueue& queue = this->queue(chip);
  CommandWriter writer(device(chip).chip());
  writer.wait_for_cores(queue.cores, true);
  writer.write_linear(to.tile, to.offset, bytes);
  queue.submit(writer.take_entries(), is_waiting);
}

void FastDispatch::finish(int chip, bool& is_waiting) {
  CommandQueue& queue = this->queue(chip);
  CommandWriter writer(device(chip).chip());
  writer.wait_for_cores(queue.cores, false);
  const std::uint32_t event = ++queue.events;
  writer.write_host(event);
  queue.submit(writer.take_entries(), is_waiting);
  queue.wait_for_events(event, is_waiting);
}

}  // namespace towpath::tenstorrent
