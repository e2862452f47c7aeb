// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/host_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "towpath/machine/load.hpp"
#include "towpath/tenstorrent/metalium/kernel_arrivals.hpp"

namespace tt::tt_metal {

namespace metalium = towpath::tenstorrent::metalium;
using towpath::machine::Coordinate;
using towpath::tenstorrent::Cluster;

namespace {

std::unique_ptr<HostSystem>& the_system() {
  static std::unique_ptr<HostSystem> system;
  return system;
}

std::shared_ptr<const towpath::machine::ChipCluster> load(const std::string& name) {
  const std::string form = towpath::machine::form_of(name);
  if (form == "chip") return metalium::cluster_of(towpath::machine::load_chip(name));
  if (form == "chip_cluster") return towpath::machine::load_chip_cluster(name);
  throw std::invalid_argument(fmt::format(
      "TOWPATH_MACHINE names '{}', which describes a {}; choose a chip or a cluster of chips", name,
      form));
}

// The tiles with a memory: all workers and Ethernet cores, and the first tile of each DRAM group.
std::vector<Coordinate> tiles_with_memory(const towpath::machine::Chip& chip) {
  std::vector<Coordinate> tiles = chip.workers;
  tiles.insert(tiles.end(), chip.ethernet_cores.begin(), chip.ethernet_cores.end());
  for (const auto& group : chip.dram_groups) tiles.push_back(group.front());
  return tiles;
}

std::filesystem::path find_kernel(const std::string& file) {
  const char* const home = std::getenv("TT_METAL_HOME");
  if (std::filesystem::exists(file) || home == nullptr) return file;
  for (const char* folder : {"", "tt_metal", "tt_metal/programming_examples"}) {
    const std::filesystem::path path = std::filesystem::path(home) / folder / file;
    if (std::filesystem::exists(path)) return path;
  }
  return file;
}

// The headers of a checkout, which come after the headers of the library.
std::vector<std::filesystem::path> include_folders() {
  const char* const home = std::getenv("TT_METAL_HOME");
  if (home == nullptr) return {};
  const std::filesystem::path root(home);
  return {root / "tt_metal/hw/inc", root / "tt_metal", root};
}

// The limit of a program, so that an endless one is named.
towpath::noc::Cycle cycles_max() {
  constexpr towpath::noc::Cycle kMost = std::int64_t{1} << 40;
  const char* const value = std::getenv("TOWPATH_CYCLES_MAX");
  if (value == nullptr) return metalium::kCyclesMax;
  towpath::noc::Cycle cycles = 0;
  const std::string_view text(value);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cycles);
  if (error != std::errc() || end != text.data() + text.size() || cycles < 0 || cycles > kMost) {
    throw std::invalid_argument(
        fmt::format("$TOWPATH_CYCLES_MAX is '{}'; it must be the maximum number of cycles of a "
                    "program, up to {}, or 0 for no limit",
                    value, kMost));
  }
  return cycles;
}

template <typename Config>
metalium::KernelSource source_of(const HostProgram::KernelEntry& kernel, const Config& config) {
  metalium::KernelSource source{
      .file = kernel.text.empty() ? find_kernel(kernel.file) : std::filesystem::path("kernel.cpp"),
      .text = kernel.text,
      .compile_args = config.compile_args,
      .defines = config.defines,
      .include_folders = include_folders()};
  source.named_compile_args.insert(config.named_compile_args.begin(),
                                   config.named_compile_args.end());
  return source;
}

metalium::PlacedKernel placed(const HostProgram::KernelEntry& kernel, const CoreCoord& core) {
  metalium::PlacedKernel placed;
  placed.core = {static_cast<int>(core.x), static_cast<int>(core.y)};
  if (const auto* moving = std::get_if<DataMovementConfig>(&kernel.config)) {
    placed.processor = moving->processor == DataMovementProcessor::RISCV_0
                           ? metalium::Processor::data_movement_0
                           : metalium::Processor::data_movement_1;
    placed.noc_index = moving->noc;
    placed.source = source_of(kernel, *moving);
  } else if (const auto* ethernet = std::get_if<EthernetConfig>(&kernel.config)) {
    placed.processor = metalium::Processor::ethernet;
    placed.noc_index = ethernet->noc;
    placed.source = source_of(kernel, *ethernet);
  } else {
    placed.processor = metalium::Processor::compute;
    const auto& computing = std::get<ComputeConfig>(kernel.config);
    placed.source = source_of(kernel, computing);
    placed.source.defines.emplace("MATH_FIDELITY",
                                  std::to_string(static_cast<int>(computing.math_fidelity)));
  }
  const auto arguments = kernel.arguments.find(core);
  if (arguments != kernel.arguments.end()) placed.runtime_args = arguments->second;
  placed.common_args = kernel.common_arguments;
  return placed;
}

}  // namespace

