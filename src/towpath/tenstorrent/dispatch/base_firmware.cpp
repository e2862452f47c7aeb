// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/dispatch/base_firmware.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/tenstorrent/device/device.hpp"

namespace towpath::tenstorrent {

namespace map = ethernet_memory_map;
using noc::Cycle;

namespace {

// Number of a slot among the slots that are filled from the same side.
int number_of(int slot) { return slot % kHostSlots; }

}  // namespace

BaseFirmware::BaseFirmware(Device& device, EthernetTile& tile, const HostRoutes& routes)
    : device_(device),
      tile_(tile),
      routes_(routes),
      core_(device.network(), {.core = tile.core(), .name = "base firmware", .chip = device.id()}) {
  tile.set_base_firmware(this);
  process_ = &device.network().simulation().spawn(fmt::format("base firmware of {}", tile.name()),
                                                  [this] { run(); });
}

// --- possession of the core ---------------------------------------------------------------------

void BaseFirmware::run() {
  for (;;) {
    wait_for_look();
    is_at_work_ = true;
    look();
    is_at_work_ = false;
    has_turn_ = false;
    if (kernel_ != nullptr) device_.network().simulation().wake(*std::exchange(kernel_, nullptr));
  }
}

// Polls at multiples of its period while it has the core and is idle, or in a kernel's turn.
void BaseFirmware::wait_for_look() {
  constexpr Cycle period = kRoutingFirmwareCycles;
  Cycle first = core_.cycle();
  Cycle due = noc::kNever;
  for (;;) {
    const bool has_core = tile_.is_firmware_running();
    if (has_turn_ || (has_core && core_.cycle() >= due)) return;
    due = noc::kNever;
    if (has_core && has_work()) {
      due = first + ((core_.cycle() - first) / period + 1) * period;
    } else if (has_work()) {
      tile_.wake_kernel();  // the kernel may be waiting to yield
    }
    suspend_until(due);
    if (!has_core) first = core_.cycle();
  }
}

// Suspends it until that cycle, or until a change.
void BaseFirmware::suspend_until(Cycle due) {
  noc::ChipNetwork& network = device_.network();
  sim::Simulation& simulation = network.simulation();
  if (due != noc::kNever) {
    timer_.arm(
        simulation, network.clock().edge(Cycles(due)),
        [](void* self) { static_cast<BaseFirmware*>(self)->wake(); }, this);
  }
  tile_.wake_on_port_change(*process_);
  network.wake_on_write(tile_.core(), map::kCommandQueueBase, *process_,
                        map::kDataBufferBase - map::kCommandQueueBase);
  simulation.suspend("something to do");
  tile_.stop_waking(*process_);
  timer_.cancel();
}

void BaseFirmware::wake() { device_.network().simulation().wake(*process_); }

void BaseFirmware::take_turn() {
  has_turn_ = true;
  wake();
  suspend_for_kernel();
}

void BaseFirmware::finish_look() {
  if (is_at_work_) suspend_for_kernel();
}

void BaseFirmware::suspend_for_kernel() {
  sim::Simulation& simulation = device_.network().simulation();
  while (has_turn_ || is_at_work_) {
    kernel_ = simulation.current();
    simulation.suspend("the base firmware of its core");
  }
}

// --- finding work -------------------------------------------------------------------------------

bool BaseFirmware::is_new(int slot) const {
  return device_.network().load_word(tile_.core(), command_at(slot)) !=
         slots_[index(slot)].command.sequence;
}

bool BaseFirmware::is_answered(int slot) const {
  return device_.network().load_word(tile_.core(), answer_at(slot)) ==
         slots_[index(slot)].command.sequence;
}

bool BaseFirmware::has_work() const {
  for (int slot = 0; slot < kFirmwareSlots; ++slot) {
    switch (slots_[index(slot)].stage) {
      case Stage::idle:
        if (is_new(slot)) return true;
        break;
      case Stage::to_do: return true;
      case Stage::forwarding:
        if (can_send(next_of(slot))) return true;
        break;
      case Stage::awaiting:
        if (is_answered(slot)) return true;
        break;
      case Stage::answering:
        if (can_send(previous_of(slot))) return true;
        break;
    }
  }
  return false;
}

// Handles all visible commands and answers, oldest first.
void BaseFirmware::look() {
  std::vector<int> busy;
  for (int slot = 0; slot < kFirmwareSlots; ++slot) {
    Slot& state = slots_[index(slot)];
    if (state.stage == Stage::idle && is_new(slot)) {
      device_.network().load(tile_.core(), command_at(slot),
                             std::as_writable_bytes(std::span(&state.command, 1)));
      state.stage = Stage::to_do;
    }
    if (state.stage != Stage::idle) busy.push_back(slot);
  }
  std::ranges::stable_sort(busy, {},
                           [this](int slot) { return slots_[index(slot)].command.sequence; });
  for (const int slot : busy) advance(slot);
}

// Advances a command up to its next wait for another core.
void BaseFirmware::advance(int slot) {
  Slot& state = slots_[index(slot)];
  if (state.stage == Stage::to_do) begin(slot);
  if (state.stage == Stage::forwarding && forward(slot)) return;
  if (state.stage == Stage::awaiting && is_answered(slot)) {
    state.stage = Stage::answering;
    state.has_data_to_send = state.command.kind == FirmwareCommand::Kind::read;
  }
  if (state.stage == Stage::answering && send(slot, previous_of(slot), true)) {
    state.stage = Stage::idle;
  }
}

void BaseFirmware::begin(int slot) {
  Slot& state = slots_[index(slot)];
  const bool is_read = state.command.kind == FirmwareCommand::Kind::read;
  if (state.command.chip == device_.id()) {
    do_access(slot);
    state.stage = Stage::answering;
    state.has_data_to_send = is_read;
    return;
  }
  FirmwareCommand passed_on = state.command;
  passed_on.from_channel = static_cast<std::uint16_t>(tile_.end().channel);
  passed_on.from_slot = static_cast<std::uint16_t>(slot);
  device_.network().store(tile_.core(), command_at(slot), std::as_bytes(std::span(&passed_on, 1)));
  state.stage = Stage::forwarding;
  state.has_data_to_send = !is_read;
}

// The answer to a command of the host stays in its slot until the host takes it.
bool BaseFirmware::forward(int slot) {
  if (!send(slot, next_of(slot), false)) return false;
  slots_[index(slot)].stage = slot < kHostSlots ? Stage::idle : Stage::awaiting;
  return true;
}

void BaseFirmware::do_access(int slot) {
  const FirmwareCommand& command = slots_[index(slot)].command;
  const machine::Coordinate tile = device_.chip().coordinate_of(command.tile);
  const std::uint64_t data = data_at(slot) + command.offset % kSlotBytes;
  if (command.kind == FirmwareCommand::Kind::read) {
    core_.noc_async_read({tile, command.offset}, data, command.size_bytes);
    core_.noc_async_read_barrier();
    return;
  }
  core_.noc_async_write(data, {tile, command.offset}, command.size_bytes);
  core_.noc_async_write_barrier();
  if (HazardMonitor* monitor = device_.monitor(); monitor != nullptr) {
    monitor->host_has_written(device_.id(), tile, command.offset, command.size_bytes);
  }
}

// --- forwarding ---------------------------------------------------------------------------------

BaseFirmware::Destination BaseFirmware::next_of(int slot) const {
  const int channel = routes_.next(device_.id(), slots_[index(slot)].command.chip).channel;
  if (channel == tile_.end().channel) return {true, {}, kFirstEthernetSlot + number_of(slot)};
  return {false, device_.ethernet_core({0, channel}), kFirstNocSlot + number_of(slot)};
}

BaseFirmware::Destination BaseFirmware::previous_of(int slot) const {
  const FirmwareCommand& command = slots_[index(slot)].command;
  if (slot < kFirstNocSlot) return {true, {}, command.from_slot};
  return {false, device_.ethernet_core({0, command.from_channel}), command.from_slot};
}

bool BaseFirmware::send(int slot, const Destination& to, bool is_answer) {
  Slot& state = slots_[index(slot)];
  if (!can_send(to)) return false;
  if (state.has_data_to_send) {
    const auto word = static_cast<std::uint64_t>(device_.chip().ethernet.word_bytes);
    const std::uint64_t place = state.command.offset % kSlotBytes;
    const std::uint64_t first = place / word * word;
    const std::uint64_t end = (place + state.command.size_bytes + word - 1) / word * word;
    send_part(data_at(slot) + first, to, data_at(to.slot) + first, end - first);
    state.has_data_to_send = false;
    if (!can_send(to)) return false;
  }
  send_part(command_at(slot), to, is_answer ? answer_at(to.slot) : command_at(to.slot),
            sizeof(FirmwareCommand));
  return true;
}

void BaseFirmware::send_part(std::uint64_t source, const Destination& to, std::uint64_t destination,
                             std::uint64_t size_bytes) {
  if (to.is_far_end) {
    core_.work(kCallCosts.of(device_.chip()).ethernet_send);
    tile_.port().send(queue(),
                      {.source = source, .destination = destination, .size_bytes = size_bytes});
    return;
  }
  core_.noc_async_write(source, {to.core, destination}, size_bytes);
  core_.noc_async_write_barrier();
}

int BaseFirmware::queue() const { return device_.chip().ethernet.tx_queues - 1; }

}  // namespace towpath::tenstorrent
