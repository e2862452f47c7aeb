// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/dma_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "towpath/pcie/link_rate.hpp"

namespace towpath::pcie {

namespace {

// Little's law: bytes in flight divided by their latency.
Rate rate_of(std::int64_t bytes_under_way, Time time) {
  const Int128 scaled = static_cast<Int128>(bytes_under_way) * 1'000'000'000'000;
  return Rate::from_bytes_per_second(
      static_cast<std::int64_t>(scaled / std::max<std::int64_t>(time.ps(), 1)));
}

Time one_way(const machine::Host& host) { return Time::from_ps(host.link.read_time.ps() / 2); }

// Rate of the host's answers to reads of its memory, of which a limited number is in flight.
Rate host_read_rate(const machine::Host& host, const machine::Chip& chip, Time extra) {
  const std::int64_t request = host.link.read_request_bytes_max;
  const Time time = host.link.read_time + chip.pcie.tile_time + extra;
  return std::min(answer_rate(host, chip),
                  rate_of(request * host.link.device_reads_outstanding, time));
}

Rate noc_write_rate(const machine::Host& host, const machine::Chip& chip, const NocWay& way,
                    Ordering ordering) {
  switch (ordering) {
    case Ordering::posted: return way.rate;
    case Ordering::standard:
      return std::min(
          way.rate, rate_of(std::int64_t{chip.pcie.axi_burst_bytes} * chip.pcie.writes_outstanding,
                            way.write()));
    // All data of one request is written before the data of the next.
    case Ordering::strict:
      return std::min(way.rate, rate_of(host.link.read_request_bytes_max, way.write()));
  }
  return way.rate;
}

std::uint64_t pages_of(const machine::Host& host, std::uint64_t size_bytes) {
  return (size_bytes + host.page_bytes() - 1) / host.page_bytes();
}

}  // namespace

Rate answer_rate(const machine::Host& host, const machine::Chip& chip) {
  return payload_rate(negotiated(host.link, chip.pcie), host.link.completion_bytes,
                      kCompletionOverheadBytes);
}

Rate write_rate(const machine::Host& host, const machine::Chip& chip) {
  return payload_rate(negotiated(host.link, chip.pcie), host.link.payload_bytes_max,
                      kWriteOverheadBytes);
}

Time translation_time(const machine::Host& host) {
  if (!host.memory.has_iommu) return Time();
  const auto request = static_cast<std::uint64_t>(host.link.read_request_bytes_max);
  const std::uint64_t requests = std::max<std::uint64_t>(host.page_bytes() / request, 1);
  return Time::from_ps(host.memory.translation_time.ps() / static_cast<std::int64_t>(requests));
}

Stream dma_stream(const machine::Host& host, const machine::Chip& chip, const NocWay& way,
                  Direction direction, const DmaOptions& options) {
  const auto [ordering, limits] = options;
  const Time extra = translation_time(host);
  if (direction == Direction::to_device) {
    Rate rate = host_read_rate(host, chip, extra);
    if (limits.noc) rate = std::min(rate, noc_write_rate(host, chip, way, ordering));
    return {host.link.read_time + chip.pcie.tile_time + extra + way.write(), rate};
  }
  const std::int64_t burst = host.link.payload_bytes_max;
  const Time read_time = way.read() + chip.pcie.tile_time;
  Rate rate = write_rate(host, chip);
  if (limits.noc) {
    const Rate reads = ordering == Ordering::strict
                           ? rate_of(burst, way.read())
                           : rate_of(burst * chip.pcie.dma_reads_outstanding, read_time);
    rate = std::min({rate, way.rate, reads});
  }
  return {read_time + extra + one_way(host), rate};
}

Stream device_stream(const machine::Host& host, const machine::Chip& chip, const NocWay& way,
                     Direction direction, Limits limits) {
  // A write is acknowledged by the PCIe tile.
  Stream stream{way.write() + chip.pcie.tile_time, write_rate(host, chip)};
  if (direction == Direction::to_device) {
    stream = {way.read() + chip.pcie.tile_time + host.link.read_time,
              host_read_rate(host, chip, Time())};
  }
  if (limits.noc) stream.rate = std::min(stream.rate, way.rate);
  return stream;
}

Time map_time(const machine::Host& host, std::uint64_t size_bytes) {
  const auto pages = static_cast<std::int64_t>(pages_of(host, size_bytes));
  return host.memory.map_time + host.memory.map_page_time * pages;
}

Time unmap_time(const machine::Host& host, std::uint64_t size_bytes) {
  const auto pages = static_cast<std::int64_t>(pages_of(host, size_bytes));
  return host.memory.unmap_time + host.memory.unmap_page_time * pages;
}

void check_dma(const machine::Chip& chip, Direction direction, std::uint64_t address,
               std::uint64_t size_bytes) {
  const machine::PcieParameters& pcie = chip.pcie;
  const bool is_to_device = direction == Direction::to_device;
  if (is_to_device ? !pcie.dma_to_device : !pcie.dma_from_device) {
    throw std::invalid_argument(
        fmt::format("the DMA engine of {} does not move data {} the device; it moves it {}",
                    chip.name, is_to_device ? "to" : "from",
                    is_to_device ? (pcie.dma_from_device ? "from it" : "nowhere") : "to it only"));
  }
  const auto unit = static_cast<std::uint64_t>(pcie.dma_alignment_bytes);
  if (address % unit != 0 || size_bytes % unit != 0) {
    throw std::invalid_argument(
        fmt::format("a DMA of {} bytes at address {} is not aligned; both must be multiples of {}",
                    size_bytes, address, unit));
  }
  if (size_bytes > pcie.dma_transfer_bytes_max) {
    throw std::invalid_argument(fmt::format(
        "a DMA of {} bytes exceeds the limit of the engine of {}, which moves at most {}",
        size_bytes, chip.name, pcie.dma_transfer_bytes_max));
  }
}

}  // namespace towpath::pcie