metalium::CircularBuffers HostProgram::buffers_of(const CoreCoord& core) const {
  metalium::CircularBuffers found;
  for (const BufferEntry& entry : buffers) {
    if (!entry.cores.contains(core)) continue;
    for (const auto& [number, format] : entry.config.formats()) {
      if (found.size() <= number) found.resize(std::size_t{number} + 1);
      found[number] = {entry.address, entry.config.total_size(), entry.config.page_size(number),
                       static_cast<std::uint8_t>(format)};
    }
  }
  return found;
}

HostSystem& HostSystem::get() {
  std::unique_ptr<HostSystem>& system = the_system();
  if (system == nullptr) {
    const char* const machine = std::getenv("TOWPATH_MACHINE");
    system = std::make_unique<HostSystem>(machine == nullptr ? "wormhole" : machine);
  }
  return *system;
}

bool HostSystem::exists() { return the_system() != nullptr; }

HostSystem::HostSystem(const std::string& machine)
    : cluster_(load(machine)),
      cycles_max_(cycles_max()),
      dispatches_slowly_(std::getenv("TT_METAL_SLOW_DISPATCH_MODE") != nullptr) {
  if (dispatches_slowly_) cluster_ = towpath::machine::without_dispatcher(*cluster_);
}

const towpath::machine::Chip& HostSystem::chip(int device) const {
  return *cluster_->chips[static_cast<std::size_t>(device)].chip;
}

Coordinate HostSystem::tile_of(int device, const CoreCoord& core, CoreType type) const {
  using metalium::Processor;
  return metalium::tile_of(
      chip(device), {static_cast<int>(core.x), static_cast<int>(core.y)},
      type == CoreType::ETH ? Processor::ethernet : Processor::data_movement_0);
}

Device* HostSystem::device(int id) {
  if (id < 0 || static_cast<std::size_t>(id) >= cluster_->chips.size()) {
    throw std::invalid_argument(fmt::format(
        "there is no device {}; machine '{}' has {}; set TOWPATH_MACHINE to a larger machine", id,
        cluster_->name, cluster_->chips.size()));
  }
  std::unique_ptr<Device>& device = devices_[id];
  if (device == nullptr) device = std::make_unique<Device>(id);
  return device.get();
}

void HostSystem::close(const Device& device) {
  wait_for(device.id());
  devices_.erase(device.id());
  if (devices_.empty()) the_system().reset();
}

towpath::noc::Memory& HostSystem::memory(int device, Coordinate tile) {
  const towpath::machine::Chip& on = chip(device);
  const towpath::machine::Tile& kind = on.tile(tile);
  std::uint64_t size_bytes = on.l1_bytes;
  if (kind.kind == towpath::machine::TileKind::ethernet) size_bytes = on.ethernet_l1_bytes;
  if (kind.dram_group >= 0) {
    tile = on.dram_groups[static_cast<std::size_t>(kind.dram_group)].front();
    size_bytes = on.dram.channel_bytes * static_cast<std::uint64_t>(on.dram.channels_per_group);
  }
  return memories_.try_emplace({device, tile}, size_bytes).first->second;
}

void HostSystem::exchange_memories(Cluster& cluster) {
  for (std::size_t number = 0; number < cluster.devices(); ++number) {
    const auto device = static_cast<int>(number);
    for (const Coordinate tile : tiles_with_memory(chip(device))) {
      // Routers are reset for each run.
      if (cluster.device(device).resident_at(tile) != nullptr) continue;
      std::swap(memory(device, tile), cluster.device(device).memory(tile));
    }
  }
}

// --- allocation ---------------------------------------------------------------------------------

