// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/host.hpp"

#include <fmt/format.h>

#include <bit>
#include <stdexcept>
#include <utility>

namespace towpath::machine {

namespace {

constexpr int kGenerationMax = 6;
constexpr int kLanesMax = 32;
constexpr int kPayloadMax = 4096;
constexpr int kLineBytes = 64;  // no load or store is longer
constexpr int kCountMax = 65'536;
constexpr std::uint64_t kMemoryMax = std::uint64_t{1} << 40;
constexpr Time kTimeMax = Time::from_seconds(1);
constexpr Rate kRateMax = Rate::from_gb_per_s(1e6);

// Every sentence names the host.
class Checks {
 public:
  explicit Checks(const std::string& name) : name_(name) {}

  template <typename Value>
  void inside(const char* field, Value value, Value min, Value max) const {
    if (value >= min && value <= max) return;
    fail(fmt::format("{} is {}; it must be {} to {}", field, value, min, max));
  }
  void payload(const char* field, int value) const { power_of_two(field, value, kPayloadMax); }
  void line(const char* field, int value) const { power_of_two(field, value, kLineBytes); }
  void time(const char* field, Time value) const {
    if (value >= Time() && value <= kTimeMax) return;
    fail(fmt::format("{} is {} ns; it must be 0 to {}", field, value.ns(), kTimeMax.ns()));
  }
  void rate(const char* field, Rate value) const {
    if (value > Rate() && value <= kRateMax) return;
    fail(fmt::format("{} is {} GB/s; it must be positive, {} at most", field, value.gb_per_s(),
                     kRateMax.gb_per_s()));
  }
  void page(const char* field, std::uint64_t value) const {
    if (value >= 1 && value <= kMemoryMax && std::has_single_bit(value)) return;
    fail(fmt::format("{} is {}; it must be a power of two, 2^40 at most", field, value));
  }

 private:
  void power_of_two(const char* field, int value, int max) const {
    if (value >= 1 && value <= max && std::has_single_bit(static_cast<unsigned>(value))) return;
    fail(fmt::format("{} is {}; it must be a power of two, {} at most", field, value, max));
  }
  [[noreturn]] void fail(const std::string& problem) const {
    throw std::invalid_argument(fmt::format("host '{}': {}", name_, problem));
  }
  const std::string& name_;
};

void check_link(const Checks& checks, const HostLinkFigures& link) {
  checks.inside("link.generation", link.generation, 1, kGenerationMax);
  checks.inside("link.lanes", link.lanes, 1, kLanesMax);
  checks.payload("link.payload_bytes_max", link.payload_bytes_max);
  checks.payload("link.read_request_bytes_max", link.read_request_bytes_max);
  checks.payload("link.completion_bytes", link.completion_bytes);
  checks.inside("link.device_reads_outstanding", link.device_reads_outstanding, 1, kCountMax);
  checks.time("link.read_time", link.read_time);
}

void check_core(const Checks& checks, const HostCoreFigures& core) {
  checks.time("core.call_time", core.call_time);
  checks.rate("core.store_rate", core.store_rate);
  checks.inside("core.posted_writes_max", core.posted_writes_max, 1, kCountMax);
  checks.time("core.posted_write_interval", core.posted_write_interval);
  checks.line("core.uncached_store_bytes", core.uncached_store_bytes);
  checks.time("core.uncached_store_time", core.uncached_store_time);
  checks.line("core.load_bytes", core.load_bytes);
  checks.line("core.stream_load_bytes", core.stream_load_bytes);
  checks.inside("core.stream_loads_outstanding", core.stream_loads_outstanding, 1, kCountMax);
}

void check_driver(const Checks& checks, const HostDriverFigures& driver) {
  checks.time("driver.window_time", driver.window_time);
  checks.time("driver.dma_time", driver.dma_time);
  checks.inside("driver.bounce_bytes", driver.bounce_bytes, std::uint64_t{1}, kMemoryMax);
  checks.inside("driver.cache_bytes", driver.cache_bytes, std::uint64_t{1}, kMemoryMax);
  checks.rate("driver.bounce_write_rate", driver.bounce_write_rate);
  checks.rate("driver.bounce_read_rate", driver.bounce_read_rate);
  checks.rate("driver.bounce_write_rate_uncached", driver.bounce_write_rate_uncached);
  checks.rate("driver.bounce_read_rate_uncached", driver.bounce_read_rate_uncached);
}

void check_memory(const Checks& checks, const HostMemoryFigures& memory) {
  checks.page("memory.page_bytes", memory.page_bytes);
  checks.page("memory.hugepage_bytes", memory.hugepage_bytes);
  checks.time("memory.map_time", memory.map_time);
  checks.time("memory.map_page_time", memory.map_page_time);
  checks.time("memory.unmap_time", memory.unmap_time);
  checks.time("memory.unmap_page_time", memory.unmap_page_time);
  checks.time("memory.translation_time", memory.translation_time);
}

}  // namespace

std::shared_ptr<const Host> build_host(Host host) {
  const Checks checks(host.name);
  check_link(checks, host.link);
  check_core(checks, host.core);
  check_driver(checks, host.driver);
  check_memory(checks, host.memory);
  return std::make_shared<const Host>(std::move(host));
}

}  // namespace towpath::machine
