// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "towpath/pcie/host_link.hpp"

// Transfers without a core of the host: by the DMA engine, or by a core of the chip.

namespace towpath::pcie {

namespace {

constexpr std::string_view kCall = "call";
constexpr std::string_view kCopy = "copying to or from the bounce buffer";
constexpr std::string_view kSetUp = "setting the engine up and noticing its end";
constexpr std::string_view kLatency = "latency of the first bytes";
constexpr std::string_view kStream = "bytes on their way";

void add_stream(Account& account, const Stream& stream, std::uint64_t size_bytes) {
  account.spend(kLatency, stream.latency);
  account.spend(kStream, stream.time_of(size_bytes) - stream.latency);
}

}  // namespace

std::string HostLink::dma_obstacle(Direction direction) const {
  if (options_.host_memory_channels == 0) {
    return "no DMA buffer was allocated: the host gives the chip 0 host memory channels";
  }
  try {
    check_dma(*chip_, direction, 0, 0);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

Rate HostLink::bounce_rate(Direction direction, std::uint64_t size_bytes) const {
  const machine::HostDriverParameters& driver = host_->driver;
  const bool fits = size_bytes + std::min(size_bytes, driver.bounce_bytes) <= driver.cache_bytes;
  if (direction == Direction::to_device) {
    return fits ? driver.bounce_write_rate : driver.bounce_write_rate_uncached;
  }
  return fits ? driver.bounce_read_rate : driver.bounce_read_rate_uncached;
}

// Moves the transfer part by part; the driver waits for each.
template <typename Move>
Transfer HostLink::run_dma(DmaPath path, std::uint64_t size_bytes, machine::Coordinate tile,
                           const TransferOptions& options, Move move) {
  const auto [direction, bounces] = path;
  const machine::HostDriverParameters& driver = host_->driver;
  const Stream stream = dma_stream(*host_, *chip_, noc_way(*chip_, tile), direction,
                                   {.ordering = options.ordering, .limits = options_.limits});
  const std::uint64_t window = chip_->pcie.dma_window_bytes;
  const std::uint64_t part_max = bounces ? std::min(driver.bounce_bytes, window) : window;
  Account account(simulation_, Mechanism::dma);
  account.spend(kCall, host_->core.call_time);
  for (std::uint64_t at = 0; at < size_bytes;) {
    const std::uint64_t part = std::min(part_max, size_bytes - at);
    const Time copy =
        bounces ? transfer_time(Bytes(part), bounce_rate(direction, size_bytes)) : Time();
    if (direction == Direction::to_device) account.spend(kCopy, copy);
    account.spend(kSetUp, driver.dma_time);
    add_stream(account, stream, part);
    if (options_.carries_data) {
      simulation_.sleep_until(account.now());
      move(at, part);
    }
    if (direction == Direction::from_device) account.spend(kCopy, copy);
    at += part;
  }
  return account.finish(simulation_);
}

// Moves to the device if the host's bytes are const, from it otherwise. The processor moves them if
// the engine cannot.
template <typename Byte>
Transfer HostLink::bounce(std::span<Byte> bytes, machine::Coordinate tile, std::uint64_t address,
                          const TransferOptions& options) {
  constexpr bool kWrites = std::is_const_v<Byte>;
  constexpr Direction kDirection = kWrites ? Direction::to_device : Direction::from_device;
  check(tile, address, bytes.size());
  if (std::string obstacle = dma_obstacle(kDirection); !obstacle.empty()) {
    Transfer transfer;
    if constexpr (kWrites) transfer = write_to_device(bytes, tile, address, options);
    if constexpr (!kWrites) transfer = read_from_device(bytes, tile, address, options);
    transfer.asked = Mechanism::dma;
    transfer.obstacle = std::move(obstacle);
    return transfer;
  }
  check_dma(*chip_, kDirection, address, bytes.size());
  return run_dma({kDirection, true}, bytes.size(), tile, options,
                 [&](std::uint64_t at, std::uint64_t size_bytes) {
                   const std::span<Byte> part = bytes.subspan(at, size_bytes);
                   if constexpr (kWrites) memory_.write(tile, address + at, part);
                   if constexpr (!kWrites) memory_.read(tile, address + at, part);
                 });
}

Transfer HostLink::dma_write_to_device(std::span<const std::byte> data, machine::Coordinate tile,
                                       std::uint64_t address, const TransferOptions& options) {
  return bounce(data, tile, address, options);
}

Transfer HostLink::dma_read_from_device(std::span<std::byte> to, machine::Coordinate tile,
                                        std::uint64_t address, const TransferOptions& options) {
  return bounce(to, tile, address, options);
}

// --- buffers that the device reaches -------------------------------------------------------------

std::size_t HostLink::pin(std::uint64_t size_bytes) {
  if (size_bytes == 0) throw std::invalid_argument("a buffer of 0 bytes; at least 1 is pinned");
  if (options_.host_memory_channels == 0) {
    throw std::invalid_argument(
        fmt::format("host '{}' gives {} no memory for DMA: it has 0 host memory channels, and "
                    "needs at least 1",
                    host_->name, chip_->name));
  }
  const std::size_t number = buffers_.size();
  SysmemBuffer& buffer = buffers_.emplace_back();
  buffer.size_bytes = size_bytes;
  buffer.is_mapped = true;
  buffer.map_time = map_time(*host_, size_bytes);
  simulation_.sleep(buffer.map_time);
  return number;
}

std::size_t HostLink::allocate_sysmem_buffer(std::uint64_t size_bytes) {
  if (!host_->memory.has_iommu && size_bytes > host_->page_bytes()) {
    throw std::invalid_argument(fmt::format(
        "a buffer of {} bytes is not contiguous for the device: host '{}' has no IOMMU, and its "
        "pages have {} bytes",
        size_bytes, host_->name, host_->page_bytes()));
  }
  const std::size_t number = pin(size_bytes);
  if (options_.carries_data) buffers_[number].bytes.resize(size_bytes);
  return number;
}

std::size_t HostLink::map_sysmem_buffer(std::span<std::byte> memory) {
  if (!host_->memory.has_iommu) {
    throw std::invalid_argument(
        fmt::format("memory of a program cannot be mapped for the device: host '{}' has no IOMMU, "
                    "so allocate a buffer instead",
                    host_->name));
  }
  const std::size_t number = pin(memory.size());
  buffers_[number].programs_own = memory;
  return number;
}

SysmemBuffer& HostLink::sysmem_buffer(std::size_t number) {
  if (number >= buffers_.size()) {
    throw std::invalid_argument(
        fmt::format("there is no sysmem buffer {}; {} were allocated", number, buffers_.size()));
  }
  return buffers_[number];
}

void HostLink::unmap_sysmem_buffer(std::size_t number) {
  SysmemBuffer& buffer = sysmem_buffer(number);
  if (!buffer.is_mapped) {
    throw std::invalid_argument(fmt::format("sysmem buffer {} is not mapped", number));
  }
  buffer.is_mapped = false;
  buffer.programs_own = {};
  simulation_.sleep(unmap_time(*host_, buffer.size_bytes));
}

void HostLink::check_buffer(const BufferRange& range, machine::Coordinate tile,
                            std::uint64_t address) {
  const auto& [number, offset, size_bytes] = range;
  const SysmemBuffer& buffer = sysmem_buffer(number);
  if (!buffer.is_mapped) {
    throw std::invalid_argument(
        fmt::format("sysmem buffer {} is not mapped, so the device cannot reach it", number));
  }
  if (offset > buffer.size_bytes || size_bytes > buffer.size_bytes - offset) {
    throw std::invalid_argument(
        fmt::format("{} bytes at offset {} are beyond sysmem buffer {}, which has {}", size_bytes,
                    offset, number, buffer.size_bytes));
  }
  check(tile, address, size_bytes);
}

Transfer HostLink::dma_write_to_device(const BufferRange& from, machine::Coordinate tile,
                                       std::uint64_t address, const TransferOptions& options) {
  check_buffer(from, tile, address);
  check_dma(*chip_, Direction::to_device, address | from.offset, from.size_bytes);
  return run_dma({Direction::to_device, false}, from.size_bytes, tile, options,
                 [&](std::uint64_t at, std::uint64_t part) {
                   const std::span<const std::byte> bytes = buffers_[from.buffer].memory();
                   memory_.write(tile, address + at, bytes.subspan(from.offset + at, part));
                 });
}

Transfer HostLink::dma_read_from_device(const BufferRange& to, machine::Coordinate tile,
                                        std::uint64_t address, const TransferOptions& options) {
  check_buffer(to, tile, address);
  check_dma(*chip_, Direction::from_device, address | to.offset, to.size_bytes);
  return run_dma({Direction::from_device, false}, to.size_bytes, tile, options,
                 [&](std::uint64_t at, std::uint64_t part) {
                   const std::span<std::byte> bytes = buffers_[to.buffer].memory();
                   memory_.read(tile, address + at, bytes.subspan(to.offset + at, part));
                 });
}

// --- by a core of the chip -----------------------------------------------------------------------

Transfer HostLink::by_device(Direction direction, machine::Coordinate tile,
                             std::uint64_t size_bytes) {
  Account account(simulation_, Mechanism::noc);
  add_stream(account,
             device_stream(*host_, *chip_, noc_way(*chip_, tile), direction, options_.limits),
             size_bytes);
  return account.finish(simulation_);
}

Transfer HostLink::noc_write_to_host(const BufferRange& to, machine::Coordinate tile,
                                     std::uint64_t address) {
  check_buffer(to, tile, address);
  Transfer transfer = by_device(Direction::from_device, tile, to.size_bytes);
  if (options_.carries_data) {
    const std::span<std::byte> bytes = buffers_[to.buffer].memory();
    memory_.read(tile, address, bytes.subspan(to.offset, to.size_bytes));
  }
  return transfer;
}

Transfer HostLink::noc_read_from_host(const BufferRange& from, machine::Coordinate tile,
                                      std::uint64_t address) {
  check_buffer(from, tile, address);
  Transfer transfer = by_device(Direction::to_device, tile, from.size_bytes);
  if (options_.carries_data) {
    const std::span<const std::byte> bytes = buffers_[from.buffer].memory();
    memory_.write(tile, address, bytes.subspan(from.offset, from.size_bytes));
  }
  return transfer;
}

}  // namespace towpath::pcie
