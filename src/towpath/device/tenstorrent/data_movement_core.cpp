// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/device/tenstorrent/data_movement_core.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace towpath::device::tenstorrent {

using noc::Request;
using noc::RequestKind;

void DataMovementCore::work(noc::Cycle cycles) {
  if (cycles > 0) work_until(cycle() + cycles);
}

void DataMovementCore::work_until(noc::Cycle cycle) {
  const Time until = network_.clock().edge(Cycles(cycle));
  sim::Simulation& simulation = network_.simulation();
  if (until > simulation.now()) simulation.sleep_until(until);
}

std::uint32_t DataMovementCore::get_arg_val(std::size_t index) const {
  if (index >= config_.runtime_args.size()) {
    throw std::invalid_argument(fmt::format("kernel '{}' has no runtime argument {}; it has {}",
                                            config_.name, index, config_.runtime_args.size()));
  }
  return config_.runtime_args[index];
}

std::uint32_t DataMovementCore::get_compile_time_arg_val(std::size_t index) const {
  if (index >= config_.compile_args.size()) {
    throw std::invalid_argument(
        fmt::format("kernel '{}' has no compile-time argument {}; it has {}", config_.name, index,
                    config_.compile_args.size()));
  }
  return config_.compile_args[index];
}

Request DataMovementCore::request(RequestKind kind, Initiator initiator, const NocAddress& remote,
                                  std::uint64_t local_offset, std::uint64_t size_bytes) const {
  Request request;
  request.kind = kind;
  request.noc = config_.noc_index;
  request.core = config_.core;
  request.initiator = initiator;
  request.remote = remote;
  request.local_offset = local_offset;
  request.size_bytes = size_bytes;
  return request;
}

void DataMovementCore::issue(const Request& request, int cycles) {
  sim::Simulation& simulation = network_.simulation();
  while (!network_.is_ready(request.noc, request.core, request.initiator)) {
    network_.wake_on_change(request.noc, request.core, *simulation.current());
    simulation.suspend("an initiator of its NIU");
  }
  work(cycles);
  network_.issue(request);
}

void DataMovementCore::poll(std::string_view waiting_for, const std::function<bool()>& is_so) {
  sim::Simulation& simulation = network_.simulation();
  const noc::Cycle period = network_.chip().software.poll_cycles;
  const noc::Cycle first = cycle();
  while (!is_so()) {
    network_.wake_on_change(config_.noc_index, config_.core, *simulation.current());
    simulation.suspend(waiting_for);
  }
  work_until(first + (cycle() - first + period) / period * period);
}

void DataMovementCore::noc_async_write(std::uint64_t local_offset, const NocAddress& to,
                                       std::uint64_t size_bytes, const WriteOptions& options) {
  Request write = request(RequestKind::write, kWrite, to, local_offset, size_bytes);
  write.vc = static_cast<std::uint8_t>(options.vc);
  write.is_static_vc = options.is_static_vc;
  write.is_posted = options.is_posted;
  write.transaction_id = options.transaction_id;
  issue(write, network_.chip().software.write_cycles);
}

void DataMovementCore::noc_async_read(const NocAddress& from, std::uint64_t local_offset,
                                      std::uint64_t size_bytes, const ReadOptions& options) {
  Request read = request(RequestKind::read, kRead, from, local_offset, size_bytes);
  read.vc = static_cast<std::uint8_t>(options.vc);
  read.transaction_id = options.transaction_id;
  issue(read, network_.chip().software.read_cycles);
}

void DataMovementCore::noc_async_write_one_packet_set_state(const NocAddress& to,
                                                            std::uint64_t size_bytes,
                                                            const WriteOptions& options) {
  write_state_ = request(RequestKind::write, kWrite, to, 0, size_bytes);
  write_state_.vc = static_cast<std::uint8_t>(options.vc);
  write_state_.is_static_vc = options.is_static_vc;
  write_state_.is_posted = options.is_posted;
  write_state_.transaction_id = options.transaction_id;
  work(network_.chip().software.set_state_cycles);
}

void DataMovementCore::noc_async_write_one_packet_with_state(std::uint64_t local_offset,
                                                             std::uint64_t to_offset) {
  Request write = write_state_;
  write.local_offset = local_offset;
  write.remote.offset = to_offset;
  issue(write, network_.chip().software.write_with_state_cycles);
}

