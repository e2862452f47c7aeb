// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/host_api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "towpath/tenstorrent/metalium/host_system.hpp"

// Devices, programs and their kernels. Buffers are in host_buffer.cpp.

using towpath::machine::Coordinate;

std::vector<CoreCoord> CoreRangeSet::cores() const {
  std::vector<CoreCoord> found;
  for (const CoreRange& range : ranges_) {
    for (std::size_t y = range.start_coord.y; y <= range.end_coord.y; ++y) {
      for (std::size_t x = range.start_coord.x; x <= range.end_coord.x; ++x) {
        if (std::ranges::find(found, CoreCoord(x, y)) == found.end()) found.emplace_back(x, y);
      }
    }
  }
  return found;
}

std::vector<CoreCoord> corerange_to_cores(const CoreRangeSet& cores) { return cores.cores(); }

namespace tt {

std::uint32_t tile_size(DataFormat format) { return towpath_tile_bytes(format); }

namespace tt_metal {

namespace {

CoreRangeSet set_of(const CoreSpecification& cores) {
  return std::visit([](const auto& given) { return CoreRangeSet(given); }, cores);
}

CoreCoord shown(Coordinate tile) {
  return {static_cast<std::size_t>(tile.x), static_cast<std::size_t>(tile.y)};
}

HostProgram::KernelEntry& entry(const Program& program, KernelHandle kernel) {
  std::vector<HostProgram::KernelEntry>& kernels = program.details().kernels;
  if (kernel >= kernels.size()) {
    throw std::invalid_argument(
        fmt::format("there is no kernel {} in the program; it has {}", kernel, kernels.size()));
  }
  return kernels[kernel];
}

KernelHandle add(Program& program, HostProgram::KernelEntry kernel) {
  program.details().kernels.push_back(std::move(kernel));
  return static_cast<KernelHandle>(program.details().kernels.size() - 1);
}

// The offset of a new buffer of these cores: after all buffers of any of them.
std::uint32_t next_address(const HostProgram& program, const CoreRangeSet& cores) {
  namespace map = towpath::tenstorrent::metalium::worker_memory_map;
  constexpr std::uint32_t kAlignment = 64;
  auto next = static_cast<std::uint32_t>(map::kUnreservedBase);
  for (const HostProgram::BufferEntry& other : program.buffers) {
    if (other.config.address() != 0) continue;
    const std::vector<CoreCoord> theirs = other.cores.cores();
    const bool is_shared =
        std::ranges::any_of(theirs, [&](const CoreCoord& core) { return cores.contains(core); });
    if (is_shared) next = std::max(next, other.address + other.config.total_size());
  }
  return (next + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

// --- devices ------------------------------------------------------------------------------------

ARCH Device::arch() const {
  const std::string& architecture = HostSystem::get().chip(id_).architecture;
  if (architecture.empty()) return ARCH::Invalid;
  return architecture == "blackhole" ? ARCH::BLACKHOLE : ARCH::WORMHOLE_B0;
}

CoreCoord Device::compute_with_storage_grid_size() const {
  const towpath::machine::Chip& chip = HostSystem::get().chip(id_);
  return {static_cast<std::size_t>(chip.worker_columns),
          static_cast<std::size_t>(chip.worker_rows())};
}

CoreCoord Device::grid_size() const {
  const towpath::machine::Chip& chip = HostSystem::get().chip(id_);
  return {static_cast<std::size_t>(chip.width), static_cast<std::size_t>(chip.height)};
}

CoreCoord Device::dram_grid_size() const {
  return {static_cast<std::size_t>(num_dram_channels()), 1};
}

int Device::num_dram_channels() const {
  const towpath::machine::Chip& chip = HostSystem::get().chip(id_);
  return static_cast<int>(chip.dram_groups.size()) * chip.dram.channels_per_group;
}

std::uint32_t Device::l1_size_per_core() const {
  return static_cast<std::uint32_t>(HostSystem::get().chip(id_).l1_bytes);
}

CoreCoord Device::virtual_core_from_logical_core(const CoreCoord& core, CoreType type) const {
  return shown(HostSystem::get().tile_of(id_, core, type));
}

CoreCoord Device::worker_core_from_logical_core(const CoreCoord& core) const {
  return virtual_core_from_logical_core(core, CoreType::WORKER);
}

CoreCoord Device::ethernet_core_from_logical_core(const CoreCoord& core) const {
  return virtual_core_from_logical_core(core, CoreType::ETH);
}

std::vector<CoreCoord> Device::get_active_ethernet_cores(bool skip_reserved_tunnel_cores) const {
  std::vector<CoreCoord> cores;
  const auto& cluster = HostSystem::get().cluster();
  for (const int channel : cluster.active_channels(id_, !skip_reserved_tunnel_cores)) {
    cores.emplace_back(0, static_cast<std::size_t>(channel));
  }
  return cores;
}

std::tuple<chip_id_t, CoreCoord> Device::get_connected_ethernet_core(const CoreCoord& core) const {
  const auto& cluster = HostSystem::get().cluster();
  const auto other = cluster.connected({id_, static_cast<int>(core.y)});
  if (!other) {
    throw std::invalid_argument(
        fmt::format("Ethernet core {} of device {} has no link", core.str(), id_));
  }
  return {other->chip, CoreCoord(0, static_cast<std::size_t>(other->channel))};
}

bool Device::is_mmio_capable() const {
  return HostSystem::get().cluster().chips[static_cast<std::size_t>(id_)].has_host_link;
}

bool Device::close() {
  HostSystem::get().close(*this);
  return true;
}

Device* CreateDevice(chip_id_t id, std::uint8_t) { return HostSystem::get().device(id); }
bool CloseDevice(Device* device) { return device->close(); }
std::size_t GetNumAvailableDevices() { return HostSystem::get().cluster().chips.size(); }
std::size_t GetNumPCIeDevices() {
  return static_cast<std::size_t>(std::ranges::count_if(
      HostSystem::get().cluster().chips, [](const auto& chip) { return chip.has_host_link; }));
}
double simulated_time_ns() { return static_cast<double>(HostSystem::get().time().ps()) / 1000; }

// --- programs -----------------------------------------------------------------------------------

Program::Program() : details_(std::make_shared<HostProgram>()) {}
Program CreateProgram() { return {}; }

KernelHandle CreateKernel(Program& program, const std::string& file, const CoreSpecification& cores,
                          const KernelConfiguration& config) {
  return add(program, {.file = file, .text = "", .cores = set_of(cores), .config = config});
}

KernelHandle CreateKernelFromString(Program& program, const std::string& source,
                                    const CoreSpecification& cores,
                                    const KernelConfiguration& config) {
  return add(program, {.file = "", .text = source, .cores = set_of(cores), .config = config});
}

void define(const Program& program, KernelHandle kernel, const std::string& name) {
  std::visit([&](auto& config) { config.defines.emplace(name, "1"); },
             entry(program, kernel).config);
}

void SetRuntimeArgs(const Program& program, KernelHandle kernel, const CoreSpecification& cores,
                    std::span<const std::uint32_t> arguments) {
  for (const CoreCoord& core : set_of(cores).cores()) {
    entry(program, kernel).arguments[core].assign(arguments.begin(), arguments.end());
  }
}

void SetRuntimeArgs(const Program& program, KernelHandle kernel, const CoreSpecification& cores,
                    std::initializer_list<std::uint32_t> arguments) {
  SetRuntimeArgs(program, kernel, cores, std::span(arguments.begin(), arguments.size()));
}

void SetRuntimeArgs(const Program& program, KernelHandle kernel,
                    const std::vector<CoreCoord>& cores,
                    const std::vector<std::vector<std::uint32_t>>& arguments) {
  if (cores.size() != arguments.size()) {
    throw std::invalid_argument(
        fmt::format("arguments are given for {} cores, but {} cores are named", arguments.size(),
                    cores.size()));
  }
  for (std::size_t i = 0; i < cores.size(); ++i) {
    SetRuntimeArgs(program, kernel, cores[i], std::span(arguments[i]));
  }
}

std::vector<std::uint32_t>& GetRuntimeArgs(const Program& program, KernelHandle kernel,
                                           const CoreCoord& core) {
  return entry(program, kernel).arguments[core];
}

void SetCommonRuntimeArgs(const Program& program, KernelHandle kernel,
                          std::span<const std::uint32_t> arguments) {
  entry(program, kernel).common_arguments.assign(arguments.begin(), arguments.end());
}

void SetCommonRuntimeArgs(const Program& program, KernelHandle kernel,
                          std::initializer_list<std::uint32_t> arguments) {
  SetCommonRuntimeArgs(program, kernel, std::span(arguments.begin(), arguments.size()));
}

CBHandle CreateCircularBuffer(Program& program, const CoreSpecification& cores,
                              const CircularBufferConfig& config) {
  HostProgram& details = program.details();
  const CoreRangeSet set = set_of(cores);
  const std::uint32_t address =
      config.address() != 0 ? config.address() : next_address(details, set);
  details.buffers.push_back({set, config, address});
  return details.buffers.size() - 1;
}

std::uint32_t CreateSemaphore(Program& program, const std::variant<CoreRange, CoreRangeSet>& cores,
                              std::uint32_t initial_value, CoreType type) {
  HostProgram& details = program.details();
  const CoreRangeSet set = std::visit([](const auto& given) { return CoreRangeSet(given); }, cores);
  const std::vector<CoreCoord> own = set.cores();
  std::uint32_t number = 0;
  const auto is_taken = [&](const HostProgram::SemaphoreEntry& other) {
    return other.number == number && other.type == type &&
           std::ranges::any_of(own,
                               [&](const CoreCoord& core) { return other.cores.contains(core); });
  };
  while (std::ranges::any_of(details.semaphores, is_taken)) ++number;
  if (number >= towpath::tenstorrent::metalium::kSemaphores) {
    throw std::invalid_argument(fmt::format("a core can have at most {} semaphores",
                                            towpath::tenstorrent::metalium::kSemaphores));
  }
  details.semaphores.push_back({set, number, initial_value, type});
  return number;
}

// --- queues -------------------------------------------------------------------------------------

void CommandQueue::finish() { HostSystem::get().wait_for(device_->id()); }

void EnqueueProgram(CommandQueue& queue, Program& program, bool blocking) {
  HostSystem::get().enqueue(queue.device()->id(), program);
  if (blocking) queue.finish();
}

void Finish(CommandQueue& queue) { queue.finish(); }

namespace detail {

void LaunchProgram(Device* device, Program& program, bool wait_until_cores_done) {
  EnqueueProgram(device->command_queue(), program, wait_until_cores_done);
}
void WaitProgramDone(Device* device, Program&) { Finish(device->command_queue()); }
void CompileProgram(Device*, Program&) {}

}  // namespace detail
}  // namespace tt_metal
}  // namespace tt
