// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/unicast_worker.hpp"

#include <algorithm>
#include <utility>

#include "towpath/tenstorrent/ccl/worker_costs.hpp"

namespace towpath::tenstorrent::ccl {

using collective::Notification;

using fabric::Connection;
using fabric::Header;
using fabric::kWorkerHeaders;
using fabric::kWorkerPayloads;
using fabric::kWorkerWords;
using fabric::Operation;
using fabric::pack;

namespace {

constexpr std::uint64_t kHeaderBytes = 64;  // two for each buffer
constexpr std::uint64_t kBufferAlignment = 64;

// Both unpackers of a core together. Source: tt-isa-documentation, WormholeB0/TensixTile/L1.md.
constexpr std::uint64_t kUnpackBytesPerCycle = 80;

constexpr int kReaderNoc = 0;

std::uint64_t aligned(std::uint64_t size_bytes) {
  return (size_bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

// Data that arrived over a link is read page by page, at a fitted rate. Scratch arrives in circular
// buffers, at the rate of the unpackers.
Time reduce_time(const machine::Chip& chip, const Work& work, std::uint64_t size_bytes) {
  std::uint64_t bytes = size_bytes;
  std::uint64_t per_cycle = kWorkerCosts.of(chip).reduce_bytes_per_cycle;
  if (!work.adds_received) {
    bytes *= work.adds_in_pairs ? 1 : 2;
    per_cycle = kUnpackBytesPerCycle;
  }
  return chip.clock.time_of(Cycles(static_cast<std::int64_t>((bytes + per_cycle - 1) / per_cycle)));
}

}  // namespace

UnicastWorker::UnicastWorker(Program& program, const Pages& pages, const Config& config)
    : pages_(pages), config_(config), simulation_(program.network().simulation()) {
  program.create_kernel({.core = config_.core, .name = "reader", .noc_index = kReaderNoc},
                        [this](DataMovementCore& core) { run_reader(core); });
  program.create_kernel({.core = config_.core, .name = "writer", .noc_index = kWriterNoc},
                        [this](DataMovementCore& core) { run_writer(core); });
  simulation_.spawn("compute", [this, &chip = program.network().chip()] { run_compute(chip); });
}

void UnicastWorker::add(Part& part) {
  queued_bytes_ += part.size_bytes;
  ++queued_parts_;
  ++parts_taken_;
  const auto begun = parts_.begin() + (next_number_ > 0 ? 1 : 0);
  const auto nearer = [&](const Part* other) { return other->hops < part.hops; };
  parts_.insert(std::find_if(begun, parts_.end(), nearer), &part);
  wake(reader_);
}

void UnicastWorker::close() {
  shall_close_ = true;
  wake(writer_);
}

void UnicastWorker::wake(sim::Process*& waiting) {
  if (waiting != nullptr) simulation_.wake(*std::exchange(waiting, nullptr));
}

// Waits for another kernel of the core, or for the transport.
template <typename Condition>
void UnicastWorker::wait_until(sim::Process*& waiting, Condition condition) {
  while (!condition()) {
    waiting = simulation_.current();
    simulation_.suspend("data to move");
  }
}

std::uint64_t UnicastWorker::buffer(std::uint64_t packet, bool is_addend) const {
  const std::uint64_t number = 2 * (packet % kBuffers) + (is_addend ? 1 : 0);
  return kWorkerPayloads + number * aligned(config_.payload_bytes_max);
}

UnicastWorker::Packet UnicastWorker::next_packet() {
  Part& part = *parts_.front();
  const std::uint64_t begin = next_number_ * config_.payload_bytes_max;
  const std::uint64_t size_bytes = std::min(part.size_bytes - begin, config_.payload_bytes_max);
  const bool is_last = begin + size_bytes == part.size_bytes;
  const Packet packet{&part, next_number_++, size_bytes, is_last, Time()};
  if (is_last) {
    parts_.pop_front();
    next_number_ = 0;
  }
  return packet;
}

// Reads some packets ahead of the awaited one.
void UnicastWorker::run_reader(DataMovementCore& core) {
  std::deque<Packet> under_way;
  const auto can_read = [&] {
    return !parts_.empty() && read_ - freed_ < kBuffers && under_way.size() < kReadAhead;
  };
  while (true) {
    wait_until(reader_, [&] { return can_read() || !under_way.empty(); });
    if (can_read()) {
      under_way.push_back(next_packet());
      read(core, under_way.back());
      ++read_;
      continue;
    }
    const Packet packet = under_way.front();
    if (packet.part->work.reads > 0 && packet.size_bytes > 0) {
      core.noc_async_read_barrier_with_trid(
          static_cast<int>((read_ - under_way.size()) % kReadAhead));
    }
    under_way.pop_front();
    read_packets_.push_back(packet);
    wake(compute_);
  }
}

void UnicastWorker::run_compute(const machine::Chip& chip) {
  const Time latency = chip.clock.time_of(Cycles(kWorkerCosts.of(chip).reduce_latency));
  while (true) {
    wait_until(compute_, [&] { return !read_packets_.empty(); });
    Packet packet = read_packets_.front();
    read_packets_.pop_front();
    if (packet.part->work.has_addend) {
      simulation_.sleep(reduce_time(chip, packet.part->work, packet.size_bytes));
      packet.ready_at =
          simulation_.now() + (packet.part->work.continues_reduction ? Time() : latency);
    }
    packets_.push_back(packet);
    wake(writer_);
  }
}

void UnicastWorker::read(DataMovementCore& core, const Packet& packet) {
  if (packet.part->work.reads == 0 || packet.size_bytes == 0) return;
  const noc::Address from =
      pages_.to_read(packet.part->staging + packet.number, config_.core, kReaderNoc);
  core.noc_async_read_set_trid(static_cast<int>(read_ % kReadAhead));
  core.noc_async_read(from, buffer(read_, false), packet.size_bytes);
  if (packet.part->work.reads == 1) return;
  core.noc_async_read(from, buffer(read_, true), packet.size_bytes);
}

void UnicastWorker::run_writer(DataMovementCore& core) {
  std::optional<Connection> connection;
  if (config_.port) connection.emplace(core, *config_.port, kWorkerWords);
  while (true) {
    wait_until(writer_, [&] { return !packets_.empty() || (shall_close_ && queued_parts_ == 0); });
    if (packets_.empty()) {
      shall_close_ = false;
      if (is_open_) connection->close();
      is_open_ = false;
      closed_at_ = simulation_.now();
      continue;
    }
    if (connection && !std::exchange(is_open_, true)) {
      if (simulation_.now() < started_at_) simulation_.sleep_until(started_at_);
      connection->open();
    }
    const Packet packet = packets_.front();
    packets_.pop_front();
    if (simulation_.now() < packet.ready_at) simulation_.sleep_until(packet.ready_at);
    write(core, connection ? &*connection : nullptr, packet);
    queued_bytes_ -= packet.size_bytes;
    ++written_;
    if (!packet.is_last) continue;
    --queued_parts_;
    if (packet.part->left != nullptr) packet.part->left(*packet.part);
  }
}

void UnicastWorker::write(DataMovementCore& core, Connection* connection, const Packet& packet) {
  const Part& part = *packet.part;
  if (written_ - freed_ == kBuffers / 2) {
    core.noc_async_writes_flushed();
    if (connection != nullptr) connection->wait_until_sent();
    freed_ = written_;
    wake(reader_);
  }
  if (part.work.has_destination && packet.size_bytes > 0) {
    core.noc_async_write(buffer(written_, false),
                         pages_.to_write(part.staging + packet.number, config_.core, kWriterNoc),
                         packet.size_bytes);
    if (packet.is_last && connection == nullptr && !part.work.continues_reduction) {
      core.noc_async_write_barrier();
    }
  }
  if (connection != nullptr) send(*connection, packet);
}

void UnicastWorker::send(Connection& connection, const Packet& packet) {
  const Part& part = *packet.part;
  Header header = part.header;
  header.payload_bytes = static_cast<std::uint16_t>(packet.size_bytes);
  header.payload_to =
      pack(part.pages->to_write(part.landing + packet.number, part.lander, fabric::kReceiverNoc));
  const std::uint64_t header_at = kWorkerHeaders + written_ % kBuffers * 2 * kHeaderBytes;
  const bool notifies = packet.is_last && part.arrivals > 0;
  const bool has_payload = packet.size_bytes > 0;
  header.word_at = part.arrival_word;
  header.increment = part.arrivals;
  if (has_payload) {
    const bool is_attached = notifies && part.notification != Notification::trailing;
    header.operation =
        paged(!is_attached                                  ? Operation::write
              : part.notification == Notification::attached ? Operation::write_flush_increment
                                                            : Operation::write_deferred_increment);
    connection.send(header, header_at, buffer(written_, false));
    if (is_attached) return;
  }
  if (!notifies) return;
  header.payload_bytes = 0;
  header.operation = has_payload ? Operation::flush_increment : Operation::increment;
  connection.send(header, header_at + kHeaderBytes, buffer(written_, false));
}

}  // namespace towpath::tenstorrent::ccl