void DataMovementCore::noc_async_read_set_state(const NocAddress& from, std::uint64_t size_bytes,
                                                const ReadOptions& options) {
  read_state_ = request(RequestKind::read, kRead, from, 0, size_bytes);
  read_state_.vc = static_cast<std::uint8_t>(options.vc);
  read_state_.transaction_id = options.transaction_id;
  work(network_.chip().software.set_state_cycles);
}

void DataMovementCore::noc_async_read_with_state(std::uint64_t from_offset,
                                                 std::uint64_t local_offset) {
  Request read = read_state_;
  read.local_offset = local_offset;
  read.remote.offset = from_offset;
  issue(read, network_.chip().software.read_with_state_cycles);
}

void DataMovementCore::noc_async_write_multicast(std::uint64_t local_offset,
                                                 const NocMulticastAddress& to,
                                                 std::uint64_t size_bytes,
                                                 const MulticastOptions& options) {
  Request write =
      request(RequestKind::write, kWrite, {to.first, to.offset}, local_offset, size_bytes);
  write.vc = static_cast<std::uint8_t>(options.vc);
  write.is_multicast = true;
  write.last_tile = to.last;
  write.is_linked = options.is_linked;
  write.includes_source = options.includes_source;
  issue(write, network_.chip().software.multicast_cycles);
}

void DataMovementCore::noc_inline_dw_write(const NocAddress& to, std::uint32_t value,
                                           const WriteOptions& options) {
  Request write = request(RequestKind::inline_write, kInlineWrite, to, 0, 0);
  write.vc = static_cast<std::uint8_t>(options.vc);
  write.is_static_vc = options.is_static_vc;
  write.is_posted = options.is_posted;
  write.transaction_id = options.transaction_id;
  write.value = value;
  issue(write, network_.chip().software.inline_write_cycles);
}

void DataMovementCore::noc_semaphore_inc(const NocAddress& semaphore, std::uint32_t increment,
                                         const WriteOptions& options) {
  Request atomic = request(RequestKind::atomic_increment, kAtomic, semaphore, 0, 0);
  atomic.vc = static_cast<std::uint8_t>(options.vc);
  atomic.is_static_vc = options.is_static_vc;
  atomic.is_posted = options.is_posted;
  atomic.transaction_id = options.transaction_id;
  atomic.value = increment;
  issue(atomic, network_.chip().software.atomic_cycles);
}

void DataMovementCore::noc_async_write_barrier() {
  poll("acknowledgements of its writes",
       [this] { return counters().write_acks_received == counters().write_acks_awaited; });
}

void DataMovementCore::noc_async_writes_flushed() {
  poll("its writes to leave", [this] { return counters().packets_to_leave == 0; });
}

void DataMovementCore::noc_async_read_barrier() {
  poll("answers to its reads",
       [this] { return counters().read_responses_received == counters().reads_sent; });
}

void DataMovementCore::noc_async_atomic_barrier() {
  poll("answers to its atomics", [this] {
    return counters().atomic_responses_received == counters().atomic_responses_awaited;
  });
}

void DataMovementCore::noc_async_write_barrier_with_trid(int transaction_id) {
  poll("acknowledgements of a transaction id", [this, transaction_id] {
    return counters().outstanding[static_cast<std::size_t>(transaction_id)] == 0;
  });
}

void DataMovementCore::noc_async_read_barrier_with_trid(int transaction_id) {
  poll("answers to a transaction id", [this, transaction_id] {
    return counters().outstanding[static_cast<std::size_t>(transaction_id)] == 0;
  });
}

sim::Process& run_kernel(noc::ChipNetwork& network, KernelConfig config,
                         std::function<void(DataMovementCore&)> kernel) {
  std::string name = fmt::format("{} on core ({}, {}), NoC {}", config.name, config.core.x,
                                 config.core.y, config.noc_index);
  return network.simulation().spawn(std::move(name), [&network, config = std::move(config),
                                                      kernel = std::move(kernel)]() mutable {
    DataMovementCore core(network, std::move(config));
    kernel(core);
  });
}

}  // namespace towpath::device::tenstorrent