std::uint32_t HostSystem::allocate(const InterleavedBufferConfig& config) {
  const towpath::machine::Chip& on = chip(config.device->id());
  const bool is_dram = config.buffer_type == BufferType::DRAM;
  if (config.page_size == 0 || config.size % config.page_size != 0) {
    throw std::invalid_argument(fmt::format(
        "a buffer of {} bytes has pages of {} bytes; its size must be a multiple of the page",
        config.size, config.page_size));
  }
  if (config.buffer_layout != TensorMemoryLayout::INTERLEAVED) {
    throw std::invalid_argument("sharded buffers are not supported; use an interleaved one");
  }
  Allocator& allocator = *config.device->allocator();
  const std::uint64_t banks = allocator.get_num_banks(config.buffer_type);
  const std::uint64_t alignment = allocator.get_alignment(config.buffer_type);
  const std::uint64_t page = (config.page_size + alignment - 1) / alignment * alignment;
  const std::uint64_t size_bytes = (config.size / config.page_size + banks - 1) / banks * page;
  const std::uint64_t end = is_dram ? on.dram.channel_bytes : on.l1_bytes;
  std::uint64_t at = allocator.get_base_allocator_addr(is_dram ? HalMemType::DRAM : HalMemType::L1);
  auto& blocks = allocated_[{config.device->id(), config.buffer_type}];
  auto before = blocks.begin();
  if (is_dram) {
    while (before != blocks.end() && at + size_bytes > before->begin) at = before++->end;
  } else {  // from the top, away from circular buffers
    at = end;
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
      if (block->end + size_bytes <= at) break;
      at = block->begin;
    }
    at = at >= size_bytes ? (at - size_bytes) / alignment * alignment : end;
    before = std::ranges::find_if(blocks, [&](const Block& block) { return block.begin > at; });
  }
  if (at + size_bytes > end) {
    throw std::runtime_error(fmt::format("a buffer needs {} bytes in each bank of {}, which has {}",
                                         size_bytes, is_dram ? "DRAM" : "L1", end));
  }
  blocks.insert(before, after_freed({config.device->id(), config.buffer_type}, at, size_bytes));
  return static_cast<std::uint32_t>(at);
}

// A block that becomes valid when earlier ones with its bytes are freed.
HostSystem::Block HostSystem::after_freed(const Bank& bank, std::uint64_t begin,
                                          std::uint64_t size_bytes) const {
  Block block{begin, begin + size_bytes};
  const auto freed = freed_.find(bank);
  if (freed == freed_.end()) return block;
  for (const Block& other : freed->second) {
    const bool is_shared = other.begin < block.end && block.begin < other.end;
    if (is_shared) block.first_program = std::max(block.first_program, other.end_program);
  }
  return block;
}

void HostSystem::release(int device, BufferType type, std::uint32_t address) {
  const Bank bank{device, type};
  const auto blocks = allocated_.find(bank);
  if (blocks == allocated_.end()) return;
  std::erase_if(blocks->second, [&](const Block& block) {
    if (block.begin != address) return false;
    if (!pending_.empty()) {
      freed_[bank].push_back(block);
      freed_[bank].back().end_program = enqueued(device);
    }
    return true;
  });
}

// --- runs ---------------------------------------------------------------------------------------

int HostSystem::enqueued(int device) const {
  return static_cast<int>(
      std::ranges::count_if(pending_, [&](const auto& entry) { return entry.first == device; }));
}

void HostSystem::wait_for(int device) {
  if (enqueued(device) > 0) run_pending();
}

void HostSystem::set_fabric(std::optional<metalium::FabricMode> mode) {
  if (!pending_.empty()) {
    throw std::invalid_argument(
        "the fabric is set while programs are enqueued; set it before, or when they are done");
  }
  idle_fabric_.reset();
  fabric_mode_ = mode;
}

const metalium::KernelFabric& HostSystem::fabric() {
  if (!fabric_mode_) {
    throw std::invalid_argument("no fabric runs; start one with SetFabricConfig");
  }
  if (idle_fabric_ == nullptr) {
    const Cluster::Options options{.finds_hazards = false};
    idle_chips_ = std::make_unique<Cluster>(cluster_, options);
    idle_fabric_ = std::make_unique<metalium::KernelFabric>(*idle_chips_, *fabric_mode_);
  }
  return *idle_fabric_;
}

