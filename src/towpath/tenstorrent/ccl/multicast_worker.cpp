// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/multicast_worker.hpp"

#include <algorithm>
#include <utility>

#include "towpath/tenstorrent/core/call_costs.hpp"

namespace towpath::tenstorrent::ccl {

using fabric::Connection;
using fabric::Header;
using fabric::kWorkerHeaders;
using fabric::kWorkerPayloads;
using fabric::kWorkerWords;
using fabric::Operation;
using fabric::pack;

namespace {

// Entries of the buffer between reader and writer, and packets of each if the array has tiles.
// Source: tt-metal, all_gather_multicast_factory.cpp.
constexpr std::uint64_t kEntries = 3;
constexpr std::uint64_t kPacketsPerEntry = 3;

// Cycles of the kernels outside of calls to a NoC. Source: tt-metal, multicast_reader.cpp and
// multicast_writer.cpp, counted as gcc 12.2 -O3 compiles them for rv32im: an instruction takes a
// cycle, a load 7 from L1 and registers and 2 from the core's local memory. With the -O2 of
// tt-metal's compiler, loops over pages are not unrolled, and a packet takes 140 cycles more.
constexpr noc::Cycle kReadCycles = 23;     // address of a page to read
constexpr noc::Cycle kPageCycles = 70;     // address of a page to send: number, bank, tile
constexpr noc::Cycle kStoreCycles = 8;     // store of a page
constexpr noc::Cycle kPacketCycles = 174;  // header and slot of a packet, without its announcement
// Lines of 16 B of code that run for the first time, and come from L1: for the first packet, and
// for the last increment. Source: as above.
constexpr noc::Cycle kFirstPacketLines = 110;
constexpr noc::Cycle kLastLines = 47;

constexpr std::size_t kReader = 0;
constexpr std::size_t kWriter = 1;
constexpr std::uint64_t kWordsStride = 0x800;
constexpr std::uint64_t kHeaderStride = 0x80;  // of a kernel: for packets, for increments
constexpr std::uint64_t kIncrementHeader = 0x40;
static_assert(Connection::kWordsBytes <= kWordsStride);
static_assert(kWorkerWords + 2 * kWordsStride <= kWorkerHeaders);

// One line of code. Cores of workers have the same caches as Ethernet cores, or larger ones.
noc::Cycle fetch_cycles(const DataMovementCore& core) {
  return kInstructionFetch.of(core.network().chip()).line_cycles;
}

}  // namespace

std::uint64_t multicast_packet_bytes(std::uint64_t payload_bytes_max) {
  return std::max<std::uint64_t>(payload_bytes_max / kArrayPageBytes, 1) * kArrayPageBytes;
}

MulticastWorker::MulticastWorker(Program& program, const Pages& pages, const Config& config)
    : pages_(pages),
      config_(config),
      packet_bytes_(
          std::min(multicast_packet_bytes(config.payload_bytes_max), config.payload_bytes_max)),
      simulation_(program.network().simulation()) {
  program.create_kernel(
      {.core = config_.core, .name = "multicast reader", .noc_index = static_cast<int>(kReader)},
      [this](DataMovementCore& core) { run(core, kReader); });
  program.create_kernel(
      {.core = config_.core, .name = "multicast writer", .noc_index = static_cast<int>(kWriter)},
      [this](DataMovementCore& core) { run(core, kWriter); });
}

void MulticastWorker::add(Multicast& multicast) {
  for (Side& side : sides_) {
    side.queue.push_back(&multicast);
    wake(side.waiting);
  }
}

void MulticastWorker::close() {
  for (Side& side : sides_) {
    side.shall_close = true;
    wake(side.waiting);
  }
}

bool MulticastWorker::is_open() const {
  return std::ranges::any_of(sides_, [](const Side& side) { return side.is_open; });
}

void MulticastWorker::wake(sim::Process*& waiting) {
  if (waiting != nullptr) simulation_.wake(*std::exchange(waiting, nullptr));
}

// Waits for the other kernel, or for the transport.
template <typename Condition>
void MulticastWorker::wait_until(sim::Process*& waiting, Condition condition) {
  while (!condition()) {
    waiting = simulation_.current();
    simulation_.suspend("data to send to all");
  }
}

void MulticastWorker::run(DataMovementCore& core, std::size_t number) {
  Side& side = sides_[number];
  if (const auto& port = config_.ports[number]; port) {
    side.connection.emplace(core, *port, kWorkerWords + number * kWordsStride,
                            fabric::ConnectionOptions{.is_posted = false});
  }
  while (true) {
    wait_until(side.waiting, [&] { return !side.queue.empty() || side.shall_close; });
    if (side.queue.empty()) {
      close(number);
      continue;
    }
    Multicast& multicast = *side.queue.front();
    pass(core, number, multicast);
    side.queue.pop_front();
    if (--multicast.to_pass == 0) multicast.left(multicast);
  }
}

void MulticastWorker::open(std::size_t number) {
  Side& side = sides_[number];
  if (std::exchange(side.is_open, true)) return;
  side.has_sent = false;
  if (simulation_.now() < started_at_) simulation_.sleep_until(started_at_);
  if (side.connection) side.connection->open();
}

void MulticastWorker::close(std::size_t number) {
  Side& side = sides_[number];
  side.shall_close = false;
  if (!side.is_open) return;
  if (side.connection) side.connection->close();
  side.is_open = false;
  closed_at_ = simulation_.now();
}

void MulticastWorker::pass(DataMovementCore& core, std::size_t number, Multicast& multicast) {
  open(number);
  if (multicast.size_bytes > 0) {
    number == kReader ? read_and_send(core, multicast) : send_and_store(core, multicast);
  }
  const auto& way = multicast.ways[number];
  if (!way) return;
  if (multicast.size_bytes > 0) core.work(kLastLines * fetch_cycles(core));
  send_increment(core, number, *way);
}

template <typename Action>
void MulticastWorker::for_each_packet(const Multicast& multicast, std::uint64_t entry,
                                      Action action) const {
  const std::uint64_t end = std::min((entry + 1) * kPacketsPerEntry, packets_of(multicast));
  for (std::uint64_t packet = entry * kPacketsPerEntry; packet < end; ++packet) action(packet);
}

std::uint64_t MulticastWorker::buffer(std::uint64_t packet) const {
  return kWorkerPayloads + packet % (kEntries * kPacketsPerEntry) * packet_bytes_;
}

// An entry is read while the previous one is sent.
void MulticastWorker::read_and_send(DataMovementCore& core, const Multicast& multicast) {
  const std::uint64_t entries = (packets_of(multicast) + kPacketsPerEntry - 1) / kPacketsPerEntry;
  Side& side = sides_[kReader];
  wait_until(side.waiting, [&] { return freed_ == read_; });
  const std::uint64_t first = read_;
  for (std::uint64_t entry = 0; entry <= entries; ++entry) {
    if (entry < entries) {
      wait_until(side.waiting, [&] { return freed_ + kEntries > first + entry; });
      read_entry(core, multicast, entry);
    }
    if (entry == 0) continue;
    core.noc_async_read_barrier_with_trid(static_cast<int>((entry - 1) % kEntries));
    ++read_;
    wake(sides_[kWriter].waiting);
    for_each_packet(multicast, entry - 1,
                    [&](std::uint64_t packet) { send_packet(core, kReader, multicast, packet); });
    core.noc_async_writes_flushed();
  }
}

void MulticastWorker::read_entry(DataMovementCore& core, const Multicast& multicast,
                                 std::uint64_t entry) {
  core.noc_async_read_set_trid(static_cast<int>(entry % kEntries));
  for_each_packet(multicast, entry, [&](std::uint64_t packet) {
    const noc::Address from =
        pages_.to_read(multicast.staging + packet, config_.core, static_cast<int>(kReader));
    const std::uint64_t size_bytes = bytes_of_packet(multicast, packet);
    for (std::uint64_t begin = 0; begin < size_bytes; begin += kArrayPageBytes) {
      core.work(kReadCycles);
      core.noc_async_read({from.tile, from.offset + begin}, buffer(packet) + begin,
                          std::min(size_bytes - begin, kArrayPageBytes));
    }
  });
}

void MulticastWorker::send_and_store(DataMovementCore& core, const Multicast& multicast) {
  const std::uint64_t entries = (packets_of(multicast) + kPacketsPerEntry - 1) / kPacketsPerEntry;
  Side& side = sides_[kWriter];
  for (std::uint64_t entry = 0; entry < entries; ++entry) {
    wait_until(side.waiting, [&] { return read_ > freed_; });
    for_each_packet(multicast, entry, [&](std::uint64_t packet) {
      send_packet(core, kWriter, multicast, packet);
      if (multicast.is_stored) store_packet(core, multicast, packet);
    });
    core.noc_async_posted_writes_flushed();
    core.noc_async_writes_flushed();
    ++freed_;
    wake(sides_[kReader].waiting);
  }
}

// A packet is written when the previous one has left.
void MulticastWorker::send_packet(DataMovementCore& core, std::size_t number,
                                  const Multicast& multicast, std::uint64_t packet) {
  const auto& way = multicast.ways[number];
  const std::uint64_t pages =
      (bytes_of_packet(multicast, packet) + kArrayPageBytes - 1) / kArrayPageBytes;
  core.work(kPageCycles * static_cast<noc::Cycle>(pages));
  if (!way) return;
  if (!std::exchange(sides_[number].has_sent, true)) {
    core.work(kFirstPacketLines * fetch_cycles(core));
  }
  core.work(kPacketCycles);
  const bool is_shorter = way->alternates && (packet % 2 == 1) != way->begins_shorter;
  Header header = is_shorter ? way->shorter : way->header;
  header.payload_bytes = static_cast<std::uint16_t>(bytes_of_packet(multicast, packet));
  header.payload_to =
      pack(pages_.to_write(multicast.landing + packet, way->lander, fabric::kReceiverNoc));
  header.operation = Operation::paged_write;
  core.noc_async_writes_flushed();
  sides_[number].connection->send(header, kWorkerHeaders + number * kHeaderStride, buffer(packet));
}

void MulticastWorker::store_packet(DataMovementCore& core, const Multicast& multicast,
                                   std::uint64_t packet) {
  const noc::Address to =
      pages_.to_write(multicast.staging + packet, config_.core, core.config().noc_index);
  const std::uint64_t size_bytes = bytes_of_packet(multicast, packet);
  for (std::uint64_t begin = 0; begin < size_bytes; begin += kArrayPageBytes) {
    core.work(kStoreCycles);
    core.noc_async_write(buffer(packet) + begin, {to.tile, to.offset + begin},
                         std::min(size_bytes - begin, kArrayPageBytes), {.is_posted = true});
  }
}

void MulticastWorker::send_increment(DataMovementCore& core, std::size_t number,
                                     const MulticastWay& way) {
  Header header = way.header;
  header.operation = Operation::flush_increment;
  header.word_at = way.arrival_word;
  header.increment = 1;
  header.payload_bytes = 0;
  core.noc_async_writes_flushed();
  sides_[number].connection->send(header,
                                  kWorkerHeaders + number * kHeaderStride + kIncrementHeader, 0);
}

}  // namespace towpath::tenstorrent::ccl
