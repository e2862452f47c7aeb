// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "towpath/base/units.hpp"
#include "towpath/machine/parameters.hpp"

// A described host: what its processor, its root complex and its driver make of a chip's link. The
// same chip is three times faster on one host than on another, so none of this belongs to the chip.
// Every value comes from a spec (python/towpath/specs/host_spec.py), with its source.

namespace towpath::machine {

inline constexpr Allowed kPayload = power_of_two(64, 4096);
inline constexpr Allowed kLoad = power_of_two(1, 64);  // no load or store is longer than a line
inline constexpr Allowed kPage = power_of_two(4096, 1 << 30);

// The root complex and the slot.
struct HostLinkParameters {
  int generation = 0;
  int lanes = 0;
  int payload_bytes_max = 0;
  int read_request_bytes_max = 0;
  int completion_bytes = 0;
  int device_reads_outstanding = 0;
  Time read_time;
};

inline constexpr Parameter<HostLinkParameters> kHostLinkParameters[] = {
    {"generation", &HostLinkParameters::generation, between(1, 6), "generation of PCIe"},
    {"lanes", &HostLinkParameters::lanes, between(1, 32), "lanes of the slot"},
    {"payload_bytes_max", &HostLinkParameters::payload_bytes_max, kPayload,
     "payload of a write in either direction"},
    {"read_request_bytes_max", &HostLinkParameters::read_request_bytes_max, kPayload,
     "what a device may ask for at once"},
    {"completion_bytes", &HostLinkParameters::completion_bytes, kPayload,
     "what the host answers a device's read with at a time"},
    {"device_reads_outstanding", &HostLinkParameters::device_reads_outstanding, kCount,
     "read requests of a device under way"},
    {"read_time_ns", &HostLinkParameters::read_time, kDurationNs,
     "a read in either direction, without the chip: half of it is one way"},
};

// Loads and stores of one core to a mapped window.
struct HostCoreParameters {
  Time call_time;
  Rate store_rate;
  int posted_writes_max = 0;
  Time posted_write_interval;
  int uncached_store_bytes = 0;
  Time uncached_store_time;
  int load_bytes = 0;
  int stream_load_bytes = 0;
  int stream_loads_outstanding = 0;
  bool copies_words = false;
};

inline constexpr Parameter<HostCoreParameters> kHostCoreParameters[] = {
    {"call_time_ns", &HostCoreParameters::call_time, kDurationNs,
     "a call that writes to or reads from a device, before the first byte"},
    {"store_rate_gb_per_s", &HostCoreParameters::store_rate, kRateGbPerS,
     "rate at which a core fills write-combining buffers"},
    {"posted_writes_max", &HostCoreParameters::posted_writes_max, kCount,
     "writes that have left the core and that the chip has not taken"},
    {"posted_write_interval_ns", &HostCoreParameters::posted_write_interval, kDurationNs,
     "time between two of them"},
    {"uncached_store_bytes", &HostCoreParameters::uncached_store_bytes, kLoad,
     "bytes of a store to uncached memory"},
    {"uncached_store_time_ns", &HostCoreParameters::uncached_store_time, kDurationNs,
     "time of a store to uncached memory"},
    {"load_bytes", &HostCoreParameters::load_bytes, kLoad,
     "bytes of a load of a copy from a window"},
    {"stream_load_bytes", &HostCoreParameters::stream_load_bytes, kLoad,
     "bytes of a streaming load from uncached memory"},
    {"stream_loads_outstanding", &HostCoreParameters::stream_loads_outstanding, kCount,
     "lines of write-combining memory that streaming loads fetch at once"},
    {"copies_words", &HostCoreParameters::copies_words, kYesOrNo,
     "whether a copy reads and writes whole words of 4 bytes only"},
};

struct HostDriverParameters {
  Time window_time;
  Time dma_time;
  int dma_channels = 1;
  std::uint64_t bounce_bytes = 0;
  Rate bounce_write_rate;
  Rate bounce_read_rate;
  std::uint64_t cache_bytes = 0;
  Rate bounce_write_rate_uncached;
  Rate bounce_read_rate_uncached;
};

inline constexpr Parameter<HostDriverParameters> kHostDriverParameters[] = {
    {"window_time_ns", &HostDriverParameters::window_time, kDurationNs,
     "allocating, configuring and freeing a window for one transfer"},
    {"dma_time_ns", &HostDriverParameters::dma_time, kDurationNs,
     "setting a DMA transfer up and noticing its end"},
    {"dma_channels", &HostDriverParameters::dma_channels, kCount,
     "channels of the DMA engine that the driver uses: further transfers wait",
     Form::optional_quantity},
    {"bounce_bytes", &HostDriverParameters::bounce_bytes, kMemory,
     "buffer through which pageable memory goes"},
    {"bounce_write_rate_gb_per_s", &HostDriverParameters::bounce_write_rate, kRateGbPerS,
     "rate of copying into the buffer"},
    {"bounce_read_rate_gb_per_s", &HostDriverParameters::bounce_read_rate, kRateGbPerS,
     "rate of copying out of the buffer"},
    {"cache_bytes", &HostDriverParameters::cache_bytes, kMemory,
     "those rates hold while source, target and buffer fit in it"},
    {"bounce_write_rate_uncached_gb_per_s", &HostDriverParameters::bounce_write_rate_uncached,
     kRateGbPerS, "rate of copying into the buffer beyond that"},
    {"bounce_read_rate_uncached_gb_per_s", &HostDriverParameters::bounce_read_rate_uncached,
     kRateGbPerS, "rate of copying out of the buffer beyond that"},
};

// Pinning host memory for a device, and translating its addresses.
struct HostMemoryParameters {
  bool has_iommu = false;
  bool has_hugepages = false;
  std::uint64_t page_bytes = 0;
  std::uint64_t hugepage_bytes = 0;
  Time map_time;
  Time map_page_time;
  Time unmap_time;
  Time unmap_page_time;
  Time translation_time;
};

inline constexpr Parameter<HostMemoryParameters> kHostMemoryParameters[] = {
    {"has_iommu", &HostMemoryParameters::has_iommu, kYesOrNo, "whether an IOMMU is on"},
    {"has_hugepages", &HostMemoryParameters::has_hugepages, kYesOrNo,
     "whether what devices reach is in hugepages"},
    {"page_bytes", &HostMemoryParameters::page_bytes, kPage, "size of a page"},
    {"hugepage_bytes", &HostMemoryParameters::hugepage_bytes, kPage, "size of a hugepage"},
    {"map_time_ns", &HostMemoryParameters::map_time, kDurationNs,
     "mapping a buffer, besides its pages"},
    {"map_page_time_ns", &HostMemoryParameters::map_page_time, kDurationNs, "mapping a page"},
    {"unmap_time_ns", &HostMemoryParameters::unmap_time, kDurationNs,
     "unmapping a buffer, besides its pages"},
    {"unmap_page_time_ns", &HostMemoryParameters::unmap_page_time, kDurationNs, "unmapping a page"},
    {"translation_time_ns", &HostMemoryParameters::translation_time, kDurationNs,
     "the first access to a page that the IOMMU does not remember"},
};

// Immutable; made by build_host.
struct Host {
  std::string name;
  HostLinkParameters link;
  HostCoreParameters core;
  HostDriverParameters driver;
  HostMemoryParameters memory;

  std::uint64_t page_bytes() const {
    return memory.has_hugepages ? memory.hugepage_bytes : memory.page_bytes;
  }
};

// Calls visit(name, needed, block, table) for every block of a host.
template <AnyConst<Host> AnyHost, typename Visit>
void for_each_block(AnyHost& host, const Visit& visit) {
  visit("link", Needed::always, host.link, kHostLinkParameters);
  visit("core", Needed::always, host.core, kHostCoreParameters);
  visit("driver", Needed::always, host.driver, kHostDriverParameters);
  visit("memory", Needed::always, host.memory, kHostMemoryParameters);
}

// Checks a description. Throws DescriptionError (checks.hpp), one sentence on the first thing that
// does not fit.
std::shared_ptr<const Host> build_host(Host host);

}  // namespace towpath::machine
