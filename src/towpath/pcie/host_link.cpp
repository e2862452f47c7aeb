// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/host_link.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "towpath/pcie/noc_way.hpp"

namespace towpath::pcie {

HostLink::HostLink(sim::Simulation& simulation, std::shared_ptr<const machine::Host> host,
                   std::shared_ptr<const machine::Chip> chip, ChipMemory& memory,
                   const Options& options)
    : simulation_(simulation),
      host_(std::move(host)),
      chip_(std::move(chip)),
      memory_(memory),
      options_(options),
      windows_(chip_),
      buffers_(*host_, *chip_, {options.carries_data, options.host_memory_channels}),
      idle_(ends(), memory, options.limits, link_free_),
      path_(&idle_),
      mmio_(ends(), windows_, path_),
      dma_(ends(), path_) {
  if (options.host_memory_channels < 0) {
    throw std::invalid_argument(
        fmt::format("host '{}' has {} host memory channels; it must have at least 0", host_->name,
                    options.host_memory_channels));
  }
}

void HostLink::share_noc(noc::ChipNetwork& network) {
  if (!options_.limits.posted_writes || !options_.limits.noc) {
    throw std::invalid_argument(fmt::format(
        "limits of the link of {} are switched off, which is possible only if its NoC is idle",
        chip_->name));
  }
  path_ = &shared_.emplace(ends(), network, buffers_, link_free_);
}

void HostLink::check(machine::Coordinate tile, std::uint64_t address,
                     std::uint64_t size_bytes) const {
  const std::uint64_t memory = memory_bytes(*chip_, tile);
  if (size_bytes == 0)
    throw std::invalid_argument("a transfer has 0 bytes; it must have at least 1");
  if (address > memory || size_bytes > memory - address) {
    throw std::invalid_argument(
        fmt::format("{} bytes at address {} of ({}, {}) are beyond its memory, which has {}",
                    size_bytes, address, tile.x, tile.y, memory));
  }
}

// --- by the processor ----------------------------------------------------------------------------

WindowNumber HostLink::configure_tlb(machine::Coordinate tile, std::uint64_t size_bytes,
                                     std::uint64_t address, Ordering ordering, Mapping mapping) {
  const WindowNumber number = windows_.allocate(size_bytes);
  try {
    windows_.configure(number, tile, address, ordering, mapping);
  } catch (const std::invalid_argument&) {
    windows_.free(number);
    throw;
  }
  simulation_.sleep(host_->driver.window_time);
  return number;
}

Transfer HostLink::write_to_device(std::span<const std::byte> data, machine::Coordinate tile,
                                   std::uint64_t address, const TransferOptions& options) {
  check(tile, address, data.size());
  return mmio_.write(data, {tile, address}, options);
}

Transfer HostLink::read_from_device(std::span<std::byte> to, machine::Coordinate tile,
                                    std::uint64_t address, const TransferOptions& options) {
  check(tile, address, to.size());
  return mmio_.read(to, {tile, address}, options);
}

Piece HostLink::piece_of(const Window& window, std::uint64_t offset,
                         std::uint64_t size_bytes) const {
  if (offset > window.size_bytes || size_bytes > window.size_bytes - offset) {
    throw std::invalid_argument(fmt::format("{} bytes at offset {} are beyond a window of {}",
                                            size_bytes, offset, window.size_bytes));
  }
  check(window.tile, window.address + offset, size_bytes);
  return {window.tile, window.address + offset, size_bytes, window.ordering, window.mapping};
}

// --- by the DMA engine, through the bounce buffer ------------------------------------------------

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

Transfer HostLink::dma_write_to_device(std::span<const std::byte> data, machine::Coordinate tile,
                                       std::uint64_t address, const TransferOptions& options) {
  check(tile, address, data.size());
  if (std::string obstacle = dma_obstacle(Direction::to_device); !obstacle.empty()) {
    Transfer transfer = write_to_device(data, tile, address, options);
    transfer.asked = Mechanism::dma;
    transfer.obstacle = std::move(obstacle);
    return transfer;
  }
  check_dma(*chip_, Direction::to_device, address, data.size());
  return dma_.write({Direction::to_device, true, {tile, address}, data.size(), options.ordering},
                    [&] { return data; });
}

Transfer HostLink::dma_read_from_device(std::span<std::byte> to, machine::Coordinate tile,
                                        std::uint64_t address, const TransferOptions& options) {
  check(tile, address, to.size());
  if (std::string obstacle = dma_obstacle(Direction::from_device); !obstacle.empty()) {
    Transfer transfer = read_from_device(to, tile, address, options);
    transfer.asked = Mechanism::dma;
    transfer.obstacle = std::move(obstacle);
    return transfer;
  }
  check_dma(*chip_, Direction::from_device, address, to.size());
  return dma_.read({Direction::from_device, true, {tile, address}, to.size(), options.ordering},
                   [&] { return to; });
}

// --- buffers that the device reaches -------------------------------------------------------------

std::size_t HostLink::allocate_sysmem_buffer(std::uint64_t size_bytes) {
  const std::size_t number = buffers_.allocate(size_bytes);
  simulation_.sleep(buffers_.at(number).map_time);
  return number;
}

std::size_t HostLink::map_sysmem_buffer(std::span<std::byte> memory) {
  const std::size_t number = buffers_.map(memory);
  simulation_.sleep(buffers_.at(number).map_time);
  return number;
}

void HostLink::check_buffer(const BufferRange& range, machine::Coordinate tile,
                            std::uint64_t address) {
  buffers_.check(range);
  check(tile, address, range.size_bytes);
}

Transfer HostLink::dma_write_to_device(const BufferRange& from, machine::Coordinate tile,
                                       std::uint64_t address, const TransferOptions& options) {
  check_buffer(from, tile, address);
  check_dma(*chip_, Direction::to_device, address | from.offset, from.size_bytes);
  return dma_.write(
      {Direction::to_device, false, {tile, address}, from.size_bytes, options.ordering},
      [&] { return bytes_of(from); });
}

Transfer HostLink::dma_read_from_device(const BufferRange& to, machine::Coordinate tile,
                                        std::uint64_t address, const TransferOptions& options) {
  check_buffer(to, tile, address);
  check_dma(*chip_, Direction::from_device, address | to.offset, to.size_bytes);
  return dma_.read(
      {Direction::from_device, false, {tile, address}, to.size_bytes, options.ordering},
      [&] { return bytes_of(to); });
}

// --- by a core of the chip -----------------------------------------------------------------------

Transfer HostLink::by_device(Direction direction, machine::Coordinate tile,
                             std::uint64_t size_bytes) {
  Account account(simulation_, Mechanism::noc);
  const Stream stream =
      device_stream(*host_, *chip_, noc_way(*chip_, tile), direction, options_.limits);
  account.spend(kLatency, stream.latency);
  account.spend(kStream, stream.time_of(size_bytes) - stream.latency);
  return account.finish(simulation_);
}

Transfer HostLink::noc_write_to_host(const BufferRange& to, machine::Coordinate tile,
                                     std::uint64_t address) {
  check_buffer(to, tile, address);
  Transfer transfer = by_device(Direction::from_device, tile, to.size_bytes);
  if (options_.carries_data) memory_.read(tile, address, bytes_of(to));
  return transfer;
}

Transfer HostLink::noc_read_from_host(const BufferRange& from, machine::Coordinate tile,
                                      std::uint64_t address) {
  check_buffer(from, tile, address);
  Transfer transfer = by_device(Direction::to_device, tile, from.size_bytes);
  if (options_.carries_data) memory_.write(tile, address, bytes_of(from));
  return transfer;
}

}  // namespace towpath::pcie
