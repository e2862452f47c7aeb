// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/dispatch/host_access.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "towpath/tenstorrent/device/device.hpp"

namespace towpath::tenstorrent {

namespace map = ethernet_memory_map;
using Kind = FirmwareCommand::Kind;

namespace {

// Bytes of an access at `offset` that fit into a slot.
std::uint64_t part_bytes(std::uint64_t offset, std::uint64_t size_bytes) {
  return std::min(size_bytes, kSlotBytes - offset % kSlotBytes);
}

std::string describe(Kind kind, int chip, const NocAddress& address, std::uint64_t size_bytes) {
  return fmt::format("{} of {} bytes {} offset {} of ({}, {}) of chip {}",
                     kind == Kind::read ? "read" : "write", size_bytes,
                     kind == Kind::read ? "from" : "to", address.offset, address.tile.x,
                     address.tile.y, chip);
}

bool is_firmwares_own(std::uint64_t offset, std::uint64_t size_bytes) {
  return offset < map::kBarrierBase && offset + size_bytes > map::kFirmwareBase;
}

}  // namespace

// --- calls of a process -------------------------------------------------------------------------

void HostAccess::write(int chip, const NocAddress& to, std::span<const std::byte> bytes) {
  const Host::Access access{Kind::write, chip, to};
  host_.begin(*this, describe(Kind::write, chip, to, bytes.size()));
  host_.check(*this, access, bytes.size());
  if (host_.reaches_directly(chip)) return host_.access_directly(*this, access, bytes, {});
  for (std::uint64_t done = 0; done < bytes.size();) {
    const std::uint64_t part = part_bytes(to.offset + done, bytes.size() - done);
    host_.submit(*this, {Kind::write, chip, {to.tile, to.offset + done}}, bytes.subspan(done, part),
                 {});
    done += part;
  }
}

void HostAccess::read(int chip, const NocAddress& from, std::span<std::byte> bytes) {
  const Host::Access access{Kind::read, chip, from};
  host_.begin(*this, describe(Kind::read, chip, from, bytes.size()));
  host_.check(*this, access, bytes.size());
  if (host_.reaches_directly(chip)) return host_.access_directly(*this, access, {}, bytes);
  for (std::uint64_t done = 0; done < bytes.size();) {
    const std::uint64_t part = part_bytes(from.offset + done, bytes.size() - done);
    host_.submit(*this, {Kind::read, chip, {from.tile, from.offset + done}}, {},
                 bytes.subspan(done, part));
    done += part;
  }
  host_.wait_for_answers(*this, host_.gateway(chip));
}

void HostAccess::barrier() {
  host_.begin(*this, "barrier");
  is_waiting_ = true;
  for (auto& [chip, link] : host_.links_) link.link.wait_for_writes();
  is_waiting_ = false;
  for (auto& [end, gateway] : host_.gateways_) host_.wait_for_answers(*this, gateway);
}

void HostAccess::launch(int chip, const Program& program) {
  host_.begin(*this, fmt::format("the launch of program {} of chip {}", program.number(), chip));
  host_.dispatch(*this).launch(chip, program, is_waiting_);
}

void HostAccess::enqueue_write(int chip, const NocAddress& to, std::span<const std::byte> bytes) {
  host_.begin(*this, "enqueued " + describe(Kind::write, chip, to, bytes.size()));
  host_.check(*this, {Kind::write, chip, to}, bytes.size());
  if (to.offset % kRingUnitBytes != 0) {
    throw std::invalid_argument(fmt::format("host '{}': {}: the offset must be a multiple of {}",
                                            name_, doing_, kRingUnitBytes));
  }
  host_.dispatch(*this).write(chip, to, bytes, is_waiting_);
}

void HostAccess::finish(int chip) {
  host_.begin(*this, fmt::format("the wait until the dispatcher of chip {} is done", chip));
  host_.dispatch(*this).finish(chip, is_waiting_);
}

pcie::SysmemBuffer& HostAccess::allocate_sysmem_buffer(int chip, std::uint64_t size_bytes) {
  const auto link = host_.links_.find(chip);
  if (link == host_.links_.end()) {
    throw std::invalid_argument(
        fmt::format("host '{}': chip {} has no link to a described host, and so no host memory; it "
                    "needs PCIe, and Options::host",
                    name_, chip));
  }
  pcie::HostLink& to = link->second.link;
  return to.sysmem_buffer(to.allocate_sysmem_buffer(size_bytes));
}

void HostAccess::sleep(Time time) { host_.devices_.front()->network().simulation().sleep(time); }

void HostAccess::wait_for_programs(int chip, std::size_t programs) {
  host_.begin(*this,
              fmt::format("the wait for the end of program {} of chip {}", programs - 1, chip));
  Device& device = host_.device(chip);
  sim::Simulation& simulation = device.network().simulation();
  is_waiting_ = true;
  while (device.programs_over() < programs) {
    device.wake_at_end(*simulation.current());
    simulation.suspend("the end of a program");
  }
  is_waiting_ = false;
}

// --- processes ----------------------------------------------------------------------------------

Host::Host(const machine::ChipCluster& cluster, const std::vector<std::unique_ptr<Device>>& devices)
    : devices_(devices), routes_(cluster) {
  const auto serve = [this](machine::EthernetEnd end) {
    EthernetTile& tile = device(end.chip).ethernet_tile({0, end.channel});
    if (tile.base_firmware() != nullptr) return;
    firmware_.push_back(std::make_unique<BaseFirmware>(device(end.chip), tile, routes_));
  };
  const std::shared_ptr<const machine::Host> described = devices.front()->options().host;
  for (int chip = 0; chip < static_cast<int>(cluster.chips.size()); ++chip) {
    if (described && routes_.to(chip).links == 0) links_.try_emplace(chip, device(chip), described);
    if (routes_.to(chip).links < 1) continue;
    serve(routes_.to(chip).near);
    serve(routes_.to(chip).far);
    const machine::EthernetEnd end = routes_.gateway(chip);
    Gateway& gateway = gateways_[end];
    gateway.device = &device(end.chip);
    gateway.core = cluster.core_of(end);
  }
  if (!devices.front()->options().dispatches_fast()) return;
  dispatch_ = std::make_unique<FastDispatch>(
      cluster, devices, routes_,
      [this](int chip) -> pcie::HostLink& { return links_.at(chip).link; });
}

FastDispatch& Host::dispatch(const HostAccess& process) const {
  if (dispatch_ != nullptr) return *dispatch_;
  throw std::invalid_argument(
      fmt::format("host '{}': {}: fast dispatch needs a described host (Options::host) and cannot "
                  "be combined with slow_dispatch",
                  process.name_, process.doing_));
}

Host::PcieLink::PcieLink(Device& device, std::shared_ptr<const machine::Host> host)
    : memory(device.network()),
      link(device.network().simulation(), std::move(host),
           std::make_shared<const machine::Chip>(device.chip()), memory, {}) {
  link.share_noc(device.network());
}

// A write of the host may be observed from its first byte on, so it is recorded before and after.
void Host::access_directly(HostAccess& process, const Access& access,
                           std::span<const std::byte> from, std::span<std::byte> to) {
  Device& at = device(access.chip);
  const auto [tile, offset] = access.address;
  const auto record = [&] {
    if (HazardMonitor* monitor = at.monitor(); monitor != nullptr && !from.empty()) {
      monitor->host_has_written(access.chip, tile, offset, from.size());
    }
  };
  const auto link = links_.find(access.chip);
  if (link == links_.end()) {
    if (from.empty()) return at.memory(tile).read(offset, to);
    at.network().deliver(tile, offset, from);
    return record();
  }
  if (from.empty() && to.empty()) return;
  process.is_waiting_ = true;
  record();
  if (from.empty()) {
    link->second.link.read_from_device(to, tile, offset);
  } else {
    link->second.link.write_to_device(from, tile, offset);
  }
  record();
  process.is_waiting_ = false;
}

void Host::start(std::string name, std::function<void(HostAccess&)> body) {
  HostAccess& process = processes_.emplace_back(*this, std::move(name));
  sim::Simulation& simulation = devices_.front()->network().simulation();
  simulation.spawn(fmt::format("host '{}'", process.name()),
                   [this, &simulation, &process, body = std::move(body)] {
                     body(process);
                     process.barrier();
                     process.is_over_ = true;
                     over_at_ = simulation.now();
                   });
}

bool Host::is_over() const {
  return std::ranges::all_of(processes_,
                             [](const HostAccess& process) { return process.is_over_; });
}

bool Host::all_blocked() const {
  return std::ranges::all_of(processes_, [](const HostAccess& process) {
    return process.is_over_ || process.is_waiting_;
  });
}

void Host::begin(HostAccess& process, std::string doing) const {
  process.doing_ = std::move(doing);
  process.since_ = devices_.front()->network().simulation().now();
}

void Host::check(const HostAccess& process, const Access& access, std::uint64_t size_bytes) const {
  const auto refuse = [&](const std::string& reason) {
    throw std::invalid_argument(
        fmt::format("host '{}': {}: {}", process.name_, process.doing_, reason));
  };
  if (access.chip < 0 || static_cast<std::size_t>(access.chip) >= devices_.size()) {
    refuse(fmt::format("the chip must be 0 to {}", devices_.size() - 1));
  }
  if (!routes_.is_reached(access.chip)) {
    refuse("no link leads to it from a chip on PCIe");
  }
  Device& there = device(access.chip);
  const NocAddress& address = access.address;
  std::uint64_t memory_bytes = 0;
  try {
    memory_bytes = there.memory(address.tile).size_bytes();
  } catch (const std::invalid_argument& error) {
    refuse(error.what());
  }
  if (address.offset > memory_bytes || size_bytes > memory_bytes - address.offset) {
    refuse(fmt::format("the memory of the tile has {} bytes", memory_bytes));
  }
  const bool is_taken = dispatch_ != nullptr && dispatch_->has(access.chip, address.tile);
  if (access.kind == Kind::write && is_taken) refuse("the core belongs to the dispatcher");
  const bool is_ethernet = there.chip().tile(address.tile).kind == machine::TileKind::ethernet;
  if (is_ethernet && access.kind == Kind::write && is_firmwares_own(address.offset, size_bytes)) {
    refuse(fmt::format("bytes {} to {} of an Ethernet core belong to its base firmware",
                       map::kFirmwareBase, map::kBarrierBase - 1));
  }
}

// --- commands -----------------------------------------------------------------------------------

void Host::submit(HostAccess& process, const Access& access, std::span<const std::byte> from,
                  std::span<std::byte> to) {
  Gateway& gateway = this->gateway(access.chip);
  const auto is_free = [](const Pending& pending) { return pending.process == nullptr; };
  take_answers(gateway);
  auto place = std::ranges::find_if(gateway.slots, is_free);
  for (; place == gateway.slots.end(); place = std::ranges::find_if(gateway.slots, is_free)) {
    wait_for_answer(process, gateway);
  }
  const auto slot = static_cast<int>(place - gateway.slots.begin());
  const machine::Chip& chip = device(access.chip).chip();
  *place = {.process = &process,
            .command = {.sequence = ++gateway.sequence,
                        .kind = access.kind,
                        .chip = access.chip,
                        .tile = chip.number_of(access.address.tile),
                        .offset = access.address.offset,
                        .size_bytes = static_cast<std::uint32_t>(from.size() + to.size())},
            .to = to};
  noc::ChipNetwork& network = gateway.device->network();
  const std::uint64_t data = data_at(slot) + access.address.offset % kSlotBytes;
  if (!from.empty()) network.deliver(gateway.core, data, from);
  network.deliver(gateway.core, command_at(slot), std::as_bytes(std::span(&place->command, 1)));
}

void Host::take_answers(Gateway& gateway) {
  const noc::ChipNetwork& network = gateway.device->network();
  for (int slot = 0; slot < kHostSlots; ++slot) {
    Pending& pending = gateway.slots[static_cast<std::size_t>(slot)];
    if (pending.process == nullptr) continue;
    if (network.load_word(gateway.core, answer_at(slot)) != pending.command.sequence) continue;
    if (!pending.to.empty()) {
      network.load(gateway.core, data_at(slot) + pending.command.offset % kSlotBytes, pending.to);
    }
    pending = {};
  }
}

bool Host::has_pending(const Gateway& gateway, const HostAccess& process) {
  return std::ranges::any_of(gateway.slots,
                             [&](const Pending& pending) { return pending.process == &process; });
}

void Host::wait_for_answer(HostAccess& process, Gateway& gateway) const {
  noc::ChipNetwork& network = gateway.device->network();
  sim::Simulation& simulation = network.simulation();
  sim::Process& self = *simulation.current();
  network.wake_on_write(gateway.core, answer_at(0), self, answer_at(kHostSlots) - answer_at(0));
  process.is_waiting_ = process.waits_for_answer_ = true;
  simulation.suspend("an answer of the base firmware");
  process.is_waiting_ = process.waits_for_answer_ = false;
  network.stop_waking(gateway.core, self);
  take_answers(gateway);
}

void Host::wait_for_answers(HostAccess& process, Gateway& gateway) const {
  take_answers(gateway);
  while (has_pending(gateway, process)) wait_for_answer(process, gateway);
}

// --- errors of a run that does not end ----------------------------------------------------------

std::string Host::describe_waits() const {
  std::string text;
  for (const HostAccess& process : processes_) {
    if (process.is_over_) continue;
    if (!text.empty()) text += "; ";
    text += fmt::format("host '{}' in {} since {} ns", process.name_, process.doing_,
                        process.since_.ns());
    if (process.waits_for_answer_) text += describe_unanswered(process);
  }
  return text;
}

// Describes its oldest command, and the core that blocks it.
std::string Host::describe_unanswered(const HostAccess& process) const {
  const FirmwareCommand* oldest = nullptr;
  for (const auto& [end, gateway] : gateways_) {
    for (const Pending& pending : gateway.slots) {
      if (pending.process != &process) continue;
      const bool is_older = oldest == nullptr || pending.command.sequence < oldest->sequence;
      if (is_older) oldest = &pending.command;
    }
  }
  if (oldest == nullptr) return ", for which no slot is free";
  const machine::Coordinate tile = device(oldest->chip).chip().coordinate_of(oldest->tile);
  return fmt::format(
      ", whose {} is not answered{}",
      describe(oldest->kind, oldest->chip, {tile, oldest->offset}, oldest->size_bytes),
      describe_hold_up(oldest->chip));
}

// A core on the route to a chip that has pending work for its base firmware, but is not released to
// it.
std::string Host::describe_hold_up(int chip) const {
  while (routes_.to(chip).links > 0) {
    const HostRoutes::Route& route = routes_.to(chip);
    for (const machine::EthernetEnd end : {route.far, route.near}) {
      const EthernetTile& tile = device(end.chip).ethernet_tile({0, end.channel});
      if (!tile.is_firmware_running() && tile.base_firmware()->has_work()) {
        return fmt::format(": the base firmware of {} has something to do, but {}", tile.name(),
                           describe_kernel(tile));
      }
    }
    chip = route.near.chip;
  }
  return "";
}

std::string Host::describe_kernel(const EthernetTile& tile) const {
  if (dispatch_ != nullptr && dispatch_->has(tile.end())) return "its tunneller has the core";
  const Device& on = device(tile.end().chip);
  const Program::Entry* kernel = on.resident_at(tile.core());
  if (kernel == nullptr) {
    kernel = &*std::ranges::find_if(on.current()->kernels(), [&](const Program::Entry& entry) {
      return entry.tile == &tile && !entry.is_over;
    });
  }
  return name_of(kernel->config) + " has the core and does not yield";
}

}  // namespace towpath::tenstorrent
