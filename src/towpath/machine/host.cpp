// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/host.hpp"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "towpath/machine/checks.hpp"

namespace towpath::machine {

namespace {

constexpr int kGenerationMax = 6;
constexpr int kLanesMax = 32;
constexpr int kPayloadMax = 4096;
constexpr int kLineBytes = 64;  // no load or store is longer

void check_page(const Checks& checks, const char* field, std::uint64_t value) {
  if (value >= 1 && value <= kMemoryMax && std::has_single_bit(value)) return;
  checks.fail("{} is {}; it must be a power of two, 2^40 at most", field, value);
}

void check_link(const Checks& checks, const HostLinkFigures& link) {
  checks.number("link.generation", link.generation, 1, kGenerationMax);
  checks.number("link.lanes", link.lanes, 1, kLanesMax);
  checks.power_of_two("link.payload_bytes_max", link.payload_bytes_max, kPayloadMax);
  checks.power_of_two("link.read_request_bytes_max", link.read_request_bytes_max, kPayloadMax);
  checks.power_of_two("link.completion_bytes", link.completion_bytes, kPayloadMax);
  checks.number("link.device_reads_outstanding", link.device_reads_outstanding, 1, kCountMax);
  checks.time("link.read_time", link.read_time);
}

void check_core(const Checks& checks, const HostCoreFigures& core) {
  checks.time("core.call_time", core.call_time);
  checks.rate("core.store_rate", core.store_rate);
  checks.number("core.posted_writes_max", core.posted_writes_max, 1, kCountMax);
  checks.time("core.posted_write_interval", core.posted_write_interval);
  checks.power_of_two("core.uncached_store_bytes", core.uncached_store_bytes, kLineBytes);
  checks.time("core.uncached_store_time", core.uncached_store_time);
  checks.power_of_two("core.load_bytes", core.load_bytes, kLineBytes);
  checks.power_of_two("core.stream_load_bytes", core.stream_load_bytes, kLineBytes);
  checks.number("core.stream_loads_outstanding", core.stream_loads_outstanding, 1, kCountMax);
}

void check_driver(const Checks& checks, const HostDriverFigures& driver) {
  checks.time("driver.window_time", driver.window_time);
  checks.time("driver.dma_time", driver.dma_time);
  checks.memory("driver.bounce_bytes", driver.bounce_bytes);
  checks.memory("driver.cache_bytes", driver.cache_bytes);
  checks.rate("driver.bounce_write_rate", driver.bounce_write_rate);
  checks.rate("driver.bounce_read_rate", driver.bounce_read_rate);
  checks.rate("driver.bounce_write_rate_uncached", driver.bounce_write_rate_uncached);
  checks.rate("driver.bounce_read_rate_uncached", driver.bounce_read_rate_uncached);
}

void check_memory(const Checks& checks, const HostMemoryFigures& memory) {
  check_page(checks, "memory.page_bytes", memory.page_bytes);
  check_page(checks, "memory.hugepage_bytes", memory.hugepage_bytes);
  checks.time("memory.map_time", memory.map_time);
  checks.time("memory.map_page_time", memory.map_page_time);
  checks.time("memory.unmap_time", memory.unmap_time);
  checks.time("memory.unmap_page_time", memory.unmap_page_time);
  checks.time("memory.translation_time", memory.translation_time);
}

}  // namespace

std::shared_ptr<const Host> build_host(Host host) {
  const Checks checks(fmt::format("host '{}'", host.name));
  check_link(checks, host.link);
  check_core(checks, host.core);
  check_driver(checks, host.driver);
  check_memory(checks, host.memory);
  return std::make_shared<const Host>(std::move(host));
}

}  // namespace towpath::machine
