// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/host.hpp"

#include <utility>

#include "towpath/machine/checks.hpp"
#include "towpath/machine/parameters.hpp"

namespace towpath::machine {

namespace {

constexpr Allowed kPayload = power_of_two(64, 4096);
constexpr Allowed kLoad = power_of_two(1, 64);  // a load or store is at most a cache line
constexpr Allowed kPage = power_of_two(4096, 1 << 30);

constexpr Parameter kHostLinkParameters[] = {
    {TOWPATH_PARAMETER(HostLinkParameters, generation), between(1, 6), "generation of PCIe"},
    {TOWPATH_PARAMETER(HostLinkParameters, lanes), between(1, 32), "lanes of the slot"},
    {TOWPATH_PARAMETER(HostLinkParameters, payload_bytes_max), kPayload,
     "payload of a write in either direction"},
    {TOWPATH_PARAMETER(HostLinkParameters, read_request_bytes_max), kPayload,
     "what a device may ask for at once"},
    {TOWPATH_PARAMETER(HostLinkParameters, completion_bytes), kPayload,
     "what the host answers a device's read with at a time"},
    {TOWPATH_PARAMETER(HostLinkParameters, device_reads_outstanding), kCount,
     "read requests of a device under way"},
    {"read_time_ns", TOWPATH_MEMBER(HostLinkParameters, read_time), kDurationNs,
     "a read in either direction, without the chip: half of it is one way"},
};

constexpr Parameter kHostCoreParameters[] = {
    {"call_time_ns", TOWPATH_MEMBER(HostCoreParameters, call_time), kDurationNs,
     "a call that writes to or reads from a device, before the first byte"},
    {"store_rate_gb_per_s", TOWPATH_MEMBER(HostCoreParameters, store_rate), kRateGbPerS,
     "rate at which a core fills write-combining buffers"},
    {TOWPATH_PARAMETER(HostCoreParameters, posted_writes_max), kCount,
     "writes that have left the core and that the chip has not taken"},
    {"posted_write_interval_ns", TOWPATH_MEMBER(HostCoreParameters, posted_write_interval),
     kDurationNs, "time between two of them"},
    {TOWPATH_PARAMETER(HostCoreParameters, uncached_store_bytes), kLoad,
     "bytes of a store to uncached memory"},
    {"uncached_store_time_ns", TOWPATH_MEMBER(HostCoreParameters, uncached_store_time), kDurationNs,
     "time of a store to uncached memory"},
    {TOWPATH_PARAMETER(HostCoreParameters, load_bytes), kLoad,
     "bytes of a load of a copy from a window"},
    {TOWPATH_PARAMETER(HostCoreParameters, stream_load_bytes), kLoad,
     "bytes of a streaming load from uncached memory"},
    {TOWPATH_PARAMETER(HostCoreParameters, stream_loads_outstanding), kCount,
     "lines of write-combining memory that streaming loads fetch at once"},
    {TOWPATH_PARAMETER(HostCoreParameters, copies_words), kYesOrNo,
     "whether a copy reads and writes whole words of 4 bytes only"},
};

constexpr Parameter kHostDriverParameters[] = {
    {"window_time_ns", TOWPATH_MEMBER(HostDriverParameters, window_time), kDurationNs,
     "allocating, configuring and freeing a window for one transfer"},
    {"dma_time_ns", TOWPATH_MEMBER(HostDriverParameters, dma_time), kDurationNs,
     "setting a DMA transfer up and noticing its end"},
    {TOWPATH_PARAMETER(HostDriverParameters, dma_channels), kCount,
     "channels of the DMA engine that the driver uses: further transfers wait",
     Form::optional_quantity},
    {TOWPATH_PARAMETER(HostDriverParameters, bounce_bytes), kMemory,
     "buffer through which pageable memory goes"},
    {"bounce_write_rate_gb_per_s", TOWPATH_MEMBER(HostDriverParameters, bounce_write_rate),
     kRateGbPerS, "rate of copying into the buffer"},
    {"bounce_read_rate_gb_per_s", TOWPATH_MEMBER(HostDriverParameters, bounce_read_rate),
     kRateGbPerS, "rate of copying out of the buffer"},
    {TOWPATH_PARAMETER(HostDriverParameters, cache_bytes), kMemory,
     "those rates hold while source, target and buffer fit in it"},
    {"bounce_write_rate_uncached_gb_per_s",
     TOWPATH_MEMBER(HostDriverParameters, bounce_write_rate_uncached), kRateGbPerS,
     "rate of copying into the buffer beyond that"},
    {"bounce_read_rate_uncached_gb_per_s",
     TOWPATH_MEMBER(HostDriverParameters, bounce_read_rate_uncached), kRateGbPerS,
     "rate of copying out of the buffer beyond that"},
};

constexpr Parameter kHostMemoryParameters[] = {
    {TOWPATH_PARAMETER(HostMemoryParameters, has_iommu), kYesOrNo, "whether an IOMMU is on"},
    {TOWPATH_PARAMETER(HostMemoryParameters, has_hugepages), kYesOrNo,
     "whether what devices reach is in hugepages"},
    {TOWPATH_PARAMETER(HostMemoryParameters, page_bytes), kPage, "size of a page"},
    {TOWPATH_PARAMETER(HostMemoryParameters, hugepage_bytes), kPage, "size of a hugepage"},
    {"map_time_ns", TOWPATH_MEMBER(HostMemoryParameters, map_time), kDurationNs,
     "mapping a buffer, besides its pages"},
    {"map_page_time_ns", TOWPATH_MEMBER(HostMemoryParameters, map_page_time), kDurationNs,
     "mapping a page"},
    {"unmap_time_ns", TOWPATH_MEMBER(HostMemoryParameters, unmap_time), kDurationNs,
     "unmapping a buffer, besides its pages"},
    {"unmap_page_time_ns", TOWPATH_MEMBER(HostMemoryParameters, unmap_page_time), kDurationNs,
     "unmapping a page"},
    {"translation_time_ns", TOWPATH_MEMBER(HostMemoryParameters, translation_time), kDurationNs,
     "the first access to a page that the IOMMU does not remember"},
};

constexpr BlockTable kHostTables[] = {
    {"link", offsetof(Host, link), kHostLinkParameters},
    {"core", offsetof(Host, core), kHostCoreParameters},
    {"driver", offsetof(Host, driver), kHostDriverParameters},
    {"memory", offsetof(Host, memory), kHostMemoryParameters},
};

}  // namespace

std::span<const BlockTable> host_tables() { return kHostTables; }

std::shared_ptr<const Host> build_host(Host host) {
  const Checks checks(fmt::format("host '{}'", host.name));
  for (const BlockTable& table : host_tables()) checks.blocks(&host, table);
  const HostMemoryParameters& memory = host.memory;
  if (memory.hugepage_bytes <= memory.page_bytes) {
    checks.fail_at("memory.hugepage_bytes", "is {}; it must be more than {}, the page_bytes",
                   memory.hugepage_bytes, memory.page_bytes);
  }
  return std::make_shared<const Host>(std::move(host));
}

}  // namespace towpath::machine
