// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "towpath/base/units.hpp"

// A described host: the effect of its processor, root complex and driver on a chip's link. The same
// chip can be three times faster on another host, so these values are not the chip's. Every value
// comes from a spec (python/towpath/specs/host_spec.py), with its source.

namespace towpath::machine {

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

// Pinning of host memory for a device, and address translation.
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

// Immutable. Created by build_host.
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

// Checks a description. Throws DescriptionError (checks.hpp) for the first inconsistency.
std::shared_ptr<const Host> build_host(Host host);

}  // namespace towpath::machine
