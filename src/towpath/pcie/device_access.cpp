// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/device_access.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "towpath/pcie/link_rate.hpp"
#include "towpath/sim/hardware_priority.hpp"

namespace towpath::pcie {

namespace {

Time half(Time time) { return Time::from_ps(time.ps() / 2); }
constexpr Time kTick = Time::from_ps(1);

}  // namespace

DeviceAccess::DeviceAccess(const machine::Host& host, noc::ChipNetwork& network,
                           SysmemBuffers& buffers, LinkFree& link_free)
    : network_(network),
      buffers_(buffers),
      free_(link_free),
      link_(host.link),
      raw_rate_(raw_rate(negotiated(host.link, network.chip().pcie))),
      cycle_(network.chip().clock.time_of(Cycles(1))),
      half_tile_(half(network.chip().pcie.tile_time)),
      to_host_(half(host.link.read_time) + translation_time(host)),
      from_host_(half(host.link.read_time) + half_tile_),
      answers_max_bytes_(static_cast<std::uint64_t>(network.chip().router.packet_data_flits_max) *
                         static_cast<std::uint64_t>(network.chip().router.flit_bytes)) {
  network.attach(network.chip().pcie_tiles.front(), *this);
}

std::string DeviceAccess::obstacle(std::uint64_t offset, std::uint64_t size_bytes) const {
  if (buffers_.find(offset, size_bytes) != nullptr) return {};
  return fmt::format("is at address {:#x} of the host, where no buffer holds all of it; {}", offset,
                     buffers_.describe());
}

std::span<std::byte> DeviceAccess::bytes_at(std::uint64_t address, std::uint64_t size_bytes) {
  SysmemBuffer* const buffer = buffers_.find(address, size_bytes);
  if (buffer == nullptr) {
    throw std::runtime_error(
        fmt::format("{} bytes at address {:#x} of the host were unmapped during a kernel's access "
                    "to them; wait for the kernel's barrier first",
                    size_bytes, address));
  }
  const std::span<std::byte> memory = buffer->memory();
  if (memory.empty()) return memory;
  return memory.subspan(address - *buffer->noc_address, size_bytes);
}

Time DeviceAccess::on_link(std::uint64_t size_bytes, int unit, int overhead_bytes) const {
  const auto most = static_cast<std::uint64_t>(unit);
  const std::uint64_t packets = (size_bytes + most - 1) / most;
  return transfer_time(Bytes(size_bytes + packets * static_cast<std::uint64_t>(overhead_bytes)),
                       raw_rate_);
}

// --- writes --------------------------------------------------------------------------------------

// A flit accepted at a clock edge may have been due a fraction of a cycle earlier. This makes the
// rate exactly the link's.
Time DeviceAccess::take_flit(std::uint64_t size_bytes, int flits) {
  const Time packet = on_link(size_bytes, link_.payload_bytes_max, kWriteOverheadBytes);
  const Time flit = Time::from_ps((packet.ps() + flits - 1) / flits);
  const Time due = network_.simulation().now() + half_tile_ - cycle_ + kTick;
  free_.from_device = std::max(free_.from_device, due) + flit;
  return free_.from_device - half_tile_;
}

Time DeviceAccess::write(std::uint64_t offset, std::span<const std::byte> data) {
  landing_.push_back({offset, {data.begin(), data.end()}});
  network_.simulation().at(free_.from_device + to_host_, &DeviceAccess::landed, this,
                           sim::kHardwarePriority);
  return half_tile_ + half_tile_;
}

void DeviceAccess::landed(void* context) {
  auto& self = *static_cast<DeviceAccess*>(context);
  const Write write = std::move(self.landing_.front());
  self.landing_.pop_front();
  std::ranges::copy(write.data, self.bytes_at(write.address, write.data.size()).begin());
  for (sim::Process* process : std::exchange(self.waiting_, {})) {
    self.network_.simulation().wake(*process);
  }
}

// --- reads ---------------------------------------------------------------------------------------

void DeviceAccess::read(const Read& read) {
  reads_.push_back({read, 0, {}});
  ask_soon();
}

void DeviceAccess::answer_left(std::uint64_t size_bytes) {
  complete_bytes_ -= static_cast<std::int64_t>(size_bytes);
  ask_soon();
}

// The network does not accept answers during its calls.
void DeviceAccess::ask_soon() {
  if (is_ask_due_ || reads_.empty()) return;
  is_ask_due_ = true;
  sim::Simulation& simulation = network_.simulation();
  simulation.at(simulation.now(), &DeviceAccess::ask_host, this, sim::kHardwarePriority);
}

// A read is started only while the blocked answers in the tile are at most a packet.
void DeviceAccess::ask_host(void* context) {
  auto& self = *static_cast<DeviceAccess*>(context);
  self.is_ask_due_ = false;
  while (!self.reads_.empty() && self.under_way_ < self.link_.device_reads_outstanding) {
    PendingRead& pending = self.reads_.front();
    if (pending.asked_bytes == 0 &&
        self.complete_bytes_ > static_cast<std::int64_t>(self.answers_max_bytes_)) {
      return;
    }
    self.ask(pending);
    if (pending.asked_bytes < pending.read.size_bytes) continue;
    self.network_.outside_port().answer(pending.read, pending.first, self.free_.to_device);
    self.reads_.pop_front();
  }
}

// Sends one request, which ends at a multiple of the maximum size.
void DeviceAccess::ask(PendingRead& pending) {
  sim::Simulation& simulation = network_.simulation();
  const Read& read = pending.read;
  const auto most = static_cast<std::uint64_t>(link_.read_request_bytes_max);
  const std::uint64_t address = read.offset + pending.asked_bytes;
  const std::uint64_t size_bytes =
      std::min(read.size_bytes - pending.asked_bytes, most - address % most);
  const Request request{read, pending.asked_bytes, size_bytes};

  Time& leaves = free_.from_device;
  leaves = std::max(leaves, simulation.now() + half_tile_) +
           transfer_time(Bytes(kWriteOverheadBytes), raw_rate_);
  going_.push_back(request);
  simulation.at(leaves + to_host_, &DeviceAccess::asked, this, sim::kHardwarePriority);

  Time& comes = free_.to_device;
  comes = std::max(comes, leaves + to_host_ + from_host_);
  if (pending.asked_bytes == 0) pending.first = comes;
  comes += on_link(size_bytes, link_.completion_bytes, kCompletionOverheadBytes);
  returning_.push_back(request);
  simulation.at(comes, &DeviceAccess::answered, this, sim::kHardwarePriority);

  ++under_way_;
  pending.asked_bytes += size_bytes;
}

// The request has reached host memory.
void DeviceAccess::asked(void* context) {
  auto& self = *static_cast<DeviceAccess*>(context);
  const Request request = self.going_.front();
  self.going_.pop_front();
  const std::span<std::byte> bytes = self.bytes_at(request.address(), request.size_bytes);
  if (!bytes.empty()) self.network_.outside_port().give(request.read, request.at, bytes);
}

// The bytes have reached the tile.
void DeviceAccess::answered(void* context) {
  auto& self = *static_cast<DeviceAccess*>(context);
  const Request request = self.returning_.front();
  self.returning_.pop_front();
  --self.under_way_;
  if (request.is_last()) {
    self.complete_bytes_ += static_cast<std::int64_t>(request.read.size_bytes);
  }
  self.ask_soon();
}

}  // namespace towpath::pcie
