// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/dispatch/dispatch_kernels.hpp"

#include <algorithm>

namespace towpath::tenstorrent {

using machine::Coordinate;

namespace {

// Words of a command that its program reads one after the other, each with a load that it waits
// for. Counted in tt-metal's cq_prefetch.cpp and cq_dispatch.cpp: kind, length, stride or address,
// and two pointers. The rest of the program is assumed to take no time.
constexpr int kFieldsRead = 5;
// Source: cq_prefetch.cpp: lower ids belong to other reads.
constexpr int kFirstTransactionId = 2;

void read_fields(DataMovementCore& core, int fields) {
  core.work(noc::Cycle{kPollCycles} * fields);
}

Coordinate tile_of(UnicastTarget target) { return {target.x, target.y}; }

}  // namespace

// --- the prefetcher ------------------------------------------------------------------------------

HostFetcher::HostFetcher(DataMovementCore& core, const Ring& ring, const HostQueuePlaces& places,
                         std::uint64_t header_bytes)
    : core_(core), ring_(ring), places_(places), header_bytes_(header_bytes) {}

std::uint64_t HostFetcher::entry_word() const {
  return places_.entries + entries_ % kPrefetchEntries * noc::kWordBytes;
}

HostFetcher::Batch HostFetcher::next() {
  done_ = reads_.empty() ? reserved_ : reads_.front().batch.position;
  for (;;) {
    while (reads_.size() < kPrefetchReads && fetch()) {
    }
    if (!reads_.empty()) break;
    core_.noc_semaphore_wait_min(entry_word(), 1);
  }
  const Read read = reads_.front();
  reads_.pop_front();
  core_.noc_async_read_barrier_with_trid(read.transaction_id);
  return read.batch;
}

// True if there was an entry, and room for its bytes.
bool HostFetcher::fetch() {
  read_fields(core_, 1);
  const std::uint64_t entry = core_.load_word(entry_word());
  const std::uint64_t size_bytes = entry * kRingUnitBytes;
  const std::uint64_t all_bytes = header_bytes_ + size_bytes;
  if (entry == 0 || reserved_ + all_bytes - done_ > ring_.size_bytes) return false;
  const std::uint64_t from = place_of_batch(host_at_, size_bytes, places_.commands_bytes);
  const int id = kFirstTransactionId + next_id_;
  next_id_ = (next_id_ + 1) % kPrefetchReads;
  core_.noc_async_read_set_trid(id);
  ring_.for_each_part(reserved_ + header_bytes_, size_bytes,
                      [&](std::uint64_t to, std::uint64_t done, std::uint64_t bytes) {
                        core_.noc_async_read({places_.pcie_tile, places_.commands + from + done},
                                             to, bytes);
                      });
  core_.noc_async_read_set_trid(0);
  core_.store_word(entry_word(), 0);
  ++entries_;
  fetched_bytes_ += size_bytes + (from == host_at_ ? 0 : places_.commands_bytes - host_at_);
  host_at_ = from + size_bytes;
  core_.store_word(places_.fetched, entries_);
  core_.store_word(places_.fetched + noc::kWordBytes,
                   static_cast<std::uint32_t>(fetched_bytes_ / kRingUnitBytes));
  reads_.push_back({{reserved_, all_bytes}, id});
  reserved_ += all_bytes;
  return true;
}

void CommandRelay::relay(const Ring& from, std::uint64_t position, std::uint64_t size_bytes) {
  for (const std::uint64_t end = position + size_bytes; position < end;) {
    PrefetchCommand command;
    core_.load(from.at(position), std::as_writable_bytes(std::span(&command, 1)));
    read_fields(core_, kFieldsRead);
    if (command.kind == PrefetchCommand::Kind::stall) {
      core_.noc_semaphore_wait_min(stall_word_, ++stalls_);
    } else {
      to_.wait_for_room(rounded_up(command.length_bytes, kDispatchPageBytes));
      to_.put(from, position + sizeof(command), command.length_bytes);
      to_.skip_to(kDispatchPageBytes);
      to_.announce();
    }
    position += command.stride_bytes;
  }
}

// --- the dispatcher ------------------------------------------------------------------------------

void write_event(DataMovementCore& core, std::uint64_t from, const EventPlaces& to) {
  DispatchCommand command;
  core.load(from, std::as_writable_bytes(std::span(&command, 1)));
  const std::uint64_t slot = command.value % kEventSlots * kEventSlotBytes;
  core.noc_async_write(from, {to.pcie_tile, to.slots + slot}, kEventBytes);
  core.noc_async_writes_flushed();
  core.store_word(to.staging, command.value);
  core.noc_async_write(to.staging, {to.pcie_tile, to.count}, noc::kWordBytes);
}

Dispatcher::Dispatcher(DataMovementCore& core, RingReader& from, const Places& places,
                       HazardMonitor* monitor)
    : core_(core), from_(from), places_(places), monitor_(monitor) {}

DispatchCommand Dispatcher::next(std::uint64_t position) {
  from_.wait_for(position + sizeof(DispatchCommand));
  DispatchCommand command;
  from_.load(position, std::as_writable_bytes(std::span(&command, 1)));
  read_fields(core_, kFieldsRead);
  return command;
}

void Dispatcher::carry_out(const DispatchCommand& command, std::uint64_t position) {
  using Kind = DispatchCommand::Kind;
  switch (command.kind) {
    case Kind::set_write_offsets:
    case Kind::write_host: return;
    case Kind::wait: return wait(command);
    case Kind::write_linear: return write_linear(command, position);
    case Kind::write_packed:
    case Kind::write_packed_large: return write_packed(command, position);
    case Kind::go_signal: return go(command, position);
  }
}

void Dispatcher::wait(const DispatchCommand& command) {
  if ((command.flags & kWaitsForWrites) != 0) core_.noc_async_write_barrier();
  if (command.value > 0) core_.noc_semaphore_wait_min(places_.ended_word, command.value);
  if ((command.flags & kNotifiesPrefetcher) != 0) core_.noc_semaphore_inc(places_.stall_word, 1);
}

void Dispatcher::write(std::uint64_t position, std::uint64_t size_bytes, const NocAddress& to) {
  from_.ring().for_each_part(position, size_bytes,
                             [&](std::uint64_t source, std::uint64_t done, std::uint64_t bytes) {
                               core_.noc_async_write(source, {to.tile, to.offset + done}, bytes);
                             });
}

int Dispatcher::workers_of(const NocMulticastAddress& to) const {
  const KernelConfig& own = core_.config();
  return multicast_destinations(core_.network().chip(), own.core, to.on(own.noc_index), false);
}

void Dispatcher::multicast(std::uint64_t position, std::uint64_t size_bytes,
                           const MulticastTarget& to, std::uint64_t offset) {
  NocMulticastAddress address{tile_of(to.first), tile_of(to.last), offset};
  const int workers = workers_of(address);
  from_.ring().for_each_part(position, size_bytes,
                             [&](std::uint64_t source, std::uint64_t done, std::uint64_t bytes) {
                               address.offset = offset + done;
                               core_.noc_async_write_multicast(source, address, bytes, workers);
                             });
}

void Dispatcher::write_linear(const DispatchCommand& command, std::uint64_t position) {
  LinearTarget target;
  from_.load(position, std::as_writable_bytes(std::span(&target, 1)));
  const Coordinate tile{target.x, target.y};
  write(position + sizeof(target), command.size_bytes, {tile, target.offset});
  if (monitor_ == nullptr) return;
  monitor_->host_has_written(core_.config().chip, tile, target.offset, command.size_bytes);
}

template <typename Target>
std::vector<Target> Dispatcher::load_targets(std::uint64_t position, std::size_t count) {
  std::vector<Target> targets(count);
  from_.load(position, std::as_writable_bytes(std::span(targets)));
  return targets;
}

void Dispatcher::write_packed(const DispatchCommand& command, std::uint64_t position) {
  const auto for_each = [&](const auto& targets, const auto& send) {
    std::uint64_t data = position + sizeof(targets.front()) * targets.size();
    for (const auto& target : targets) {
      data = rounded_up(data, kRingUnitBytes);
      read_fields(core_, 1);
      send(target, data);
      data += command.size_bytes;
    }
  };
  if (command.kind == DispatchCommand::Kind::write_packed_large) {
    for_each(load_targets<LargeTarget>(position, command.count),
             [&](const LargeTarget& target, std::uint64_t data) {
               multicast(data, command.size_bytes, target.rectangle, target.offset);
             });
  } else if ((command.flags & kGoesToRectangles) != 0) {
    for_each(load_targets<MulticastTarget>(position, command.count),
             [&](const MulticastTarget& target, std::uint64_t data) {
               multicast(data, command.size_bytes, target, command.value);
             });
  } else {
    for_each(load_targets<UnicastTarget>(position, command.count),
             [&](const UnicastTarget& target, std::uint64_t data) {
               write(data, command.size_bytes, {tile_of(target), command.value});
             });
  }
}

// The word is sent from the same place in its 16 bytes as at its target.
void Dispatcher::go(const DispatchCommand& command, std::uint64_t position) {
  core_.noc_async_writes_flushed();
  const std::uint64_t source = places_.go_word + command.value % kRingUnitBytes;
  core_.store_word(source, command.size_bytes);
  if ((command.flags & kGoesToRectangles) == 0) {
    for (const UnicastTarget& target : load_targets<UnicastTarget>(position, command.count)) {
      core_.noc_async_write(source, {tile_of(target), command.value}, kGoMessageBytes);
    }
    return;
  }
  for (const MulticastTarget& target : load_targets<MulticastTarget>(position, command.count)) {
    const NocMulticastAddress to{tile_of(target.first), tile_of(target.last), command.value};
    core_.noc_async_write_multicast(source, to, kGoMessageBytes, workers_of(to));
  }
}

}  // namespace towpath::tenstorrent
