// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "towpath/tenstorrent/metalium/host_api.hpp"
#include "towpath/tenstorrent/metalium/host_system.hpp"

// Buffers, and host access to a device's memories.

namespace tt::tt_metal {

using towpath::machine::Coordinate;

namespace {

using Bank = towpath::noc::Address;

// Memory of a device, after all programs enqueued there.
towpath::noc::Memory& settled_memory(int device, Coordinate tile, std::uint64_t offset,
                                     std::uint64_t size_bytes) {
  HostSystem& system = HostSystem::get();
  system.wait_for(device);
  towpath::noc::Memory& memory = system.memory(device, tile);
  if (offset > memory.size_bytes() || size_bytes > memory.size_bytes() - offset) {
    throw std::invalid_argument(
        fmt::format("{} bytes at {:#x} of tile ({}, {}) of device {} are beyond its memory, which "
                    "has {:#x}",
                    size_bytes, offset, tile.x, tile.y, device, memory.size_bytes()));
  }
  return memory;
}

}  // namespace

Bank bank_of(const towpath::machine::Chip& chip, BufferType type, std::size_t number) {
  if (type != BufferType::DRAM) return {chip.workers[number], 0};
  const auto channels = static_cast<std::size_t>(chip.dram.channels_per_group);
  return {chip.dram_groups[number / channels].front(), number % channels * chip.dram.channel_bytes};
}

std::uint32_t Allocator::get_base_allocator_addr(HalMemType memory) const {
  constexpr std::uint32_t kDramBase = 64;  // the first bytes are reserved for the hardware
  return memory == HalMemType::L1
             ? static_cast<std::uint32_t>(
                   towpath::tenstorrent::metalium::worker_memory_map::kUnreservedBase)
             : kDramBase;
}

std::uint32_t Allocator::get_num_banks(BufferType type) const {
  return type == BufferType::DRAM
             ? static_cast<std::uint32_t>(device_->num_dram_channels())
             : static_cast<std::uint32_t>(HostSystem::get().chip(device_->id()).workers.size());
}

std::uint32_t Allocator::get_alignment(BufferType type) const {
  const towpath::machine::Alignment& alignment = HostSystem::get().chip(device_->id()).alignment;
  return static_cast<std::uint32_t>(
      type == BufferType::DRAM ? std::max(alignment.dram_read_bytes, alignment.dram_write_bytes)
                               : alignment.l1_bytes);
}

// --- circular buffers ---------------------------------------------------------------------------

CircularBufferConfig::CircularBufferConfig(std::uint32_t total_size,
                                           const std::map<std::uint8_t, DataFormat>& formats)
    : total_size_(total_size), formats_(formats) {}

CircularBufferConfig& CircularBufferConfig::set_page_size(std::uint8_t number,
                                                          std::uint32_t page_size) {
  if (!formats_.contains(number) || page_size == 0 || total_size_ % page_size != 0) {
    throw std::invalid_argument(
        fmt::format("circular buffer {} cannot have pages of {} bytes: it is part of the "
                    "configuration, and its {} bytes must be a multiple of a page",
                    number, page_size, total_size_));
  }
  page_sizes_[number] = page_size;
  return *this;
}

CircularBufferConfig& CircularBufferConfig::set_globally_allocated_address(const Buffer& buffer) {
  if (buffer.is_dram()) {
    throw std::invalid_argument("a circular buffer must be in L1, but its buffer is in DRAM");
  }
  address_ = buffer.address();
  return *this;
}

std::uint32_t CircularBufferConfig::page_size(std::uint8_t number) const {
  const auto found = page_sizes_.find(number);
  return found == page_sizes_.end() ? total_size_ : found->second;
}

// --- buffers ------------------------------------------------------------------------------------

Buffer::Buffer(const InterleavedBufferConfig& config)
    : config_(config),
      device_id_(config.device->id()),
      address_(HostSystem::get().allocate(config)) {}

Buffer::~Buffer() { release(); }

void Buffer::release() {
  if (is_allocated_ && HostSystem::exists()) {
    HostSystem::get().release(device_id_, config_.buffer_type, address_);
  }
  is_allocated_ = false;
}

std::uint32_t Buffer::aligned_page_size() const {
  const std::uint32_t alignment = config_.device->allocator()->get_alignment(buffer_type());
  return (page_size() + alignment - 1) / alignment * alignment;
}

// Calls visit(memory, offset, first, size) for the part of each page in a block of bytes that
// starts with the buffer.
template <typename Visit>
void Buffer::for_each_part(std::size_t size_bytes, const Visit& visit) const {
  const towpath::machine::Chip& chip = HostSystem::get().chip(device_id_);
  const std::size_t banks = config_.device->allocator()->get_num_banks(buffer_type());
  for (std::size_t page = 0; page * page_size() < size_bytes; ++page) {
    const Bank bank = bank_of(chip, buffer_type(), page % banks);
    const std::uint64_t at = bank.offset + address_ + page / banks * aligned_page_size();
    const std::size_t first = page * page_size();
    const std::size_t size = std::min<std::size_t>(page_size(), size_bytes - first);
    visit(settled_memory(device_id_, bank.tile, at, size), at, first, size);
  }
}

void Buffer::write(std::span<const std::byte> bytes) {
  if (bytes.size() > size()) {
    throw std::invalid_argument(
        fmt::format("a write of {} bytes exceeds the buffer, which has {}", bytes.size(), size()));
  }
  for_each_part(bytes.size(),
                [&](towpath::noc::Memory& memory, std::uint64_t at, std::size_t first,
                    std::size_t size) { memory.write(at, bytes.subspan(first, size)); });
}

void Buffer::read(std::span<std::byte> bytes) const {
  for_each_part(bytes.size(),
                [&](towpath::noc::Memory& memory, std::uint64_t at, std::size_t first,
                    std::size_t size) { memory.read(at, bytes.subspan(first, size)); });
}

std::shared_ptr<Buffer> CreateBuffer(const InterleavedBufferConfig& config) {
  return std::make_shared<Buffer>(config);
}

void DeallocateBuffer(Buffer& buffer) { buffer.release(); }

GlobalSemaphore::GlobalSemaphore(Device* device, const CoreRangeSet& cores,
                                 std::uint32_t initial_value)
    : cores_(cores) {
  const Allocator& allocator = *device->allocator();
  const std::uint64_t page = allocator.get_alignment(BufferType::L1);
  words_ = CreateBuffer({.device = device,
                         .size = page * allocator.get_num_banks(BufferType::L1),
                         .page_size = page,
                         .buffer_type = BufferType::L1});
  reset_semaphore_value(initial_value);
}

void GlobalSemaphore::reset_semaphore_value(std::uint32_t value) const {
  const std::vector<std::uint32_t> word{value};
  for (const CoreCoord& core : cores_.cores()) {
    detail::WriteToDeviceL1(device(), core, address(), word);
  }
}

GlobalSemaphore CreateGlobalSemaphore(Device* device, const CoreRangeSet& cores,
                                      std::uint32_t initial_value, BufferType type) {
  if (type == BufferType::DRAM) {
    throw std::invalid_argument("a global semaphore is in DRAM; it must be in L1");
  }
  return {device, cores, initial_value};
}

// The encoding of kernel_include/api/dataflow/addresses.h.
TensorAccessorArgs::TensorAccessorArgs(const Buffer& buffer)
    : arguments_{buffer.is_dram() ? 2u : 0u, buffer.aligned_page_size()} {}

// --- memories -----------------------------------------------------------------------------------

namespace detail {

namespace {

void write_words(int device, Bank at, std::span<const std::uint32_t> words) {
  const auto bytes = std::as_bytes(words);
  settled_memory(device, at.tile, at.offset, bytes.size()).write(at.offset, bytes);
}

void read_words(int device, Bank at, std::uint32_t size, std::vector<std::uint32_t>& words) {
  words.resize((size + 3) / 4);
  const auto bytes = std::as_writable_bytes(std::span(words)).first(size);
  settled_memory(device, at.tile, at.offset, bytes.size()).read(at.offset, bytes);
}

Bank channel_of(const Device& device, int channel, std::uint32_t address) {
  if (channel < 0 || channel >= device.num_dram_channels()) {
    throw std::invalid_argument(fmt::format("device {} has no DRAM channel {}; it has {}",
                                            device.id(), channel, device.num_dram_channels()));
  }
  Bank bank = bank_of(HostSystem::get().chip(device.id()), BufferType::DRAM,
                      static_cast<std::size_t>(channel));
  bank.offset += address;
  return bank;
}

}  // namespace

bool WriteToDeviceL1(Device* device, const CoreCoord& core, std::uint32_t address,
                     std::span<const std::uint32_t> words, CoreType type) {
  write_words(device->id(), {HostSystem::get().tile_of(device->id(), core, type), address}, words);
  return true;
}

bool ReadFromDeviceL1(Device* device, const CoreCoord& core, std::uint32_t address,
                      std::uint32_t size, std::vector<std::uint32_t>& words, CoreType type) {
  read_words(device->id(), {HostSystem::get().tile_of(device->id(), core, type), address}, size,
             words);
  return true;
}

bool WriteToDeviceDRAMChannel(Device* device, int channel, std::uint32_t address,
                              std::span<const std::uint32_t> words) {
  write_words(device->id(), channel_of(*device, channel, address), words);
  return true;
}

bool ReadFromDeviceDRAMChannel(Device* device, int channel, std::uint32_t address,
                               std::uint32_t size, std::vector<std::uint32_t>& words) {
  read_words(device->id(), channel_of(*device, channel, address), size, words);
  return true;
}

}  // namespace detail
}  // namespace tt::tt_metal
