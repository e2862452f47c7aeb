// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/device/data_movement_core.hpp"

#include <fmt/format.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "towpath/base/index.hpp"

namespace towpath::tenstorrent {

using noc::NiuCounters;
using noc::Request;
using noc::RequestKind;

int multicast_destinations(const machine::Chip& chip, machine::Coordinate source,
                           const NocMulticastAddress& to, bool includes_source) {
  int count = 0;
  for (const machine::Coordinate worker : chip.workers) {
    const bool is_inside = worker.x >= to.first.x && worker.x <= to.last.x &&
                           worker.y >= to.first.y && worker.y <= to.last.y;
    if (is_inside && (worker != source || includes_source)) ++count;
  }
  return count;
}

DataMovementCore::DataMovementCore(noc::ChipNetwork& network, KernelConfig config,
                                   CoreObserver* observer)
    : network_(network),
      costs_(kCallCosts.of(network.chip())),
      config_(std::move(config)),
      observer_(observer == nullptr ? &ignores_everything_ : observer) {
  const machine::Chip& chip = network_.chip();
  if (!chip.holds(config_.core)) {
    refuse("it is outside of the {} x {} grid", chip.width, chip.height);
  }
  const machine::TileKind kind = chip.tile(config_.core).kind;
  if (kind != machine::TileKind::worker && kind != machine::TileKind::ethernet) {
    refuse("it is a {} tile; kernels run on workers and on Ethernet tiles", machine::name_of(kind));
  }
  if (config_.noc_index != 0 && config_.noc_index != 1 && config_.noc_index != kNoNoc) {
    refuse("its NoC is {}; there are 0 and 1", config_.noc_index);
  }
}

std::string DataMovementCore::where() const {
  std::string kernel =
      fmt::format("kernel '{}' on core ({}, {})", config_.name, config_.core.x, config_.core.y);
  if (config_.chip != kOnlyChip) kernel += fmt::format(" of chip {}", config_.chip);
  return call_.empty() ? kernel : fmt::format("{} in {}", kernel, call_);
}

int DataMovementCore::noc_of(int noc) const {
  if (noc == kKernelNoc) noc = config_.noc_index;
  if (noc != 0 && noc != 1) refuse("there is no NoC {}, only 0 and 1", noc);
  return noc;
}

void DataMovementCore::work(noc::Cycle cycles) {
  if (cycles > 0) work_until(cycle() + cycles);
}

void DataMovementCore::work_until(noc::Cycle cycle) {
  const Time until = network_.clock().edge(Cycles(cycle));
  sim::Simulation& simulation = network_.simulation();
  if (until > simulation.now()) simulation.sleep_until(until);
}

// --- arguments, memory --------------------------------------------------------------------------

std::uint32_t DataMovementCore::get_arg_val(std::size_t number) {
  call_ = __func__;
  const std::size_t count = config_.runtime_args.size();
  if (number >= count) refuse("there is no runtime argument {}; it has {}", number, count);
  return config_.runtime_args[number];
}

std::uint32_t DataMovementCore::get_compile_time_arg_val(std::size_t number) {
  call_ = __func__;
  const std::size_t count = config_.compile_args.size();
  if (number >= count) refuse("there is no compile-time argument {}; it has {}", number, count);
  return config_.compile_args[number];
}

std::uint64_t DataMovementCore::get_semaphore(std::size_t id) {
  call_ = __func__;
  const std::size_t count = config_.semaphores.size();
  if (id >= count) refuse("there is no semaphore {}; the program has {}", id, count);
  return config_.semaphores[id];
}

std::uint32_t DataMovementCore::load_word(std::uint64_t offset) {
  call_ = __func__;
  return look(offset);
}

void DataMovementCore::store_word(std::uint64_t offset, std::uint32_t value) {
  call_ = __func__;
  change(offset, value);
}

std::uint32_t DataMovementCore::look(std::uint64_t offset, std::uint32_t minimum) {
  const std::uint32_t value = named([&] { return network_.load_word(config_.core, offset); });
  observer_->looked(offset, value, std::min(value, minimum));
  return value;
}

void DataMovementCore::change(std::uint64_t offset, std::uint32_t value) {
  observer_->storing(offset, std::as_bytes(std::span(&value, 1)));
  named([&] { network_.store_word(config_.core, offset, value); });
}

void DataMovementCore::load(std::uint64_t offset, std::span<std::byte> to) {
  call_ = __func__;
  named([&] { network_.load(config_.core, offset, to); });
  observer_->using_bytes(offset, to.size());
}

void DataMovementCore::store(std::uint64_t offset, std::span<const std::byte> from) {
  call_ = __func__;
  observer_->storing(offset, from);
  named([&] { network_.store(config_.core, offset, from); });
}

// --- requests -----------------------------------------------------------------------------------

DataMovementCore::InitiatorState& DataMovementCore::state(int noc, int initiator) {
  return states_[index(noc)][index(initiator)];
}

Request DataMovementCore::request(const Command& command, const NocAddress& remote,
                                  const WriteOptions& options) {
  Request request;
  request.kind = command.kind;
  request.noc = noc_of(options.noc);
  request.core = config_.core;
  request.initiator = command.initiator;
  request.remote = remote;
  request.local_offset = command.local_offset;
  request.size_bytes = command.size_bytes;
  request.vc = options.vc;
  request.is_static_vc = options.is_static_vc;
  request.is_posted = options.is_posted;
  request.transaction_id = state(request.noc, command.initiator).transaction_id;
  return request;
}

Request DataMovementCore::read_request(const NocAddress& from, std::uint64_t local_offset,
                                       std::uint64_t size_bytes, const ReadOptions& options) {
  return request({RequestKind::read, kRead, local_offset, size_bytes}, from,
                 {.vc = options.vc, .noc = options.noc});
}

Request DataMovementCore::multicast_request(const Command& command, const NocMulticastAddress& to,
                                            const Receivers& receivers,
                                            const MulticastOptions& options) {
  const int workers =
      multicast_destinations(network_.chip(), config_.core, to, receivers.includes_source);
  if (receivers.workers != workers) {
    refuse("is told {} destinations; the rectangle ({}, {}) to ({}, {}) has {} workers{}",
           receivers.workers, to.first.x, to.first.y, to.last.x, to.last.y, workers,
           receivers.includes_source ? "" : " besides this core");
  }
  Request multicast =
      request(command, {to.first, to.offset}, {.vc = options.vc, .noc = options.noc});
  multicast.is_multicast = true;
  multicast.last_tile = to.last;
  multicast.is_linked = options.is_linked;
  multicast.includes_source = receivers.includes_source;
  return multicast;
}

void DataMovementCore::check_one_packet(std::uint64_t size_bytes) const {
  const machine::RouterParameters& router = network_.chip().router;
  const auto size_bytes_max =
      static_cast<std::uint64_t>(router.packet_data_flits_max * router.flit_bytes);
  if (size_bytes > size_bytes_max) {
    refuse("{} bytes do not fit into one packet; at most {} do", size_bytes, size_bytes_max);
  }
}

void DataMovementCore::wait_for_initiator(int noc, int initiator) {
  suspend_until({[](const NiuCounters& counters, int number) {
                   return counters.packets_to_start[index(number)] == 0;
                 },
                 initiator},
                noc);
}

// Software hands over a request packet by packet: it continues once it has handed over the last.
void DataMovementCore::wait_for_last_packet(int noc, int initiator) {
  suspend_until({[](const NiuCounters& counters, int number) {
                   return counters.packets_to_start[index(number)] <= 1;
                 },
                 initiator},
                noc);
}

void DataMovementCore::issue_with_state(const Request& request, int cycles) {
  wait_for_initiator(request.noc, request.initiator);
  if (request.kind == RequestKind::read) {
    work_at_niu(request.noc, cycles);
  } else {
    work(cycles);
  }
  wait_for_initiator(request.noc, request.initiator);  // the core's other kernel may have used it
  has_used_noc_[index(request.noc)] = true;
  observer_->issuing(request);
  named([&] { network_.issue(request); });
  wait_for_last_packet(request.noc, request.initiator);
}

void DataMovementCore::work_at_niu(int noc, int cycles) {
  const NiuCounters& counters = network_.counters(noc, config_.core);
  const int held_up_cycles = costs_.read_held_up;
  std::uint32_t before = counters.read_responses_sent;
  work(cycles);
  while (counters.read_responses_sent != before) {
    const std::uint32_t more = counters.read_responses_sent - before;
    before += more;
    work(held_up_cycles * static_cast<noc::Cycle>(more));
  }
}

void DataMovementCore::issue(const Request& request, int cycles) {
  state(request.noc, request.initiator).is_set = false;
  issue_with_state(request, cycles);
}

void DataMovementCore::set_state(const Request& request) {
  wait_for_initiator(request.noc, request.initiator);
  InitiatorState& left = state(request.noc, request.initiator);
  left.request = request;
  left.is_set = true;
  work(costs_.set_state);
}

Request DataMovementCore::request_with_state(Initiator initiator, int noc,
                                             std::uint64_t local_offset,
                                             std::uint64_t remote_offset) {
  const InitiatorState& left = state(noc_of(noc), initiator);
  if (!left.is_set) {
    refuse("no state is set on NoC {}: there was no set_state, or a call without state after it",
           noc_of(noc));
  }
  Request request = left.request;
  request.local_offset = local_offset;
  // A call with state replaces the lower 32 bits of an address; the host's has some above.
  const std::uint64_t above = left.request.remote.offset & ~std::uint64_t{0xffffffff};
  request.remote.offset = remote_offset <= 0xffffffff ? above | remote_offset : remote_offset;
  request.transaction_id = left.transaction_id;
  return request;
}

// --- reads --------------------------------------------------------------------------------------

void DataMovementCore::noc_async_read(const NocAddress& from, std::uint64_t local_offset,
                                      std::uint64_t size_bytes, const ReadOptions& options) {
  call_ = __func__;
  issue(read_request(from, local_offset, size_bytes, options), costs_.read);
}

void DataMovementCore::noc_async_read_set_state(const NocAddress& from,
                                                const ReadOptions& options) {
  call_ = __func__;
  set_state(read_request(from, 0, 0, options));
}

void DataMovementCore::noc_async_read_with_state(std::uint64_t from_offset,
                                                 std::uint64_t local_offset,
                                                 std::uint64_t size_bytes, int noc) {
  call_ = __func__;
  Request read = request_with_state(kRead, noc, local_offset, from_offset);
  read.size_bytes = size_bytes;
  issue_with_state(read, costs_.read_with_state);
}

void DataMovementCore::noc_async_read_one_packet(const NocAddress& from, std::uint64_t local_offset,
                                                 std::uint64_t size_bytes,
                                                 const ReadOptions& options) {
  call_ = __func__;
  check_one_packet(size_bytes);
  issue(read_request(from, local_offset, size_bytes, options), costs_.read);
}

void DataMovementCore::noc_async_read_one_packet_set_state(const NocAddress& from,
                                                           std::uint64_t size_bytes,
                                                           const ReadOptions& options) {
  call_ = __func__;
  check_one_packet(size_bytes);
  set_state(read_request(from, 0, size_bytes, options));
}

void DataMovementCore::noc_async_read_one_packet_with_state(std::uint64_t from_offset,
                                                            std::uint64_t local_offset, int noc) {
  call_ = __func__;
  issue_with_state(request_with_state(kRead, noc, local_offset, from_offset),
                   costs_.read_with_state);
}

// --- writes -------------------------------------------------------------------------------------

void DataMovementCore::noc_async_write(std::uint64_t local_offset, const NocAddress& to,
                                       std::uint64_t size_bytes, const WriteOptions& options) {
  call_ = __func__;
  issue(request(write_of(local_offset, size_bytes), to, options), costs_.write);
}

void DataMovementCore::noc_async_write_set_state(const NocAddress& to,
                                                 const WriteOptions& options) {
  call_ = __func__;
  set_state(request(write_of(0, 0), to, options));
}

void DataMovementCore::noc_async_write_with_state(std::uint64_t local_offset,
                                                  std::uint64_t to_offset, std::uint64_t size_bytes,
                                                  int noc) {
  call_ = __func__;
  Request write = request_with_state(kWrite, noc, local_offset, to_offset);
  write.size_bytes = size_bytes;
  issue_with_state(write, costs_.write_with_state);
}

void DataMovementCore::noc_async_write_one_packet(std::uint64_t local_offset, const NocAddress& to,
                                                  std::uint64_t size_bytes,
                                                  const WriteOptions& options) {
  call_ = __func__;
  check_one_packet(size_bytes);
  issue(request(write_of(local_offset, size_bytes), to, options), costs_.write);
}

void DataMovementCore::noc_async_write_one_packet_set_state(const NocAddress& to,
                                                            std::uint64_t size_bytes,
                                                            const WriteOptions& options) {
  call_ = __func__;
  check_one_packet(size_bytes);
  set_state(request(write_of(0, size_bytes), to, options));
}

void DataMovementCore::noc_async_write_one_packet_with_state(std::uint64_t local_offset,
                                                             std::uint64_t to_offset, int noc) {
  call_ = __func__;
  issue_with_state(request_with_state(kWrite, noc, local_offset, to_offset),
                   costs_.write_with_state);
}

void DataMovementCore::noc_async_write_multicast(std::uint64_t local_offset,
                                                 const NocMulticastAddress& to,
                                                 std::uint64_t size_bytes, int destinations,
                                                 const MulticastOptions& options) {
  call_ = __func__;
  issue(multicast_request(write_of(local_offset, size_bytes), to, {destinations, false}, options),
        costs_.multicast);
}

void DataMovementCore::noc_async_write_multicast_one_packet(std::uint64_t local_offset,
                                                            const NocMulticastAddress& to,
                                                            std::uint64_t size_bytes,
                                                            int destinations,
                                                            const MulticastOptions& options) {
  call_ = __func__;
  check_one_packet(size_bytes);
  issue(multicast_request(write_of(local_offset, size_bytes), to, {destinations, false}, options),
        costs_.multicast);
}

void DataMovementCore::noc_async_write_multicast_loopback_src(std::uint64_t local_offset,
                                                              const NocMulticastAddress& to,
                                                              std::uint64_t size_bytes,
                                                              int destinations,
                                                              const MulticastOptions& options) {
  call_ = __func__;
  issue(multicast_request(write_of(local_offset, size_bytes), to, {destinations, true}, options),
        costs_.multicast);
}

void DataMovementCore::noc_inline_dw_write(const NocAddress& to, std::uint32_t value,
                                           const WriteOptions& options) {
  call_ = __func__;
  Request write = request({RequestKind::inline_write, kAtomic, 0, noc::kWordBytes}, to, options);
  write.value = value;
  issue(write, costs_.inline_write);
}

void DataMovementCore::noc_inline_dw_write_set_state(const NocAddress& to,
                                                     const WriteOptions& options) {
  call_ = __func__;
  set_state(request({RequestKind::inline_write, kAtomic, 0, noc::kWordBytes}, to, options));
}

void DataMovementCore::noc_inline_dw_write_with_state(std::uint32_t value, int noc) {
  call_ = __func__;
  const std::uint64_t offset = state(noc_of(noc), kAtomic).request.remote.offset;
  Request write = request_with_state(kAtomic, noc, 0, offset);
  write.value = value;
  issue_with_state(write, costs_.write_with_state);
}

sim::Process& run_kernel(noc::ChipNetwork& network, KernelConfig config, Kernel kernel) {
  auto core = std::make_shared<DataMovementCore>(network, std::move(config));
  std::string name =
      fmt::format("{} on core ({}, {}), NoC {}", core->config().name, core->config().core.x,
                  core->config().core.y, core->config().noc_index);
  return network.simulation().spawn(std::move(name),
                                    [core = std::move(core), kernel = std::move(kernel)] {
                                      core->work_until(core->config().start_cycle);
                                      kernel(*core);
                                    });
}

}  // namespace towpath::tenstorrent