void HostSystem::declare(Cluster& cluster, const Bank& bank, const Block& block) const {
  const auto [device, type] = bank;
  const bool is_dram = type == BufferType::DRAM;
  const towpath::machine::Chip& on = chip(device);
  const std::size_t banks =
      is_dram ? on.dram_groups.size() * static_cast<std::size_t>(on.dram.channels_per_group)
              : on.workers.size();
  const int before = fabric_mode_ ? 1 : 0;  // the routers' program
  towpath::tenstorrent::Allocation allocation{
      .name = fmt::format("{} at {:#x}", is_dram ? "DRAM" : "L1", block.begin),
      .places = {},
      .size_bytes = block.end - block.begin};
  const auto number_of = [&](int program) {
    return program == 0 || program == allocation.kNoEnd ? program : program + before;
  };
  allocation.first_program = number_of(block.first_program);
  allocation.end_program = number_of(block.end_program);
  for (std::size_t number = 0; number < banks; ++number) {
    allocation.places.push_back(bank_of(on, type, number));
    allocation.places.back().offset += block.begin;
  }
  cluster.device(device).allocate(allocation);
}

namespace {

// Until the last program has ended. Routers continue for a while.
towpath::Time run_beside(metalium::KernelFabric& fabric, Cluster& cluster) {
  fabric.run();
  towpath::Time end;
  for (std::size_t device = 0; device < cluster.devices(); ++device) {
    end = std::max(end, cluster.device(static_cast<int>(device)).over_at());
  }
  return end;
}

}  // namespace

void HostSystem::add(Cluster& cluster, int device, const HostProgram& host,
                     const metalium::SharedByKernels& shared) const {
  towpath::tenstorrent::Device& on = cluster.device(device);
  towpath::tenstorrent::Program& program = cluster.create_program(device);
  for (const HostProgram::SemaphoreEntry& semaphore : host.semaphores) {
    const bool is_ethernet = semaphore.type == CoreType::ETH;
    std::vector<Coordinate> tiles;
    for (const CoreCoord& core : semaphore.cores.cores()) {
      tiles.push_back(tile_of(device, core, semaphore.type));
    }
    const std::uint64_t base = is_ethernet ? metalium::kEthernetSemaphoreBase
                                           : metalium::worker_memory_map::kSemaphoreBase;
    program.set_at_start(std::move(tiles), base + semaphore.number * metalium::kSemaphoreBytes,
                         semaphore.initial_value);
  }
  for (const HostProgram::KernelEntry& kernel : host.kernels) {
    for (const CoreCoord& core : kernel.cores.cores()) {
      metalium::PlacedKernel entry = placed(kernel, core);
      if (entry.processor != metalium::Processor::ethernet) {
        entry.circular_buffers = host.buffers_of(core);
      }
      metalium::add_kernel(on, program, entry, shared);
    }
  }
}

void HostSystem::run_pending() {
  const auto programs = std::exchange(pending_, {});
  metalium::KernelLog log;
  metalium::KernelArrivals arrivals;
  const auto count = static_cast<towpath::noc::Cycle>(programs.size());
  Cluster cluster(cluster_,
                  {.cycles_max = cycles_max_ * count, .slow_dispatch = dispatches_slowly_});
  std::optional<metalium::KernelFabric> fabric;
  if (fabric_mode_) fabric.emplace(cluster, *fabric_mode_);
  const metalium::SharedByKernels shared{
      .log = log, .arrivals = &arrivals, .fabric = fabric ? &*fabric : nullptr};
  for (const auto& [device, program] : programs) {
    add(cluster, device, program.details(), shared);
  }
  const auto freed = std::exchange(freed_, {});
  for (const auto* blocks : {&freed, &std::as_const(allocated_)}) {
    for (const auto& [bank, of_bank] : *blocks) {
      for (const Block& block : of_bank) declare(cluster, bank, block);
    }
  }
  for (auto& [bank, blocks] : allocated_) {
    for (Block& block : blocks) block.first_program = 0;
  }
  exchange_memories(cluster);
  try {
    time_ += fabric ? run_beside(*fabric, cluster) : cluster.run();
  } catch (...) {
    exchange_memories(cluster);
    throw;
  }
  exchange_memories(cluster);
  for (const metalium::KernelLog::Line& line : log.lines) {
    fmt::print("{}:(x={},y={}):{}: {}\n", line.from.chip, line.from.core.x, line.from.core.y,
               line.from.kernel, line.text);
  }
}

}  // namespace tt::tt_metal
