// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "pcie_bench.hpp"

#include <stdexcept>
#include <utility>

namespace towpath::pcie {

using namespace literals;

namespace {
constexpr std::uint64_t kMiB = 1 << 20;
}  // namespace

machine::Chip link_chip() {
  machine::Chip chip = machine::drawn_chip({"0whw", "rwhw", "ewhw", "pwhw"});
  chip.name = "small";
  chip.pcie.generation = 3;
  chip.pcie.lanes = 16;
  chip.pcie.windows = {{kMiB, 2, 0}, {2 * kMiB, 3, 1}};
  chip.pcie.dynamic_window_bytes = kMiB;
  chip.pcie.tile_time = 100_ns;
  chip.pcie.posted_buffer_bytes = 4096;
  chip.pcie.writes_outstanding = 4;
  chip.pcie.strict_time = 30_ns;
  chip.pcie.dma_to_device = true;
  chip.pcie.dma_from_device = true;
  chip.pcie.dma_reads_outstanding = 8;
  chip.pcie.dma_transfer_bytes_max = kMiB;
  chip.pcie.dma_window_bytes = kMiB;
  chip.pcie.host_address = kHostAddress;
  chip.pcie.host_window_bytes = 4 * kMiB;
  return chip;
}

machine::Host link_host() {
  machine::Host host;
  host.name = "plain";
  host.link = {.generation = 3,
               .lanes = 16,
               .payload_bytes_max = 128,
               .read_request_bytes_max = 512,
               .completion_bytes = 64,
               .device_reads_outstanding = 32,
               .read_time = 400_ns};
  host.core = {.call_time = 50_ns,
               .store_rate = 64_GBps,  // a line per ns
               .posted_writes_max = 4,
               .posted_write_interval = 10_ns,
               .uncached_store_bytes = 32,
               .uncached_store_time = 5_ns,
               .load_bytes = 64,
               .stream_load_bytes = 16,
               .stream_loads_outstanding = 4,
               .copies_words = false};
  host.driver = {.window_time = 500_ns,
                 .dma_time = 1_us,
                 .bounce_bytes = 4096,
                 .bounce_write_rate = 8_GBps,
                 .bounce_read_rate = 16_GBps,
                 .cache_bytes = kMiB,
                 .bounce_write_rate_uncached = 4_GBps,
                 .bounce_read_rate_uncached = 8_GBps};
  host.memory.has_iommu = true;
  host.memory.page_bytes = 4096;
  host.memory.hugepage_bytes = 2 * kMiB;
  host.memory.map_time = 20_us;
  host.memory.map_page_time = 3_us;
  host.memory.unmap_time = 21_us;
  host.memory.unmap_page_time = 7_us;
  return host;
}

noc::Memory& PlainChipMemory::of(Coordinate tile) {
  return memories_.try_emplace(tile, std::uint64_t{8} << 30).first->second;
}

void PlainChipMemory::read(Coordinate tile, std::uint64_t address, std::span<std::byte> to) {
  of(tile).read(address, to);
}

void PlainChipMemory::write(Coordinate tile, std::uint64_t address,
                            std::span<const std::byte> bytes) {
  of(tile).write(address, bytes);
  writes.push_back(simulation_.now());
}

std::byte PlainChipMemory::at(Coordinate tile, std::uint64_t address) {
  std::byte byte{};
  of(tile).read(address, std::span(&byte, 1));
  return byte;
}

void LinkBench::run(const std::function<void()>& body) {
  simulation.spawn("host", body);
  simulation.run();
}

std::string LinkBench::sentence_of(const std::function<void()>& body) {
  try {
    run(body);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

std::vector<std::byte> counted(std::size_t size_bytes, unsigned seed) {
  std::vector<std::byte> data(size_bytes);
  for (std::size_t i = 0; i < size_bytes; ++i) data[i] = std::byte(i * 7 + (i >> 8) * 31 + seed);
  return data;
}

}  // namespace towpath::pcie
